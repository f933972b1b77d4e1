"""Arithmetic on text, by walking its syntax tree: numbers and operators, no names, no calls, bounded size."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable

Number = int | float

MOST_BITS = 4_096
"""Whole numbers do not grow beyond this: 9**9**9 would take all memory there is."""

_BINARY: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_UNARY: dict[type[ast.unaryop], Callable[[Number], Number]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}


def evaluate(expression: str) -> Number:
    """The value of an expression. Raises ValueError with a sentence that says why not."""
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"{expression!r} is not an arithmetic expression") from error
    try:
        value = _value(tree.body)
    except ZeroDivisionError as error:
        raise ValueError(f"{expression!r} divides by zero") from error
    except OverflowError as error:
        raise ValueError(f"{expression!r} is too large") from error
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{expression!r} has no finite value")
    return value


def _value(node: ast.expr) -> Number:
    match node:
        case ast.Constant(value=bool()):
            raise ValueError("True and False are not numbers")
        case ast.Constant(value=int() | float() as number):
            return _bounded(number)
        case ast.UnaryOp(op=sign, operand=operand) if type(sign) in _UNARY:
            return _UNARY[type(sign)](_value(operand))
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(_value(left), _value(right))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _BINARY:
            return _bounded(_BINARY[type(sign)](_value(left), _value(right)))
        case _:
            raise ValueError(f"{ast.unparse(node)!r} is not a number or one of + - * / // % **")


def _power(base: Number, exponent: Number) -> Number:
    if isinstance(base, int) and isinstance(exponent, int) and base.bit_length() * abs(exponent) > MOST_BITS:
        raise OverflowError
    value = base**exponent
    if isinstance(value, complex):
        raise ValueError(f"{base}**{exponent} is not a real number")
    return _bounded(value)


def _bounded(value: Number) -> Number:
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise OverflowError
    return value
