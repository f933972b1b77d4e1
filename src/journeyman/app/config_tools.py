"""What a configuration file means for tools: where they come from, what of it cannot be, and each as it is configured.

Configuration only ever narrows: permissions are added, a declared risk is raised, what is off in code stays off.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema_rs
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from journeyman.choosing.actions import CHANGES, LOOKED_UP, actions_of
from journeyman.core.data import canonical_json, digest
from journeyman.core.errors import ConfigurationError, ToolDefinitionError, problem_text, validation_problems
from journeyman.core.gaps import wrong_type_name
from journeyman.core.policy import Policy, RiskLevel, is_pattern
from journeyman.core.specification import Environment, ToolCategory, ToolConfiguration, ToolSpecification
from journeyman.core.words import word_lists, words
from journeyman.execution.checks import base_risk
from journeyman.settings.problems import Key, Problem, nearest
from journeyman.settings.reading import Loaded
from journeyman.settings.schema import Category, Settings, ToolOverride
from journeyman.settings.schema import Tool as ToolSettings
from journeyman.tools.checks import Finding
from journeyman.tools.library import AnyTool, ToolLibrary
from journeyman.tools.paths import changed_since_import, import_path, split_path, tools_at
from journeyman.tools.sources import SourceProblem, ToolSource
from journeyman.tools.tool import Adapter, Tool
from journeyman.tools.transforming import transformed

Toolkit = Callable[[], ToolLibrary]
KNOWN_CATEGORIES = ("general", "slack_tools", "openai_tools", "analysis_tools")
_NO_CATEGORY = Category()
_NO_TOOL = ToolSettings()


@dataclass(frozen=True, slots=True)
class NamedTools:
    """The tools that a file names, before anything is configured, and what is wrong with what it says of them."""

    tools: tuple[AnyTool, ...]
    problems: tuple[Problem, ...]
    later: tuple[Problem, ...] = ()
    """What holds from the next start on, and holds back nothing else."""


def find_tools(loaded: Loaded, toolkits: Mapping[str, Toolkit]) -> NamedTools:
    """Import what the file names and check everything it says of it."""
    settings, folder = loaded.settings, loaded.path.absolute().parent
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))  # its modules are found wherever the program was started
    tools: dict[str, AnyTool] = {}
    wrong = [*_toolkit_tools(settings, folder, toolkits, tools)]
    later: list[tuple[Key, str]] = []
    for name, item in settings.tools.items():
        if item.import_ is not None:
            place, key = _place(item.import_, folder), ("tools", name, "import")
            try:
                tools[name] = _imported(name, item.import_, place)
            except (ToolDefinitionError, ConfigurationError) as error:
                if changed_since_import(place):
                    told = f"{item.import_!r} was written after its module was imported: restart to have it"
                    later.append((key, told))
                else:
                    wrong.append((key, str(error)))
    wrong += _wrong_in(settings, folder, tools)
    problems, held = (tuple(loaded.problem(key, why) for key, why in told) for told in (wrong, later))
    return NamedTools(tuple(tools.values()), problems, held)


def _toolkit_tools(
    settings: Settings, folder: Path, toolkits: Mapping[str, Toolkit], tools: dict[str, AnyTool]
) -> Iterator[tuple[Key, str]]:
    """Put what toolkits bring among the tools; without any named, those over tasks, unless there are others."""
    own = settings.sources or any(item.import_ for item in settings.tools.values())
    names = settings.toolkits if settings.toolkits is not None else [] if own else ["tasks"]
    for number, name in enumerate(names):
        key: Key = ("toolkits", number)
        try:
            if ":" in name:
                brought: Iterable[AnyTool] = import_path(_place(name, folder), kind=ToolLibrary)
            elif name in toolkits:
                brought = toolkits[name]()
            else:
                raise ConfigurationError(f"no toolkit is called {name!r}; {nearest(name, toolkits)}")
        except ConfigurationError as error:
            yield key, str(error)
            continue
        for item in brought:
            if item.name in tools:
                yield key, f"brings {item.name!r}, which another toolkit brings, too"
            tools.setdefault(item.name, item)


def _imported(name: str, path: str, place: str) -> AnyTool:
    """The one tool that a path names, under its name in the file. Raises where it is none, or several."""
    items = tools_at([place], expand=lambda value: value if isinstance(value, ToolLibrary) else None)
    if not items:
        raise ConfigurationError(f"{path!r} is a library without tools")
    if len(items) > 1:
        raise ConfigurationError(f"{path!r} is a library; name one tool, or put it under 'toolkits'")
    return items[0] if items[0].name == name else items[0].with_changes(name=name)


def _place(path: str, folder: Path) -> str:
    """An import path with its file as seen from the configuration file."""
    place, name = split_path(path)
    return f"{folder / place}:{name}" if place.endswith(".py") and not Path(place).is_absolute() else path


def _wrong_in(settings: Settings, folder: Path, tools: Mapping[str, AnyTool]) -> Iterator[tuple[Key, str]]:
    """What is said of tools, categories and intents, and cannot be."""
    known = {item.specification.category for item in tools.values()} | set(KNOWN_CATEGORIES)
    declared = known | {*settings.categories, *settings.sources}
    used = known | {item.category for item in settings.tools.values() if item.category}
    used |= {item.category or server for server, item in settings.sources.items()}

    def no_tool(name: str) -> str | None:
        """What to write instead of a tool that is not there; what a server brings is known only when it is reached."""
        if name in tools or name.partition(".")[0] in settings.sources:
            return None
        return nearest(name, tools) if tools else "nothing brings tools here"

    puts: list[tuple[Key, str | None]] = []
    for name, said in settings.tools.items():
        puts.append((("tools", name, "category"), said.category))
        for environment, override in said.environments.items():
            puts.append((("tools", name, "environments", environment, "category"), override.category))
    puts += [((settings.section(name), name, "category"), source.category) for name, source in settings.sources.items()]
    for key, category in puts:  # a mistyped one would have neither permissions nor a limit
        if category is not None and category not in declared:
            hint = nearest(category, sorted(declared))
            yield key, f"there is no such category; {hint} A new one is named under 'categories'"
    renamed = [said.rename for said in settings.tools.values()]
    for name, said in settings.tools.items():
        fitting = [item for item in tools.values() if fnmatchcase(item.name, name)]
        if is_pattern(name):
            if said.import_ is not None:
                yield ("tools", name, "import"), "one tool is imported under one name, and not under a pattern"
            if said.rename is not None:
                yield ("tools", name, "rename"), "a pattern fits several tools, and they need different names"
            of = name.partition(".")[0]  # whatever the tools of a server are called
            if not fitting and not any(
                of == server or fnmatchcase(f"{server}.", f"{of}.") for server in settings.sources
            ):
                yield ("tools", name), f"fits no tool; {nearest(name, tools)}"
        elif said.import_ is None and (near := no_tool(name)) is not None:
            why = f"there is no such tool; {near} A tool of your own takes 'import: module:function'"
            yield ("tools", name), why
        if said.rename in tools or (said.rename is not None and renamed.count(said.rename) > 1):
            yield ("tools", name, "rename"), f"{said.rename!r} is the name of another tool"
        for item in fitting:
            yield from wrong_overrides(item, said, ("tools", name))
    wanted: list[tuple[Key, str]] = [(("categories", name), name) for name in settings.categories]
    for name, intent in settings.intents.items():
        if (why_not := wrong_type_name(name)) is not None:
            yield ("intents", name), why_not
        for number, tool in enumerate(intent.tools):
            if (near := no_tool(tool)) is not None:
                yield ("intents", name, "tools", number), f"there is no tool {tool!r}; {near}"
        wanted += [(("intents", name, "categories", n), category) for n, category in enumerate(intent.categories)]
    for key, category in wanted:
        if category not in used:
            yield key, f"no tool has this category; {nearest(category, sorted(used))}"
    for name, shared in settings.categories.items():
        if shared.schema_ is not None:
            yield from (
                (("categories", name, *rest), why) for rest, why in _misfits(shared, lambda path: _place(path, folder))
            )


def wrong_overrides(item: AnyTool, settings: ToolSettings, key: Key) -> Iterator[tuple[Key, str]]:
    """What is said of a tool, in any environment, and cannot be."""
    specification = item.specification
    declared = specification.risk
    overrides: list[tuple[Key, ToolOverride]] = [(key, settings)]
    overrides += [((*key, "environments", name), over) for name, over in settings.environments.items()]
    for place, override in overrides:
        if override.risk is not None and declared is not None and override.risk.rank < declared.rank:
            why = f"the tool declares {declared.value!r}, and configuration only raises a risk"
            yield (*place, "risk"), why
        if override.read_only and declared is not None and not specification.read_only:
            yield (*place, "read_only"), f"the tool declares {declared.value!r}, and configuration only raises a risk"
        if override.cache is not None and not (specification.read_only or override.read_only or settings.read_only):
            yield (*place, "cache"), "only results of tools that are read-only can be reused"
        taken = specification.parameters.get("properties", {})
        for name in override.sends or ():
            if name.removeprefix("to:") in ("", name) and name not in taken:
                yield (*place, "sends"), f"{name!r} is no parameter of the tool; {nearest(name, taken)}"
        try:
            transformed(item, **settings.overridden(override).told)
        except ToolDefinitionError as error:
            part = next((key for key in ("arguments", "rename") if getattr(override, key)), "result")
            named = [name for name in override.arguments if repr(name) in str(error)]
            yield (*place, part, *named[:1]), str(error)
        fixed = {name: said.value for name, said in override.arguments.items() if "value" in said.model_fields_set}
        for part, values in (("parameters", override.parameters), ("arguments", fixed)):
            for rest, why in wrong_values(item, values):
                yield (*place, part, *rest), why


def wrong_names(settings: Settings, server: str, tools: Mapping[str, AnyTool]) -> Iterator[tuple[Key, str]]:
    """What a file says of a server's tools and cannot be, once it has listed them: ``tools`` by their full names."""
    bare = {name.removeprefix(f"{server}.") for name in tools}
    for number, wanted in enumerate(_only(settings, server)):
        if not any(fnmatchcase(name, wanted) for name in bare):
            yield ("mcp", server, "only", number), f"the server has no such tool; {nearest(wanted, sorted(bare))}"
    for name, said in settings.tools.items():
        if name.partition(".")[0] != server or said.import_ is not None:
            continue
        fitting = [item for full, item in tools.items() if fnmatchcase(full, name)]
        if not fitting:
            yield ("tools", name), f"the server has no such tool; {nearest(name, sorted(tools))}"
        if said.rename in tools:
            yield ("tools", name, "rename"), f"{said.rename!r} is the name of another tool"
        for item in fitting:
            yield from wrong_overrides(item, said, ("tools", name))


