"""Thousands of function documents that nobody here wrote, through gram and back."""

from __future__ import annotations

import jsonschema_rs
import pytest

from benchmarks.bfcl import corpus
from benchmarks.bfcl.documents import function_documents, specification
from journeyman.gram import dump_tools, load_tools


@pytest.mark.slow
def test_foreign_function_documents_survive_or_are_refused_with_the_reason() -> None:
    corpus.install()
    documents = function_documents()
    refused: list[str] = []
    survived = 0

    for document in documents:
        try:
            item = specification(document)
        except ValueError as error:
            refused.append(str(error))
            continue
        assert load_tools(dump_tools([item])) == [item]
        jsonschema_rs.Draft202012Validator(item.parameters)
        survived += 1

    assert len(documents) > 3000
    assert survived + len(refused) == len(documents)
    assert len(refused) < 100
    assert all("has no JSON form" in reason for reason in refused)
