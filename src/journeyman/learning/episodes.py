"""What happened in one run, or one turn of a conversation, as learning sees it.

It makes no difference where it comes from: the journal of a run, a file of conversations, a chain that a person wrote.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from journeyman.core import events
from journeyman.core.approvals import ApprovalStatus, Label, LabelSource, judge
from journeyman.core.calls import ToolCallRecord
from journeyman.core.errors import ConfigurationError
from journeyman.core.playbook import Advice
from journeyman.core.runs import AgentResponse, Role, RunStatus
from journeyman.core.specification import RESERVED_NAMES
from journeyman.learning import listed
from journeyman.provenance.ledger import CalledTool, Utterance


@dataclass(frozen=True, slots=True)
class EpisodeCall:
    """One call with its outcome."""

    tool_name: str
    arguments: Mapping[str, Any]
    result: Any = None
    ok: bool = True
    effect: bool = False
    """Whether its tool changes something."""
    decided: bool | None = None
    """A person's decision about it, if one was asked: allowed, or not."""
    error_code: str = ""
    error: str = ""
    """Why it failed, in the tool's words."""

    @property
    def said(self) -> Utterance:
        """Its result, as what its tool said."""
        return Utterance(CalledTool("", self.tool_name), self.result)


@dataclass(frozen=True, slots=True)
class Episode:
    """A request, the calls that were made for it, and how it ended."""

    request: str
    calls: tuple[EpisodeCall, ...] = ()
    answer: str = ""
    run_id: str = ""
    domain: str = "general"
    principal_id: str | None = None
    ended_by_itself: bool = True
    iterations: int = 0
    model: str = ""
    advice: tuple[Advice, ...] = ()
    could_change: bool = True
    """Whether it had a tool that changes something."""
    known: tuple[Any, ...] = ()
    """What was said and found out before, in the same conversation: arguments may come from there."""
    previous: str | None = None
    """The tool that the conversation called last before."""
    tools: frozenset[str] = frozenset()
    """The names of its agent's tools, where they are known."""
    labels: tuple[Label, ...] = ()
    """What people and verifiers say of it."""
    verdict: Label | None = None
    """What its calls say, where there are records of them."""

    @property
    def used(self) -> list[EpisodeCall]:
        """The calls that count: those that worked, without exact repeats."""
        kept: list[EpisodeCall] = []
        seen: set[str] = set()
        for call in self.calls:
            key = f"{call.tool_name}\n{json.dumps(call.arguments, sort_keys=True, default=str)}"
            repeated = bool(kept) and key in seen and kept[-1].tool_name == call.tool_name
            if call.ok and (key not in seen or (call.effect and not repeated)):
                kept.append(call)
                seen.add(key)
        return kept


def normalised(names: Iterable[str]) -> tuple[str, ...]:
    """A tool sequence with repeats collapsed: how often a step was needed depends on the values."""
    return tuple(name for name, _ in groupby(names))


def seems_to_read(tool_name: str) -> bool:
    """What a name says of a tool about which nothing else is known."""
    words = tool_name.rpartition(".")[2].casefold().replace("-", "_").split("_")
    return any(word in listed.reading for word in words[:2])


