"""An office with mail, calendar, customers, orders, tasks, files and figures: tools that change a state of their own.

Every run has an office to itself. What it was asked for is right when the state in the end is the one that the
template's own calls lead to.
"""

import copy
import random
from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from journeyman import RiskLevel, ToolError, tool
from journeyman.tools.library import AnyTool

TODAY = "2026-03-04"
SHOWN = 5
"""Rows that a search returns."""

FIRST = "Anna Bert Carla David Elif Frank Gina Hassan Ines Jonas Kira Luis Mona Nadia Omar Petra Quinn Rosa Sven Tara"
LAST = "Abel Brandt Costa Demir Ekström Fischer Garcia Hoffmann Ivanov Jansen Kaya Lindholm Moreau Novak Okafor Peters"
_COMPANIES = "Alder Birch Cedar Dogwood Elm Fir Ginkgo Hazel Juniper Larch Maple Oak Pine Rowan Spruce Willow"
COMPANIES = _COMPANIES.split()
FORMS = ["Ltd", "GmbH", "Group", "Partners"]
_TOPICS = "budget hiring launch security travel pricing onboarding audit migration training"
TOPICS = _TOPICS.split()
EVENTS = ["review", "planning", "sync", "workshop", "retrospective"]
_PRODUCTS = "lamp chair desk monitor keyboard bookshelf printer headset"
PRODUCTS = _PRODUCTS.split()
JOBS = [
    "Fix the login page",
    "Write the release notes",
    "Update the price list",
    "Clean the backlog",
    "Test the importer",
]
LISTS = ["Backlog", "In Progress", "In Review", "Completed"]
STATUSES = ["lead", "qualified", "won", "lost"]

Row = dict[str, Any]


@dataclass
class Office:
    """All tables, by id."""

    people: dict[str, Row] = field(default_factory=dict)
    emails: dict[str, Row] = field(default_factory=dict)
    events: dict[str, Row] = field(default_factory=dict)
    customers: dict[str, Row] = field(default_factory=dict)
    orders: dict[str, Row] = field(default_factory=dict)
    tasks: dict[str, Row] = field(default_factory=dict)
    files: dict[str, Row] = field(default_factory=dict)
    visits: dict[str, int] = field(default_factory=dict)
    plots: list[Row] = field(default_factory=list)
    made: int = 0

    @property
    def state(self) -> Row:
        """What is compared: everything but ids that the office gave to new rows."""
        tables = {name: value for name, value in vars(self).items() if name != "made"}
        shown = copy.deepcopy(tables)
        for name, table in shown.items():
            if isinstance(table, dict) and name != "visits":
                new = sorted((repr(row) for key, row in table.items() if key.startswith("new")))
                shown[name] = {**{key: row for key, row in table.items() if not key.startswith("new")}, "new": new}
        return shown

    def new_id(self) -> str:
        self.made += 1
        return f"new{self.made:05d}"


