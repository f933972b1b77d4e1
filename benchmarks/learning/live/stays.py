"""What is asked of the hotel: templates with three wordings each, the calls that serve them, and three more wordings.

Written down before anything was tuned on it. The wordings at the end never come up in practice.
"""

import random

from benchmarks.learning.live.hotel import (
    AREAS,
    CHANNELS,
    FUNCTIONS,
    HOTEL,
    KINDS,
    LEVELS,
    REASONS,
    SLOTS,
    TODAY,
    TOOLS,
    TYPES,
    VEHICLES,
    Hotel,
    Row,
    furnished,
)
from benchmarks.learning.live.world import Call, Made, World

MONTHS = {6: "June", 7: "July", 8: "August"}
LAST_DAY = {6: 30, 7: 31, 8: 31}
FAULTS = {
    "Plumbing": ("the shower leaks", "the sink is blocked", "the toilet keeps running"),
    "Electrical": ("the reading lamp is dead", "a socket sparks", "the light in the bathroom flickers"),
    "Furniture": ("the wardrobe door is loose", "a chair has broken", "the bed squeaks"),
    "Internet": ("the wifi drops out", "the network cable is dead", "the tv has no connection"),
}
HURRY = {"Low": "no hurry at all", "High": "it matters a lot", "Urgent": "it cannot wait"}
FIXED = {
    "Repaired": "it has been repaired",
    "Replaced": "the part was replaced",
    "Not reproducible": "nobody could reproduce it",
}
BECAUSE = {
    "Guest request": "they asked for it",
    "Illness": "they fell ill",
    "Overbooking": "we are overbooked",
    "No show": "they never showed up",
}


class Draw:
    """Rows of a hotel that a request can be about."""

    def __init__(self, hotel: Hotel, seed: str, wordings: tuple[str, ...] = ()) -> None:
        self.hotel, self.random, self.wordings = hotel, random.Random(f"draw hotel {seed}"), wordings

    def say(self, *phrasings: str) -> str:
        return self.random.choice(self.wordings or phrasings)

    def guest(self) -> tuple[str, Row]:
        return self.random.choice(list(self.hotel.guests.items()))

    def employee(self) -> tuple[str, Row]:
        return self.random.choice(list(self.hotel.employees.items()))

    def room(self) -> str:
        return self.random.choice(sorted(self.hotel.rooms))

    def ticket(self) -> tuple[str, Row]:
        return self.random.choice(list(self.hotel.tickets.items()))

    def stay(self, guest: str) -> tuple[str, Row, int]:
        """One of a guest's stays, and its month: there is one in each."""
        stays = [(key, row) for key, row in self.hotel.stays.items() if row["guest_id"] == guest]
        key, row = self.random.choice(stays)
        return key, row, int(row["arrival"][5:7])

    def day(self) -> str:
        return f"2026-0{self.random.choice([7, 8])}-{self.random.randrange(1, 29):02d}"

    def text(self) -> str:
        said = ["Your parcel is at the desk", "The pool opens at nine", "Your table is ready", "Breakfast ends at ten"]
        return self.random.choice(said)


def found(row: Row) -> Call:
    return "find_guest", {"name": row["name"]}


def hired(row: Row) -> Call:
    return "find_employee", {"name": row["name"]}


def in_month(guest: str, month: int) -> Call:
    days = {"date_from": f"2026-{month:02d}-01", "date_to": f"2026-{month:02d}-{LAST_DAY[month]}"}
    return "search_reservations", {"guest_id": guest, **days}


def spelled(day: str) -> str:
    return f"{int(day[8:])} {MONTHS[int(day[5:7])]}"


