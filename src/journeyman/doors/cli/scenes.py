"""What is said in the demo, what to look at meanwhile, and what is meant to come of it. The answers are the model's."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scene:
    """One chapter of the tour: a few sentences, each with the tool it is about, or None where no tool serves."""

    title: str
    told: str
    says: tuple[tuple[str, str | None], ...]


WORK = (
    Scene(
        "1 · Words become calls",
        "The model chooses a tool and fills its arguments; each call is checked, graded, run and recorded.",
        (
            ("Create a task to prepare the quarterly report with high priority", "create_task"),
            ("Create a task to archive the old newsletter", "create_task"),
        ),
    ),
    Scene("2 · Finding things", "Reading changes nothing.", (("Which tasks have high priority?", "query_tasks"),)),
    Scene(
        "3 · Changing things",
        "A task is named by words of its title. The version before is kept, so the change can be undone.",
        (("Change the priority of the quarterly report to critical", "update_task"),),
    ),
    Scene(
        "4 · Irreversible means: ask",
        "Deleting is for good, so the run stops until a person has decided about exactly this call.",
        (("Delete the newsletter task", "delete_task"),),
    ),
)
MISSING = Scene(
    "5 · What no tool can do",
    "Nothing is guessed: the answer says what can be done instead, and what is missing is reported.",
    (("Book me a flight to Paris", None),),
)
CRASH = Scene(
    "6 · A process dies in the middle",
    "Another process takes this request and is killed with SIGKILL after its call. Then this one takes the run up.",
    (("Create a task to water the plants", "create_task"),),
)
