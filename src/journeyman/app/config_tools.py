"""What a configuration file means for tools: where they come from, what of it cannot be, and each as it is configured.

Configuration only ever narrows: permissions are added, a declared risk is raised, what is off in code stays off.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema_rs
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from journeyman.core.data import canonical_json
from journeyman.core.errors import ConfigurationError, ToolDefinitionError, validation_problems
from journeyman.core.intents import wrong_type_name
from journeyman.settings.problems import Key, Problem, nearest
from journeyman.settings.reading import Loaded
from journeyman.settings.schema import Category, Intent, Settings, ToolOverride
from journeyman.settings.schema import Tool as ToolSettings
from journeyman.tools.library import AnyTool, ToolLibrary
from journeyman.tools.paths import import_path, split_path, tools_at
from journeyman.tools.tool import Adapter, Tool

Toolkit = Callable[[], ToolLibrary]
KNOWN_CATEGORIES = ("general", "slack_tools", "openai_tools", "analysis_tools")
_NO_CATEGORY = Category()
_NO_TOOL = ToolSettings()


@dataclass(frozen=True, slots=True)
class Found:
    """The tools that a file names, before anything is configured, and what is wrong with what it says of them."""

    tools: tuple[AnyTool, ...]
    problems: tuple[Problem, ...]


def find_tools(loaded: Loaded, toolkits: Mapping[str, Toolkit]) -> Found:
    """Import what the file names and check everything it says of it."""
    finder = _Finder(loaded, toolkits)
    finder.find()
    return Found(tuple(finder.tools.values()), tuple(loaded.problem(key, why) for key, why in finder.problems))


class _Finder:
    def __init__(self, loaded: Loaded, toolkits: Mapping[str, Toolkit]) -> None:
        self._settings = loaded.settings
        self._folder = loaded.path.absolute().parent
        self._toolkits = toolkits
        self.tools: dict[str, AnyTool] = {}
        self.problems: list[tuple[Key, str]] = []

    def find(self) -> None:
        if str(self._folder) not in sys.path:
            sys.path.insert(0, str(self._folder))  # its modules are found wherever the program was started
        for number, name in enumerate(self._toolkit_names()):
            self._toolkit(name, ("toolkits", number))
        for name, settings in self._settings.tools.items():
            if settings.import_ is not None:
                self._import(name, settings.import_, ("tools", name, "import"))
        for name, settings in self._settings.tools.items():
            self._check(name, settings, ("tools", name))
        for name, category in self._settings.categories.items():
            self._check_category(name, category, ("categories", name))
        for name, intent in self._settings.intents.items():
            self._check_intent(name, intent, ("intents", name))

    def _toolkit_names(self) -> list[str]:
        if self._settings.toolkits is not None:
            return self._settings.toolkits
        own = self._settings.mcp or any(item.import_ for item in self._settings.tools.values())
        return [] if own else ["tasks"]

    def _toolkit(self, name: str, key: Key) -> None:
        try:
            if ":" in name:
                found: Iterable[AnyTool] = import_path(self._place(name), kind=ToolLibrary)
            elif name in self._toolkits:
                found = self._toolkits[name]()
            else:
                self.problems.append((key, f"no toolkit is called {name!r}; {nearest(name, self._toolkits)}"))
                return
        except ConfigurationError as error:
            self.problems.append((key, str(error)))
            return
        for item in found:
            if item.name in self.tools:
                self.problems.append((key, f"brings {item.name!r}, which another toolkit brings, too"))
            self.tools.setdefault(item.name, item)

    def _import(self, name: str, path: str, key: Key) -> None:
        try:
            [item, *more] = tools_at([self._place(path)], expand=_tools_of)
        except (ToolDefinitionError, ConfigurationError) as error:
            self.problems.append((key, str(error)))
            return
        except ValueError:
            self.problems.append((key, f"{path!r} is a library without tools"))
            return
        if more:
            self.problems.append((key, f"{path!r} is a library; name one tool, or put it under 'toolkits'"))
            return
        try:
            self.tools[name] = item if item.name == name else item.with_changes(name=name)
        except ToolDefinitionError as error:
            self.problems.append((key, str(error)))

    def _place(self, path: str) -> str:
        """An import path with its file as seen from the configuration file."""
        place, name = split_path(path)
        return f"{self._folder / place}:{name}" if place.endswith(".py") and not Path(place).is_absolute() else path

    # --- what is said of tools

    def _check(self, name: str, settings: ToolSettings, key: Key) -> None:
        item = self.tools.get(name)
        if item is None:
            if settings.import_ is None and name.partition(".")[0] not in self._settings.mcp:
                hint = nearest(name, self.tools) if self.tools else "nothing brings tools here"
                why = f"there is no such tool; {hint} A tool of your own takes 'import: module:function'"
                self.problems.append((key, why))
            return
        self._check_override(item, settings, key)
        for environment, override in settings.environments.items():
            self._check_override(item, override, (*key, "environments", environment))

    def _check_override(self, item: AnyTool, settings: ToolOverride, key: Key) -> None:
        specification = item.specification
        declared = specification.risk
        if settings.risk is not None and declared is not None and settings.risk.rank < declared.rank:
            why = f"the tool declares {declared.value!r}, and configuration only raises a risk"
            self.problems.append(((*key, "risk"), why))
        if settings.cache is not None and not specification.read_only:
            self.problems.append(((*key, "cache"), "only results of tools that are read-only can be reused"))
        self.problems += [((*key, "parameters", *rest), why) for rest, why in wrong_values(item, settings.parameters)]

    def _must_have_category(self, name: str, key: Key) -> None:
        known = {item.specification.category for item in self.tools.values()} | set(KNOWN_CATEGORIES)
        known |= {item.category for item in self._settings.tools.values() if item.category}
        known |= {item.category or server for server, item in self._settings.mcp.items()}
        if name not in known:
            self.problems.append((key, f"no tool has this category; {nearest(name, sorted(known))}"))

    def _check_intent(self, name: str, intent: Intent, key: Key) -> None:
        if (why := wrong_type_name(name)) is not None:
            self.problems.append((key, why))
        for number, tool in enumerate(intent.tools):
            # What a server brings is known only when it is reached.
            if tool not in self.tools and tool.partition(".")[0] not in self._settings.mcp:
                hint = nearest(tool, self.tools) if self.tools else "nothing brings tools here"
                self.problems.append(((*key, "tools", number), f"there is no tool {tool!r}; {hint}"))
        for number, category in enumerate(intent.categories):
            self._must_have_category(category, (*key, "categories", number))

    def _check_category(self, name: str, category: Category, key: Key) -> None:
        self._must_have_category(name, key)
        if category.schema_ is not None:
            self.problems += [((*key, *rest), why) for rest, why in _misfits(category, self._place)]


def _tools_of(value: Any) -> ToolLibrary | None:
    return value if isinstance(value, ToolLibrary) else None


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
        found = list(jsonschema_rs.iter_errors(category.schema_ or {}, category.global_config))
    except (ValueError, jsonschema_rs.ValidationError) as error:
        yield ("schema",), f"is not a valid JSON Schema: {str(error)[:200]}"
        return
    for misfit in found:
        yield ("global_config", *map(str, misfit.instance_path)), misfit.message[:200]


# --- tools as they are configured


class ConfiguredTools:
    """Makes each tool what the settings that hold now say. The same tool under the same settings is the same object."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._made: dict[str, tuple[AnyTool, tuple[Any, ...], AnyTool]] = {}

    def __call__(self, item: AnyTool) -> AnyTool:
        settings = self.settings
        said = settings.tool(item.name) or _NO_TOOL
        server = settings.mcp.get(item.origin)
        category = said.category or (None if server is None else server.category or item.origin)
        category = category or item.specification.category
        shared = settings.categories.get(category, _NO_CATEGORY)
        by = (said, category, shared)
        kept = self._made.get(item.name)
        if kept is not None and kept[0] is item and kept[1] == by:
            return kept[2]
        made = configured(item, said, category, shared)
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
    if said.timeout_seconds is not None:
        changes["timeout_seconds"] = said.timeout_seconds
    if said.risk is not None and specification.risk is None and not specification.read_only:
        changes["risk"] = said.risk  # the policy raises what is declared
    made: Tool[..., Any] = item.with_changes(**changes) if changes else item
    fields: dict[str, Any] = {}
    if said.retries is not None:
        fields["retries"] = said.retries
    if said.cache is not None and specification.read_only:
        fields["cache_seconds"] = said.cache
    if said.parameters:
        fields["adapt"] = partial(_filled, canonical_json(said.parameters), item.adapt)
    if shared.global_config:
        fields["settings"] = shared.global_config
    return replace(made, **fields) if fields else made


def _filled(defaults: str, adapt: Adapter | None, given: dict[str, Any]) -> dict[str, Any]:
    """Arguments with what the operator has set for those that were left out."""
    named = given if adapt is None else adapt(given)
    return {**from_json(defaults), **named}
