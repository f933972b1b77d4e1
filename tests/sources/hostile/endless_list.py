"""Has always one more page of tools."""

from itertools import count

from base import TOOL, answer, serve

pages = count()


def page(request):
    number = next(pages)
    answer(request, {"tools": [{**TOOL, "name": f"tool_{number}"}], "nextCursor": str(number)})


serve({"tools/list": page})
