"""One question to a model and what to make of its reply."""

from __future__ import annotations

import asyncio
import logging
import re
import traceback
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from journeyman.agent.agent import Agent
from journeyman.agent.media import MediaLoader
from journeyman.agent.state import RunState, Turn
from journeyman.core.calls import UNNAMED, ToolContext
from journeyman.core.data import (
    ANSWER_BYTES,
    LOG_FIELDS,
    TOOL_NAME_CHARS,
    TURN_CALLS,
    canonical_json,
    check_arguments,
    storable_json,
    unchecked,
)
from journeyman.core.errors import ErrorCategory, JourneymanError, ModelError
from journeyman.core.events import StepFinished, StepRestarted, TextDelta
from journeyman.core.playbook import ADVICE, DEMONSTRATION, Advice
from journeyman.core.protocols import Deltas, Model, ModelRequest, ModelResponse
from journeyman.core.runs import Message, Role, ToolCall
from journeyman.core.specification import FINISH, RESERVED_NAMES
from journeyman.core.words import Patterns, stands_in
from journeyman.execution.outcome import Refusal
from journeyman.provenance.hints import Hint, hint_for, stopped
from journeyman.provenance.ledger import Ledger

if TYPE_CHECKING:
    from journeyman.agent.run import Run

logger = logging.getLogger("journeyman.agent")

EMPTY_REPLY = "Your reply was empty. Call a tool, or answer the user in plain text."
UNFINISHED = "Your text alone does not end the task. Call a tool, or call finish with your answer."
NOTHING_DONE = (
    "No tool that changes anything has been called yet. If the task asks for a change, call the tool that makes it "
    "now, with values from the request or from results. Else give your answer again."
)
"""Said once, where every demonstration that the model was shown ends in a change."""
DESCRIBED = "Your reply describes a call of {name} and does not make it. "
"""Begins what is said once to a model that writes down the call it should make."""
MAKE_IT = "If the task asks for it, call {name} now, with these values. Else give your answer again."
ENDS = ("length", "refusal", "filter")
"""Reasons for which a model stops that end a run, whatever it has written by then."""
MOST_FRUITLESS = 3
"""Replies in a row without a call or an answer before a run is given up."""
_OURS = re.compile(r"call_\d+_\d+")
_sendable = re.compile(r"[!-~]{1,64}").fullmatch
"""Ids of a model's server that are sent back to it; instead of others, ours is."""
_written = Patterns("journeyman.agent", "described.txt")


class NoModel:
    """In the model's place where none may be asked, and why not."""

    def __init__(self, error: JourneymanError) -> None:
        self._error = error

    async def respond(self, request: ModelRequest, deltas: Deltas | None = None) -> ModelResponse:
        raise self._error.with_traceback(None)


