"""Draws plain sentences, and most of the tools for them, from three public collections. Nobody here chose a sentence.

``python -m benchmarks.embedded.public FOLDER`` writes ``sets/<kind>.jsonl`` and ``<kind>.tools.json`` from clones of
the repositories ``dstc8-schema-guided-dialogue``, ``nlu-benchmark`` and ``intents`` in a folder, and the German
sentences of the last for ``benchmarks.gaps``. A hash of the sentence tells what is taken, ``MOST`` for each tool:

- *trips* and *outings*: the first turn of dialogues to other services, where all that the tool requires is said. Names,
  descriptions and parameters are those of the services' own schema.
- *wishes*: the validation sentences of seven intents. What the tools are called and say is ours.
- *voice*: a voice assistant's own test sentences, one of each group, with the intents' own descriptions.

Only a sentence is taken that says each value of its annotation. The others of a kind are sentences for services that it
does not offer. See ``sets/public.licences.md``.
"""

import hashlib
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

MOST = 6
MOST_OUTSIDE = 16
LONGEST = 110
"""Characters of a plain sentence."""
SETS = Path(__file__).parent / "sets"
GERMAN = Path(__file__).parents[1] / "gaps" / "sets" / "voice.txt"
TRIPS = ("Alarm_1", "Banks_2", "Buses_1", "Homes_1", "Hotels_4", "Media_2")
OUTINGS = ("Events_1", "Music_1", "Restaurants_2", "RideSharing_1", "Services_4", "Travel_1", "Weather_1")
NEITHER = ("Flights_3", "RentalCars_1")
WISHES: dict[str, tuple[str, str, dict[str, tuple[str, str]]]] = {
    "AddToPlaylist": (
        "add_to_playlist",
        "Add a song, an album or an artist to a playlist.",
        {"item": ("entity_name artist", "What to add."), "playlist": ("playlist", "The name of the playlist.")},
    ),
    "BookRestaurant": (
        "book_restaurant",
        "Book a table at a restaurant.",
        {
            "restaurant": ("restaurant_name restaurant_type", "The restaurant's name, or the kind of restaurant."),
            "city": ("city", "The town or city."),
            "party_size": ("party_size_number", "How many people."),
        },
    ),
    "GetWeather": ("get_weather", "Tell the weather.", {"place": ("city country geographic_poi", "The place.")}),
    "PlayMusic": (
        "play_music",
        "Play music.",
        {
            "music": ("artist track album genre playlist", "The artist, song, album or kind of music."),
            "service": ("service", "The streaming service."),
        },
    ),
    "RateBook": (
        "rate_book",
        "Rate a book.",
        {"book": ("object_name", "The book's title."), "rating": ("rating_value", "How many points.")},
    ),
    "SearchCreativeWork": (
        "search_creative_work",
        "Look for a book, film, song, game or picture by its title.",
        {"title": ("object_name", "The title."), "kind": ("object_type", "What kind of work it is.")},
    ),
    "SearchScreeningEvent": (
        "search_screenings",
        "Find when films are shown in cinemas.",
        {"film": ("movie_name", "The film's title."), "cinema": ("location_name", "The cinema.")},
    ),
}
OPTIONAL = {"book_restaurant", "get_weather", "play_music", "search_screenings"}
WISHES_OUTSIDE = ("Banks_2", "Homes_1", "RentalCars_1")
VOICE = (
    *("StartTimer", "CancelTimer", "IncreaseTimer", "TimerStatus", "ListAddItem", "ListCompleteItem"),
    *("ShoppingListAddItem", "MediaSearchAndPlay", "MediaNext", "MediaPause", "SetVolume", "GetWeather"),
    *("VacuumStart", "VacuumReturnToBase", "ClimateSetTemperature", "Broadcast"),
)
VOICE_OUTSIDE = ("LightSet", "GetState", "TurnOn", "TurnOff", "SetPosition", "GetCurrentDate")
NUMBERS = ("hours", "minutes", "seconds", "volume_level", "temperature", "party_size", "rating")
SPELLED = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}
Row = dict[str, Any]


class Clone:
    """A clone's files as of its last commit; those that it lacks are empty."""

    def __init__(self, folder: Path, name: str) -> None:
        self._git = ("git", "-C", str(next(folder.glob(f"*{name}*/**/HEAD")).parent))

    def text(self, path: str) -> str:
        done = subprocess.run([*self._git, "show", f"HEAD:{path}"], stdout=subprocess.PIPE, check=False)
        return done.stdout.decode("utf-8", "replace")

    def names(self) -> list[str]:
        done = subprocess.run([*self._git, "ls-tree", "-r", "--name-only", "HEAD"], stdout=subprocess.PIPE, check=True)
        return done.stdout.decode().splitlines()


def drawn(rows: Iterable[Row], most: int) -> list[Row]:
    different = {row["request"].casefold(): row for row in rows}.values()
    return sorted(different, key=lambda row: hashlib.sha256(row["request"].encode()).digest())[:most]


