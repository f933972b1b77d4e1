"""What libraries hold, libraries put together from others, and what is told when an agent does not fit one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from journeyman import Agent, BindingError, ToolCall, ToolDefinitionError, ToolLibrary, gram, run_sync, tool
from journeyman.execution.checks import resolve
from journeyman.execution.outcome import Refusal
from journeyman.testing import ScriptedModel, call, say


@tool(risk="reversible")
def greet(name: str, times: int = 1) -> str:
    """Greet somebody."""
    return f"Hello, {name}!" * times


@tool(name="greet", risk="reversible")
def greet_briefly(name: str, times: int = 1) -> str:
    """Greet somebody."""
    return f"Hi {name}"


@tool(name="greet")
def greet_otherwise(name: list[str], loud: bool) -> str:
    """Greet many."""
    return str(name)


@tool(risk="reversible")
def part(name: str) -> str:
    """Part with somebody."""
    return f"Bye, {name}!"


def test_a_plain_function_becomes_a_tool() -> None:
    def count(shelf: str) -> int:
        """Count what is on a shelf."""
        return 0

    library = ToolLibrary([greet, count])
    assert library.register(count, replace=True) is library["count"]
    assert library["count"]("a") == 0
    for item in (5, str, "count"):
        with pytest.raises(ToolDefinitionError, match="is not a tool; pass a tool or a function"):
            library.register(item)  # type: ignore[arg-type]
    with pytest.raises(ToolDefinitionError, match="has no annotation"):
        library.register(lambda x: x)


def test_a_tool_can_be_taken_away() -> None:
    library = ToolLibrary([greet, part])
    agent = Agent(name="a", instruction="i", tools=[greet])
    library.bind(agent)
    version = library.version
    library.unregister("greet")
    assert library.version > version
    assert library.names() == ["part"]
    assert library.search("greet") == []
    with pytest.raises(BindingError, match="greet: no implementation"):
        library.bind(agent)
    with pytest.raises(ToolDefinitionError, match="no tool named 'parts' is registered; did you mean 'part'"):
        library.unregister("parts")


def test_the_upper_layer_wins_and_the_others_stay_as_they_were() -> None:
    base, over = ToolLibrary([greet, part]), ToolLibrary([greet_briefly])
    layered = base | over
    assert layered.names() == ["greet", "part"]
    assert layered["greet"] is greet_briefly
    assert base["greet"] is greet
    assert len(over) == 1
    with pytest.raises(TypeError):
        base | {}  # type: ignore[operator]


def test_the_same_document_runs_on_either_library() -> None:
    agent = Agent.from_gram(Agent(name="a", instruction="i", tools=[greet]).to_gram())
    for library, expected in ((ToolLibrary([greet]), "Hello, Ada!"), (ToolLibrary([greet_briefly]), "Hi Ada")):
        model = ScriptedModel([call("greet", name="Ada"), say("done")])
        response = run_sync(agent, "Greet", library=library, model=model)
        assert [record.result for record in response.tool_calls] == [expected]


def test_a_prefix_keeps_names_apart() -> None:
    both = ToolLibrary([greet]).prefixed("a_") | ToolLibrary([greet_briefly]).prefixed("b_")
    assert both.names() == ["a_greet", "b_greet"]
    agent = Agent(name="a", instruction="i", tools=both.specifications())
    response = run_sync(agent, "Greet", library=both, model=ScriptedModel([call("b_greet", name="Ada"), say("done")]))
    assert response.tool_calls[0].result == "Hi Ada"


def test_an_environment_chooses_its_layer() -> None:
    layers = {"production": ToolLibrary(), "test": ToolLibrary([greet_briefly])}
    base = ToolLibrary([greet, part])
    assert ToolLibrary.for_environment("test", layers, base=base)["greet"] is greet_briefly
    assert ToolLibrary.for_environment("production", layers, base=base)["greet"] is greet
    assert ToolLibrary.for_environment("test", layers).names() == ["greet"]
    with pytest.raises(ToolDefinitionError, match="environment 'staging'; there are 'production', 'test'"):
        ToolLibrary.for_environment("staging", layers, base=base)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "some_tools.py").write_text(
        "from journeyman import ToolLibrary, tool\n"
        "@tool\ndef one() -> int:\n    'One.'\n    return 1\n"
        "def two(a: int) -> int:\n    'Two.'\n    return a\n"
        "@tool\ndef three() -> int:\n    'Three.'\n    return 3\n"
        "library = ToolLibrary([three])\nnumber = 4\n"
    )
    (tmp_path / "broken_tools.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "some_tools", raising=False)
    return "some_tools"


def test_import_paths_name_tools_functions_and_libraries(module: str) -> None:
    library = ToolLibrary.from_paths([f"{module}:one", f"{module}:two", f"{module}:library"])
    assert library.names() == ["one", "two", "three"]


def test_every_bad_import_path_is_told_at_once(module: str) -> None:
    with pytest.raises(ToolDefinitionError) as caught:
        ToolLibrary.from_paths([module, f"{module}:thre", "no_such_module:x", "broken_tools:x", f"{module}:number"])
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("'some_tools' is no import path")
    assert "has no 'thre'; did you mean 'some_tools:three'" in lines[1]
    assert lines[2] == "'no_such_module:x' names no module on the Python path"
    assert "'broken_tools:x' cannot be imported: ZeroDivisionError" in lines[3]
    assert "is an int, not a tool" in lines[4]


def test_every_mismatch_is_listed_with_both_sides_as_signatures() -> None:
    agent = Agent(name="a", instruction="i", tools=[greet, part])
    with pytest.raises(BindingError) as caught:
        ToolLibrary([greet_otherwise]).bind(agent)
    assert str(caught.value).splitlines() == [
        "agent 'a' cannot be bound to this library:",
        "  - greet: descriptions differ: 'Greet somebody.' != 'Greet many.'",
        '  - greet: name.items: {"type": "string"} only in the tool',
        "  - greet: name.type: string != array",
        "  - greet: times: only in the specification",
        "  - greet: loud: only in the tool",
        "      specification: (name::String)==>(times::Integer {default: 1})",
        '      tool:          (name::Array {items: "String"})==>(loud::Boolean)',
        "  - part: no implementation is registered",
    ]
    assert len(caught.value.mismatches) == 6


def test_a_handwritten_document_binds_to_a_python_tool() -> None:
    text = '[a:Agent {instruction: "i"} | [greet:Tool {description: "Greet somebody."} | %s]]'
    library = ToolLibrary([greet])
    library.bind(Agent.from_gram(text % "(name::String)==>(times::Integer {default: 1})==>(::String)"))
    with pytest.raises(BindingError, match=r"times\.default: 2 != 1"):
        library.bind(Agent.from_gram(text % "(name::String)==>(times::Integer {default: 2})==>(::String)"))
    assert gram.load_tools(gram.dump_tools(library.specifications())) == library.specifications()


def test_what_does_not_fit_can_be_left_out() -> None:
    agent = Agent(name="a", instruction="i", tools=[greet, part])
    library = ToolLibrary([greet_otherwise, part])
    bound = library.bind(agent, missing="skip")
    assert dict(bound.by_name) == {"part": part}
    assert bound.offered == (part.specification,)
    assert bound.skipped == ("greet",)
    assert library.bind(agent, missing="skip") is bound
    assert library.bind(agent, missing="skip", descriptions=False) is not bound
    with pytest.raises(BindingError):
        library.bind(agent)
    refusal = resolve(ToolCall(id="1", tool_name="greet"), bound.by_name, None)
    assert isinstance(refusal, Refusal)
    assert refusal.error.code == "UNKNOWN_TOOL"
    library.register(greet, replace=True)
    assert library.bind(agent, missing="skip").skipped == ()


def test_one_specification_is_bound_to_its_tool() -> None:
    library = ToolLibrary([greet_briefly])
    assert library.bind(greet.specification) is greet_briefly
    assert library.bind(part.specification, missing="skip") is None
    assert ToolLibrary([greet_otherwise]).bind(greet.specification, missing="skip") is None
    with pytest.raises(BindingError) as caught:
        library.bind(part.specification)
    told = "tool 'part' cannot be bound to this library:\n  - part: no implementation is registered"
    assert str(caught.value).startswith(told)
    reworded = greet.specification.model_copy(update={"description": "Say hello."})
    assert library.bind(reworded, descriptions=False) is greet_briefly
