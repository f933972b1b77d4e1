"""Writes the vectors of ``surroundings.txt`` beside it: 200 texts would cost every new process a second or two."""

import asyncio
import base64
import json
from pathlib import Path

import numpy as np

from journeyman import choosing
from journeyman.core.words import packaged_text
from journeyman.retrieval.embedders.minilm import MiniLM
from journeyman.retrieval.index import unit

FILE = Path(choosing.__file__).with_name("surroundings.json")


async def main() -> None:
    lines = packaged_text("journeyman.choosing", "surroundings.txt").splitlines()
    rows = unit(await MiniLM().embed([line for line in lines if not line.startswith("#")]))
    scale = float(np.abs(rows).max()) / 127
    small = np.round(rows / scale).astype(np.int8)
    kept = {"scale": scale, "shape": small.shape, "rows": base64.b64encode(small.tobytes()).decode()}
    FILE.write_text(json.dumps(kept) + "\n", encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