def _only(settings: Settings, server: str) -> Sequence[str]:
    """Which tools are taken of a server; an API compares that itself."""
    return (settings.mcp[server].only or ()) if server in settings.mcp else ()


def wrong_values(item: AnyTool, values: Mapping[str, Any]) -> Iterator[tuple[Key, str]]:
    """What of some arguments a tool could not take."""
    schema = item.specification.parameters
    properties: Mapping[str, Any] = schema.get("properties", {})
    for name, value in values.items():
        if name not in properties and schema.get("additionalProperties", False) is False:
            yield (name,), f"{item.name!r} has no parameter of this name; {nearest(name, properties)}"
            continue
        if name in properties:
            one = {**schema, "properties": {name: properties[name]}, "required": []}
            for error in jsonschema_rs.iter_errors(one, {name: value}):
                yield (name,), error.message[:200]


def _misfits(category: Category, place: Callable[[str], str]) -> Iterator[tuple[Key, str]]:
    """Where a category's configuration does not fit its schema."""
    if isinstance(category.schema_, str):
        try:
            model = import_path(place(category.schema_), kind=type)
        except ConfigurationError as error:
            yield ("schema",), str(error)
            return
        if not issubclass(model, BaseModel):
            yield ("schema",), f"{category.schema_!r} is no pydantic model"
            return
        try:
            model.model_validate(category.global_config)
        except ValidationError as error:
            for path, why in validation_problems(error):
                yield ("global_config", *path.split(".")) if path else ("global_config",), why
        return
    try:
        misfits = list(jsonschema_rs.iter_errors(category.schema_ or {}, category.global_config))
    except (ValueError, jsonschema_rs.ValidationError) as error:
        yield ("schema",), f"is not a valid JSON Schema: {str(error)[:200]}"
        return
    for misfit in misfits:
        yield ("global_config", *map(str, misfit.instance_path)), misfit.message[:200]


