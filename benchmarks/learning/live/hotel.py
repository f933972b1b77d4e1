"""A hotel with guests, stays, rooms, repairs, tables and shifts: the second world, with strict tools.

Allowed values are refused in any other spelling, and the refusal lists them. Stays, tables and shifts are searched by
ranges of days. Ids are found by looking a guest, an employee or a room up. Written down before anything was tuned.
"""

import copy
import random
import re
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from journeyman import RiskLevel, ToolError, tool
from journeyman.tools.library import AnyTool

TODAY = "2026-06-10"
SHOWN = 6
FIRST = "Amara Boris Chloe Dario Esther Farid Greta Henrik Irina Jamal Keiko Lorenz Maeve Nils Olga Pavel Rhea Samir"
LAST = "Acker Bosch Calder Duarte Engel Forsyth Gruber Hartley Ibarra Jokinen Keller Lombard Maier Nyberg Orsini Prasad"
TYPES = ("Single", "Double", "Family", "Suite")
ROOM_STATES = ("Clean", "Dirty", "Inspected", "Out of service")
CATEGORIES = ("Plumbing", "Electrical", "Furniture", "Internet")
PRIORITIES = ("Low", "Normal", "High", "Urgent")
OUTCOMES = ("Repaired", "Replaced", "Not reproducible")
REASONS = ("Guest request", "Illness", "No show", "Overbooking")
KINDS = ("Minibar", "Laundry", "Restaurant", "Parking")
AREAS = ("Terrace", "Main hall", "Garden room")
LEVELS = ("Standard", "Silver", "Gold", "Platinum")
CHANNELS = ("Email", "Text message", "Room phone")
SLOTS = ("Early", "Late", "Night")
VEHICLES = ("Taxi", "Minibus", "Limousine")
TEAMS = ("Reception", "Housekeeping", "Maintenance", "Kitchen")

Row = dict[str, Any]


@dataclass
class Hotel:
    """All tables, by id."""

    guests: dict[str, Row] = field(default_factory=dict)
    stays: dict[str, Row] = field(default_factory=dict)
    rooms: dict[str, Row] = field(default_factory=dict)
    tickets: dict[str, Row] = field(default_factory=dict)
    employees: dict[str, Row] = field(default_factory=dict)
    charges: dict[str, Row] = field(default_factory=dict)
    tables: dict[str, Row] = field(default_factory=dict)
    shifts: dict[str, Row] = field(default_factory=dict)
    made: list[Row] = field(default_factory=list)
    """Rows that a run has added, in no order: their ids are the hotel's."""

    @property
    def state(self) -> Row:
        return copy.deepcopy({**vars(self), "made": sorted(self.made, key=repr)})


def furnished(seed: str) -> Hotel:
    """A hotel full of rows, the same for the same seed."""
    draw, hotel = random.Random(f"hotel {seed}"), Hotel()
    used: set[str] = set()

    def number(letter: str) -> str:
        while (made := f"{letter}-{draw.randrange(1000, 9999)}") in used:
            pass
        used.add(made)
        return made

    first, last = FIRST.split(), LAST.split()
    names = [f"{one} {two}" for one, two in zip(draw.sample(first, 16), draw.sample(last, 16), strict=True)]
    for name in names[:10]:
        mail = f"{name.split()[0].lower()}@{draw.choice(['mail.example', 'post.example'])}"
        hotel.guests[number("G")] = {"name": name, "email": mail, "level": draw.choice(LEVELS[:2])}
    for name in names[10:]:
        hotel.employees[number("E")] = {"name": name, "team": draw.choice(TEAMS)}
    for floor in (1, 2, 3):
        for door in range(1, 9):
            state = draw.choice(ROOM_STATES[:2])
            hotel.rooms[f"{floor}{door:02d}"] = {"type": draw.choice(TYPES), "status": state}
    for room in draw.sample(sorted(hotel.rooms), 12):
        row = {"room": room, "category": draw.choice(CATEGORIES), "priority": "Normal", "status": "Open"}
        hotel.tickets[number("T")] = {**row, "assigned_to": None}
    for guest in hotel.guests:
        for month in (6, 7, 8):
            day = draw.randrange(15, 22) if month == 6 else draw.randrange(2, 26)
            room = draw.choice(sorted(hotel.rooms))
            key = number("R")
            hotel.stays[key] = {
                "guest_id": guest,
                "room": room,
                "arrival": f"2026-{month:02d}-{day:02d}",
                "departure": f"2026-{month:02d}-{day + draw.randrange(2, 5):02d}",
                "status": "Booked",
            }
            for kind in draw.sample(KINDS, 2):
                hotel.charges[number("C")] = {"reservation_id": key, "kind": kind, "amount": draw.randrange(5, 90)}
        for week in (11, 22):
            date = f"2026-06-{week + draw.randrange(0, 4):02d}"
            table = {"date": date, "time": f"{draw.randrange(18, 22)}:00", "persons": draw.randrange(2, 7)}
            hotel.tables[number("B")] = {"guest_id": guest, **table, "area": draw.choice(AREAS)}
    for employee in hotel.employees:
        for day in draw.sample(range(11, 30), 4):
            shift = {"employee_id": employee, "date": f"2026-06-{day:02d}", "slot": draw.choice(SLOTS)}
            hotel.shifts[number("S")] = shift
    return hotel


