"""Names its tools twice, hugely, confusingly, with escapes, or not at all."""

from base import TOOL, answer, serve

NAMES = [
    "work",
    "work",
    "Work",
    "wоrk",
    "x" * 5_000,
    "a b",
    "\x1b[2Jclear",
    "",
    "finish",
    "ok\u202egnp",
    "../../etc/passwd",
]

serve({"tools/list": lambda request: answer(request, {"tools": [{**TOOL, "name": name} for name in NAMES]})})
