"""A home: lights, heating, locks, speakers."""

from typing import Literal

from journeyman import tool

Room = Literal["kitchen", "living room", "bedroom", "bathroom", "hall", "garage"]


@tool
def switch_light(room: Room, on: bool) -> None:
    """Turn the light of a room on or off.

    Args:
        room: Which room.
        on: True to turn it on, False to turn it off.
    """


@tool
def dim_light(room: Room, percent: int) -> None:
    """Set how bright a light is.

    Args:
        room: Which room.
        percent: Brightness from 1 to 100.
    """


@tool
def set_temperature(degrees: float, room: Room | None = None) -> None:
    """Set the heating to a temperature.

    Args:
        degrees: In degrees Celsius.
        room: Only this room; the whole house when left out.
    """


@tool
def lock_door(door: Literal["front", "back", "garage"]) -> None:
    """Lock a door of the house."""


@tool
def play_music(what: str, room: Room | None = None) -> None:
    """Play music on a speaker.

    Args:
        what: Artist, album, song or genre.
        room: The speaker's room.
    """


@tool
def set_volume(level: int, room: Room | None = None) -> None:
    """Set the volume of the speakers, from 0 to 10."""


@tool
def start_vacuum(room: Room | None = None) -> None:
    """Send the vacuum robot to clean a room, or everything."""


@tool
def read_sensor(quantity: Literal["temperature", "humidity", "power"], room: Room | None = None) -> float:
    """What a sensor in the house measures now."""
    raise NotImplementedError


TOOLS = (
    switch_light,
    dim_light,
    set_temperature,
    lock_door,
    play_music,
    set_volume,
    start_vacuum,
    read_sensor,
)
