"""Answers a call with twenty megabytes."""

from base import answer, serve, text

serve({"tools/call": lambda request: answer(request, text("x" * 20_000_000))})