class ModelPlanner:
    """Asks a model what to do next."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._memo: dict[Any, Any] = {}
        self._call_ids: dict[str, str] = {}
        """What the model's server calls our calls; only its adapter is told."""
        self._asking: Run | None = None
        """The run for which the model is asked at this moment: a request that somebody keeps must not hold it."""
        self._system: Message | None = None
        self._media: MediaLoader | None = None
        self._demonstrations: tuple[Message, ...] = ()
        """They stand in the conversation before the task."""

    @property
    def several_strategies(self) -> bool:
        return bool(getattr(self._model, "several_strategies", False))

    async def plan(self, run: Run) -> ModelResponse | None:
        if run.offer.narrowed:
            from journeyman.agent.choosing import update_choice  # only runs with many tools pay for it

            await update_choice(run)
        response = await self._respond(run)
        if response is None:
            return None
        if response.from_results:
            response = _from_results(run, response)
        calls = numbered(response.calls, iteration=run.iteration, taken=run.state.call_ids, theirs=self._call_ids)
        return unchecked(type(response), response.__dict__ | {"calls": calls}) if calls else response

    def refusal(self, run: Run, turn: Turn, call: ToolCall) -> Refusal | None:
        """A model that repeats what has been answered already is told so."""
        tool = run.offer.tools.get(call.tool_name)
        if tool is not None and tool.repeatable:
            return None
        return run.state.guard.refusal(turn.iteration, call, reads=run.reads)

    def ledger(self, run: Run) -> Ledger | None:
        return run.new_ledger()

    async def _respond(self, run: Run) -> ModelResponse | None:
        deltas = _Deltas(run, run.iteration) if run.wants_text else None
        if not run.instruction:
            context = ToolContext[Any](principal=run.principal, run_id=run.id, deps=run.deps)
            run.instruction = await run.agent.instruction_for(context)
        self._asking = run
        request = await self._with_media(run, self.request(run))
        try:
            if (left := run.remaining()) is None:
                return _checked(await self._model.respond(request, deltas))
            async with asyncio.timeout(max(0.0, left)) as limit:
                return _checked(await self._model.respond(request, deltas))
        except ModelError as error:
            # An adapter that keeps to the run's time may notice its end first.
            if error.info.category is ErrorCategory.TIMEOUT and run.overdue:
                return None
            raise
        except TimeoutError as error:
            if left is not None and limit.expired():
                return None
            raise _model_failed(run, error) from error
        except Exception as error:
            raise _model_failed(run, error) from error
        finally:
            self._asking = None

    async def _with_media(self, run: Run, request: ModelRequest) -> ModelRequest:
        if not run.state.has_media and not any(message.media for message in self._demonstrations):
            return request
        if self._media is None:
            self._media = MediaLoader(getattr(self._model, "media", ()), changed=self._memo.clear)
        return replace(request, messages=await self._media.ready(request.messages, run))

    def _asked_again(self, reason: str, seconds: float) -> None:
        if (run := self._asking) is not None:
            run.shown.clear()
            run.recorder.signal(StepRestarted(iteration=run.iteration, reason=reason, seconds=seconds))

    def request(self, run: Run) -> ModelRequest:
        """The next question to the model."""
        state = run.state
        if self._system is None:
            given = [advice for advice in state.advice if not advice.holdout]
            rules = () if state.task is None else state.task.rules
            self._system = Message.system(instruction(run.agent, given, run.instruction, rules))
            self._demonstrations = tuple(
                turn.model_copy(update={"name": DEMONSTRATION}) if turn.role is Role.USER else turn
                for advice in given
                for turn in advice.turns
            )
        recent = window(
            state.messages,
            limit=run.limits.history_messages,
            task_at=state.task_at,
            before_task=self._demonstrations,
        )
        if (hint := _hint(run)) is not None:
            recent = [*recent, hint.message]
        return ModelRequest(
            messages=[self._system, *recent],
            tools=run.offer.offered,
            step=run.iteration,
            run_id=run.id,
            timeout=run.remaining(),
            memo=self._memo,
            call_ids=self._call_ids,
            suggested=None if hint is None else hint.call,
            output=None if run.agent.output is None else run.agent.expected.parameters,
            asked_again=self._asked_again,
        )


def _hint(run: Run) -> Hint | None:
    """The step of the nearest demonstration that comes next, said last, so that all before it stays as it was."""
    given = [item for item in run.state.advice if not item.holdout]
    if not given:
        return None
    request = "" if run.state.task is None else run.state.task.description
    return hint_for(given, run.state.steps, run.offer.offered, request)


def instruction(agent: Agent, advice: list[Advice], told: str = "", rules: Sequence[str] = ()) -> str:
    """The system message: the agent's instruction, the task's own rules, then the advice that is given in this form."""
    parts = [told or agent.instruction, *rules]
    if lines := [item.text for item in advice if item.form in ("system", "steps")]:
        listed = "\n".join(f"- {line}" for line in lines)
        parts.append(f"{ADVICE}\n{listed}")
    if agent.output is not None:
        # In words that hold for both ways in which adapters ask for it: by ``finish``, or by a schema for the text.
        parts.append("The final answer is data: give it in the form that is asked for, with nothing around it.")
    elif agent.finish:
        parts.append("When the task is done, call finish with your answer.")
    return "\n\n".join(parts)


def window(
    messages: Sequence[Message], *, limit: int | None, task_at: int, before_task: Sequence[Message] = ()
) -> Sequence[Message]:
    """The latest messages, at most ``limit``, with the task's own message always among them.

    A call is never split from its result: where the cut would fall between them, both are left out. Only a last
    turn that is larger than the limit by itself is sent whole. ``before_task`` is put before the task's message and
    does not count.
    """
    cut = _cut(messages, limit=limit, task_at=task_at)
    if not before_task:
        if cut == 0:
            return messages
        return messages[cut:] if cut <= task_at else [messages[task_at], *messages[cut:]]
    return [*messages[cut:task_at], *before_task, messages[task_at], *messages[max(cut, task_at + 1) :]]


def _cut(messages: Sequence[Message], *, limit: int | None, task_at: int) -> int:
    """The index of the first message that is sent; the task's may stand before it."""
    if limit is None or len(messages) <= limit:
        return 0
    start = len(messages) - limit
    if start > task_at:
        start += 1  # room for the task's message
    cut = start
    while cut < len(messages) and messages[cut].role is Role.FUNCTION:
        cut += 1
    if cut == len(messages):
        while cut > 0 and (cut == len(messages) or messages[cut].role is Role.FUNCTION):
            cut -= 1
    return cut


