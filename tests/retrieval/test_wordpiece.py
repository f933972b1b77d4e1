"""Our tokens against those of the library the model was trained with, on the same list of words."""

from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import BertProcessing

from journeyman.retrieval.embedders import minilm
from journeyman.retrieval.embedders.minilm import token_ids

VOCABULARY = Path(minilm.__file__).with_name("wordpiece.txt")
TEXTS = [
    "Find the area of a triangle with a base of 10 units and height of 5 units.",
    "don't re-do snake_case, a.b.c or (brackets) [too] {really}~`@#$%^&*",
    "Ærøskøbing, naïve café: €50 – “quoted” … ¿qué?",
    "ÀÉÎ İstanbul ﬁnancial Straße ΑΒΓ Привет мир",
    "你好世界 hello 한국어 ไทย 😀👍🏽",
    "tab\tnew\nline\r\x00zero\u200bwidth\u00a0space\ufffd\ue000private",
    "antidisestablishmentarianism pneumonoultramicroscopic",
    "x" * 101,
    "",
    "   ",
]


@pytest.fixture(scope="module")
def reference() -> Tokenizer:
    vocabulary = {piece: number for number, piece in enumerate(VOCABULARY.read_text(encoding="utf-8").splitlines())}
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.post_processor = BertProcessing(("[SEP]", vocabulary["[SEP]"]), ("[CLS]", vocabulary["[CLS]"]))
    return tokenizer


@pytest.mark.parametrize("text", TEXTS)
def test_the_tokens_are_those_of_the_reference(reference: Tokenizer, text: str) -> None:
    assert token_ids(text, limit=256) == reference.encode(text).ids


def test_a_long_text_is_cut_and_still_closed(reference: Tokenizer) -> None:
    reference.enable_truncation(16)
    text = "internationalisation " * 50
    assert token_ids(text, limit=16) == reference.encode(text).ids
    assert len(token_ids(text, limit=16)) == 16