# --- tools as they are configured


@dataclass(frozen=True, slots=True)
class AppliedConfiguration:
    """A library and a policy under a program's own configuration, for ``run(…, library=…, policy=…)``."""

    library: ToolLibrary
    policy: Policy


def apply_configuration(
    library: ToolLibrary,
    *said: ToolConfiguration | ToolCategory,
    environment: Environment = "development",
    policy: Policy | None = None,
) -> AppliedConfiguration:
    """What ``tools`` and ``categories`` of a configuration file do, from a program. Raises ConfigurationError.

    Rate limits go into the policy; everything else into a view of the library.
    """
    categories = [one for one in said if isinstance(one, ToolCategory)]
    tools = {one.tool_name: _tool_settings(one) for one in said if isinstance(one, ToolConfiguration)}
    for category in categories:
        for name, given in category.tools.items():
            tools[name] = _tool_settings(given).model_copy(update={"category": category.name})
    shared = {one.name: Category(**one.model_dump(exclude={"name", "tools"})) for one in categories}
    settings = Settings(version=1, environment=environment, tools=tools, categories=shared)
    problems = [(name, "there is no such tool") for name in tools if name not in library]
    for item in library:
        wrong = () if item.name not in tools else wrong_overrides(item, tools[item.name], (item.name,))
        problems += [(".".join(map(str, key)), why) for key, why in wrong]
    known = {item.specification.category for item in library} | {item.category for item in tools.values()}
    problems += [(name, "no tool has this category") for name in shared if name not in known]
    if problems:
        raise ConfigurationError(problem_text(problems))
    rates = {name: item.in_environment(environment).rate_limit for name, item in tools.items()}
    policy = policy or Policy()
    limits = {**policy.rate_limits, **{name: rate for name, rate in rates.items() if rate is not None}}
    view = library.mapped(ConfiguredTools(settings, ToolLibrary()))
    return AppliedConfiguration(view, policy.model_copy(update={"rate_limits": limits}))