def extend_stay(d: Draw) -> Made:
    guest, row = d.guest()
    key, stay, month = d.stay(guest)
    until = f"2026-{month:02d}-{min(int(stay['departure'][8:]) + 1, LAST_DAY[month]):02d}"
    request = d.say(
        "{0} would like to leave on {2} instead, it is the stay in {1}.",
        "Change the departure of {0}'s stay in {1} to {2}.",
        "The stay of {0} in {1} now ends on {2}, please change it.",
    )
    calls = [found(row), in_month(guest, month), ("change_departure", {"reservation_id": key, "departure": until})]
    return request.format(row["name"], MONTHS[month], spelled(until)), calls


def cancel_stay(d: Draw) -> Made:
    guest, row = d.guest()
    key, _, month = d.stay(guest)
    reason = d.random.choice(REASONS)
    request = d.say(
        "Cancel the stay of {0} in {1}, {2}.",
        "{0} won't come in {1}: {2}. Please cancel the reservation.",
        "Please cancel what {0} has booked for {1}; {2}.",
    )
    calls = [found(row), in_month(guest, month), ("cancel_reservation", {"reservation_id": key, "reason": reason})]
    return request.format(row["name"], MONTHS[month], BECAUSE[reason]), calls


def new_stay(d: Draw) -> Made:
    guest, row = d.guest()
    kind, month, start = d.random.choice(TYPES), d.random.choice([7, 8]), d.random.randrange(1, 20)
    first, last = f"2026-{month:02d}-{start:02d}", f"2026-{month:02d}-{start + d.random.randrange(2, 8):02d}"
    request = d.say(
        "Book a {1} room for {0} from {2} to {3}.",
        "{0} wants a {1} room, arriving {2} and leaving {3}.",
        "Reserve a {1} room: guest {0}, {2} until {3}.",
    )
    stay = {"guest_id": guest, "room_type": kind, "arrival": first, "departure": last}
    return request.format(row["name"], kind.lower(), first, last), [found(row), ("create_reservation", stay)]


def other_room(d: Draw) -> Made:
    guest, row = d.guest()
    key, _, month = d.stay(guest)
    room = d.room()
    request = d.say(
        "Give {0} room {2} for the stay in {1}.",
        "Put {0} into room {2} in {1}.",
        "For {1}, move {0} to room {2}.",
    )
    calls = [found(row), in_month(guest, month), ("assign_room", {"reservation_id": key, "room": room})]
    return request.format(row["name"], MONTHS[month], room), calls


def room_state(d: Draw) -> Made:
    room, status = d.room(), d.random.choice(["Clean", "Dirty", "Inspected", "Out of service"])
    while d.hotel.rooms[room]["status"] == status:
        room = d.room()
    request = d.say("Set room {0} to {1}.", "Room {0} is {1} now, note that.", "Mark {0} as {1}, please.")
    return request.format(room, status.lower()), [("set_room_status", {"room": room, "status": status})]


def report_fault(d: Draw) -> Made:
    room, category, priority = d.room(), d.random.choice(list(FAULTS)), d.random.choice(list(HURRY))
    fault = d.random.choice(FAULTS[category])
    request = d.say(
        "In room {0} {1}, {2}: open a ticket.",
        "Report a fault: {1} in {0}; {2}.",
        "Open a ticket for room {0}, where {1} ({2}).",
    )
    ticket = {"room": room, "category": category, "priority": priority}
    return request.format(room, fault, HURRY[priority]), [("open_ticket", ticket)]


def close_fault(d: Draw) -> Made:
    (key, row), outcome = d.ticket(), d.random.choice(list(FIXED))
    request = d.say(
        "Close the ticket of room {0}: {1}.",
        "The repair in {0} is done, {1}. Please close its ticket.",
        "Room {0}'s ticket can be closed, {1}.",
    )
    calls: list[Call] = [
        ("search_tickets", {"room": row["room"]}),
        ("close_ticket", {"ticket_id": key, "outcome": outcome}),
    ]
    return request.format(row["room"], FIXED[outcome]), calls


