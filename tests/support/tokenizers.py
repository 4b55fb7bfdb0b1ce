"""A WordPiece tokenizer as Hugging Face writes them, made from a list of words."""

from __future__ import annotations

import json
import string
from collections.abc import Iterable
from pathlib import Path
from typing import Any

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
LETTERS = (*string.ascii_lowercase, *string.digits, *".-:")


def write_tokenizer(folder: Path, words: Iterable[str]) -> int:
    """Write `tokenizer.json`, which knows the words and spells others; returns how many tokens there are."""
    known = sorted({word.lower() for word in words})
    tokens = list(dict.fromkeys((*SPECIAL, *known, *LETTERS, *(f"##{letter}" for letter in LETTERS))))
    (folder / "tokenizer.json").write_text(json.dumps(_describe(tokens)), encoding="utf-8")
    return len(tokens)


def _describe(tokens: list[str]) -> dict[str, Any]:
    ends = {name: {"id": name, "ids": [tokens.index(name)], "tokens": [name]} for name in ("[CLS]", "[SEP]")}
    first, text, last = (
        {"SpecialToken": {"id": "[CLS]", "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}},
        {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
    )
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [first, text, last],
            "pair": [text, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": ends,
        },
        "decoder": None,
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {token: index for index, token in enumerate(tokens)},
        },
    }
