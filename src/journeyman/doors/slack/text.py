"""Text on its way to Slack and back: Markdown as mrkdwn, long answers in parts, a person's message as plain text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from journeyman.core.words import Patterns

_marked = Patterns("journeyman.doors.slack", "markdown.txt")
LONGEST_PART = 2_900
"""Characters of one message: a section block takes 3,000."""
FENCE = "```"

_MARK, _OPEN, _CLOSE = "\x01", "\x02", "\x03"
"""Stand for the star of bold text and the brackets of links, until italics are found and all else is escaped."""
_NO_MARKS = str.maketrans(dict.fromkeys(_MARK + _OPEN + _CLOSE))


_ALL = re.compile(r"(?<![\w/])@(?=(?:channel|here|everyone|group)\b)", re.IGNORECASE)


def escaped(text: str) -> str:
    """Text in which Slack sees no mention, no link and no channel: a model's or a tool's words call nobody."""
    return _ALL.sub("@\u200b", _bare(text))  # an invisible character keeps Slack from calling everybody


def _bare(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def code(text: str) -> str:
    """Text in a box of its own, whatever is in it."""
    return f"{FENCE}\n{_boxed(text)}\n{FENCE}"


def _boxed(text: str) -> str:
    return _bare(text).replace(FENCE, "`\u200b``")  # an invisible character keeps them from ending the box


Mentions: TypeAlias = Callable[[str], str]
_OTHERS = rf"{_OPEN}[^{_CLOSE}]*{_CLOSE}|(?<![\w/])(?P<nobody><?@[UW][A-Z0-9]{{7,}}(?:\|[^>\s]*)?>?)"
"""Links, which stay as they are, and people who are not known."""


def mentioning(people: Mapping[str, str]) -> Mentions:
    """What turns ``@Name`` into a mention, of these people by name and nobody else; ids are not shown."""
    users = {name.casefold(): user for name, user in people.items()} | {
        user.casefold(): user for user in people.values()
    }
    names = "|".join(map(re.escape, sorted({*people, *people.values()}, key=len, reverse=True))) or "(?!)"
    ids = "|".join(map(re.escape, people.values())) or "(?!)"
    known = rf"(?<![\w/])<?@(?P<name>(?i:{names}))(?:\|[^>\s]*)?(?![\w-])>?|(?<![\w@/])(?P<id>{ids})(?!\w)"
    pattern = re.compile(f"{known}|{_OTHERS}")

    def mention(match: re.Match[str]) -> str:
        if (user := users.get((match["name"] or match["id"] or "").casefold())) is not None:
            return f"{_OPEN}@{user}{_CLOSE}"
        return match[0] if match["nobody"] is None else "@somebody"

    return lambda text: pattern.sub(mention, text)


def mrkdwn(markdown: str, people: Mapping[str, str] | None = None) -> str:
    """Markdown as Slack writes it. Code stays as it is; tables, which Slack has none of, become code.

    ``people`` are those whom it may mention, by the names under which it knows them.
    """
    mention = mentioning(people or {})
    lines = markdown.translate(_NO_MARKS).replace("\r\n", "\n").split("\n")
    written: list[str] = []
    place = 0
    while place < len(lines):
        line = lines[place]
        if (fence := _marked.fences.match(line)) is not None:
            # Closed by at least as many of the same.
            closing = re.compile(rf"^\s*{fence[1][0]}{{{len(fence[1])},}}\s*$")
            end = next((n for n in range(place + 1, len(lines)) if closing.match(lines[n])), len(lines))
            written += [FENCE, *(_boxed(inner) for inner in lines[place + 1 : end]), FENCE]
            place = end + 1
        elif (
            "|" in line
            and place + 1 < len(lines)
            and "|" in lines[place + 1]
            and _marked.table_rule.match(lines[place + 1])
        ):
            end = next((n for n in range(place + 2, len(lines)) if "|" not in lines[n]), len(lines))
            written += [FENCE, *_table([lines[place], *lines[place + 2 : end]]), FENCE]
            place = end
        else:
            written.append(_line(line, mention))
            place += 1
    return "\n".join(written).strip("\n")


def _table(rows: list[str]) -> Iterator[str]:
    cells = [
        [cell.replace("\\|", "|").strip() for cell in _marked.cell.split(_marked.edges.sub("", row))] for row in rows
    ]
    widths = [max(_width(row[n]) if n < len(row) else 0 for row in cells) for n in range(max(map(len, cells)))]
    for row in cells:
        padded = (cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=False))
        yield _boxed("  ".join(padded).rstrip())


def _width(text: str) -> int:
    """In columns: some letters take two."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def _line(line: str, mention: Mentions) -> str:
    if _marked.rule.match(line):
        return "———"
    if (heading := _marked.heading.match(line)) is not None:
        return f"*{_inline(heading[1].replace('**', '').replace('*', ''), mention)}*" if heading[1] else ""
    quote = ""
    if line.startswith(">"):
        quote, line = "> ", line.lstrip("> ")  # Slack has no quotes in quotes
    bullet = ""
    if (bullet_mark := _marked.bullet.match(line)) is not None:
        box = {None: "", " ": "☐ "}.get(bullet_mark[2], "☑ ")
        bullet, line = f"{bullet_mark[1]}• {box}", line[bullet_mark.end() :]
    return quote + bullet + _inline(line, mention)