def assign_fault(d: Draw) -> Made:
    (key, row), (employee, person) = d.ticket(), d.employee()
    request = d.say(
        "Give the repair in room {0} to {1}.",
        "{1} takes care of the ticket of room {0}.",
        "Assign the ticket for {0} to {1}.",
    )
    calls = [
        ("search_tickets", {"room": row["room"]}),
        hired(person),
        ("assign_ticket", {"ticket_id": key, "employee_id": employee}),
    ]
    return request.format(row["room"], person["name"]), calls


def charge(d: Draw) -> Made:
    guest, row = d.guest()
    key, _, month = d.stay(guest)
    kind, amount = d.random.choice(KINDS), d.random.randrange(5, 95)
    request = d.say(
        "Charge {3} for {2} to {0}'s stay in {1}.",
        "Add {3} euros of {2} to what {0} pays in {1}.",
        "{0}'s bill for {1} gets another {3} for {2}.",
    )
    added = {"reservation_id": key, "kind": kind, "amount": amount}
    calls = [found(row), in_month(guest, month), ("add_charge", added)]
    return request.format(row["name"], MONTHS[month], kind.lower(), amount), calls


def drop_charge(d: Draw) -> Made:
    guest, row = d.guest()
    key, _, month = d.stay(guest)
    wrong, held = d.random.choice([item for item in d.hotel.charges.items() if item[1]["reservation_id"] == key])
    request = d.say(
        "Take the {2} off {0}'s bill for {1}.",
        "{0} did not have any {2} in {1}, remove that charge.",
        "Remove the charge for {2} from the stay of {0} in {1}.",
    )
    calls = [
        found(row),
        in_month(guest, month),
        ("list_charges", {"reservation_id": key}),
        ("remove_charge", {"charge_id": wrong}),
    ]
    return request.format(row["name"], MONTHS[month], held["kind"].lower()), calls


def table(d: Draw) -> Made:
    guest, row = d.guest()
    day, time, persons, area = (
        d.day(),
        f"{d.random.randrange(12, 22)}:30",
        d.random.randrange(2, 8),
        d.random.choice(AREAS),
    )
    request = d.say(
        "Book a table for {3} for {0} on {1} at {2}, {4}.",
        "{0} wants to eat on {1} at {2} with {3} people in all, place: {4}.",
        "Table for {0}: {1}, {2}, {3} persons, {4}.",
    )
    booked = {"guest_id": guest, "date": day, "time": time, "persons": persons, "area": area}
    return request.format(row["name"], day, time, persons, area.lower()), [found(row), ("book_table", booked)]


def drop_table(d: Draw) -> Made:
    guest, row = d.guest()
    theirs = sorted((held["date"], key) for key, held in d.hotel.tables.items() if held["guest_id"] == guest)
    at = d.random.randrange(2)
    first, last = [("2026-06-10", "2026-06-14"), ("2026-06-22", "2026-06-28")][at]
    request = d.say(
        "Cancel the table that {0} has between {1} and {2}.",
        "{0} needs no table from {1} to {2}, cancel it.",
        "The restaurant can free {0}'s table in the days {1} to {2}.",
    )
    listed = {"guest_id": guest, "date_from": first, "date_to": last}
    calls = [found(row), ("list_table_bookings", listed), ("cancel_table", {"booking_id": theirs[at][1]})]
    return request.format(row["name"], spelled(first), spelled(last)), calls


def promote(d: Draw) -> Made:
    (guest, row), level = d.guest(), d.random.choice(LEVELS[2:])
    request = d.say("Make {0} a {1} guest.", "{0} has earned {1} status, set it.", "Set {0}'s level to {1}.")
    calls = [found(row), ("set_guest_level", {"guest_id": guest, "level": level})]
    return request.format(row["name"], level.lower()), calls


def message(d: Draw) -> Made:
    (guest, row), channel, text = d.guest(), d.random.choice(CHANNELS), d.text()
    request = d.say(
        "Tell {0} by {1}: '{2}'.",
        "Send {0} the message '{2}' by {1}.",
        "Let {0} know '{2}', by {1} please.",
    )
    sent = {"guest_id": guest, "channel": channel, "text": text}
    return request.format(row["name"], channel.lower(), text), [found(row), ("send_message", sent)]


