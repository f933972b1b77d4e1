"""A flat: lamps, blinds, heating, an alarm, a coffee machine. The descriptions are short, as people write them."""

from typing import Literal

from journeyman import tool


@tool
def turn_on(device: str) -> None:
    """Switch a device on."""


@tool
def turn_off(device: str) -> None:
    """Switch a device off."""


@tool
def set_thermostat(room: str, celsius: float) -> None:
    """Set the temperature of a room."""


@tool
def move_blinds(room: str, position: Literal["open", "closed", "half"]) -> None:
    """Open or close the blinds of a room."""


@tool
def set_alarm(time: str) -> None:
    """Set the alarm clock to a time."""


@tool
def make_coffee(cups: int = 1) -> None:
    """Make coffee."""


@tool(read_only=True)
def get_temperature(room: str) -> float:
    """How warm it is in a room now."""
    raise NotImplementedError


@tool(read_only=True)
def list_devices() -> list[str]:
    """Show all devices and whether they are on."""
    raise NotImplementedError


TOOLS = (turn_on, turn_off, set_thermostat, move_blinds, set_alarm, make_coffee, get_temperature, list_devices)
