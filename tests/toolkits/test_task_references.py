"""Addresses: what is found in a text, and that two ways to write one address give one reference."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman.core.tasks import AttachmentType
from journeyman.toolkits.tasks.references import LONGEST, InvalidReferenceError, find_references, read_reference

GITHUB, GMAIL, URL = AttachmentType.GITHUB, AttachmentType.GMAIL, AttachmentType.URL
THREAD = "FMfcgzQXJZxLtBvWqRkNsDpMhYcTgVbF"
MAIL = f"https://mail.google.com/mail/u/0/#all/{THREAD}"
HEX = "18c2f0a9b3d4e5f6"

FORMS = [
    # the generic form
    ("https://example.com", URL, "https://example.com"),
    ("https://example.com/", URL, "https://example.com"),
    ("HTTPS://EXAMPLE.COM/Path", URL, "https://example.com/Path"),
    ("  https://example.com/a  ", URL, "https://example.com/a"),
    ("example.com/a", URL, "https://example.com/a"),
    ("www.example.com", URL, "https://www.example.com"),
    ("https://example.com./a", URL, "https://example.com/a"),
    ("https://example.com:443/a", URL, "https://example.com/a"),
    ("http://example.com:80/a", URL, "http://example.com/a"),
    ("http://example.com:443/a", URL, "http://example.com:443/a"),
    ("https://example.com:8443/a/", URL, "https://example.com:8443/a"),
    ("example.com:8080/a", URL, "https://example.com:8080/a"),
    ("http://localhost:3000/x", URL, "http://localhost:3000/x"),
    ("http://[::1]:8080/x", URL, "http://[::1]:8080/x"),
    ("https://example.com/a//", URL, "https://example.com/a"),
    ("https://example.com/a#section", URL, "https://example.com/a"),
    ("https://example.com/#/orders/7", URL, "https://example.com#/orders/7"),
    ("https://example.com/a#!/orders/7", URL, "https://example.com/a#!/orders/7"),
    ("https://ada:secret@example.com/a", URL, "https://example.com/a"),
    ("https://example.com/a?utm_source=x&utm_medium=y", URL, "https://example.com/a"),
    ("https://example.com/a?UTM_Campaign=x", URL, "https://example.com/a"),
    ("https://example.com/a?id=7&gclid=abc&page=2", URL, "https://example.com/a?id=7&page=2"),
    ("https://example.com/a?fbclid=abc", URL, "https://example.com/a"),
    ("https://example.com/a?msclkid=1&mc_cid=2&mc_eid=3&igshid=4", URL, "https://example.com/a"),
    ("https://example.com/a?&&", URL, "https://example.com/a"),
    ("https://example.com/a/?b=1", URL, "https://example.com/a?b=1"),
    ("https://example.com/?q=utm_source", URL, "https://example.com?q=utm_source"),
    ("https://example.com/a?b=1&a=2", URL, "https://example.com/a?b=1&a=2"),
    ("https://example.com/%7eada/%c3%a9", URL, "https://example.com/~ada/%C3%A9"),
    ("https://example.com/?q=a%2fb", URL, "https://example.com?q=a%2Fb"),
    ("https://müller.example/straße", URL, "https://müller.example/straße"),
    ("https://notgithub.com/a/b", URL, "https://notgithub.com/a/b"),
    ("https://github.com.evil.example/a/b", URL, "https://github.com.evil.example/a/b"),
    # GitHub
    ("https://github.com/Acme/Rocket", GITHUB, "https://github.com/acme/rocket"),
    ("http://www.github.com/acme/rocket/", GITHUB, "https://github.com/acme/rocket"),
    ("https://github.com/acme/rocket.git", GITHUB, "https://github.com/acme/rocket"),
    ("github.com/acme/rocket/pull/12", GITHUB, "https://github.com/acme/rocket/pull/12"),
    ("https://github.com/acme/rocket/pull/12/files?diff=split", GITHUB, "https://github.com/acme/rocket/pull/12"),
    ("https://github.com/acme/rocket/issues/7#issuecomment-1", GITHUB, "https://github.com/acme/rocket/issues/7"),
    ("https://github.com/acme/rocket/issues?q=is%3Aopen", GITHUB, "https://github.com/acme/rocket/issues?q=is%3Aopen"),
    ("https://github.com/acme/rocket/blob/Main/README.md#L3", GITHUB, "https://github.com/acme/rocket/blob/Main/README.md"),
    ("https://github.com/acme", GITHUB, "https://github.com/acme"),
    ("https://gist.github.com/Ada/0F0F", GITHUB, "https://gist.github.com/Ada/0F0F"),
    # Gmail: what identifies a message is in the fragment
    (f"https://mail.google.com/mail/u/0/#inbox/{THREAD}", GMAIL, MAIL),
    (f"https://mail.google.com/mail/u/0/#inbox/{THREAD}?compose=new", GMAIL, MAIL),
    (f"https://mail.google.com/mail/u/0/#label/Work/{THREAD}", GMAIL, MAIL),
    (f"https://mail.google.com/mail/u/0/#search/from%3Aada/{THREAD}", GMAIL, MAIL),
    (f"https://mail.google.com/mail/#all/{THREAD}", GMAIL, MAIL),
    (f"http://gmail.com/#inbox/{THREAD}", GMAIL, MAIL),
    (f"https://mail.google.com/mail/u/1/?tab=rm#inbox/{THREAD}", GMAIL, MAIL.replace("/u/0/", "/u/1/")),
    (f"https://mail.google.com/mail/u/0/?ui=2&view=btop&th={HEX}", GMAIL, f"https://mail.google.com/mail/u/0/#all/{HEX}"),
    ("https://mail.google.com/mail/u/0/#inbox/p2", GMAIL, "https://mail.google.com/mail/u/0/#inbox/p2"),
    ("https://mail.google.com/mail/u/0/#inbox", GMAIL, "https://mail.google.com/mail/u/0/#inbox"),
    ("https://mail.google.com/mail/u/0/#label/Work", GMAIL, "https://mail.google.com/mail/u/0/#label/Work"),
]  # fmt: skip


@pytest.mark.parametrize(("address", "type", "reference"), FORMS)
def test_every_way_to_write_an_address_has_one_form(address: str, type: AttachmentType, reference: str) -> None:
    found = read_reference(address)
    assert (found.type, found.url) == (type, reference)


@pytest.mark.parametrize("reference", sorted({reference for _, _, reference in FORMS}))
def test_the_one_form_stays_as_it_is(reference: str) -> None:
    assert read_reference(reference).url == reference


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("", "no name of a host"),
        ("   ", "no name of a host"),
        ("report", "no name of a host"),
        ("https://", "no name of a host"),
        ("https://exa mple.com", "spaces"),
        ("https://example.com/\x07", "unprintable"),
        ("https://exam!ple.com/", "no name of a host"),
        ("https://example.com:99999/", "no URL"),
        ("https://[::1/", "no URL"),
        ("ftp://example.com/a", "'ftp'"),
        ("javascript:alert(1)", "'javascript'"),
        ("file:///etc/passwd", "'file'"),
        ("mailto:ada@example.com", "'mailto'"),
        ("https://example.com/" + "a" * LONGEST, "more than"),
        ("https://example.com/" + "ß" * (LONGEST // 2), "more than"),
    ],
)
def test_what_is_no_web_address_is_refused_with_the_reason(address: str, reason: str) -> None:
    with pytest.raises(InvalidReferenceError, match=reason):
        read_reference(address)


def test_what_an_address_tells_is_kept() -> None:
    pull = read_reference("https://github.com/Acme/Rocket/pull/12/commits")
    assert pull.title == "acme/rocket#12"
    assert pull.metadata == {"owner": "acme", "repository": "rocket", "kind": "pull", "number": 12}
    assert read_reference(MAIL).metadata == {"message_id": THREAD}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("nothing here, not even e.g. this", []),
        ("see https://example.com/a.", ["https://example.com/a"]),
        ("(https://example.com/a)", ["https://example.com/a"]),
        ("https://en.example.org/wiki/Tea_(drink)!", ["https://en.example.org/wiki/Tea_(drink)"]),
        ("(see https://en.example.org/wiki/Tea_(drink))", ["https://en.example.org/wiki/Tea_(drink)"]),
        ("[the plan](https://example.com/a)", ["https://example.com/a"]),
        ("[https://example.com/a](https://example.com/a)", ["https://example.com/a"]),
        ('[plan](https://example.com/a "A title")', ["https://example.com/a"]),
        ("<https://example.com/a>", ["https://example.com/a"]),
        ("**https://example.com/a**", ["https://example.com/a"]),
        ("`https://example.com/a`", ["https://example.com/a"]),
        ("'https://example.com/a', “https://example.com/b”", ["https://example.com/a", "https://example.com/b"]),
        ("look at www.example.com/a, please", ["https://www.example.com/a"]),
        ("https://example.com/a\nhttps://example.com/b", ["https://example.com/a", "https://example.com/b"]),
        ("https://example.com/a?utm_source=x and https://EXAMPLE.com/a/", ["https://example.com/a"]),
        ("https:// is no address, nor is http://?", []),
        ("a@www.example.com.", ["https://www.example.com"]),
    ],
)
def test_addresses_are_found_in_prose_and_markdown(text: str, found: list[str]) -> None:
    assert [reference.url for reference in find_references(text)] == found


def test_a_number_that_no_pull_request_has_is_a_part_of_the_address_like_any_other() -> None:
    digits = "9" * 100
    found = read_reference(f"https://github.com/Acme/rocket/pull/{digits}")
    assert (found.url, found.metadata) == (
        f"https://github.com/acme/rocket/pull/{digits}",
        {"owner": "acme", "repository": "rocket"},
    )
    assert find_references(f"https://github.com/a/b/pull/{'9' * 5_000} https://example.com") == [
        read_reference("https://example.com")
    ]


def test_several_texts_are_read_in_order_and_none_is_skipped() -> None:
    found = find_references("https://b.example", None, "https://a.example and https://b.example/")
    assert [reference.url for reference in found] == ["https://b.example", "https://a.example"]


def test_a_text_full_of_addresses_gives_a_bounded_number() -> None:
    assert len(find_references(" ".join(f"https://example.com/{n}" for n in range(500)))) == 50


@given(st.text(alphabet=st.sampled_from("https://wx.example#?&=%2f@:[]()!_ \tgithubmail"), max_size=60))
def test_no_text_breaks_it_and_every_form_is_stable(text: str) -> None:
    for reference in find_references(text, f"https://{text}"):
        assert read_reference(reference.url) == reference
