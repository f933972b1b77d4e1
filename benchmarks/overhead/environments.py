"""The Python environments of the contenders: made on first use under `.bench/`, from lists with hashes.

Our own contender runs in the environment this benchmark was started from.
"""

import hashlib
import subprocess
import sys
from pathlib import Path

from benchmarks.overhead.scenarios import Contender

ROOT = Path(__file__).resolve().parents[2]


def python_of(contender: Contender) -> str:
    """The interpreter that runs a contender; its environment is made or renewed when its list has changed."""
    if contender.startswith("journeyman"):
        return sys.executable
    name = contender.replace("_", "-")
    requirements = Path(__file__).with_name(f"requirements-{name}.txt")
    home = ROOT / ".bench" / name
    python = home / "bin" / "python"
    stamp = home / "installed"
    wanted = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"preparing the environment of {contender} in {home.relative_to(ROOT)}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--require-hashes", "-r", str(requirements)]
        subprocess.run(install, check=True)
        stamp.write_text(wanted)
    return str(python)