def furnished(seed: str) -> Office:
    """An office full of rows, the same for the same seed."""
    draw, office = random.Random(seed), Office()

    def number() -> str:
        return f"{draw.randrange(10**7, 10**8)}"

    names = draw.sample([f"{first} {last}" for first in FIRST.split() for last in LAST.split()], 14)
    firsts: set[str] = set()
    for name in names:
        if (first := name.split()[0]) in firsts:
            continue
        firsts.add(first)
        mail = f"{name.lower().replace(' ', '.').replace('ö', 'o')}@{draw.choice(['atlas.example', 'corp.example'])}"
        office.people[number()] = {"name": name, "email": mail}
    mails = [row["email"] for row in office.people.values()]
    for day, topic in enumerate(draw.choices(TOPICS, k=24)):
        sent = f"2026-02-{day + 1:02d} {draw.randrange(8, 18):02d}:{draw.choice(['00', '15', '30'])}"
        subject = (
            f"{topic.capitalize()} {draw.choice(['update', 'question', 'plan', 'numbers'])} {draw.randrange(10, 99)}"
        )
        office.emails[number()] = {
            "sender": draw.choice(mails),
            "subject": subject,
            "sent": sent,
            "body": f"About {topic}.",
        }
    for day, topic in enumerate(draw.choices(TOPICS, k=16)):
        start = f"2026-03-{day + 5:02d} {draw.randrange(8, 17):02d}:00"
        name = f"{topic.capitalize()} {draw.choice(EVENTS)} {draw.randrange(10, 99)}"
        office.events[number()] = {"name": name, "participant": draw.choice(mails), "start": start, "minutes": 30}
    for company in draw.sample(COMPANIES, 12):
        office.customers[number()] = {
            "name": f"{company} {draw.choice(FORMS)}",
            "status": draw.choice(STATUSES[:2]),
            "product": draw.choice(PRODUCTS),
            "assigned_to": draw.choice(mails),
        }
    for customer in office.customers:
        for day, product in enumerate(draw.sample(PRODUCTS, 2)):
            office.orders[number()] = {
                "customer_id": customer,
                "product": product,
                "ordered": f"2026-02-{draw.randrange(1, 12) + 14 * day:02d}",
                "status": "open",
                "price": draw.randrange(20, 400),
                "refunded": 0,
                "address": f"{draw.randrange(1, 90)} {draw.choice(COMPANIES)} Street",
            }
    for job in JOBS:
        for _ in range(3):
            office.tasks[number()] = {
                "title": f"{job} {draw.randrange(100, 999)}",
                "assignee": draw.choice(mails),
                "list": draw.choice(LISTS[:3]),
                "due": f"2026-03-{draw.randrange(5, 28):02d}",
            }
    for topic in TOPICS:
        name = f"{topic}_{draw.choice(['plan', 'draft', 'summary'])}_{draw.randrange(10, 99)}.docx"
        office.files[number()] = {"name": name, "shared_with": []}
    for day in range(1, 28):
        office.visits[f"2026-02-{day:02d}"] = draw.randrange(50, 900)
    return office


OFFICE: ContextVar[Office] = ContextVar("office")
"""The office of the run that this task carries out."""


def _matching(table: dict[str, Row], key: str, order: str = "", last: bool = False, **wanted: str | None) -> list[Row]:
    found = [
        {key: number, **row}
        for number, row in table.items()
        if all(value is None or value.casefold() in str(row.get(name, "")).casefold() for name, value in wanted.items())
    ]
    return (sorted(found, key=lambda row: row.get(order, ""), reverse=last) if order else found)[:SHOWN]


def _row(table: dict[str, Row], what: str, number: str) -> Row:
    if number not in table:
        raise ToolError(
            f"{what.upper()}_NOT_FOUND", f"there is no {what} {number!r}", recover_action=f"Search for the {what}"
        )
    return table[number]


def _known_mail(mail: str) -> str:
    if "@" not in mail or " " in mail:
        raise ToolError(
            "INVALID_ADDRESS", f"{mail!r} is no e-mail address", recover_action="Look it up with find_person"
        )
    return mail


def _choice(value: str, allowed: Iterable[str], what: str) -> str:
    for choice in allowed:
        if choice.casefold() == value.casefold():
            return choice
    raise ToolError("INVALID_VALUE", f"{what} is one of {', '.join(allowed)}, not {value!r}")


def _moment(text: str) -> str:
    text = text.replace("T", " ")[:16]
    if len(text) != 16 or text[4] != "-" or text[13] != ":":
        raise ToolError("INVALID_TIME", f"{text!r} is no time; write it like 2026-03-17 14:00")
    return text


def _day(text: str) -> str:
    if len(text) != 10 or text[4] != "-":
        raise ToolError("INVALID_DATE", f"{text!r} is no date; write it like 2026-03-17")
    return text


# --- people and mail


async def find_person(name: str) -> list[Row]:
    """Find a colleague's e-mail address by name. Use when a person is named and an address is needed."""
    return _matching(OFFICE.get().people, "person_id", name=name)


async def search_emails(query: str | None = None, sender: str | None = None) -> list[Row]:
    """Search e-mails, newest first, by words of the subject and by the sender's address. Use to find an email_id."""
    return _matching(OFFICE.get().emails, "email_id", order="sent", last=True, subject=query, sender=sender)


