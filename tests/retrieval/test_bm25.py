"""Ranking by words, and an index that changes."""

import pytest

from journeyman.retrieval.search import BM25, terms

TEXTS = {"cat": "the cat sleeps on the sofa", "dog": "the dog chases the cat", "car": "a red car in the garage"}


def test_polite_words_do_not_count() -> None:
    assert terms("Could you please show me what you have") == ["show"]


def test_rare_words_weigh_more_than_common_ones() -> None:
    ranked = BM25(TEXTS).rank("cat sofa")
    assert [key for key, _ in ranked] == ["cat", "dog"]


def test_what_shares_no_word_is_not_found() -> None:
    assert BM25(TEXTS).rank("elephant") == []


def test_an_index_that_was_changed_ranks_like_one_built_at_once() -> None:
    changed = BM25({"cat": "something else entirely", "old": "a cat that is gone", "dog": TEXTS["dog"]})
    changed.put("cat", TEXTS["cat"])
    changed.remove("old")
    changed.remove("never there")
    changed.put("car", TEXTS["car"])
    for query in ("cat", "red cat", "dog chases car", "gone"):
        assert dict(changed.rank(query)) == pytest.approx(dict(BM25(TEXTS).rank(query)))
    assert len(changed) == 3
    assert "old" not in changed


def test_an_empty_index_finds_nothing() -> None:
    assert BM25().rank("cat") == []
    assert BM25({"empty": ""}).rank("cat") == []


def test_a_share_says_how_much_of_the_query_was_found() -> None:
    index = BM25(TEXTS)
    assert set(index.shares("cat sofa")) == {"cat", "dog"}
    assert index.shares("red car")["car"] > 2 * index.shares("red elephants dance")["car"] > 0
    assert index.shares("") == index.shares("elephants") == {}
    assert all(0 < share <= 1 for share in BM25({"a": "cat " * 1000, "b": "dog"}).shares("cat").values())