def _from_results(run: Run, response: ModelResponse) -> ModelResponse:
    """What the calls came to, as the answer of a model that writes none."""
    text = answer_from_results(run.state) if run.agent.output is None else ""  # words are not the data asked for
    if not text:
        return response
    if run.agent.finish:
        call = ToolCall(tool_name=FINISH, arguments={"answer": text}, confidence=response.confidence)
        return response.model_copy(update={"calls": (call,)})
    if run.wants_text:
        run.recorder.signal(TextDelta(iteration=run.iteration, text=text))
    return response.model_copy(update={"text": text})


def answer_from_results(state: RunState) -> str:
    """What the run's calls came to; nothing where it has made none."""
    from journeyman.tools.rendering import composed  # only models that write no prose need it

    records = (record for step in state.steps for record in step.calls if record.tool_name not in RESERVED_NAMES)
    return composed(records, state.renderings)


def _checked(response: Any) -> ModelResponse:
    if not isinstance(response, ModelResponse):
        raise ModelError(
            "MODEL_FAILED",
            f"the model adapter failed: respond() returned {type(response).__name__}, not a ModelResponse",
            user_guidance="This is a fault of the adapter, not of the model",
        )
    if len(response.calls) > TURN_CALLS or len(response.text) > ANSWER_BYTES:
        raise ModelError(
            "MODEL_ANSWER_TOO_LARGE",
            f"the model asked for {len(response.calls):,} calls and wrote {len(response.text):,} characters in one "
            f"turn; at most {TURN_CALLS:,} calls and {ANSWER_BYTES:,} characters are taken",
            category=ErrorCategory.INVALID_INPUT,
            user_guidance="ask for less at a time",
        )
    return response


def _model_failed(run: Run, error: Exception) -> ModelError:
    """What to make of an adapter's own exception, whose text may quote the conversation: that is content."""
    kind, content = type(error).__name__, run.policy.capture_content
    status = next((code for name in ("status", "status_code") if type(code := getattr(error, name, None)) is int), None)
    where = traceback.extract_tb(error.__traceback__)[-1:]
    fields = {"run_id": run.id, "error": kind, "status": status}
    fields["at"] = next((f"{frame.filename}:{frame.lineno}" for frame in where), None)
    logger.error("the model adapter failed", exc_info=error if content else None, extra={LOG_FIELDS: fields})
    told = f"the model adapter raised {kind}" + ("" if status is None else f" (status {status})")
    return ModelError(
        "MODEL_FAILED",
        f"{told}: {error}" if content else told,
        user_guidance="This is a fault of the adapter, not of the model: the log says where it happened, and with "
        "Policy(capture_content=True) also what it says",
    )


class _Deltas:
    """Turns an adapter's growing text into signals."""

    def __init__(self, run: Run, iteration: int) -> None:
        self._run = run
        self._iteration = iteration

    def text(self, delta: str) -> None:
        self._run.shown.append(delta)
        self._run.recorder.signal(TextDelta(iteration=self._iteration, text=delta))

    def restart(self) -> None:
        self._run.shown.clear()
        self._run.recorder.signal(StepRestarted(iteration=self._iteration))


def numbered(
    calls: Sequence[ToolCall], *, iteration: int, taken: set[str], theirs: dict[str, str], bounded: bool = True
) -> tuple[ToolCall, ...]:
    """The calls under ids of ours, unique within the run. ``theirs`` takes what the model's server calls them.

    A model's own ids may be left out, used twice, or be written to deceive whoever reads them in a list or a command.
    """
    given: list[ToolCall] = []
    known = set(theirs.values()) if len(calls) > 1 else theirs.values()
    for index, call in enumerate(calls, start=1):
        wanted = unique = f"call_{iteration}_{index}"
        again = 2
        while unique in taken:
            unique, again = f"{wanted}_{again}", again + 1
        if call.id not in known and _sendable(call.id) and not _OURS.match(call.id):
            theirs[unique] = call.id
            if isinstance(known, set):
                known.add(call.id)
        fields = {
            "id": unique,
            "tool_name": _name(call),
            "arguments": call.arguments,
            "malformed": call.malformed,
            "confidence": call.confidence,
        }
        given.append(_writable(unchecked(ToolCall, fields), bounded=bounded))
    return tuple(given)


def _name(call: ToolCall) -> str:
    """The tool's name as the model wrote it; what is longer than any tool's is no name and need not be kept whole."""
    name = call.tool_name
    return name if len(name) <= TOOL_NAME_CHARS else f"{name[:TOOL_NAME_CHARS]}…"


def _writable(call: ToolCall, *, bounded: bool) -> ToolCall:
    """The call, or its refusal as malformed where its arguments fit into no journal: not JSON, nested too deeply,
    or of too many values.

    A call that names no tool gets a name, so that it can be answered and recorded like any other.
    """
    if not call.tool_name:
        call = call.model_copy(update={"tool_name": UNNAMED})
    try:
        text = storable_json(call.arguments)
        if bounded:
            check_arguments(text)
    except ValueError as error:
        return call.model_copy(update={"arguments": {}, "malformed": f"({error})"})
    return call