def from_facts(facts: Sequence[events.Fact], *, labels: Sequence[Label] = ()) -> Episode | None:
    """The episode of an ended run; None where nothing was asked, the run has not ended, or is a fork.

    What a fork did before it is its parent's, and its results may be somebody's "what if".
    """
    started = next((fact for fact in facts if isinstance(fact, events.RunStarted)), None)
    end = next((fact for fact in reversed(facts) if isinstance(fact, events.RunFinished | events.RunFailed)), None)
    if started is None or end is None or any(isinstance(fact, events.RunForked) for fact in facts):
        return None
    reads = {str(item.get("name")): bool(item.get("read_only")) for item in started.agent.get("tools") or ()}
    decisions: dict[str, bool] = {}
    records: dict[str, ToolCallRecord] = {}
    advice: tuple[Advice, ...] = ()
    answer, iterations, model = "", 0, ""
    for fact in facts:
        match fact:
            case events.StrategiesInjected():
                advice = fact.advice
            case events.ApprovalDecided(status=ApprovalStatus.APPROVED | ApprovalStatus.DENIED, answers=False):
                decisions[fact.call_id] = fact.status is ApprovalStatus.APPROVED
            case events.CallFinished():
                records[fact.record.call_id] = fact.record  # a resolved call has a second outcome
            case events.StepFinished():
                iterations += 1
            case events.MessageReceived():
                model = fact.model or model
            case events.Answered():
                answer = fact.text
    made = [record for record in records.values() if record.tool_name not in RESERVED_NAMES]
    ended = isinstance(end, events.RunFinished) and end.status is RunStatus.COMPLETED
    principal = started.principal or started.task.principal
    said = [message for message in started.history if message.content]
    before = [call.tool_name for message in started.history for call in message.calls]
    return Episode(
        request=started.task.description,
        calls=tuple(_call(record, reads, decisions.get(record.call_id)) for record in made),
        answer=answer,
        run_id=started.run_id,
        domain=started.task.domain,
        principal_id=None if principal is None else principal.id,
        ended_by_itself=ended,
        iterations=iterations,
        model=model,
        advice=advice,
        could_change=not reads or not all(reads.values()),
        known=tuple(message.content for message in said),
        previous=before[-1] if before else None,
        tools=frozenset(reads),
        labels=(*end.labels, *labels),
        verdict=judge(made, ended=ended),
    )


def _call(record: ToolCallRecord, reads: Mapping[str, bool], decided: bool | None = None) -> EpisodeCall:
    only_reads = record.read_only  # by the tool's own account, else by its agent's, else by its name
    if only_reads is None:
        only_reads = reads.get(record.tool_name, seems_to_read(record.tool_name))
    error = record.error
    return EpisodeCall(
        tool_name=record.tool_name,
        arguments=record.arguments,
        result=record.shown,
        ok=record.success,
        effect=not only_reads,
        decided=decided,
        error_code="" if error is None else error.code,
        error="" if error is None else f"{error.message} {error.recover_action or ''}",
    )


def from_response(response: AgentResponse[Any], *, domain: str = "general", request: str = "") -> Episode | None:
    """The episode of a response; None where neither ``request`` nor its messages say what was asked."""
    ours = {call.call_id for call in response.tool_calls}
    asked, known, previous = request, list[str](), None
    for message in response.messages:
        if any(call.id in ours for call in message.calls):
            break
        if message.role is Role.USER:
            asked = message.content
        elif message.content:
            known.append(message.content)
        previous = message.calls[-1].tool_name if message.calls else previous
    if not asked.strip():
        return None
    return Episode(
        request=asked,
        calls=tuple(_call(record, {}) for record in response.tool_calls if record.tool_name not in RESERVED_NAMES),
        answer=response.answer,
        run_id=response.run_id,
        domain=domain,
        ended_by_itself=response.status is RunStatus.COMPLETED,
        iterations=response.total_iterations,
        model=response.model,
        known=tuple(known),
        previous=previous,
        labels=response.labels,
        verdict=judge(response.tool_calls, ended=response.status is RunStatus.COMPLETED),
    )


# --- conversations of other programs


