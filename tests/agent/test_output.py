"""Answers that are data: validated, answered to the model where they do not fit, and honest where they never do."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel, Field, field_validator
from typing_extensions import TypedDict

from journeyman import Agent, AgentResponse, Limits, Policy, RiskLevel, RunStatus, run, stream, tool
from journeyman.core import InvalidDataError
from journeyman.core.events import Answered, RunFinished
from journeyman.experiments import Experiment
from journeyman.testing import ScriptedModel, call, say, together
from tests.playing import Played, agent_with, play
from tests.waiting import WAIT_SECONDS


class Item(BaseModel):
    name: str
    price: float = Field(gt=0)


class Order(BaseModel):
    """An order."""

    id: str = Field(alias="orderId")
    items: list[Item]
    note: str | None = None


@dataclass
class Point:
    x: int
    y: int = 0


class Named(TypedDict):
    name: str


GOOD: dict[str, Any] = {"orderId": "W-17", "items": [{"name": "tea", "price": 2.5}]}
FULL = {**GOOD, "note": None}
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


@tool(read_only=True)
def look() -> str:
    """Look."""
    return "seen"


@tool(risk=RiskLevel.REVERSIBLE)
def change() -> str:
    """Change something."""
    return "changed"


async def wanting(output: Any, *turns: Any, **options: Any) -> Played:
    return await play([look, change], turns, agent=agent_with(look, change), output=output, **options)


# --- data that fits


@pytest.mark.parametrize("given", [call("finish", **GOOD), say(f"Here it is:\n```json\n{json.dumps(GOOD)}\n```")])
async def test_it_is_a_value_of_the_type_and_json_of_the_schema(given: Any) -> None:
    response = (await wanting(Order, call("look"), given)).response
    assert response.output == Order(**GOOD)
    assert (response.status, response.outcome, response.error) == (RunStatus.COMPLETED, "achieved", None)
    assert response.model_dump(mode="json")["output"] == FULL
    assert AgentResponse.model_validate_json(response.model_dump_json()).output == FULL
    assert Order.model_validate_json(response.answer) == response.output == response.output_as(Order)
    assert response.tools_used == ["look"]


@pytest.mark.parametrize(
    ("kind", "arguments", "value"),
    [
        (Point, {"x": 1}, Point(1, 0)),
        (Named, {"name": "Ada"}, {"name": "Ada"}),
        (list[Point], {"output": [{"x": 1}, {"x": 2, "y": 3}]}, [Point(1), Point(2, 3)]),
        (int | str, {"output": "five"}, "five"),
        (int, {"output": 5.0}, 5),
        (bool, {"output": False}, False),
        (Point | None, {"output": None}, None),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (SCHEMA, {"n": 1}, {"n": 1}),
        ({"type": "array", "items": {"type": "integer"}}, {"output": [1]}, [1]),
        ({"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}}, {"output": 7}, 7),
        ("{name: Text, age: Maybe Int}", {"name": "Ada"}, {"name": "Ada"}),
    ],
)
async def test_every_kind_of_type_and_schema(kind: Any, arguments: dict[str, Any], value: Any) -> None:
    for given in (call("finish", **arguments), say(json.dumps(arguments))):
        played = await wanting(kind, given)
        assert played.response.output == value
        assert type(played.response.output) is type(value)
        [finish] = [item for item in played.model.requests[0].tools if item.name == "finish"]
        assert played.model.requests[0].output == finish.parameters
        assert finish.parameters["type"] == "object"


async def test_what_a_run_asks_for_wins_over_the_agent() -> None:
    agent = agent_with(look, output=Order)
    assert agent.output_type is Order
    model = ScriptedModel([call("finish", n=1)])
    assert (await run(agent, "Do it.", model=model, output=SCHEMA)).output == {"n": 1}
    assert (await run(agent, "Do it.", model=ScriptedModel([call("finish", **GOOD)]))).output == Order(**GOOD)
    assert agent.model_copy(update={"output": SCHEMA}).output_type is None


async def test_runs_without_output_know_nothing_of_it() -> None:
    played = await play([look], [call("look"), say("seen")])
    assert (played.response.output, played.model.requests[0].output) == (None, None)
    assert [item.name for item in played.model.requests[0].tools] == ["look"]


async def test_the_last_events_of_a_stream_carry_it() -> None:
    model = ScriptedModel([call("finish", **GOOD)])
    events = [event async for event in stream(agent_with(look), "Do it.", model=model, output=Order)]
    [answered] = [event for event in events if isinstance(event, Answered)]
    ended = events[-1]
    assert answered.output == FULL
    assert isinstance(ended, RunFinished)
    assert ended.response is not None
    assert ended.response.output == Order(**GOOD)


async def test_an_experiment_scores_it() -> None:
    agent = Agent(name="tester", instruction="Be brief.", output=Point)
    arms = {arm: {"model": ScriptedModel([call("finish", x=x)])} for arm, x in (("one", 1), ("two", 2))}
    experiment = Experiment(agent, arms, ["Do it."], score=lambda response, _: response.output.x == 2, runner=run)
    report = await experiment.run()
    assert {item.arm: item.score for item in report.observations} == {"one": 0.0, "two": 1.0}


# --- data that does not fit


async def test_every_wrong_field_is_named_and_the_model_tries_again() -> None:
    wrong = {"orderId": 5, "items": [{"name": "tea", "price": -1}, {"price": 1}]}
    played = await wanting(Order, call("finish", **wrong), say(json.dumps(wrong)), call("finish", **GOOD))
    assert played.response.output == Order(**GOOD)
    for told in (played.told[0], played.model.requests[2].messages[-1].content):
        for problem in (
            "orderId: must be a string, got 5",
            "items[0].price: must be greater than 0, got -1",
            "items[1].name: missing (required)",
        ):
            assert problem in told
    assert '"orderId"' in played.model.requests[2].messages[-1].content  # and the schema once more
    assert [call.status for call in played.response.tool_calls] == ["error"]


@pytest.mark.parametrize("text", ["It costs 3.", "{", '{"n": NaN}', "```json\n{}\n```", '{"n": 1} or so'])
async def test_text_that_is_not_the_data_is_answered(text: str) -> None:
    played = await wanting(SCHEMA, say(text), say('{"n": 1}'))
    assert played.model.requests[1].messages[-1].content.startswith("Your answer does not fit: ")
    assert played.response.output == {"n": 1}


async def test_the_types_own_checks_count() -> None:
    class Even(BaseModel):
        n: int

        @field_validator("n")
        @classmethod
        def _even(cls, value: int) -> int:
            if value % 2:
                raise ValueError("must be even")
            return value

    played = await wanting(Even, call("finish", n=1), call("finish", n=2))
    assert "n: must be even, got 1" in played.told[0]
    assert played.response.output == Even(n=2)


async def test_one_that_never_fits_ends_honestly_at_the_limit() -> None:
    response = (await wanting(Order, call("look"), say("It costs 3."), limits=Limits(iterations=2))).response
    assert (response.output, response.outcome, response.confidence) == (None, "not", 0.0)
    assert (response.status, response.iteration_limit_reached) == (RunStatus.LIMIT_REACHED, True)
    assert response.answer == "It costs 3."
    assert response.error is not None
    assert response.error.code == "OUTPUT_INVALID"
    assert "2 iterations" in response.error.message
    assert "not JSON" in response.error.message


async def test_what_was_changed_before_counts_as_partly() -> None:
    response = (await wanting(Order, call("change"), call("finish", orderId="W"), limits=Limits(iterations=2))).response
    assert (response.outcome, response.answer) == ("partly", '{"orderId":"W"}')


async def test_without_a_limit_it_is_given_up_all_the_same() -> None:
    response = (await wanting(Order, *[call("finish", n=1)] * 20, limits=Limits(iterations=None))).response
    assert (response.status, response.total_iterations, response.outcome) == (RunStatus.FAILED, 4, "not")
    assert response.error is not None
    assert "items: missing (required)" in response.error.message


async def test_empty_replies_and_a_failing_model_end_as_ever() -> None:
    empty = (await wanting(Order, say(""), say(""), say(""))).response
    assert (empty.status, empty.error and empty.error.code) == (RunStatus.FAILED, "EMPTY_ANSWER")
    assert (empty.output, empty.outcome) == (None, "not")


async def test_calls_beside_the_answer_are_carried_out() -> None:
    played = await wanting(SCHEMA, together(call("change"), call("finish", n=1)))
    assert (played.response.output, played.response.tools_used) == ({"n": 1}, ["change"])


async def test_data_about_secrets_is_an_answer_and_asks_nobody() -> None:
    paths = {"paths": ["/etc/shadow", "~/.ssh/id_rsa", ".env"]}
    assert (await wanting(dict[str, list[str]], call("finish", **paths))).response.output == paths


# --- hostile


def nested(levels: int) -> str:
    return '{"n": ' + "[" * levels + "]" * levels + "}"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (nested(150), "nested more than 100 levels"),
        (nested(5_000), "not JSON"),
        ("[" + "{}," * 200_000 + "{}]", "lists and objects"),
        ('{"n": "' + "x" * 2_000_000 + '"}', "at most 1,000,000 are accepted"),
        ('{"n": ' + "9" * 400 + "}", "float can hold"),
    ],
)
async def test_too_much_is_an_answer_and_not_a_stall(text: str, told: str) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        played = await wanting(dict[str, Any], say(text), say('{"n": 1}'))
    assert told in played.model.requests[1].messages[-1].content
    assert played.response.output == {"n": 1}
    # What was no use is not sent whole again and again.
    assert max(len(message.content) for message in played.model.requests[1].messages) < 50_000


async def test_much_of_it_does_not_hold_up_others() -> None:
    rows = {"rows": [{"x": number, "y": 1} for number in range(20_000)]}

    class Table(BaseModel):
        rows: list[dict[str, int]]

    # What the event loop's own thread computes in one go: a busy machine does not count.
    longest, last, ended = 0.0, time.thread_time(), asyncio.Event()

    async def watch() -> None:
        nonlocal longest, last
        while not ended.is_set():
            await asyncio.sleep(0.001)
            now = time.thread_time()
            longest, last = max(longest, now - last), now

    watching = asyncio.ensure_future(watch())
    response = await run(agent_with(), "Do it.", model=ScriptedModel([say(json.dumps(rows))]), output=Table)
    ended.set()
    await watching
    assert len(response.output.rows) == 20_000
    assert longest < 1.0


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "no such type"}, "not a valid JSON Schema"),
        ({"$ref": "https://example.org/schema"}, "nothing is fetched"),
        ({"description": "x" * 200_000}, "bytes"),
        (
            {
                "$ref": "#/$defs/a0",
                "$defs": {
                    f"a{level}": {"anyOf": [{"$ref": f"#/$defs/a{level + 1}"}, {"$ref": f"#/$defs/a{level + 1}"}]}
                    for level in range(40)
                }
                | {"a40": {"type": "string"}},
            },
            "2,000 parts",
        ),
        ({"type": "object", "default": object()}, "no JSON Schema"),
        (object(), "has no JSON Schema"),
        ("Nonsense", "unknown type"),
    ],
)
def test_what_no_answer_could_be_held_to_is_refused(schema: Any, why: str) -> None:
    with pytest.raises(InvalidDataError, match=why) as caught:
        Agent(name="a", instruction="b", output=schema)
    assert "output" in str(caught.value)
    with pytest.raises(InvalidDataError, match=why):
        Agent(name="a", instruction="b").with_output(schema)


async def test_output_as_names_what_does_not_fit() -> None:
    response = (await wanting(SCHEMA, call("finish", n=1))).response
    with pytest.raises(InvalidDataError, match="Point: x: missing"):
        response.output_as(Point)


async def test_a_result_larger_than_a_message_is_whole() -> None:
    text = "word " * 40_000
    response = (await wanting(Named, call("finish", name=text), policy=Policy(max_result_chars=2_000))).response
    assert response.output == {"name": text}
