"""Type signatures of tools: text that people read and diff, JSON Schema that models and validators read.

**The path form** is gram: a chain of nodes, one per parameter, ending in a node without a name, the return type.

    (name::String)==>(age::Integer {default: 1})==>(::String)

* Types: String (Text), Integer (Int), Number (Double, Float), Boolean (Bool), Array, Object, Null, Any (Value).
* ``(::String)`` alone has no parameters. ``()`` as the last node says nothing about the return; ``(::Any)`` says
  that anything may come back.
* A name that is no gram symbol stands in backticks: ``(`first name`::String)``.
* A node's properties: ``items`` (an Array's element type, ``items: "String"``), ``enum`` (an array of scalars),
  ``default`` (makes a parameter optional), ``optional`` (true: optional without a default; false: required in spite
  of one), ``title``, ``description``.
* What these cannot say is JSON in a tagged string: ``schema`` holds the schema's other keywords,
  ``` (age::Integer {schema: json`{"minimum": 0}`}) ```, and any value may be one: ``` {default: json`null`} ```.
* ``parameters`` on the last node holds what belongs to no single parameter, such as ``$defs``. Given, it is the
  parameters' root schema, to which the path's parameters are added; not given, the root is ``{"type": "object"}``.
* Strings are double- or single-quoted on one line; escapes are ``\\b \\f \\n \\r \\t \\/ \\\\`` and the quote. No
  comments, no other arrows, labels or values of gram.

**The text form** is the older one: ``(name: Text, tags: [Text], age: Maybe Int) --> IO Text``. It adds ``[T]``,
records ``{field: T}``, and ``Maybe T``: T, not required (null is not added; where nothing can be left out, it is just
T). ``IO T`` is T, ``()`` is no parameters or a null return, ``->`` is as good as ``-->``.

Optional means: not in ``required``. A root's ``additionalProperties: false`` is not written, and comparing takes it as
unsaid: whether unknown arguments are refused is the executor's business, not the signature's.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from journeyman.core.signature.comparing import same_schema, schema_differences
    from journeyman.core.signature.reading import Signature, read_signature, signature_schema
    from journeyman.core.signature.writing import write_signature

__all__ = ["Signature", "read_signature", "same_schema", "schema_differences", "signature_schema", "write_signature"]
_HOMES = {"same_schema": "comparing", "schema_differences": "comparing", "write_signature": "writing"}


def __getattr__(name: str) -> Any:
    # Every tool has its signature written; most programs never read or compare one.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'reading')}"), name)
