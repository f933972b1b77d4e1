"""Prints a banner and debugging to its standard output, as careless servers do."""

from base import answer, serve, text, write

write('Starting up…\n\n{not json\n[1, 2]\n"text"\n\x00\xff\n')


def call(request):
    write("DEBUG called\n" * 100)
    answer(request, text("done"))


serve({"tools/call": call})