def _tool_settings(said: ToolConfiguration) -> ToolSettings:
    try:
        return ToolSettings(**said.model_dump(exclude={"tool_name"}, exclude_unset=True))
    except ValidationError as error:
        where = f"configuration of {said.tool_name!r}"
        raise ConfigurationError(f"{where}: {problem_text(validation_problems(error))}") from None


class ConfiguredTools:
    """Makes each tool what the settings that hold now say. The same tool under the same settings is the same object."""

    def __init__(self, settings: Settings, served: ToolLibrary) -> None:
        self.settings = settings
        self.wrong: dict[str, list[tuple[Key, str]]] = {}
        """By server, what the file says of its tools and cannot be. Until that is mended, these are off."""
        self._served = served
        self._compared: tuple[int, Settings] | None = None
        self._fitted: set[Key] = set()
        self._made: dict[str, tuple[AnyTool, tuple[Any, ...], AnyTool]] = {}

    def compare(self) -> None:
        """Compare what the file says of servers' tools with what they have listed, where either has changed."""
        before, self._compared = self._compared, (self._served.version, self.settings)
        if before is not None and before[1] is self.settings:
            if before[0] == self._served.version:
                return
        else:
            self._fitted = set()
        listed: dict[str, dict[str, AnyTool]] = {}
        for item in self._served:
            listed.setdefault(item.origin, {})[item.name] = item
        self.wrong = {}
        for server in self.settings.sources.keys() & listed.keys():
            named = list(wrong_names(self.settings, server, listed[server]))
            # A name that has fitted is no mistake: a server may take a tool away for a while.
            if wrong := [(key, why) for key, why in named if key not in self._fitted]:
                self.wrong[server] = wrong
            keys: set[Key] = {("mcp", server, "only", number) for number, _ in enumerate(_only(self.settings, server))}
            keys |= {("tools", name) for name in self.settings.tools if name.partition(".")[0] == server}
            self._fitted |= keys - {key for key, _ in named}

    def __call__(self, item: AnyTool) -> AnyTool:
        self.compare()
        settings = self.settings
        said = settings.tool(item.name) or _NO_TOOL
        server = settings.sources.get(item.origin)
        category = said.category or (None if server is None else server.category or item.origin)
        category = category or item.specification.category
        shared = settings.categories.get(category, _NO_CATEGORY)
        held = item.origin in self.wrong
        by = (said, category, shared, held)
        kept = self._made.get(item.name)
        if kept is not None and kept[0] is item and kept[1] == by:
            return kept[2]
        made = configured(item, said, category, shared)
        if held:
            made = made.with_changes(enabled=False)
        self._made[item.name] = (item, by, made)
        return made