def extra_shift(d: Draw) -> Made:
    (employee, row), day, slot = d.employee(), d.day(), d.random.choice(SLOTS)
    request = d.say(
        "Put {0} on the {2} shift on {1}.",
        "{0} works the {2} shift on {1}, add it.",
        "Add a {2} shift for {0}, {1}.",
    )
    calls = [hired(row), ("add_shift", {"employee_id": employee, "date": day, "slot": slot})]
    return request.format(row["name"], spelled(day), slot.lower()), calls


def drop_shift(d: Draw) -> Made:
    employee, row = d.employee()
    key, held = d.random.choice([item for item in d.hotel.shifts.items() if item[1]["employee_id"] == employee])
    request = d.say(
        "Take {0}'s shift on {1} off the plan.",
        "{0} cannot work on {1}, remove the shift.",
        "Remove the shift that {0} has on {1}.",
    )
    listed = {"employee_id": employee, "date_from": held["date"], "date_to": held["date"]}
    calls = [hired(row), ("list_shifts", listed), ("remove_shift", {"shift_id": key})]
    return request.format(row["name"], spelled(held["date"])), calls


def transfer(d: Draw) -> Made:
    guest, row = d.guest()
    key, _, month = d.stay(guest)
    vehicle, time = d.random.choice(VEHICLES), f"{d.random.randrange(10, 23)}:15"
    request = d.say(
        "Order a {2} at {3} for {0}'s stay in {1}.",
        "{0} needs a {2} at {3}, it belongs to the stay in {1}.",
        "For {0}, who stays with us in {1}: a {2} at {3}.",
    )
    ordered = {"reservation_id": key, "vehicle": vehicle, "time": time}
    calls = [found(row), in_month(guest, month), ("book_transfer", ordered)]
    return request.format(row["name"], MONTHS[month], vehicle.lower(), time), calls


def inspect_rooms(d: Draw) -> Made:
    held = sorted({(row["type"], row["status"]) for row in d.hotel.rooms.values()})
    kind, status = d.random.choice(held)
    rooms = [key for key, row in d.hotel.rooms.items() if (row["type"], row["status"]) == (kind, status)][:6]
    target = d.random.choice(["Inspected", "Out of service"])
    request = d.say(
        "Set all {0} rooms that are {1} to {2}.",
        "Every {1} {0} room is {2} now.",
        "All {0} rooms with the status {1}: {2}.",
    )
    calls: list[Call] = [("search_rooms", {"type": kind, "status": status})]
    calls += [("set_room_status", {"room": room, "status": target}) for room in rooms]
    return request.format(kind.lower(), status.lower(), target.lower()), calls


