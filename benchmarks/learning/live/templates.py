"""What is asked of the office: templates, instances of each, and the calls that serve them. Written before tuning."""

import random

from benchmarks.learning.live.office import (
    FUNCTIONS,
    JOBS,
    LISTS,
    OFFICE,
    PRODUCTS,
    TODAY,
    TOOLS,
    Office,
    Row,
    furnished,
)
from benchmarks.learning.live.wordings import WORDINGS
from benchmarks.learning.live.world import Call, Made, World


class Draw:
    """Rows of an office that a request can be about."""

    def __init__(self, office: Office, seed: str, wordings: tuple[str, ...] = ()) -> None:
        self.office, self.random, self.wordings = office, random.Random(f"draw {seed}"), wordings

    def say(self, *phrasings: str) -> str:
        return self.random.choice(self.wordings or phrasings)

    def person(self) -> Row:
        return self.random.choice(list(self.office.people.values()))

    def row(self, table: dict[str, Row], field: str) -> tuple[str, Row]:
        """A row whose field no other row has."""
        values = [row.get(field) for row in table.values()]
        return self.random.choice([(key, row) for key, row in table.items() if values.count(row.get(field)) == 1])

    def customer(self) -> tuple[str, Row]:
        return self.row(self.office.customers, "name")

    def orders(self, customer: str) -> list[tuple[str, Row]]:
        found = [(key, row) for key, row in self.office.orders.items() if row["customer_id"] == customer]
        return sorted(found, key=lambda item: item[1]["ordered"], reverse=True)

    def day(self) -> str:
        return f"2026-03-{self.random.randrange(9, 31):02d}"

    def hour(self) -> str:
        return f"{self.random.randrange(8, 18):02d}:00"

    def found(self, person: Row) -> Call:
        return "find_person", {"name": person["name"]}


def cancel_meeting(d: Draw) -> Made:
    mail = d.random.choice(sorted({row["participant"] for row in d.office.events.values()}))
    person = next(row for row in d.office.people.values() if row["email"] == mail)
    event = min((row["start"], key) for key, row in d.office.events.items() if row["participant"] == mail)[1]
    request = d.say("Cancel my next meeting with {0}.", "My next meeting with {0} won't happen, please cancel it.")
    calls = [d.found(person), ("search_events", {"participant": mail}), ("delete_event", {"event_id": event})]
    return request.format(person["name"]), calls


def move_meeting(d: Draw) -> Made:
    key, row = d.row(d.office.events, "name")
    start = f"{d.day()} {d.hour()}"
    request = d.say("Move the meeting '{0}' to {1}.", "Please reschedule '{0}', the new start is {1}.")
    return request.format(row["name"], start), [
        ("search_events", {"query": row["name"]}),
        ("move_event", {"event_id": key, "start": start}),
    ]


def book_meeting(d: Draw) -> Made:
    person, start, minutes = d.person(), f"{d.day()} {d.hour()}", d.random.choice([15, 30, 45, 60])
    name = f"{d.random.choice(['Roadmap', 'Contract', 'Design'])} talk {d.random.randrange(10, 99)}"
    request = d.say(
        "Book a {3}-minute meeting called '{1}' with {0} at {2}.", "Set up '{1}' with {0} at {2}, {3} minutes."
    )
    arguments = {"name": name, "participant": person["email"], "start": start, "minutes": minutes}
    return request.format(person["name"], name, start, minutes), [d.found(person), ("create_event", arguments)]


def forward_mail(d: Draw) -> Made:
    key, row = d.row(d.office.emails, "subject")
    person = d.person()
    request = d.say("Forward the email '{0}' to {1}.", "{1} needs to see the email '{0}', please pass it on.")
    return request.format(row["subject"], person["name"]), [
        ("search_emails", {"query": row["subject"]}),
        d.found(person),
        ("forward_email", {"email_id": key, "recipient": person["email"]}),
    ]