def _composed_thought(turn: Turn) -> str:
    """A factual sentence where the model gave no thought of its own."""
    names = list(dict.fromkeys([call.tool_name for call in turn.calls if call.tool_name != FINISH]))
    if turn.calls and not names:
        return "Gives the answer."
    if not names:
        return "Gives no text and calls no tool."
    return f"Calls {', '.join(names[:-1]) + ' and ' if names[:-1] else ''}{names[-1]}."


async def finish_step(
    run: Run, turn: Turn, *, nudge: str | None = None, rendered: dict[str, str] | None = None
) -> None:
    """Record that an iteration is over, as far as it got."""
    fields = {
        "iteration": turn.iteration,
        "thought": turn.text.strip() or _composed_thought(turn),
        "duration_ms": max(0.0, (run.clock.time() - turn.asked_at) * 1000),
        "nudge": nudge,
        "rendered": rendered,
    }
    await run.recorder.record(unchecked(StepFinished, fields))


def _left_undone(run: Run) -> bool:
    """Whether a run ends without a change although each demonstration made one, and it was not told so before."""
    shown = [advice for advice in run.state.advice if (advice.turns or advice.steps) and not advice.holdout]
    if not shown or not all(advice.effective for advice in shown) or stopped(run.state.steps):
        return False
    changed = any(call.success and not run.reads(call.tool_name) for step in run.state.steps for call in step.calls)
    return not changed and not any(message.content == NOTHING_DONE for message in run.state.messages)


def described_call(run: Run, text: str) -> str | None:
    """The one offered tool that a reply writes a call of, with all that it needs, and that the run has not called; of
    several, the first if it only reads."""
    # A call that was begun is not asked for again, whatever became of it: a person may have left it out.
    called = {call.tool_name for step in run.state.steps for call in step.calls if call.success or call.attempts}
    named = {tool.name: tool for tool in run.offer.offered if tool.name in text and _named_to_call(tool.name, text)}
    if not (left := named.keys() - called - RESERVED_NAMES) or stopped(run.state.steps):
        return None
    hint, last = _hint(run), [call.error for step in run.state.steps[-1:] for call in step.calls if call.error]
    told = " ".join([hint.message.content if hint else "", *(canonical_json(error.for_model()) for error in last)])
    # A sentence's first word has a capital, too, and is no value. In other languages a value stands for its parameter.
    request = "" if run.state.task is None else run.state.task.description.partition(" ")[2]
    values = {
        value for found in _written.value.findall(text) if (value := found.strip("\"'“”„«» ")) and value in request
    }
    described = [
        name
        for name in sorted(left, key=text.find)
        if ((needed := named[name].parameters.get("required")) and _unsaid(needed, text) <= len(values))
        or (run.reads(name) and stands_in(told, name))
    ]
    if not described or (text.rstrip().endswith("?") and not told):
        return None
    return described[0] if len(described) == 1 or (values and run.reads(described[0])) else None


def _unsaid(needed: Sequence[str], text: str) -> int:
    return sum(not stands_in(text, parameter) for parameter in needed)


def _named_to_call(name: str, text: str) -> bool:
    """Whether a tool is named as one, and not said not to be called."""
    bare = "" if _written.joined.search(name) else r"(?=[`\"'*(])"  # an ordinary word is a tool's name only in quotes
    found = re.search(rf"(?<!\w)[`\"'*]+{re.escape(name)}(?!\w)|(?<!\w){re.escape(name)}(?!\w){bare}", text)
    return not (
        found is None or _written.declined.search(text[: found.start()]) or _written.refused.match(text[found.end() :])
    )


def nudge_for(run: Run, turn: Turn) -> str | None:
    """What to tell a model whose reply calls nothing and is no answer; None when the text is the answer."""
    if turn.finish in ENDS:
        return None  # asking again would come to the same
    if turn.text.strip() and not run.agent.finish:
        described = described_call(run, turn.text)
        nudge = (DESCRIBED + MAKE_IT).format(name=described)
        if described is None or any(said.content == nudge for said in run.state.messages):
            return NOTHING_DONE if _left_undone(run) else None
        return nudge
    if run.state.fruitless + 1 >= MOST_FRUITLESS:
        if turn.text.strip():
            return None  # it will not call finish: its text is as good an answer as it will give
        raise ModelError(
            "EMPTY_ANSWER",
            f"the model gave {MOST_FRUITLESS} empty replies in a row",
            category=ErrorCategory.TOOL_ERROR,
            user_guidance="Try again, another model, or a clearer instruction",
        )
    return UNFINISHED if turn.text.strip() else EMPTY_REPLY
