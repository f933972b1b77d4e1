"""A tool's digest is the same wherever the same code runs, and another one as soon as the tool is another one."""

from __future__ import annotations

import functools
import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from journeyman import RiskLevel, tool
from journeyman.core.specification import ToolSpecification
from journeyman.tools.fingerprint import code_fingerprint, modules_fingerprint
from journeyman.tools.library import ToolLibrary
from journeyman.tools.tool import Tool


def made(body: str, **changes: Any) -> Tool[..., Any]:
    """The tool ``pay`` of a module with this source."""
    module: dict[str, Any] = {"__name__": "shop"}
    exec(compile(body, "shop.py", "exec"), module)
    return tool(module["pay"], **{"description": "Pay.", **changes})


PLAIN = "def pay(amount: int) -> str:\n    return f'paid {amount}'\n"


@pytest.mark.parametrize(
    "body",
    [
        PLAIN.replace("paid", "stole"),
        PLAIN.replace("{amount}", "{amount * 100}"),
        "def pay(amount: int) -> str:\n    total = amount\n    return f'paid {total}'\n",
        "def pay(amount: int, to: str = 'a') -> str:\n    return f'paid {amount}'\n",
    ],
)
def test_other_code_is_another_tool(body: str) -> None:
    assert made(body).digest != made(PLAIN).digest


def test_the_same_code_elsewhere_and_with_comments_is_the_same_tool() -> None:
    assert made(f"\n\n# a comment\n{PLAIN}").digest == made(PLAIN).digest


@pytest.mark.parametrize(
    "changes",
    [
        {"description": "Pay at once."},
        {"risk": RiskLevel.REVERSIBLE},
        {"permissions": {"money:spend"}},
        {"version": "2"},
        {"timeout_seconds": 60},
        {"idempotent": True},
        {"metadata": {"account": "other"}},
        {"tags": ["money"]},
    ],
    ids=str,
)
def test_every_part_of_the_specification_counts(changes: dict[str, Any]) -> None:
    assert made(PLAIN, **changes).digest != made(PLAIN).digest


HELPED = """
ACCOUNT = 'ours'
def _pay(amount):
    return amount
def pay(amount: int) -> list[str]:
    return [_pay(amount), ACCOUNT]
"""


@pytest.mark.parametrize(("old", "new"), [("'ours'", "'theirs'"), ("return amount\n", "return amount + 1\n")])
def test_what_a_tool_uses_of_its_module_counts(old: str, new: str) -> None:
    assert made(HELPED.replace(old, new, 1)).digest != made(HELPED).digest


def closing(account: Any, *, limit: int = 5) -> Callable[..., Any]:
    def pay(amount: int, most: int = limit) -> str:
        return f"{amount} {most} {account}"

    return pay


def test_what_a_function_closes_over_counts_where_it_is_a_plain_value() -> None:
    assert code_fingerprint(closing("ours")) == code_fingerprint(closing("ours"))
    assert code_fingerprint(closing("ours")) != code_fingerprint(closing("theirs"))
    assert code_fingerprint(closing("ours")) != code_fingerprint(closing("ours", limit=6))
    assert code_fingerprint(closing(lambda: 1)) != code_fingerprint(closing(lambda: 2))


def test_state_is_no_part_of_a_tool() -> None:
    assert code_fingerprint(closing([])) == code_fingerprint(closing([1, 2]))

    def counting() -> Callable[..., Any]:
        calls = 0

        def pay(amount: int) -> int:
            nonlocal calls
            calls += 1
            return calls

        return pay

    pay = counting()
    before = code_fingerprint(pay)
    pay(1)
    assert code_fingerprint(pay) == before


