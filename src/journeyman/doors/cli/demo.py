"""``journeyman demo``: the guided tour of ``examples/demo.py``, in a wheel ``journeyman/examples/demo.py``."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from journeyman.doors.cli.options import Log, Yes

TOUR = "journeyman.examples.demo"


def demo(yes: Yes = False, log_level: Log = None) -> None:
    """A guided tour on the embedded model, over real tasks, in a store of its own. No key, no network."""
    tour().demo(yes=yes, log_level=log_level)


def tour() -> ModuleType:
    """The tour's program, installed or beside the source."""
    if TOUR in sys.modules:
        return sys.modules[TOUR]
    spec = importlib.util.find_spec("journeyman.examples") and importlib.util.find_spec(TOUR)
    if spec is None:
        spec = importlib.util.spec_from_file_location(TOUR, Path(__file__).parents[4] / "examples" / "demo.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[TOUR] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
