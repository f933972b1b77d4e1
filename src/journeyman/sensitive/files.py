"""Paths of files that hold credentials, keys, private histories or the accounts of a machine.

Where a whole place is private (``/etc``, hidden entries of a home folder), everything in it counts except what is known
to be harmless: what nobody thought of is asked about.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import pairwise

from journeyman.core.words import WordLists

known = WordLists("journeyman.sensitive", "files.txt")

LONGEST = 16_384
"""Of a longer text, which is no path but a document, only so much is looked at."""


_BREAKS = str.maketrans(dict.fromkeys("\t\r\0'\"`=:;,<>()[]{}$&?#@*!", "\n") | {" ": "|", "\\": "/", "\ufffd": "/"})
_NOT_A_LETTER = re.compile(r"[^a-z0-9]+")


def names_secret_file(text: str) -> bool:
    """Whether a text names a file or folder that nobody should look at without being asked."""
    if "/" not in text and "\\" not in text and "." not in text and "_" not in text:
        return text.lower() in known.files
    text = text[:LONGEST]
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)  # full-width letters and slashes
    text = text.lower()
    # Behind "scheme:" two slashes are followed by a host, except for files.
    return any(_secret_path(path, remote=path[:2] == "//" != path[1:3] and "://" in text) for path in _paths(text))


def secret_parts(parts: Sequence[str]) -> bool:
    """The same of the names of nested folders and of a file in them."""
    return _secret_path("/".join(parts).lower().replace(" ", "|"), remote=False)


def in_secret_folder(parts: Sequence[str]) -> bool:
    """Whether one of nested folders is a hidden one that holds credentials."""
    return any(name.startswith(".") and name.lower() in known.folders for name in parts)


def _paths(text: str) -> Iterator[str]:
    """The paths in a text. A blank separates two, or is part of a name: both readings are given, where they may be."""
    pieces = [piece for piece in text.translate(_BREAKS).split("\n") if piece]
    for whole in pieces:
        if "|" not in whole:
            yield whole
        else:
            if "/" in whole or len(pieces) == 1:
                yield whole
            # Most are words of prose, which name nothing by themselves.
            yield from (word for word in whole.split("|") if word and (not word.isalnum() or word in known.files))


def _secret_path(path: str, *, remote: bool) -> bool:
    names, climbed = _resolved(path)
    if not names:
        return False
    if not known.folders.isdisjoint(names[:-1]) or (
        names[-1] in known.folders and (len(names) > 1 or names[-1][0] == ".")
    ):
        return True
    folders = () if remote else names[:-1]
    if _secret_file(names[-1], folders) or not known.files.isdisjoint(names):
        return True
    kept, _, extension = names[-1].rpartition(".")
    if kept and extension in known.backups and _secret_file(kept, folders):
        return True
    pairs = list(pairwise(names))
    if any(f"{folder}/{name}" in known.pairs or f"{folder}/" in known.pairs for folder, name in pairs):
        return True
    if remote:
        return False
    if any(name[0] == "." and _hidden(name) for name in (names if "/" in path else ())):
        return True
    # On a Mac /private is where /tmp and /var are.
    begin = 1 if path.startswith("/private/") else 0
    if (
        not known.secret_folders.isdisjoint(names[begin:-1])
        and extension not in known.programs
        and names[-1] not in IGNORED
    ):
        return True
    # The settings of a program that may keep its credentials among them.
    if any(folder == ".config" and "." not in name and name not in known.config_harmless for folder, name in pairs):
        return True
    if not known.program_folders.isdisjoint(folders) and known.sources.isdisjoint(names):
        return True
    if _secret_place(names, rooted=climbed or path.startswith("/")):
        return True
    browser = any(name in known.browsers for name in names)
    return browser and any(name in known.profile for name in names[1:])


def _resolved(path: str) -> tuple[list[str], bool]:
    """The names on a path without "." and "..", and whether it climbs out of where it begins."""
    names: list[str] = []
    climbed = False
    for step in path.split("/"):
        name = step.rstrip(".|~" if len(step) > 1 else ".|").lstrip("|")
        if name:
            names.append(name)
        elif step.startswith(".."):
            climbed = climbed or not names
            del names[-1:]
    return names, climbed


IGNORED = frozenset({".gitignore", ".gitkeep", ".keep"})


def _secret_file(name: str, folders: Sequence[str]) -> bool:
    """Whether a file's name says by itself that it is a secret. In an address no folders are given."""
    stem, point, extension = name.rpartition(".")
    if stem.isidentifier() and "_" in extension:
        return False  # ``client.client_secret`` of a program
    if name in known.files or name.endswith(tuple(known.endings)):
        return True
    if point and (extension in known.extensions or f".{extension}" in known.files or name[1:] in known.files):
        return True
    data = bool(folders) and known.sources.isdisjoint(folders)
    if data and f".{name}" in known.files:
        return True
    dot = "." in name[1:]
    if (
        not dot
        and name.endswith(tuple(known.keys))
        and name not in known.keys
        and (folders or "_history" not in name or point)
    ):
        return True
    if name.startswith(".env") and (name == ".env" or name[4] in ".-_"):
        return True
    if dot and extension in known.programs:
        return extension in known.scripts and stem in known.script_stems and data
    if name.startswith(tuple(known.beginnings)) and (dot or data):
        return True
    if not dot and not (point or name in known.bare):
        return data and _secret_word(name)
    words = _NOT_A_LETTER.split(name)
    if not known.harmless_words.isdisjoint(words) or not (dot or folders):
        return False
    return _secret_words(words)


