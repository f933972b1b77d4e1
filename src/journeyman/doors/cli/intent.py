"""``journeyman intent``: what a request asks for, and which tools would serve it."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated

import typer
from rich.text import Text

from journeyman.app import add_configured, model_named, understand
from journeyman.doors.cli import options, screen
from journeyman.doors.cli.configured import file_settings
from journeyman.doors.cli.loading import listed_library
from journeyman.doors.cli.options import Json, Library, task_text


def intent(
    request: Annotated[str, typer.Argument(metavar="REQUEST", help="What somebody might ask for, in words.")],
    library: Library = None,
    model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A model that is asked as well. Without it, none is.", show_default=False),
    ] = None,
    permission: options.Permissions = None,
    as_json: Json = False,
) -> None:
    """Say what a request asks for: its type, the tools that serve it, and the values it gives them. Runs nothing."""
    text, tools = task_text(request), listed_library(library)
    if (loaded := file_settings()) is not None:
        add_configured(loaded.settings)
    asked = None if model is None else model_named(model)
    found = asyncio.run(understand(text, tools, principal=options.user_with(permission), model=asked))
    if as_json:
        return screen.print_json(None if found is None else found.model_dump(mode="json"))
    if found is None:
        return screen.say("nothing is asked for here that is of a known type")
    screen.say(Text(f"{found.intent_type} ({found.confidence:.0%} sure)", style="bold"))
    screen.say(f"tools: {', '.join(found.suggested_tools) or 'none'}")
    if found.fallback_options:
        screen.say(f"else: {', '.join(found.fallback_options)}")
    for name, value in found.parameters.items():
        screen.say(f"{name}: {screen.escaped(json.dumps(value, ensure_ascii=False))}")
    if found.context_requirements:
        screen.say(f"not said: {', '.join(found.context_requirements)}")
    return None
