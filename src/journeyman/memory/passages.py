"""Long texts in parts that an embedder takes in whole: at paragraphs where it can be, else at sentences or words."""

from __future__ import annotations

LONGEST = 1_000
"""Characters. The offline embedder reads about 250 words; what is beyond would not be found by meaning."""
_ENDS = ("\n\n", "\n", ". ", "? ", "! ", "; ", " ")


def split(text: str, *, longest: int = LONGEST) -> list[tuple[int, int]]:
    """Where the parts of a text begin and end. Together they hold all of it but the blanks between them.

    >>> split("One.\\n\\nTwo and three.", longest=10)
    [(0, 4), (6, 13), (14, 20)]
    """
    parts: list[tuple[int, int]] = []
    start = 0
    while start < len(text):
        stop = min(start + longest, len(text))
        if stop < len(text):
            stop = _last_end(text, start, stop)
        kept_start, kept_stop = _stripped(text, start, stop)
        if kept_stop > kept_start:
            parts.append((kept_start, kept_stop))
        start = stop
    return parts


def _last_end(text: str, start: int, stop: int) -> int:
    for end in _ENDS:
        found = text.rfind(end, start, stop)
        # An end near the beginning would leave a scrap; the blank between two words is taken wherever it is.
        if found > start and (found - start >= (stop - start) // 3 or end == " "):
            return found + len(end)
    return stop


def _stripped(text: str, start: int, stop: int) -> tuple[int, int]:
    part = text[start:stop]
    left = len(part) - len(part.lstrip())
    return start + left, start + max(left, len(part.rstrip()))