async def get_email(email_id: str) -> Row:
    """Read one e-mail. Use when its text is needed."""
    return _row(OFFICE.get().emails, "email", email_id)


async def send_email(recipient: str, subject: str, body: str) -> str:
    """Send a new e-mail to an address. Use when somebody is to be written to."""
    office = OFFICE.get()
    office.emails[office.new_id()] = {"to": _known_mail(recipient), "subject": subject}
    return "sent"


async def reply_email(email_id: str, body: str) -> str:
    """Reply to an e-mail. Use when an e-mail is to be answered."""
    office = OFFICE.get()
    _row(office.emails, "email", email_id)
    office.emails[office.new_id()] = {"reply_to": email_id, "body": body.strip(" .'\"")}
    return "sent"


async def forward_email(email_id: str, recipient: str) -> str:
    """Forward an e-mail to an address. Use when an e-mail is to be passed on."""
    office = OFFICE.get()
    _row(office.emails, "email", email_id)
    office.emails[office.new_id()] = {"forwarded": email_id, "to": _known_mail(recipient)}
    return "sent"


async def delete_email(email_id: str) -> str:
    """Delete an e-mail. Use when one is to be removed."""
    _row(OFFICE.get().emails, "email", email_id)
    del OFFICE.get().emails[email_id]
    return "deleted"


# --- calendar


async def search_events(query: str | None = None, participant: str | None = None) -> list[Row]:
    """Search calendar events, earliest first, by words of the name and the participant's address."""
    return _matching(OFFICE.get().events, "event_id", order="start", name=query, participant=participant)


async def get_event(event_id: str) -> Row:
    """Read one calendar event. Use when its details are needed."""
    return _row(OFFICE.get().events, "event", event_id)


async def create_event(name: str, participant: str, start: str, minutes: int) -> str:
    """Create a calendar event. Use to book a meeting. The start is written like 2026-03-17 14:00."""
    office = OFFICE.get()
    office.events[office.new_id()] = {
        "name": name,
        "participant": _known_mail(participant),
        "start": _moment(start),
        "minutes": minutes,
    }
    return "created"


async def move_event(event_id: str, start: str) -> str:
    """Move a calendar event to another start, written like 2026-03-17 14:00. Use to reschedule a meeting."""
    _row(OFFICE.get().events, "event", event_id)["start"] = _moment(start)
    return "moved"


async def delete_event(event_id: str) -> str:
    """Delete a calendar event. Use when a meeting is cancelled."""
    _row(OFFICE.get().events, "event", event_id)
    del OFFICE.get().events[event_id]
    return "deleted"


# --- customers and orders


async def search_customers(name: str | None = None, status: str | None = None) -> list[Row]:
    """Search customers by words of the name and by status. Use to find a customer_id."""
    return _matching(OFFICE.get().customers, "customer_id", name=name, status=status)


async def get_customer(customer_id: str) -> Row:
    """Read one customer. Use when its details are needed."""
    return _row(OFFICE.get().customers, "customer", customer_id)


async def add_customer(name: str, product: str, assigned_to: str) -> str:
    """Add a new customer as a lead, assigned to a colleague's address. Use when somebody new shows interest."""
    office = OFFICE.get()
    office.customers[office.new_id()] = {
        "name": name,
        "status": "lead",
        "product": product.lower(),
        "assigned_to": _known_mail(assigned_to),
    }
    return "added"


async def update_customer(customer_id: str, field: str, value: str) -> str:
    """Change a field of a customer: name, status, product or assigned_to (an address)."""
    row = _row(OFFICE.get().customers, "customer", customer_id)
    name = _choice(field, ("name", "status", "product", "assigned_to"), "field")
    if name == "status":
        value = _choice(value, STATUSES, "status")
    row[name] = _known_mail(value) if name == "assigned_to" else value
    return "updated"


async def delete_customer(customer_id: str) -> str:
    """Delete a customer for good. Use only when that is asked for."""
    _row(OFFICE.get().customers, "customer", customer_id)
    del OFFICE.get().customers[customer_id]
    return "deleted"


