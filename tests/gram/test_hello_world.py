"""The Hello World agent, from its file, over five exchanges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from journeyman import Agent, Message, ToolLibrary, gram, run
from journeyman.testing import ScriptedModel, call, say
from journeyman.toolkits.hello import say_hello

FILE = Path(__file__).parents[2] / "examples" / "hello_world_agent.gram"


def test_the_example_is_canonical_and_fits_the_shipped_tool() -> None:
    text = FILE.read_text(encoding="utf-8")
    assert gram.dumps(gram.parse(text)) == text
    agent = Agent.from_gram(FILE)
    assert ToolLibrary([say_hello]).bind(agent).by_name["sayHello"] is say_hello


async def test_five_exchanges_of_one_conversation() -> None:
    agent = Agent.from_gram(FILE)
    library = ToolLibrary([say_hello])
    history: list[Message] = []
    answers: list[str | None] = []
    calls: list[list[tuple[str, object]]] = []
    exchanges: list[tuple[str, list[Any]]] = [
        ("Good morning!", [say("Good morning! Who are you?")]),
        ("I am Ada.", [call("sayHello", name="Ada"), say("Hello, Ada! Nice to meet you.")]),
        ("Greet Grace, too.", [call("sayHello", who="Grace"), call("sayHello", name="Grace"), say("Done.")]),
        ("Who was first?", [lambda request: say(first_greeted(request.messages))]),
        ("Thanks!", [say("You are welcome, Ada.")]),
    ]

    for said, script in exchanges:
        response = await run(agent, said, library=library, model=ScriptedModel(script), history=history)
        history = list(response.messages)
        answers.append(response.answer)
        calls.append([(record.status, record.result) for record in response.tool_calls])

    assert answers[1] == "Hello, Ada! Nice to meet you."
    assert answers[3] == "Ada"
    assert calls[0] == calls[3] == calls[4] == []
    assert calls[1] == [("success", "Hello, Ada! Nice to meet you.")]
    assert [status for status, _ in calls[2]] == ["error", "success"]
    assert [message.content for message in history if message.role == "user"] == [said for said, _ in exchanges]
    assert [message.name for message in history if message.role == "function"] == ["sayHello"] * 3


def first_greeted(messages: tuple[Message, ...]) -> str:
    """The name in the first call of the conversation, which the model can see only if the history is there."""
    first = next(item for message in messages for item in message.calls)
    return str(first.arguments["name"])