def is_plain(text: str) -> bool:
    return 8 <= len(text) <= LONGEST and "\n" not in text


def snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def write(kind: str, tools: Sequence[Row], inside: Iterable[Row], outside: Iterable[Row]) -> None:
    by_tool = defaultdict[str, list[Row]](list)
    for row in inside:
        by_tool[row["calls"][0]["tool"]].append(row)
    taken = [row for rows in by_tool.values() for row in drawn(rows, MOST)]
    taken += [{**row, "calls": []} for row in drawn(outside, MOST_OUTSIDE)]
    lines = [json.dumps({"id": f"{kind}-{at:02}", **row}, ensure_ascii=False) for at, row in enumerate(taken, 1)]
    (SETS / f"{kind}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    text = json.dumps(tools, indent=1, ensure_ascii=False)
    (SETS / f"{kind}.tools.json").write_text(text + "\n", encoding="utf-8")


# --- dialogues


def services(clone: Clone) -> dict[str, Row]:
    return {each["service_name"]: each for each in json.loads(clone.text("dev/schema.json"))}


def tools_of(service: Mapping[str, Any]) -> Iterator[Row]:
    slots = {slot["name"]: slot for slot in service["slots"]}
    for intent in service["intents"]:
        names = [*intent["required_slots"], *intent["optional_slots"]]
        yield {
            "name": snake(intent["name"]),
            "description": intent["description"] + ".",
            "read_only": not intent["is_transactional"],
            "parameters": {
                "type": "object",
                "properties": {name: _slot(slots[name]) for name in names},
                "required": intent["required_slots"],
            },
        }


def _slot(slot: Mapping[str, Any]) -> Row:
    values, told = slot["possible_values"], {"description": slot["description"]}
    if set(values) == {"True", "False"}:
        return {"type": "boolean", **told}
    if values and all(value.isdigit() for value in values):
        return {"type": "integer", **told}
    return {"type": "string", **({"enum": values} if slot["is_categorical"] and values else {}), **told}


def first_turns(clone: Clone) -> list[tuple[str, str, str, dict[str, list[str]]]]:
    turns = []
    for name in clone.names():
        if not name.startswith("dev/dialogues") or not (text := clone.text(name)):
            continue
        for dialogue in json.loads(text):
            turn = dialogue["turns"][0]
            for frame in turn["frames"]:
                state = frame["state"]
                turns.append((frame["service"], state["active_intent"], turn["utterance"], state["slot_values"]))
    return turns


def from_dialogues(clone: Clone) -> dict[str, list[Row]]:
    """The rows of each service, for which all that is required is said; those for other services have no call."""
    known, rows = services(clone), defaultdict[str, list[Row]](list)
    for service, name, text, values in first_turns(clone):
        intent = next((each for each in known[service]["intents"] if each["name"] == name), None)
        if intent is None or not is_plain(text):
            continue
        slots = {slot["name"]: _slot(slot) for slot in known[service]["slots"]}
        if set(intent["required_slots"]) <= values.keys() and all(_is_said(each, text) for each in values.values()):
            arguments = {name: _wanted(each, slots[name]) for name, each in values.items()}
            rows[service].append({"request": text, "calls": [{"tool": snake(name), "arguments": arguments}]})
        rows[f"any of {service}"].append({"request": text})
    return rows


def _is_said(values: Sequence[str], text: str) -> bool:
    said = [word for word, number in SPELLED.items() if str(number) in values]
    return any(re.search(rf"\b{re.escape(value)}", text, re.IGNORECASE) for value in [*values, *said])


def _wanted(values: Sequence[str], schema: Mapping[str, Any]) -> Any:
    if schema["type"] == "integer":
        return int(values[0])
    return values[0] if "enum" in schema else {"any": [{"words": value} for value in values]}


# --- seven intents


def from_intents(clone: Clone) -> Iterator[Row]:
    for intent, (tool, _, parameters) in WISHES.items():
        folder = "2017-06-custom-intent-engines"
        for query in json.loads(clone.text(f"{folder}/{intent}/validate_{intent}.json"))[intent]:
            slots = {slot: name for name, (slots, _) in parameters.items() for slot in slots.split()}
            parts = [(part["entity"], part["text"]) for part in query["data"] if "entity" in part]
            text = " ".join("".join(part["text"] for part in query["data"]).split())
            names = [slots.get(entity) for entity, _ in parts]
            ignored = [entity for entity, _ in parts if entity in ("playlist_owner", "rating_unit")]
            if not is_plain(text) or "\ufffd" in text or len(set(names)) != len(names) - max(0, len(ignored) - 1):
                continue
            said = {name: value for name, (_, value) in zip(names, parts, strict=True) if name}
            if len(said) + len(ignored) != len(parts) or (tool not in OPTIONAL and len(said) < len(parameters)):
                continue
            arguments = {name: _spoken(name, value) for name, value in said.items()}
            yield {"request": text, "calls": [{"tool": tool, "arguments": arguments}]}


def _spoken(name: str, value: str) -> Any:
    if name in NUMBERS:
        return SPELLED.get(value.casefold(), int(value) if value.isdigit() else value)
    return {"words": value}


def wish_tools() -> Iterator[Row]:
    for tool, told, parameters in WISHES.values():
        properties = {
            name: {"type": "integer" if name in NUMBERS else "string", "description": said}
            for name, (_, said) in parameters.items()
        }
        required = [] if tool in OPTIONAL else list(parameters)
        schema = {"type": "object", "properties": properties, "required": required}
        read_only = tool.startswith(("get_", "search_"))
        yield {"name": tool, "description": told, "read_only": read_only, "parameters": schema}


# --- a voice assistant


def voice_tools(clone: Clone) -> Iterator[Row]:
    known = yaml.safe_load(clone.text("intents.yaml"))
    for name in VOICE:
        intent = known[f"Hass{name}"]
        slots = {slot: each for slot, each in (intent.get("slots") or {}).items() if _is_kept(slot)}
        properties = {
            slot: {"type": "number" if slot in NUMBERS else "string", "description": str(each.get("description"))}
            for slot, each in slots.items()
        }
        required = [slot for slot, each in slots.items() if each.get("required")]
        yield {
            "name": snake(name),
            "description": f"{intent['description']}.",
            "read_only": name in ("TimerStatus", "GetWeather"),
            "parameters": {"type": "object", "properties": properties, "required": required},
        }


def _is_kept(slot: str) -> bool:
    return (
        slot not in ("floor", "domain", "device_class", "media_class", "conversation_command") and "start" not in slot
    )


def from_voice(clone: Clone, language: str, names: Sequence[str]) -> Iterator[Row]:
    for path in clone.names():
        name = path.rpartition("_Hass")[2].removesuffix(".yaml")
        if not path.startswith(f"tests/{language}/") or name not in names or "_Hass" not in path:
            continue
        for group in yaml.safe_load(clone.text(path))["tests"]:
            slots = {slot: each for slot, each in (group["intent"].get("slots") or {}).items() if slot != "domain"}
            elsewhere = (group["intent"].get("context") or {}).get("area")
            rows = []
            for text in group["sentences"]:
                said = {slot: each[-1] if isinstance(each, list) else each for slot, each in slots.items()}
                said = {slot: each for slot, each in said.items() if each != elsewhere or each.lower() in text.lower()}
                if is_plain(text) and all(
                    _is_kept(slot) and _is_said([str(each)], text) for slot, each in said.items()
                ):
                    arguments = {key: each if key in NUMBERS else {"words": str(each)} for key, each in said.items()}
                    rows.append({"request": text, "calls": [{"tool": snake(name), "arguments": arguments}]})
            yield from drawn(rows, 1)


def write_german(clone: Clone) -> None:
    """Half of the tools are offered with the sentences for them; those for the other tools are gaps."""
    lines = ["# Drawn by benchmarks.embedded.public; the tools are those of benchmarks/embedded/sets/voice.tools.json."]
    for part, offered in (("first", VOICE[::2]), ("second", VOICE[1::2])):
        inside = {name: drawn(from_voice(clone, "de", [name]), 3) for name in VOICE}
        beyond = [row for name in VOICE_OUTSIDE for row in drawn(from_voice(clone, "de", [name]), 3)]
        for served in (True, False):
            lines.append(f"[de_{part}_{'served' if served else 'gap'}]")
            lines += [row["request"] for name, rows in inside.items() if (name in offered) == served for row in rows]
            lines += [] if served or part == "second" else [row["request"] for row in beyond]
    GERMAN.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main(folder: Path) -> None:
    dialogues, intents = Clone(folder, "dstc8-schema-guided-dialogue"), Clone(folder, "nlu-benchmark")
    voice, known = Clone(folder, "assistant+intents"), services(Clone(folder, "dstc8-schema-guided-dialogue"))
    rows = from_dialogues(dialogues)
    for kind, offered, beyond in (("trips", TRIPS, NEITHER[:1]), ("outings", OUTINGS, NEITHER[1:])):
        tools = [tool for service in offered for tool in tools_of(known[service])]
        outside = [row for service in beyond for row in rows[f"any of {service}"]]
        write(kind, tools, [row for service in offered for row in rows[service]], outside)
    outside = [row for service in WISHES_OUTSIDE for row in drawn(rows[f"any of {service}"], MOST)]
    write("wishes", list(wish_tools()), from_intents(intents), outside)
    outside = [row for name in VOICE_OUTSIDE for row in drawn(from_voice(voice, "en", [name]), 3)]
    write("voice", list(voice_tools(voice)), from_voice(voice, "en", VOICE), outside)
    write_german(voice)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