WORDINGS: dict[str, tuple[str, ...]] = {
    "extend_stay": (
        "About {0}, who comes in {1}: the checkout should be {2} now.",
        "{2} is when {0} checks out in {1}. Could you correct that?",
        "We agreed with {0} that the visit in {1} goes until {2}.",
    ),
    "cancel_stay": (
        "{0} is off for {1} - {2}. Strike the booking.",
        "Since {2}, the {1} visit of {0} has to go.",
        "Could you call off {0}'s trip in {1}? The cause: {2}.",
    ),
    "new_stay": (
        "Is there space for {0}? A {1} room, checking in {2}, checking out {3}. Go ahead and book it.",
        "From {2} on {0} will be with us until {3}; they'd like a {1} room.",
        "New booking. Who: {0}. What: {1} room. When: {2} - {3}.",
    ),
    "other_room": (
        "{0} asked to sleep in {2} when they come in {1}.",
        "Could {0} have number {2} in {1} rather than what is booked?",
        "Room swap in {1}: {2} is for {0}.",
    ),
    "room_state": (
        "Housekeeping says that {0} is {1}.",
        "{0}: {1}.",
        "Could you update {0}? It should read {1}.",
    ),
    "report_fault": (
        "The guest in {0} complains that {1}. Somebody should look, {2}.",
        "{1} - that's room {0}. Log it for maintenance, {2}.",
        "Maintenance needed: {0}, {1}. And {2}.",
    ),
    "close_fault": (
        "Maintenance is through with {0}: {1}. You can tick it off.",
        "{1} - so nothing is open in {0} any more, please settle that.",
        "We can file away the repair job in {0} since {1}.",
    ),
    "assign_fault": (
        "Could {1} look after what's broken in {0}?",
        "{0} needs fixing and {1} will do it, please put the name on the job.",
        "Whoever had the job in {0}: it is {1}'s now.",
    ),
    "charge": (
        "{0} had {2} worth {3} during the visit in {1}, it must go on the bill.",
        "Please bill {0}: {2}, {3} euros, visit in {1}.",
        "{3} for {2} is still missing on the {1} invoice of {0}.",
    ),
    "drop_charge": (
        "{0} complains about the {2} on the invoice for {1}. Let's drop it.",
        "Could you undo the {2} that we billed {0} in {1}?",
        "No {2} for {0} in {1} after all; correct the invoice.",
    ),
    "table": (
        "{0} is hungry: {3} people, {1}, {2} sharp, seated in the {4}.",
        "Would you get {0} a table ({4}) on {1}? They are {3} and come at {2}.",
        "Dinner reservation under {0}, {4}, party of {3}, {1} {2}.",
    ),
    "drop_table": (
        "{0} isn't dining with us after all, some day from {1} to {2} it was.",
        "Between {1} and {2} there's a table in the name of {0}. Let it go.",
        "Dinner is off for {0} ({1} - {2}).",
    ),
    "promote": (
        "{0} comes so often - that's {1} from now on.",
        "Could you upgrade {0} in the programme? {1} it is.",
        "Loyalty: {0} -> {1}.",
    ),
    "message": (
        "Drop {0} a line ({1}) saying '{2}'.",
        "'{2}' - could you pass that on to {0}? Use the {1}.",
        "{0} should hear this over {1}: {2}",
    ),
    "extra_shift": (
        "We need hands on {1}: {0} does the {2} one.",
        "{0} volunteered for {1}, {2}. Enter that in the plan.",
        "Roster change: {1}, {2}, {0} comes in.",
    ),
    "drop_shift": (
        "{0} has a doctor's appointment on {1}, so no work that day.",
        "Please free {0} on {1}.",
        "Roster change: {0} is not coming in on {1}.",
    ),
    "transfer": (
        "{0} must get to the airport at {3}; a {2} would be good. That's during the {1} visit.",
        "Could a {2} wait for {0} at {3}? They're here in {1}.",
        "Pick-up {3}, {2}, {0} ({1} visit).",
    ),
    "inspect_rooms": (
        "Go through the {0} rooms: those that are {1} should become {2}.",
        "Whatever {0} room is {1} at the moment, make it {2}.",
        "{0} rooms, {1} -> {2}, the lot.",
    ),
}
INSTRUCTION = (
    f"You work at the desk of a hotel. Today is {TODAY}, a Wednesday. Carry out the request with the tools, without "
    "asking back. Look up ids with the search tools; never make them up. When all is done, say so in one sentence."
)


HOTEL_WORLD = World(
    name="hotel",
    instruction=INSTRUCTION,
    tools=TOOLS,
    functions=FUNCTIONS,
    place=HOTEL,
    furnished=furnished,
    draw=lambda seed, wordings: Draw(furnished(seed), seed, wordings),
    templates={
        function.__name__: function
        for function in (
            extend_stay, cancel_stay, new_stay, other_room, room_state, report_fault, close_fault, assign_fault, charge,
            drop_charge, table, drop_table, promote, message, extra_shift, drop_shift, transfer, inspect_rooms,
        )
    },
    wordings=WORDINGS,
)  # fmt: skip