def test_partials_methods_and_callable_objects_are_told_apart() -> None:
    class Bank:
        def pay(self, amount: int) -> int:
            return self.fee(amount)

        def fee(self, amount: int) -> int:
            return amount

        def __call__(self, amount: int) -> int:
            return -amount

    class Thief(Bank):
        def fee(self, amount: int) -> int:
            return amount * 2

    pay = closing("ours")
    found: list[Callable[..., Any]]
    found = [functools.partial(pay, most=1), functools.partial(pay, most=2), Bank().pay, Thief().pay, Bank(), Thief()]
    assert len({code_fingerprint(item) for item in found}) == len(found)
    assert code_fingerprint(Bank().pay) == code_fingerprint(Bank().pay)


def test_another_process_finds_the_same_digest() -> None:
    program = f"""
from journeyman import tool
module = {{"__name__": "shop"}}
exec({HELPED + "KINDS = frozenset(('a', 'b', 'c'))"!r}, module)
print(tool(module["pay"], description="Pay.", permissions={{"b:c", "a:b", "z:z"}}).digest)
"""
    seen = {
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(seen) == 1


async def test_a_tool_of_another_source_is_another_tool() -> None:
    class Source:
        def __init__(self, name: str) -> None:
            self.name = name

        async def open(self) -> None: ...

        async def list(self) -> list[Tool[..., Any]]:
            return [Tool.from_specification(ToolSpecification(name="pay", description="Pay."), lambda: None)]

        async def watch(self) -> Any:
            return
            yield

        async def close(self) -> None: ...

    digests = []
    for name in ("ours", "ours", "theirs"):
        async with ToolLibrary(sources=[Source(name)]) as library:
            digests.append(library["pay"].digest)
    assert digests[0] == digests[1] != digests[2]


def test_of_what_it_imports_the_users_own_modules_count_and_installed_ones_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_shop.py").write_text("import own_help\nimport lib_there\n\n" + PLAIN)
    (tmp_path / "own_help.py").write_text("TAX = 1\n")
    (tmp_path / "lib_there").mkdir()
    (tmp_path / "lib_there" / "__init__.py").write_text("")
    (tmp_path / "lib_there-1.0.dist-info").mkdir()  # as `pip install --target` leaves it
    (tmp_path / "lib_there-1.0.dist-info" / "RECORD").write_text("lib_there/__init__.py,sha256=x,0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        paying = importlib.import_module("own_shop").pay
        at_first = modules_fingerprint(paying)
        (tmp_path / "lib_there" / "__init__.py").write_text("X = 2\n")
        assert modules_fingerprint(paying) == at_first != ""
        (tmp_path / "own_help.py").write_text("TAX = 20\n")
        assert modules_fingerprint(paying) != at_first
    finally:
        for name in ("own_shop", "own_help", "lib_there"):
            sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("line", "bound", "told"),
    [
        ("import importlib; rate = importlib.import_module('own_rate').RATE", True, False),
        ("from importlib import import_module; rate = import_module('own_rate').RATE", True, False),
        ("rate = __import__('own_rate').RATE", True, False),
        ("import importlib; rate = importlib.import_module('own_' + 'rate').RATE", False, True),
        ("import subprocess; rate = subprocess.run(['python', 'own_rate.py'])", False, True),
        ("import os; rate = os.system('python own_rate.py')", False, True),
        ("rate = eval(open('own_rate.py').read()[7:])", False, True),
        ("rate = 2", False, False),
    ],
)
def test_code_that_is_loaded_by_name_counts_or_is_said_not_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, bound: bool, told: bool
) -> None:
    (tmp_path / "own_shop.py").write_text(f"def pay(amount: int) -> int:\n    {line}\n    return amount\n")
    (tmp_path / "own_rate.py").write_text("RATE = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        paying = importlib.import_module("own_shop").pay
        at_first = modules_fingerprint(paying)
        (tmp_path / "own_rate.py").write_text("RATE = 20\n")
        assert (modules_fingerprint(paying) != at_first) is bound
        said = tool(paying, description="Pay.").not_bound_to
        assert said == ("programs that its modules start, or code that they load by name" if told else "")
    finally:
        sys.modules.pop("own_shop", None)