def from_conversation(
    messages: Sequence[Mapping[str, Any]],
    *,
    domain: str = "general",
    name: str = "conversation",
    model: str = "",
    labels: Sequence[Label] = (),
) -> list[Episode]:
    """The turns of a conversation in the shape of OpenAI's chat messages, each an episode of its own.

    Raises ConfigurationError for what is no such conversation.
    """
    turns: list[_Turn] = []
    results: dict[str, Any] = {}
    for at, message in enumerate(messages):
        if not isinstance(message, Mapping) or not isinstance(role := message.get("role"), str):
            raise ConfigurationError(f"{name}: message {at} is not an object with a 'role'; give OpenAI chat messages")
        text = _text(message.get("content"))
        if role == "user":
            turns.append(_Turn(text))
        elif role == "assistant" and turns:
            turns[-1].say(message, text, where=f"{name}: message {at}")
        elif role in ("tool", "function"):
            last = turns[-1].calls[-1][0] if turns and turns[-1].calls else ""
            results[str(message.get("tool_call_id") or last)] = _value(text)
    episodes: list[Episode] = []
    known: list[Any] = [_text(item.get("content")) for item in messages[:1] if item.get("role") == "system"]
    previous: str | None = None
    for number, turn in enumerate(turns):
        calls = tuple(turn.finished(results))
        episodes.append(
            Episode(
                request=turn.request,
                calls=calls,
                answer=turn.answer,
                run_id=f"{name}#{number}",
                domain=domain,
                ended_by_itself=bool(turn.answer) or all(call.ok for call in calls),
                iterations=turn.steps,
                model=model,
                known=tuple(known),
                previous=previous,
                labels=tuple(labels),
            )
        )
        known += [turn.request, turn.answer, *(call.result for call in calls)]
        previous = calls[-1].tool_name if calls else previous
    return [episode for episode in episodes if episode.request.strip()]


@dataclass(slots=True)
class _Turn:
    request: str
    answer: str = ""
    steps: int = 0
    calls: list[tuple[str, str, Mapping[str, Any]]] = field(default_factory=list)

    def say(self, message: Mapping[str, Any], text: str, *, where: str) -> None:
        self.steps += 1
        asked = [(call.get("id"), call.get("function") or {}) for call in message.get("tool_calls") or ()]
        if message.get("function_call"):
            asked.append((None, message["function_call"]))
        for key, function in asked:
            written = function.get("arguments") or {}
            arguments = _value(written) if isinstance(written, str) else written
            if not isinstance(function.get("name"), str) or not isinstance(arguments, Mapping):
                raise ConfigurationError(f"{where}: a tool call needs a 'function' with a name and a JSON object")
            self.calls.append((str(key or f"{len(self.calls)}"), function["name"], arguments))
        if not asked:
            self.answer = text

    def finished(self, results: Mapping[str, Any]) -> Iterable[EpisodeCall]:
        for key, tool, arguments in self.calls:
            if tool in RESERVED_NAMES:
                continue
            result = results.get(key)
            ok = not (isinstance(result, Mapping) and result.get("error")) and not _says_error(result)
            why = "" if ok else str(result.get("error") if isinstance(result, Mapping) else result)
            yield EpisodeCall(tool, arguments, result, ok=ok, effect=not seems_to_read(tool), error=why)


def _says_error(result: Any) -> bool:
    return isinstance(result, str) and result.lstrip().casefold().startswith(("error", "exception", "traceback"))


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return content if isinstance(content, str) else ""


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def conversations_in(text: str, *, name: str, domain: str) -> list[Episode]:
    """Episodes of a file: a JSON document or JSON Lines, of conversations or of objects with ``messages``.

    Beside ``messages`` an object may say ``model`` and, as ``good`` or ``label``, how it went.
    """
    try:
        whole = json.loads(text)
        items = whole if isinstance(whole, list) and whole and isinstance(whole[0], list) else [whole]
        if isinstance(whole, list) and whole and isinstance(whole[0], Mapping) and "messages" in whole[0]:
            items = whole
    except ValueError:
        try:
            items = [json.loads(line) for line in text.splitlines() if line.strip()]
        except ValueError as error:
            raise ConfigurationError(f"{name}: neither JSON nor JSON Lines: {error}") from None
    episodes: list[Episode] = []
    for number, item in enumerate(items):
        said = {"messages": item} if isinstance(item, list) else item
        if not isinstance(said, Mapping) or not isinstance(said.get("messages"), list):
            raise ConfigurationError(f"{name}: conversation {number} has no list of 'messages'")
        good = said.get("good", {"good": True, "bad": False}.get(str(said.get("label"))))
        rated = Label(source=LabelSource.RATING, value="good" if good else "bad", by=name)
        episodes += from_conversation(
            said["messages"],
            domain=str(said.get("domain") or domain),
            name=f"{name}:{number}",
            model=str(said.get("model") or ""),
            labels=() if good is None else (rated,),
        )
    return episodes