def configured(item: AnyTool, said: ToolSettings, category: str, shared: Category) -> AnyTool:
    """One tool as settings want it; the tool itself where they want nothing."""
    specification = item.specification
    changes: dict[str, Any] = {}
    if not shared.enabled or said.enabled is False:
        changes["enabled"] = False
    if category != specification.category:
        changes["category"] = category
    if more := {*shared.permissions, *said.permissions} - specification.permissions:
        changes["permissions"] = specification.permissions | more
    for name in ("reads", "sends"):
        given = getattr(shared, name) if getattr(said, name) is None else getattr(said, name)
        if given is not None:
            changes[name] = given
    if said.timeout_seconds is not None:
        changes["timeout_seconds"] = said.timeout_seconds
    same = said.digest is None or said.digest == tool_digest(specification)
    if same and specification.risk is None and not specification.read_only:  # the policy raises what is declared
        if said.read_only and said.risk in (None, RiskLevel.REVERSIBLE):
            changes["read_only"] = True
        elif said.risk is not None:
            changes["risk"] = said.risk
    made: Tool[..., Any] = item.with_changes(**changes) if changes else item
    fields: dict[str, Any] = {}
    if said.retries is not None:
        fields["retries"] = said.retries
    if said.cache is not None and made.specification.read_only:
        fields["cache_seconds"] = said.cache
    if said.parameters:
        fields["adapt"] = partial(_filled, canonical_json(said.parameters), item.adapt)
    if shared.global_config:
        fields["settings"] = shared.global_config
    made = replace(made, **fields) if fields else made
    return transformed(made, **told) if (told := said.told) else made


def tool_digest(specification: ToolSpecification) -> str:
    """Of all that a server says of a tool, and of what is started or connected to: a grade is bound to it."""
    told = {"description", "parameters", "returns", "metadata"}
    return digest(specification.model_dump_json(include=told))[:16]


def _filled(defaults: str, adapt: Adapter | None, given: dict[str, Any]) -> dict[str, Any]:
    """Arguments with what the operator has set for those that were left out."""
    named = given if adapt is None else adapt(given)
    return {**from_json(defaults), **named}


# --- a look at an MCP server before it is taken in


@dataclass(frozen=True, slots=True)
class ServerReport:
    """What a server offers."""

    tools: Sequence[tuple[ToolSpecification, RiskLevel]]
    grades: Mapping[str, tuple[bool, str]]
    """By tool, whether it seems only to read, and why."""
    findings: Sequence[Finding]
    """Only those that a person should see before a model does."""
    problems: Sequence[SourceProblem]


async def look_at(source: ToolSource) -> ServerReport:
    """Start or reach a source once. Raises ConfigurationError, which says why not."""
    rules = Policy()
    async with ToolLibrary(sources=[source]) as library:
        tools = [(item, base_risk(item, rules)) for item in library.specifications()]
        findings = [finding for finding in library.lint() if finding.rule == "description-instructs"]
        suspicious = {finding.tool for finding in findings}
        shared = shared_words([item for item, _ in tools])
        grades = {item.name: judged(item, shared) for item, _ in tools}
        grades |= dict.fromkeys(suspicious & grades.keys(), (False, "its description instructs models"))
        return ServerReport(tools, grades, findings, library.problems())