async def list_orders(customer_id: str) -> list[Row]:
    """List a customer's orders, newest first. Use to find an order_id."""
    _row(OFFICE.get().customers, "customer", customer_id)
    return _matching(OFFICE.get().orders, "order_id", order="ordered", last=True, customer_id=customer_id)


async def cancel_order(order_id: str) -> str:
    """Cancel an order. Use when a customer does not want it any more."""
    _row(OFFICE.get().orders, "order", order_id)["status"] = "cancelled"
    return "cancelled"


async def refund_order(order_id: str, amount: float) -> str:
    """Pay back an amount for an order. Use when a customer gets money back."""
    _row(OFFICE.get().orders, "order", order_id)["refunded"] += amount
    return "refunded"


async def change_address(order_id: str, address: str) -> str:
    """Change where an order is sent. Use when a customer names another address."""
    _row(OFFICE.get().orders, "order", order_id)["address"] = address
    return "changed"


# --- tasks, files, figures


async def search_tasks(query: str | None = None, assignee: str | None = None, list: str | None = None) -> list[Row]:
    """Search tasks by words of the title, the assignee's address and the list they are on. Use to find a task_id."""
    return _matching(OFFICE.get().tasks, "task_id", title=query, assignee=assignee, list=list)


async def create_task(title: str, assignee: str, due: str) -> str:
    """Create a task in the backlog for a colleague's address, due on a date like 2026-03-17."""
    office = OFFICE.get()
    office.tasks[office.new_id()] = {
        "title": title,
        "assignee": _known_mail(assignee),
        "list": "Backlog",
        "due": _day(due),
    }
    return "created"


async def update_task(task_id: str, field: str, value: str) -> str:
    """Change a field of a task: title, assignee (an address), list or due (a date)."""
    row = _row(OFFICE.get().tasks, "task", task_id)
    name = _choice(field, ("title", "assignee", "list", "due"), "field")
    if name == "list":
        value = _choice(value, LISTS, "list")
    row[name] = _known_mail(value) if name == "assignee" else value
    return "updated"


async def delete_task(task_id: str) -> str:
    """Delete a task. Use when one is to be removed."""
    _row(OFFICE.get().tasks, "task", task_id)
    del OFFICE.get().tasks[task_id]
    return "deleted"


async def search_files(query: str) -> list[Row]:
    """Search files by words of the name. Use to find a file_id."""
    return _matching(OFFICE.get().files, "file_id", name=query)


async def share_file(file_id: str, person: str) -> str:
    """Share a file with a colleague's address. Use when somebody shall see a file."""
    _row(OFFICE.get().files, "file", file_id)["shared_with"].append(_known_mail(person))
    return "shared"


async def count_visits(date: str) -> int:
    """How many visits the site had on a date like 2026-02-17. Use for questions about traffic."""
    visits = OFFICE.get().visits
    if _day(date) not in visits:
        raise ToolError("NO_FIGURES", f"there are no figures for {date}")
    return visits[date]


async def create_plot(metric: str, start: str, end: str, kind: str) -> str:
    """Plot visits or orders between two dates as a line, a bar or a histogram."""
    office = OFFICE.get()
    chosen = _choice(metric, ("visits", "orders"), "metric"), _choice(kind, ("line", "bar", "histogram"), "kind")
    office.plots.append({"metric": chosen[0], "start": _day(start), "end": _day(end), "kind": chosen[1]})
    return "plotted"


_READS = (
    find_person, search_emails, get_email, search_events, get_event, search_customers, get_customer, list_orders,
    search_tasks, search_files, count_visits,
)  # fmt: skip
_CHANGES = (
    send_email, reply_email, forward_email, delete_email, create_event, move_event, delete_event, add_customer,
    update_customer, delete_customer, cancel_order, refund_order, change_address, create_task, update_task, delete_task,
    share_file, create_plot,
)  # fmt: skip
TOOLS: list[AnyTool] = [
    *(tool(function, risk=RiskLevel.REVERSIBLE, read_only=True) for function in _READS),
    *(tool(function, risk=RiskLevel.REVERSIBLE) for function in _CHANGES),
]
FUNCTIONS = {function.__name__: function for function in (*_READS, *_CHANGES)}
