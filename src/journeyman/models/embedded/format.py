"""What the embedded model says itself: it writes no prose, so that is only what it can do instead of a guess."""

from __future__ import annotations

import re
from collections.abc import Sequence

from journeyman.core.specification import ToolSpecification
from journeyman.models.embedded.tools import first_sentence

TOOLS_SHOWN = 5
LONGEST_TALK = 200
"""Characters; whoever writes more than this has something to say."""
SMALL_TALK = {
    r"(?:hi|hello|hey|good (?:morning|afternoon|evening|day))\b(?:\W+(?:there|you|all))?": "Hello!",
    r"(?:how are you|nice to meet you)\b(?:\W+(?:doing|today|too))*": "I am ready to help.",
    r"(?:my name is|i am|i'm|call me)\W+(?P<name>[^\W\d_]+)": "Hello, {name}!",
    r"(?:many )?(?:thanks|thank you)\b(?:\W+(?:a lot|so much|very much|for your help))?": "You are welcome.",
    r"(?:good ?bye|bye|good night|see you)\b(?:\W+(?:bye|later|soon|tomorrow|then))?": "Goodbye!",
    r"(?:ok|okay|fine|great|cool|nice)\b": "Good.",
    r"(?:what can you do|(?:what|which) tools do you have)\b.*|(?:who|what) are you\b|help\b": "",
}
"""What people say to each other and no tool does: a request that consists of these, and what is answered."""


def cannot_help(tools: Sequence[ToolSpecification], *, more: int = 0) -> str:
    """Said instead of a guess: the nearest tools, each with the first sentence of its description."""
    if not tools:
        return "I can only call tools, and there are none."
    return f"I am not sure that any of my tools does this. What I can do:\n{_listed(tools, more=more)}"


def not_said(tool: ToolSpecification, names: Sequence[str]) -> str:
    """Asks for what a tool needs and the request does not tell."""
    parts = tool.parameters.get("properties", {})
    told = (first_sentence(str(parts.get(name, {}).get("description") or "")).rstrip(".") for name in names)
    needed = ", ".join(f"{name} ({about})" if about else name for name, about in zip(names, told, strict=True))
    return f"I called nothing: {tool.name} needs {needed}, and I did not find that in your request. Please say it."


def small_talk(text: str, tools: Sequence[ToolSpecification]) -> str | None:
    """An answer to a greeting, a name, thanks, a goodbye or "what can you do?"; None if anything else is said too."""
    if len(text) > LONGEST_TALK:
        return None
    rest, answers = text.strip(), list[str]()
    while rest := rest.lstrip(" ,.!?;:-\n"):
        tried = ((re.match(pattern, rest, re.IGNORECASE | re.DOTALL), answer) for pattern, answer in SMALL_TALK.items())
        match, answer = next(((match, answer) for match, answer in tried if match), (None, ""))
        if match is None:
            return None
        answers.append(answer.format(**{key: value.title() for key, value in match.groupdict().items()}))
        rest = rest[match.end() :]
    if not answers:
        return None
    said = answers[-1]
    return said if said in ("Goodbye!", "You are welcome.") else f"{said} What I can do:\n{_listed(tools)}".strip()


def _listed(tools: Sequence[ToolSpecification], *, more: int = 0) -> str:
    lines = [f"- {tool.name}: {first_sentence(tool.description)}" for tool in tools[:TOOLS_SHOWN]]
    rest = len(tools[TOOLS_SHOWN:]) + more
    return "\n".join([*lines, f"- and {rest} more"] if rest else lines)