def _inline(text: str, mention: Mentions) -> str:
    return "".join(_bare(part) if n % 2 else _styled(part, mention) for n, part in enumerate(_marked.code.split(text)))


def _styled(text: str, mention: Mentions) -> str:
    text = _marked.image_or_link.sub(
        lambda match: f"{_OPEN}{match[2]}|{match[1].replace('|', '/') or match[2]}{_CLOSE}", text
    )
    text = escaped(mention(text))
    text = _marked.autolink.sub(r"<\1>", text)
    text = _marked.both.sub(rf"{_MARK}_\1_{_MARK}", text)
    text = _marked.bold.sub(lambda match: f"{_MARK}{match[1] or match[2]}{_MARK}", text)
    text = _marked.italic.sub(r"_\1_", text)
    text = _marked.strike.sub(r"~\1~", text)
    return text.replace(_MARK, "*").replace(_OPEN, "<").replace(_CLOSE, ">")


def parts(text: str, *, limit: int = LONGEST_PART) -> list[str]:
    """A long text in parts that each fit: cut between paragraphs, else lines, sentences, words.

    Code that must be cut is closed, and opened again in the next part.
    """
    made: list[str] = []
    for unit in _UNIT.findall(text):
        unit = unit if unit.startswith(f"{FENCE}\n") else unit.removesuffix("\n")
        if made and len(made[-1]) + 2 + len(unit) <= limit:
            made[-1] += f"\n\n{unit}"
        else:
            made += _cut(unit, limit)
    return made


_UNIT = re.compile(rf"^{FENCE}$(?s:.*?)(?:^{FENCE}$|\Z)|(?:^(?!{FENCE}$).*\S.*$\n?)+", re.MULTILINE)
"""Code as a whole, or a paragraph."""


def _cut(unit: str, limit: int) -> list[str]:
    if len(unit) <= limit:
        return [unit]
    if unit.startswith(f"{FENCE}\n"):
        inner = unit.removeprefix(FENCE).removesuffix(FENCE).strip("\n")
        return [f"{FENCE}\n{piece}\n{FENCE}" for piece in _pieces(inner, limit - 2 * len(FENCE) - 2)]
    return _pieces(unit, limit)


def _pieces(text: str, limit: int) -> list[str]:
    pieces = []
    while len(text) > limit:
        window = text[:limit]
        at = max(window.rfind("\n"), 0)
        for mark in (". ", "! ", "? ", "; ", ", ", " "):
            if at >= limit // 2:
                break
            at = max(at, window.rfind(mark) + len(mark) if mark in window else 0)
        at = at or limit
        # Neither a link nor an escaped character is cut in two.
        for opening, closing in (("<", ">"), ("&", ";")):
            begun = text.rfind(opening, 0, at)
            ended = text.find(closing, begun) if begun >= 0 else -1
            if begun > 0 and ended >= at and (opening == "<" or ended - begun <= 5):
                at = begun
        pieces.append(text[:at].rstrip())
        text = text[at:].lstrip("\n ")
    return [*pieces, text] if text else pieces


_REFERENCE = re.compile(r"<([@#!]?)([^>|]*)(?:\|([^>]*))?>")


def mentioned(text: str) -> list[str]:
    """The ids of the people whom a person's message mentions."""
    return [match[2] for match in _REFERENCE.finditer(text) if match[1] == "@"]


def plain(text: str, *, bot: str = "", names: Mapping[str, str] | None = None) -> str:
    """What a person wrote, without the mention of the bot; people by ``names``. Channels keep their ids for tools."""

    def read(match: re.Match[str]) -> str:
        kind, target, label = match.groups()
        if kind == "@":
            return "" if target == bot else f"@{(names or {}).get(target) or label or target}"
        if kind == "#":
            return f"#{label} ({target})" if label else target
        if kind == "!":
            return f"@{label or target}".replace("@@", "@")
        return f"{label} ({target})" if label and label != target else target.removeprefix("mailto:")

    read_text = _REFERENCE.sub(read, text)
    return read_text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").strip()