def reply_to_latest(d: Draw) -> Made:
    mail = d.random.choice(sorted({row["sender"] for row in d.office.emails.values()}))
    person = next(row for row in d.office.people.values() if row["email"] == mail)
    email = max((row["sent"], key) for key, row in d.office.emails.items() if row["sender"] == mail)[1]
    text = d.random.choice(["Thanks, I will look at it tomorrow", "Agreed, please go ahead", "Let us talk on Monday"])
    request = d.say("Reply to {0}'s latest email with '{1}'.", "Answer the last email from {0}: '{1}'.")
    return request.format(person["name"], text), [
        d.found(person),
        ("search_emails", {"sender": mail}),
        ("reply_email", {"email_id": email, "body": text}),
    ]


def delete_mail(d: Draw) -> Made:
    key, row = d.row(d.office.emails, "subject")
    request = d.say("Delete the email with the subject '{0}'.", "I don't need the email '{0}' any more, remove it.")
    return request.format(row["subject"]), [
        ("search_emails", {"query": row["subject"]}),
        ("delete_email", {"email_id": key}),
    ]


def reassign_customer(d: Draw) -> Made:
    (key, row), person = d.customer(), d.person()
    while person["email"] == row["assigned_to"]:
        person = d.person()
    request = d.say("Reassign the customer {0} to {1}.", "{1} takes over {0} from now on, update the customer.")
    return request.format(row["name"], person["name"]), [
        ("search_customers", {"name": row["name"]}),
        d.found(person),
        ("update_customer", {"customer_id": key, "field": "assigned_to", "value": person["email"]}),
    ]


def lose_customer(d: Draw) -> Made:
    (key, row), status = d.customer(), d.random.choice(["lost", "won"])
    request = d.say("Mark the customer {0} as {1}.", "We have {1} {0}: set the status of the customer.")
    return request.format(row["name"], status), [
        ("search_customers", {"name": row["name"]}),
        ("update_customer", {"customer_id": key, "field": "status", "value": status}),
    ]


def new_customer(d: Draw) -> Made:
    person, product = d.person(), d.random.choice(PRODUCTS)
    name = f"{d.random.choice(['Nova', 'Orion', 'Vega', 'Lyra'])} {d.random.choice(['Works', 'Labs', 'Foods'])}"
    request = d.say(
        "Add {0} as a new customer interested in a {1}, assigned to {2}.", "New lead {0} wants a {1}; {2} has it."
    )
    return request.format(name, product, person["name"]), [
        d.found(person),
        ("add_customer", {"name": name, "product": product, "assigned_to": person["email"]}),
    ]


def complete_task(d: Draw) -> Made:
    key, row = d.row(d.office.tasks, "title")
    request = d.say("The task '{0}' is done, move it to Completed.", "Please put the task '{0}' on the Completed list.")
    return request.format(row["title"]), [
        ("search_tasks", {"query": row["title"]}),
        ("update_task", {"task_id": key, "field": "list", "value": "Completed"}),
    ]


def empty_list(d: Draw) -> Made:
    pairs = sorted({(row["assignee"], row["list"]) for row in d.office.tasks.values()})
    mail, source = d.random.choice(pairs)
    target = d.random.choice([name for name in LISTS[:3] if name != source])
    person = next(row for row in d.office.people.values() if row["email"] == mail)
    theirs = [key for key, row in d.office.tasks.items() if (row["assignee"], row["list"]) == (mail, source)]
    request = d.say("Move all of {0}'s tasks in {1} to {2}.", "Everything {0} has in {1} goes to {2}.")
    return request.format(person["name"], source, target), [
        d.found(person),
        ("search_tasks", {"assignee": mail, "list": source}),
        *(("update_task", {"task_id": key, "field": "list", "value": target}) for key in theirs),
    ]


def new_task(d: Draw) -> Made:
    person, due = d.person(), d.day()
    title = f"{d.random.choice(JOBS)} {d.random.randrange(100, 999)}"
    request = d.say("Create a task '{0}' for {1}, due {2}.", "{1} should do '{0}' until {2}: make a task of it.")
    return request.format(title, person["name"], due), [
        d.found(person),
        ("create_task", {"title": title, "assignee": person["email"], "due": due}),
    ]