def _secret_words(words: Sequence[str]) -> bool:
    """Whether one of a name's words, or several together, say that it is a secret."""
    if len(words) > 1:
        before, last = words[-2:]
        if last in known.settings and not known.services.isdisjoint(words):
            return True
        if (last in known.key_data and before in ("key", "keys")) or (
            last in known.documents and before in known.lists
        ):
            return True
        if last in known.data and (before.endswith("vault") or (len(words) == 2 and before in known.clouds)):
            return True
    if not known.secret_words.isdisjoint(words) or any(word.endswith(tuple(known.word_ends)) for word in words):
        return True
    joined = "".join(words)
    if any(word in joined for word in known.joined):
        return True
    return any(f"{one}:{two}" in known.secret_pairs for one, two in pairwise(words))


def _secret_word(name: str) -> bool:
    """The same of a name without an extension, which may be a folder's: a single word, or the last one, decides."""
    if name in known.bare_words:
        return True
    words = _NOT_A_LETTER.split(name)
    if len(words) == 1:
        return any(word in name for word in known.joined)
    return words[-1] in known.bare_ends or f"{words[-2]}:{words[-1]}" in known.secret_pairs


def _hidden(name: str) -> bool:
    """Whether a hidden name is none of those that projects use for the settings of their tools."""
    if name in known.home_harmless or name in known.project_harmless or name.endswith(("ignore", "_cache")):
        return False
    if not (name[1:2].isalnum() or name[1:2] == "_"):
        return False  # such as "...", which is no name
    stem, _, extension = name[1:].partition(".")
    return stem not in known.tools and extension not in ("yml", "yaml", "toml", "js", "cjs", "mjs", "json")


def _secret_place(names: Sequence[str], *, rooted: bool) -> bool:
    """Whether a path leads into the machine's own files, or into the private part of a home folder."""
    for index, name in enumerate(names[:5]):
        inside = names[index + 1 :]
        if not inside:
            return False
        if name == "etc" and (
            inside[0] in known.etc_always or (rooted and index < 4 and inside[0] not in known.etc_harmless)
        ):
            return True
        if index == 0 and rooted and _machine(name, inside):
            return True
        if (
            name in ("~", "home", "users", "root", "%userprofile%", "homepath", "userprofile", "%homepath%")
            or name[0] == "~"
        ):
            owned = inside if name not in ("home", "users") or not rooted else inside[1:]
            if owned and _private(owned):
                return True
    return False


def _machine(name: str, inside: Sequence[str]) -> bool:
    below = inside[1] if len(inside) > 1 else ""
    match name:
        case "root":
            return True
        case "proc":
            return below in known.process_secrets or inside[0] in ("kcore", "kmem", "keys")
        case "dev":
            return inside[0] not in known.devices_harmless
        case "run":
            return inside[0] in ("secrets", "user", "credentials")
        case "var":
            private = inside[0] in ("spool", "mail", "backups") or (inside[0] == "run" and below in ("secrets", "user"))
            state = inside[0] in ("lib", "db") and below not in known.state_harmless and below != ""
            return private or state or (inside[0] in ("log", "adm") and below in known.logs)
        case _:
            return False


def _private(inside: Sequence[str]) -> bool:
    """Whether this is a hidden entry of a home folder that may hold credentials."""
    first, second = inside[0], inside[1] if len(inside) > 1 else ""
    if first == ".config":
        return bool(second) and second not in known.config_harmless
    if first == "library":
        return second in known.library
    return first.startswith(".") and first not in known.home_harmless