def judged(item: ToolSpecification, shared: Container[str] = ()) -> tuple[bool, str]:
    """Whether a tool seems only to read, and why, for a person to confirm. Whatever speaks against it decides.

    ``shared`` are words with which the names of all tools of its source begin: they say nothing of this one.
    """
    told = item.metadata.get("mcp", {})
    hints = told.get("annotations", {})
    if hints.get("readOnlyHint") is False or hints.get("destructiveHint"):
        return False, "the server says that it changes something"
    if item.risk is not None or item.read_only:
        return item.read_only, f"{item.metadata.get('openapi', {}).get('method', 'it')} declares it"
    if "content" in told:
        return True, "the protocol has it as a read"
    parts, taken = _name_words(item.name), item.parameters.get("properties", {})
    while len(parts) > 1 and parts[0] in shared:
        parts = parts[1:]
    against = word_lists("journeyman.sources", "reads.txt")
    if kept := [name for name in taken if name in against["saved_at"] or _name_words(f".{name}")[:1] == ["save"]]:
        return False, f"it keeps something at {kept[0]!r}"
    said = words(item.description)
    while said and said[0] in against["filling"]:
        said = said[1:]
    # Where name and description begin with looking up, "run" is what is looked up, and "push" what it is sifted by.
    whole, described = not {"and", "or"} & {*parts}, _looks_up(said[:1])
    twice = _looks_up(parts[:1]) and described and whole
    # Some names begin with what it is about: billing-history-list.
    nouns = described and against["changing"].intersection(parts) <= against["noun"]
    named = [part for part in parts if _looks_up([part])][:1] if nouns else parts[:1]
    if hints.get("readOnlyHint") and whole and _looks_up(named):
        return True, "the server says so, and its name says that it looks something up"
    if telling := against["changing"].intersection(parts) - (against["noun"] if twice else set()):
        return False, f"its name says {min(telling)!r}"
    if telling := against["carried_out"] & {*taken}:
        return False, f"what it takes as {min(telling)!r} may be carried out, or kept"
    if telling := against["changing"] & {*_chosen(taken, sifted=twice)}:
        return False, f"one can choose {min(telling)!r}"
    if hints.get("readOnlyHint"):
        return True, "the server says so, and its name does not gainsay it"
    if telling := against["does"].intersection(said):
        return False, f"its description says {min(telling)!r}"
    performs = said[:1] in (["perform"], ["performs"]) and _looks_up(parts[-1:])  # a web search
    stored = [name for name in taken if against["stored"].intersection(_name_words(f".{name}")[-1:])]
    if stored and against["transforming"].intersection(said[:1]):
        return False, f"it may be what {stored[0]!r} names that becomes another"
    if not performs and not _looks_up(said[:1]) and not against["reading"].intersection(said[:1]):
        return False, "nothing says that it only reads"
    # The first word is the verb: later ones are often nouns that could be verbs, as in read_file.
    if _looks_up(parts[:1]):
        return True, "its name and its description begin with looking something up"
    if against["kept_at"] & {*taken} or any(telling & CHANGES for telling in actions_of(parts)):
        return False, "its name, or what it takes, may mean a change"
    return True, "its description begins with looking something up, and its name does not gainsay it"


def _chosen(properties: Mapping[str, Any], *, sifted: bool) -> Iterator[str]:
    """The words between which arguments choose, as in one tool for several actions."""
    acting = word_lists("journeyman.sources", "reads.txt")["acting"]
    for name, one in properties.items():
        choices = one.get("enum") if isinstance(one, dict) else None
        if sifted and acting.isdisjoint(_name_words(f".{name}")):
            continue
        for choice in choices if isinstance(choices, list) else ():
            yield from _name_words(f".{choice}")[:1]


def _looks_up(said: Sequence[str]) -> bool:
    asked = word_lists("journeyman.sources", "reads.txt")["asking"].intersection(said)
    return not asked and any(actions <= LOOKED_UP for actions in actions_of(said))


def _name_words(name: str) -> list[str]:
    """The words of a tool's name, without its source's."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.partition(".")[2]).casefold()
    return [part for part in re.split(r"[\W_]+", apart) if part]


def shared_words(tools: Sequence[ToolSpecification]) -> set[str]:
    """The words with which the names of all of a source's tools begin, and its own name's."""
    names = [_name_words(item.name) for item in tools]
    shared = {word for item in tools[:1] for word in re.split(r"[\W_]+", item.name.partition(".")[0].casefold())}
    for column in zip(*names, strict=False):
        if len(names) < 2 or len({*column}) > 1:
            break
        shared.add(column[0])
    return shared
