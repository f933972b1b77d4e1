"""Runs one step of an installation and says what it is, how far it is and how long it took.

``python scripts/step.py LABEL PARTS COMMAND...``: PARTS is how many packages pip collects, 0 where that is not known.
What the command prints is shown where it fails.
"""

from __future__ import annotations

import subprocess
import sys
import time

WIDTH = 79
LOG_SECONDS = 10
"""How often a log, where nothing can be redrawn, is told how far it is."""


def main() -> int:
    label, parts, *command = sys.argv[1:]
    live, began, said = sys.stdout.isatty(), time.monotonic(), list[str]()
    print(f"{label} …", end="" if live else "\n", flush=True)
    collected, told = 0, began
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)
            words = line.split()
            if words[:1] == ["Collecting"] or line.startswith("Requirement already satisfied"):
                collected += 1
            if not live and time.monotonic() - told > LOG_SECONDS:
                told = time.monotonic()
                print(f"  {f'{collected} of {parts}, ' if parts != '0' else ''}{told - began:.0f} s", flush=True)
            if live and words:
                progress = f" {min(collected, int(parts))} of {parts}" if parts != "0" else ""
                print(f"\r{f'{label} …{progress} {words[0]} {words[-1]}'[:WIDTH]:<{WIDTH}}", end="", flush=True)
    if process.returncode:
        print(f"\r{f'{label}: failed':<{WIDTH if live else 0}}", flush=True)
        sys.stderr.writelines(said)
        return process.returncode
    done = f"{label}: {time.monotonic() - began:.0f} s"
    print(f"\r{done:<{WIDTH}}" if live else f"  done in {time.monotonic() - began:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
