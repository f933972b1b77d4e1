"""The real packages of other frameworks, in a folder of their own: nothing else here needs their many dependencies."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HOME = Path(__file__).resolve().parents[2] / ".bench" / "interop"
REQUIREMENTS = Path(__file__).with_name("requirements.txt")


def install() -> None:
    """Put the packages into their folder, once for each state of the list with hashes."""
    stamp = HOME / "installed"
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--upgrade"]
    subprocess.run([*pip, "--target", HOME, "-r", REQUIREMENTS], check=True)
    stamp.write_text(wanted)


@pytest.fixture(scope="session")
def frameworks() -> Iterator[None]:
    """LangChain and LlamaIndex can be imported."""
    install()
    sys.path.append(str(HOME))  # last: nothing of ours may be shadowed
    yield
    sys.path.remove(str(HOME))