HOTEL: ContextVar[Hotel] = ContextVar("hotel")
"""The hotel of the run that this task carries out."""


def _row(table: dict[str, Row], what: str, key: str) -> Row:
    if key not in table:
        raise ToolError(
            f"UNKNOWN_{what.upper()}", f"no {what} has the id {key!r}", recover_action=f"Look the {what} up"
        )
    return table[key]


def _one_of(value: str, allowed: Sequence[str], what: str) -> str:
    if value not in allowed:
        listed = ", ".join(map(repr, allowed))
        raise ToolError("NOT_ALLOWED", f"{what} {value!r} is not allowed; choose from {listed}")
    return value


def _date(text: str | None, what: str) -> str | None:
    if text is not None and not re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        raise ToolError("BAD_DATE", f"{what} {text!r} is not a date; write it like 2026-06-17")
    return text


def _time(text: str) -> str:
    if not re.fullmatch(r"\d\d:\d\d", text):
        raise ToolError("BAD_TIME", f"time {text!r} is not a time; write it like 19:30")
    return text


def _within(
    rows: dict[str, Row], key: str, at: str, first: str | None, last: str | None, **same: str | None
) -> list[Row]:
    """Rows whose day lies in a range and whose fields are as wanted, by day."""
    first, last = _date(first, "date_from") or "", _date(last, "date_to") or "9999"
    found = [
        {key: number, **row}
        for number, row in rows.items()
        if first <= row[at] <= last and all(row[name] == value for name, value in same.items() if value is not None)
    ]
    return sorted(found, key=lambda row: row[at])[:SHOWN]


def _named(rows: dict[str, Row], key: str, name: str) -> list[Row]:
    return [{key: number, **row} for number, row in rows.items() if name.casefold() in row["name"].casefold()][:SHOWN]


# --- guests and stays


async def find_guest(name: str) -> list[Row]:
    """Find a guest by name. Use to get a guest_id."""
    return _named(HOTEL.get().guests, "guest_id", name)


async def search_reservations(
    guest_id: str | None = None, room: str | None = None, date_from: str | None = None, date_to: str | None = None
) -> list[Row]:
    """Search stays by guest, room and the days between which they begin, in order. Use to get a reservation_id."""
    hotel = HOTEL.get()
    if guest_id is not None:
        _row(hotel.guests, "guest", guest_id)
    return _within(hotel.stays, "reservation_id", "arrival", date_from, date_to, guest_id=guest_id, room=room)


async def create_reservation(guest_id: str, room_type: str, arrival: str, departure: str) -> str:
    """Book a new stay for a guest in a type of room."""
    hotel = HOTEL.get()
    _row(hotel.guests, "guest", guest_id)
    kind = _one_of(room_type, TYPES, "room_type")
    days = {"arrival": _date(arrival, "arrival"), "departure": _date(departure, "departure")}
    hotel.made.append({"stay": guest_id, "type": kind, **days})
    return "booked"