def cancel_last_order(d: Draw) -> Made:
    key, row = d.customer()
    order = d.orders(key)[0][0]
    request = d.say("Cancel the latest order of {0}.", "{0} doesn't want what they ordered last, cancel it.")
    return request.format(row["name"]), [
        ("search_customers", {"name": row["name"]}),
        ("list_orders", {"customer_id": key}),
        ("cancel_order", {"order_id": order}),
    ]


def refund(d: Draw) -> Made:
    key, row = d.customer()
    order, bought = d.random.choice(d.orders(key))
    amount = d.random.randrange(5, bought["price"])
    request = d.say("Refund {2} to {0} for the {1}.", "{0} gets {2} back for the {1} they ordered.")
    return request.format(row["name"], bought["product"], amount), [
        ("search_customers", {"name": row["name"]}),
        ("list_orders", {"customer_id": key}),
        ("refund_order", {"order_id": order, "amount": amount}),
    ]


def redirect_order(d: Draw) -> Made:
    key, row = d.customer()
    order, bought = d.random.choice(d.orders(key))
    address = f"{d.random.randrange(1, 90)} {d.random.choice(['Harbour', 'Station', 'Market'])} Road"
    request = d.say("Send {0}'s {1} to {2} instead.", "The {1} that {0} ordered goes to another address: {2}.")
    return request.format(row["name"], bought["product"], address), [
        ("search_customers", {"name": row["name"]}),
        ("list_orders", {"customer_id": key}),
        ("change_address", {"order_id": order, "address": address}),
    ]


def plot(d: Draw) -> Made:
    metric, kind = d.random.choice(["visits", "orders"]), d.random.choice(["line", "bar", "histogram"])
    start, end = sorted(d.random.sample(range(1, 28), 2))
    first, last = f"2026-02-{start:02d}", f"2026-02-{end:02d}"
    request = d.say("Plot the {0} from {1} to {2} as a {3}.", "I need a {3} of the {0} between {1} and {2}.")
    return request.format(metric, first, last, kind), [
        ("create_plot", {"metric": metric, "start": first, "end": last, "kind": kind}),
    ]


def traffic_alarm(d: Draw) -> Made:
    person, date = d.person(), f"2026-02-{d.random.randrange(1, 28):02d}"
    limit = d.office.visits[date] + d.random.randrange(10, 200)
    request = d.say(
        "If there were fewer than {2} visits on {1}, email {0} with the subject 'Traffic drop'.",
        "Check the visits of {1}: below {2}, send {0} an email with the subject 'Traffic drop'.",
    )
    body = f"There were {d.office.visits[date]} visits on {date}."
    mail = {"recipient": person["email"], "subject": "Traffic drop", "body": body}
    return request.format(person["name"], date, limit), [
        ("count_visits", {"date": date}),
        d.found(person),
        ("send_email", mail),
    ]


def share(d: Draw) -> Made:
    (key, row), person = d.row(d.office.files, "name"), d.person()
    request = d.say("Share the file {0} with {1}.", "{1} should be able to see {0}, please share it.")
    return request.format(row["name"], person["name"]), [
        ("search_files", {"query": row["name"]}),
        d.found(person),
        ("share_file", {"file_id": key, "person": person["email"]}),
    ]


INSTRUCTION = (
    f"You are an office assistant. Today is {TODAY}. Carry out the user's request with the tools, without asking back. "
    "Look up ids and addresses with the search tools; never make them up. When all is done, say so in one sentence."
)
OFFICE_WORLD = World(
    name="office",
    instruction=INSTRUCTION,
    tools=TOOLS,
    functions=FUNCTIONS,
    place=OFFICE,
    furnished=furnished,
    draw=lambda seed, wordings: Draw(furnished(seed), seed, wordings),
    templates={
        function.__name__: function
        for function in (
            cancel_meeting, move_meeting, book_meeting, forward_mail, reply_to_latest, delete_mail, reassign_customer,
            lose_customer, new_customer, complete_task, empty_list, new_task, cancel_last_order, refund, redirect_order,
            plot, traffic_alarm, share,
        )
    },
    wordings=WORDINGS,
)  # fmt: skip
