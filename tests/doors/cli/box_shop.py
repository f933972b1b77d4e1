"""A module of tools as text: to be written into a test's folder, where the program under test imports it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.waiting import WAIT_SECONDS

SOURCE = '''
import os, signal
from pathlib import Path

from journeyman import Agent, RiskLevel, ToolLibrary, tool

def _perhaps_die():
    """Die once, as from outside: no exception, no clean-up."""
    if Path("deadly").exists():
        Path("deadly").unlink()
        os.kill(os.getpid(), signal.SIGKILL)

def _note(text):
    with Path("effects.txt").open("a") as file:
        file.write(text + "\\n")

@tool(read_only=True)
def count_boxes(shelf: str) -> int:
    """Count the boxes on a shelf. Use when the user asks for a number of boxes."""
    _perhaps_die()
    return 3

@tool(risk=RiskLevel.IRREVERSIBLE)
def burn_shelf(shelf: str) -> str:
    """Burn a shelf. Use when the user is cold."""
    _note(f"burnt {shelf}")
    return "ashes"

@tool(risk=RiskLevel.REVERSIBLE)
def ring_bell(times: int) -> str:
    """Ring the bell. Use when the user wants noise."""
    _note(f"rang {times}")
    _perhaps_die()
    return "dong"

library = ToolLibrary([count_boxes, burn_shelf, ring_bell])
agent = Agent(name="keeper", instruction="Keep the shelves.", tools=(count_boxes, burn_shelf, ring_bell))
'''
NOISY = '''
import atexit, ctypes, os, sys, threading
from journeyman import Agent, ToolLibrary, tool

EVIL = "\\x1b[2J"
print("imported", EVIL)
atexit.register(print, "at exit", EVIL)

def _everywhere():
    print("printed", EVIL)
    print("unfinished", EVIL, end="")
    sys.__stdout__.write("to the original" + EVIL)
    os.write(1, b"to the descriptor" + EVIL.encode())
    os.system("printf 'from a child \\033[2J'")
    ctypes.CDLL(None).printf(b"held by the C library \\033[2J")
    late = threading.Timer(0.2, print, ["late", EVIL])
    late.daemon = False  # the process waits for it
    late.start()
    return "done"

@tool(read_only=True)
def shout() -> str:
    """Print a lot."""
    return _everywhere()

@tool(read_only=True, isolation="process")
def shout_apart() -> str:
    """Print a lot, in a process of its own."""
    return _everywhere()

library = ToolLibrary([shout, shout_apart])
agent = Agent(name="noisy", instruction="Shout.", tools=(shout, shout_apart))
'''
"""Tools that print in every way there is."""
AGENT = ("--agent", "boxshop:agent")
LIBRARY = ("--library", "boxshop")
PROGRAM = "from journeyman.doors.cli import main; main()"


def printing_environment(*, buffered: bool) -> dict[str, str]:
    """Ours, with or without the variable that has Python write at once, which hides what a buffer holds until exit."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return environment if buffered else {**environment, "PYTHONUNBUFFERED": "1"}


def effects(folder: Path) -> list[str]:
    noted = folder / "effects.txt"
    return noted.read_text().splitlines() if noted.exists() else []


def program(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, with nobody at a terminal."""
    command = [sys.executable, "-c", PROGRAM, *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=WAIT_SECONDS, stdin=subprocess.DEVNULL, check=False
    )
