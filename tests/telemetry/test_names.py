"""Names of spans, attributes and metrics are those that the semantic conventions publish."""

from opentelemetry.semconv._incubating.attributes import db_attributes, error_attributes, gen_ai_attributes
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics

from journeyman.telemetry import names


def published(*modules: object) -> set[str]:
    return {value for module in modules for value in vars(module).values() if isinstance(value, str)}


def ours(*prefixes: str) -> set[str]:
    return {value for value in vars(names).values() if isinstance(value, str) and value.startswith(prefixes)}


def test_every_name_that_is_not_ours_is_published() -> None:
    known = published(gen_ai_attributes, gen_ai_metrics, error_attributes, db_attributes)
    foreign = ours("gen_ai.", "error.", "db.")
    assert len(foreign) > 15
    assert foreign - known == set()


def test_operations_are_those_of_the_conventions() -> None:
    operations = {item.value for item in gen_ai_attributes.GenAiOperationNameValues}
    assert {names.CHAT, names.INVOKE_AGENT, names.EXECUTE_TOOL} <= operations
    assert {item.value for item in gen_ai_attributes.GenAiTokenTypeValues} >= {"input", "output"}
