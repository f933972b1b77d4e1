"""A terminal in which the commands of a page are typed, one after the other."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import ROOT, Command
from tests.doors.cli.driving import AT_A_TERMINAL
from tests.waiting import wait_until

STAYS = re.compile(r"^(\w+=\S+ )*journeyman (serve|worker)\b")
"""Commands that run until they are stopped: the reader types them in a terminal of their own."""
MAIN = "from journeyman.doors.cli import main; main()"
READY = re.compile(r"listening on |journeyman worker: ready")
PORT = "8000"
"""Where the pages' service listens. In a test that may be taken, so a free port stands for it everywhere."""


class Terminal:
    """A shell in a folder, with `journeyman` and `python` on its path, no keys and no model but the embedded one.

    Nothing else differs from a reader's terminal, except that another port stands for 8000. ``packages`` are folders of
    what the page tells the reader to install.
    """

    def __init__(self, folder: Path, programs: Path, *packages: str) -> None:
        self.folder = folder
        self._port = str(_free_port())
        self._started: list[int] = []
        programs.mkdir()
        _program(programs / "python", f'exec {sys.executable} "$@"')
        _program(
            programs / "journeyman",
            f'if [ "$1" = serve ]; then shift; set -- serve --port {self._port} "$@"; fi\n'
            f'case "$1 $2" in "approvals approve"|"approvals deny"|"runs resolve"|"trust "*) '
            f'set -- -c "{AT_A_TERMINAL}" {sys.executable} -P -c "{MAIN}" "$@";; *) set -- -P -c "{MAIN}" "$@";; esac\n'
            f'exec {sys.executable} "$@"',
        )
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "JOURNEYMAN_"))}
        self._shell = subprocess.Popen(
            ["bash", "--norc"],
            cwd=folder,
            env={
                **kept,
                "PATH": f"{programs}:{os.environ['PATH']}",
                "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *packages]),
                "PYTHONUNBUFFERED": "1",  # as in a terminal: what is printed first is seen first
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    @property
    def here(self) -> Path:
        """The folder in which the reader is by now."""
        return Path(self._run("pwd")[1])

    def type(self, command: Command) -> tuple[int, str, str]:
        """Run one command of a page; gives its exit code, what it printed, and what the page says it prints."""
        text, wanted = self._moved(command.text), self._moved(command.output)
        if not STAYS.match(text):
            return *self._run(f"{{ {text}\n}} </dev/null"), wanted
        log = self.folder.parent / f"service-{len(self._started)}.log"
        log.touch()  # the shell makes it in the background
        _, pid = self._run(f"{{ exec {_without_exec(text)}\n}} </dev/null >{log} 2>&1 & echo $!")
        self._started.append(int(pid))

        def ready() -> bool:
            assert _alive(int(pid)), f"{text!r} ended: {log.read_text()}"
            printed = log.read_text()
            return matches(printed, wanted) if wanted else READY.search(printed) is not None

        wait_until(ready)
        return 0, log.read_text(), wanted

    def close(self) -> None:
        for pid in self._started:
            self._run(f"kill {pid}; wait {pid}")
        assert self._shell.stdin is not None
        with self._shell:  # closes its pipes, and waits for it
            self._shell.stdin.close()

    def _run(self, text: str) -> tuple[int, str]:
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        # The exit code stays what it was, for a page's `echo $?`.
        self._shell.stdin.write(f"(exit ${{__code:-0}})\n{text}\n__code=$?; printf '\\0%s\\0\\n' $__code\n")
        self._shell.stdin.flush()
        printed = ""
        while (line := self._shell.stdout.readline()) and "\0" not in line:
            printed += line
        last, code, _ = line.split("\0")
        return int(code), (printed + last).strip()

    def _moved(self, text: str) -> str:
        return re.sub(rf"(?<=:){PORT}\b", self._port, text)


def matches(printed: str, wanted: str) -> bool:
    """Whether this was printed, where `…` stands for anything."""
    pattern = re.escape(_plain(wanted)).replace("…", "(?s:.*?)")
    return re.fullmatch(pattern, _plain(printed)) is not None


def _plain(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def _without_exec(text: str) -> str:
    """`exec` takes no variables before the program's name; `env` does."""
    return f"env {text}" if re.match(r"\w+=", text) else text


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIG_DFL)
    except ProcessLookupError:
        return False
    return True


def _program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
