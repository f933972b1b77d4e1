"""From a Python file to the experiment in it."""

from __future__ import annotations

import sys
import traceback
from contextlib import redirect_stdout
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from journeyman.app.experiments import Experiment
from journeyman.doors.cli.options import WrongUsageError

NAME = "experiment"
EXAMPLE = f"{NAME} = Experiment(agent, arms, inputs, score=..., runner=run)"


def load_experiment(file: Path) -> Experiment:
    """Run a file as a module and take its ``experiment``."""
    if file.suffix != ".py" or not file.is_file():
        what = "is no Python file" if file.exists() else "is not there"
        raise WrongUsageError(f"FILE {str(file)!r} {what}; give a Python file with a line: {EXAMPLE}")
    module = _module(file.resolve(), shown=str(file))
    found = vars(module).get(NAME)
    if isinstance(found, Experiment):
        return found
    if found is not None:
        raise WrongUsageError(f"{NAME!r} in {str(file)!r} is a {type(found).__name__}; write: {EXAMPLE}")
    others = [name for name, value in vars(module).items() if isinstance(value, Experiment)]
    hint = f"; rename {others[0]!r}" if others else f"; write: {EXAMPLE}"
    raise WrongUsageError(f"{str(file)!r} defines no {NAME!r}{hint}")


def _module(file: Path, *, shown: str) -> ModuleType:
    name = file.stem
    loaded = sys.modules.get(name)
    if loaded is not None and getattr(loaded, "__file__", None) != str(file):
        # Under another name, tools in processes of their own could not be found.
        raise WrongUsageError(f"{shown!r} has the name of another module, {name!r}; rename the file")
    for place in (str(Path.cwd()), str(file.parent)):
        if place not in sys.path:
            sys.path.insert(0, place)
    spec = spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    try:
        with redirect_stdout(sys.stderr):
            spec.loader.exec_module(module)
    except Exception as error:  # a file's code can raise anything
        del sys.modules[name]
        where = _line(error, file)
        raise WrongUsageError(f"{shown!r} cannot be loaded{where}: {type(error).__name__}: {error}") from error
    return module


def _line(error: Exception, file: Path) -> str:
    """Where in the file it went wrong, as far as that is known."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    if isinstance(error, SyntaxError) and error.filename == str(file):
        lines.append(error.lineno)
    return f" (line {lines[-1]})" if lines else ""