async def change_departure(reservation_id: str, departure: str) -> str:
    """Change the day on which a stay ends: a guest stays longer or leaves earlier."""
    _row(HOTEL.get().stays, "reservation", reservation_id)["departure"] = _date(departure, "departure")
    return "changed"


async def cancel_reservation(reservation_id: str, reason: str) -> str:
    """Cancel a stay, with a reason."""
    row = _row(HOTEL.get().stays, "reservation", reservation_id)
    row.update(status="Cancelled", reason=_one_of(reason, REASONS, "reason"))
    return "cancelled"


async def assign_room(reservation_id: str, room: str) -> str:
    """Give a stay another room."""
    _row(HOTEL.get().rooms, "room", room)
    _row(HOTEL.get().stays, "reservation", reservation_id)["room"] = room
    return "assigned"


async def set_guest_level(guest_id: str, level: str) -> str:
    """Set a guest's level of the loyalty programme."""
    _row(HOTEL.get().guests, "guest", guest_id)["level"] = _one_of(level, LEVELS, "level")
    return "set"


async def send_message(guest_id: str, channel: str, text: str) -> str:
    """Send a guest a short message over a channel."""
    hotel = HOTEL.get()
    _row(hotel.guests, "guest", guest_id)
    hotel.made.append(
        {"message": guest_id, "channel": _one_of(channel, CHANNELS, "channel"), "text": text.strip(" .'\"")}
    )
    return "sent"


async def book_transfer(reservation_id: str, vehicle: str, time: str) -> str:
    """Order a car that takes a guest of a stay to the station or the airport, at a time like 19:30."""
    hotel = HOTEL.get()
    _row(hotel.stays, "reservation", reservation_id)
    hotel.made.append(
        {"transfer": reservation_id, "vehicle": _one_of(vehicle, VEHICLES, "vehicle"), "time": _time(time)}
    )
    return "ordered"


async def list_charges(reservation_id: str) -> list[Row]:
    """List what was charged to a stay. Use to get a charge_id."""
    hotel = HOTEL.get()
    _row(hotel.stays, "reservation", reservation_id)
    return [{"charge_id": key, **row} for key, row in hotel.charges.items() if row["reservation_id"] == reservation_id]


async def add_charge(reservation_id: str, kind: str, amount: float) -> str:
    """Charge an amount to a stay."""
    hotel = HOTEL.get()
    _row(hotel.stays, "reservation", reservation_id)
    hotel.made.append({"charge": reservation_id, "kind": _one_of(kind, KINDS, "kind"), "amount": float(amount)})
    return "charged"


async def remove_charge(charge_id: str) -> str:
    """Take a charge off a stay's bill."""
    _row(HOTEL.get().charges, "charge", charge_id)
    del HOTEL.get().charges[charge_id]
    return "removed"


# --- restaurant


async def list_table_bookings(
    guest_id: str | None = None, date_from: str | None = None, date_to: str | None = None
) -> list[Row]:
    """List tables booked in the restaurant, by guest and range of days. Use to get a booking_id."""
    hotel = HOTEL.get()
    if guest_id is not None:
        _row(hotel.guests, "guest", guest_id)
    return _within(hotel.tables, "booking_id", "date", date_from, date_to, guest_id=guest_id)


async def book_table(guest_id: str, date: str, time: str, persons: int, area: str) -> str:
    """Book a table in the restaurant for a guest, at a time like 19:30, in one of its areas."""
    hotel = HOTEL.get()
    _row(hotel.guests, "guest", guest_id)
    when = {"date": _date(date, "date"), "time": _time(time)}
    hotel.made.append({"table": guest_id, **when, "persons": persons, "area": _one_of(area, AREAS, "area")})
    return "booked"


async def cancel_table(booking_id: str) -> str:
    """Cancel a booked table."""
    _row(HOTEL.get().tables, "booking", booking_id)
    del HOTEL.get().tables[booking_id]
    return "cancelled"


# --- rooms and repairs


