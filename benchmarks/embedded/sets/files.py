"""A folder of files: find, read, move, pack."""

from typing import Literal

from journeyman import tool


@tool
def list_folder(path: str = ".", hidden: bool = False) -> list[str]:
    """List what is in a folder.

    Args:
        path: The folder.
        hidden: Also files whose names start with a dot.
    """
    raise NotImplementedError


@tool
def read_file(path: str, lines: int | None = None) -> str:
    """Show the content of a file.

    Args:
        path: The file.
        lines: Only this many lines from its beginning.
    """
    raise NotImplementedError


@tool
def move_file(source: str, destination: str) -> None:
    """Move or rename a file.

    Args:
        source: The file as it is.
        destination: Its new place or name.
    """


@tool
def copy_file(source: str, destination: str) -> None:
    """Copy a file.

    Args:
        source: The file.
        destination: Where the copy goes.
    """


@tool
def remove_file(path: str) -> None:
    """Delete a file for good."""


@tool
def find_files(pattern: str, folder: str | None = None) -> list[str]:
    """Find files by their name.

    Args:
        pattern: With wildcards, e.g. *.txt.
        folder: Where to look; everywhere when left out.
    """
    raise NotImplementedError


@tool
def search_text(text: str, folder: str | None = None) -> list[str]:
    """Find the files that contain a text.

    Args:
        text: The words to look for.
        folder: Where to look; everywhere when left out.
    """
    raise NotImplementedError


@tool
def make_archive(folder: str, format: Literal["zip", "tar"] = "zip") -> str:
    """Pack a folder into one compressed archive file."""
    raise NotImplementedError


@tool
def disk_usage(path: str = "/") -> int:
    """How much space a folder takes."""
    raise NotImplementedError


TOOLS = (
    list_folder,
    read_file,
    move_file,
    copy_file,
    remove_file,
    find_files,
    search_text,
    make_archive,
    disk_usage,
)
