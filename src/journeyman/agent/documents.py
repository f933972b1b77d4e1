"""Agents ⇄ gram documents, with one agent or several. What such a document looks like is told in `gram.documents`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from journeyman.agent.agent import Agent
from journeyman.core.errors import ConfigurationError
from journeyman.gram import dumps
from journeyman.gram.documents import Described, Reader, agents_document
from journeyman.gram.parsing import parse, text_of

_FIELDS = [name for name in Agent.model_fields if name not in ("name", "tools")]


@dataclass(frozen=True, slots=True)
class AgentFile:
    """A gram file that was read, as it was then."""

    path: Path
    agents: tuple[Agent, ...]


_noted: ContextVar[list[AgentFile] | None] = ContextVar("agent files", default=None)


@contextmanager
def files_noted() -> Iterator[list[AgentFile]]:
    """Collects the gram files that agents are read from inside the block, whoever reads them."""
    files: list[AgentFile] = []
    token = _noted.set(files)
    try:
        yield files
    finally:
        _noted.reset(token)


def load_agents(source: str | Path) -> list[Agent]:
    """All agents of a gram text or file. Raises GramError with everything that is wrong."""
    if not isinstance(source, Path):
        return Reader(parse(source), Agent, _FIELDS).agents()
    # Read once: what was noted is what the agents are made of, even if the file changes meanwhile.
    text = text_of(source)
    agents = Reader(parse(text, file=str(source)), Agent, _FIELDS).agents()
    if (noted := _noted.get()) is not None:
        noted.append(AgentFile(source, tuple(agents)))
    return agents


def load_agent(source: str | Path, name: str | None = None) -> Agent:
    """One agent of a gram text or file; where there are several, the one of this name."""
    agents = load_agents(source)
    fitting = [agent for agent in agents if name is None or agent.name == name]
    if len(fitting) == 1:
        return fitting[0]
    where = repr(str(source)) if isinstance(source, Path) else "the text"
    names = ", ".join(repr(agent.name) for agent in agents)
    wanted = "name one of them" if name is None else f"{len(fitting)} of them are called {name!r}"
    raise ConfigurationError(f"{where} describes the agents {names}; {wanted}")


def dump_agents(agents: Iterable[Agent]) -> str:
    """Agents as canonical gram text; ``load_agents`` gives them back, equal in every field."""
    return dumps(agents_document([_described(agent) for agent in agents]))


def _described(agent: Agent) -> Described:
    values = {name: getattr(agent, name) for name in _FIELDS}
    fields = {name: value for name, value in values.items() if value != Agent.model_fields[name].default}
    return Described(agent.name, fields, agent.tools)