async def search_rooms(type: str | None = None, status: str | None = None) -> list[Row]:
    """Search rooms by type and status."""
    if type is not None:
        _one_of(type, TYPES, "type")
    if status is not None:
        _one_of(status, ROOM_STATES, "status")
    wanted = {"type": type, "status": status}
    rooms = HOTEL.get().rooms.items()
    return [
        {"room": key, **row}
        for key, row in rooms
        if all(row[name] == value for name, value in wanted.items() if value is not None)
    ][:SHOWN]


async def set_room_status(room: str, status: str) -> str:
    """Set the status of a room, as housekeeping reports it."""
    _row(HOTEL.get().rooms, "room", room)["status"] = _one_of(status, ROOM_STATES, "status")
    return "set"


async def search_tickets(room: str | None = None, category: str | None = None) -> list[Row]:
    """Search tickets of repairs by room and category. Use to get a ticket_id."""
    if category is not None:
        _one_of(category, CATEGORIES, "category")
    wanted = {"room": room, "category": category}
    tickets = HOTEL.get().tickets.items()
    return [
        {"ticket_id": key, **row}
        for key, row in tickets
        if all(row[name] == value for name, value in wanted.items() if value is not None)
    ][:SHOWN]


async def open_ticket(room: str, category: str, priority: str) -> str:
    """Report that something in a room must be repaired."""
    hotel = HOTEL.get()
    _row(hotel.rooms, "room", room)
    graded = {
        "category": _one_of(category, CATEGORIES, "category"),
        "priority": _one_of(priority, PRIORITIES, "priority"),
    }
    hotel.made.append({"ticket": room, **graded})
    return "opened"


async def close_ticket(ticket_id: str, outcome: str) -> str:
    """Close a ticket of a repair, with its outcome."""
    row = _row(HOTEL.get().tickets, "ticket", ticket_id)
    row.update(status="Closed", outcome=_one_of(outcome, OUTCOMES, "outcome"))
    return "closed"


async def assign_ticket(ticket_id: str, employee_id: str) -> str:
    """Give a ticket of a repair to an employee."""
    _row(HOTEL.get().employees, "employee", employee_id)
    _row(HOTEL.get().tickets, "ticket", ticket_id)["assigned_to"] = employee_id
    return "assigned"


# --- employees


async def find_employee(name: str) -> list[Row]:
    """Find an employee by name. Use to get an employee_id."""
    return _named(HOTEL.get().employees, "employee_id", name)


async def list_shifts(
    employee_id: str | None = None, date_from: str | None = None, date_to: str | None = None
) -> list[Row]:
    """List shifts by employee and range of days, earliest first. Use to get a shift_id."""
    hotel = HOTEL.get()
    if employee_id is not None:
        _row(hotel.employees, "employee", employee_id)
    return _within(hotel.shifts, "shift_id", "date", date_from, date_to, employee_id=employee_id)


async def add_shift(employee_id: str, date: str, slot: str) -> str:
    """Put an employee on a shift of a day."""
    hotel = HOTEL.get()
    _row(hotel.employees, "employee", employee_id)
    hotel.made.append({"shift": employee_id, "date": _date(date, "date"), "slot": _one_of(slot, SLOTS, "slot")})
    return "added"


async def remove_shift(shift_id: str) -> str:
    """Take a shift off the plan."""
    _row(HOTEL.get().shifts, "shift", shift_id)
    del HOTEL.get().shifts[shift_id]
    return "removed"


READS = (
    find_guest, search_reservations, list_charges, list_table_bookings, search_rooms, search_tickets, find_employee,
    list_shifts,
)  # fmt: skip
CHANGES = (
    create_reservation, change_departure, cancel_reservation, assign_room, set_guest_level, send_message, book_transfer,
    add_charge, remove_charge, book_table, cancel_table, set_room_status, open_ticket, close_ticket, assign_ticket,
    add_shift, remove_shift,
)  # fmt: skip
TOOLS: list[AnyTool] = [
    *(tool(function, risk=RiskLevel.REVERSIBLE, read_only=True) for function in READS),
    *(tool(function, risk=RiskLevel.REVERSIBLE) for function in CHANGES),
]
FUNCTIONS = {function.__name__: function for function in (*READS, *CHANGES)}
