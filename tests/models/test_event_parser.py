"""Server-sent events, split in every way a network can split them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman.models.answer import EventParser


def parse(*pieces: bytes) -> list[bytes]:
    parser = EventParser()
    return [data for piece in pieces for data in parser.feed(piece)]


def test_an_event_ends_with_an_empty_line() -> None:
    assert parse(b"data: one\n") == []
    assert parse(b"data: one\n\n", b"data:two\n\n") == [b"one", b"two"]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_line_ending_works(end: bytes) -> None:
    assert parse(b"data: one" + end * 2 + b"data: two" + end * 2) == [b"one", b"two"]


def test_a_line_ending_may_be_split() -> None:
    assert parse(b"data: a\r", b"\ndata: b\r", b"\n\r", b"\n") == [b"a\nb"]


def test_comments_names_and_ids_are_dropped() -> None:
    assert parse(b": keep-alive\n\nevent: x\nid: 7\nretry: 10\ndata: one\n\n:\n\n") == [b"one"]


def test_data_of_several_lines_is_joined() -> None:
    assert parse(b"data: {\ndata:  1}\n\n") == [b"{\n 1}"]


def test_a_byte_order_mark_is_ignored() -> None:
    assert parse(b"\xef\xbb\xbfdata: one\n\n") == [b"one"]


@pytest.mark.parametrize("rest", [b"data: [DONE]", b"data: [DONE]\n", b"data: [DONE]\r\n", b"data: [DONE]\r"])
def test_the_end_of_the_stream_may_stand_for_the_last_empty_line(rest: bytes) -> None:
    parser = EventParser()
    assert parser.feed(rest) == []
    assert parser.finish() == [b"[DONE]"]
    assert parser.finish() == []


@given(st.data(), st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_it_does_not_matter_where_the_bytes_are_split(data: st.DataObject, end: bytes) -> None:
    texts = ["grüß dich", "日本語 🎉", "plain"]
    stream = b"".join(b"data: " + text.encode() + end * 2 for text in texts)
    at = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    pieces = [stream[start:stop] for start, stop in zip([0, *at], [*at, len(stream)], strict=True)]
    assert [found.decode() for found in parse(*pieces)] == texts
