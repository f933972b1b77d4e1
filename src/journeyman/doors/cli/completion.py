"""``journeyman completion``, and what it completes: commands, options and closed sets of values, as the kept helps say.

The scripts call ``journeyman`` with the words typed so far, and ``VARIABLE`` says that they want words back. That needs
no command, so it loads none. Where nothing fits, the shell goes on with the names of files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from journeyman.core.words import packaged_text
from journeyman.doors.cli import COMPLETES as VARIABLE
from journeyman.doors.cli import kept_helps

Shell: TypeAlias = Literal["bash", "zsh", "fish"]
_CHOICES = re.compile(r"[a-z-]+(\|[a-z-]+)+")


def completion(shell: Shell) -> None:
    """Print what makes a shell complete commands and options.

    bash, in ~/.bashrc, and zsh, in ~/.zshrc: eval "$(journeyman completion bash)". fish, in
    ~/.config/fish/config.fish: journeyman completion fish | source.
    """
    print(packaged_text(__package__, f"templates/completion.{shell}.txt"), end="")


def complete(typed: Sequence[str]) -> None:
    """Print what the last word, which may be empty, can become, a line each, in the form that the shell wants."""
    form = os.environ[VARIABLE]
    for word, said in candidates(typed):
        print(word if form == "words" or not said else f"{word}{':' if form == 'colon' else chr(9)}{said}")


def candidates(typed: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Words, each with what it means."""
    *before, begun = typed or [""]
    helps, place = kept_helps(), ""
    for word in before:
        longer = f"{place} {word}".strip()
        place = longer if longer in helps else place
    options = [(head.replace(",", "").split(), said) for head, said in _entries(helps[place], "Options:")]
    value = next((names[-1] for names, _ in options if before[-1:] and before[-1] in names[:-1]), "-")
    if not value.startswith("-"):
        offered = _choices(value)
    elif begun.startswith("-"):
        offered = [(name, said) for names, said in options for name in names if name.startswith("--")]
    else:
        usage = [helps[place].partition("\n")[0], *(head for head, _ in _entries(helps[place], "Arguments:"))]
        offered = [*_entries(helps[place], "Commands:"), *_choices(" ".join(usage))]
    return ((word, said) for word, said in offered if word.startswith(begun))


def _entries(text: str, heading: str) -> list[tuple[str, str]]:
    """The rows below a heading of a help: what is typed, and the first sentence about it."""
    section = text.partition(f"\n{heading}\n")[2].partition("\n\n")[0]
    rows = re.findall(r"^  (\S.*(?:\n    .*)*)", section, re.MULTILINE)
    parts = (re.split(r" {2,}|\n\s+", row, maxsplit=1) for row in rows)
    return [(head, re.split(r"\.(?:\s|$)", " ".join(" ".join(said).split()))[0]) for head, *said in parts]


def _choices(text: str) -> list[tuple[str, str]]:
    choices = _CHOICES.search(text)
    return [(word, "") for word in choices[0].split("|")] if choices else []
