"""Prints without end once it is called."""

from base import serve, write


def call(_):
    while True:
        write("nonsense\n" * 5_000)


serve({"tools/call": call})
