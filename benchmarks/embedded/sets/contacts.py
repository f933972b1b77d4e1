"""An address book with notes and messages. Held out."""

from datetime import date

from journeyman import tool


@tool(examples=["Save Tom's number", "New contact: Eva Stone"])
def add_contact(name: str, phone: str | None = None, email: str | None = None) -> None:
    """Add a person to the address book.

    Args:
        name: The person's name.
        phone: Their telephone number.
        email: Their email address.
    """


@tool(read_only=True, examples=["What is Tom's number?"])
def find_contact(name: str) -> str:
    """Look up a person's telephone number, email and birthday.

    Args:
        name: The person's name.
    """
    raise NotImplementedError


@tool
def delete_contact(name: str) -> None:
    """Remove a person from the address book.

    Args:
        name: The person's name.
    """


@tool
def set_birthday(name: str, day: date) -> None:
    """Keep a person's birthday.

    Args:
        name: The person's name.
        day: When it is.
    """


@tool(examples=["Text Tom that I am late", "Tell Eva that the keys are under the mat"])
def send_message(to: str, text: str) -> None:
    """Send a message to a person.

    Args:
        to: Who gets it.
        text: What it says.
    """


@tool(examples=["Write down that the code is in the blue folder", "Note: the plumber comes at ten"])
def write_note(text: str) -> None:
    """Write a note.

    Args:
        text: What to note.
    """


@tool(read_only=True, examples=["What did I write about the garden?"])
def search_notes(query: str) -> list[str]:
    """Search the notes.

    Args:
        query: What to look for.
    """
    raise NotImplementedError


TOOLS = (add_contact, find_contact, delete_contact, set_birthday, send_message, write_note, search_notes)
