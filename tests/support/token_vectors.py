"""Texts with what the stage that prepares data makes of them; run in the environment that has the tokenizers' library.

`python -m tests.support.token_vectors FOLDER` writes `tokenizers.json` there, and each tokenizer's own file.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

from tokenizers import (  # type: ignore[import-not-found,unused-ignore]
    AddedToken,
    Tokenizer,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from bundler.model.codec import encode
from bundler.model.digests import digest_file
from bundler.model.preprocessing import TextRecord
from bundler.stages.prepare_data.texts import _open_tokenizer, _prepare

CORPUS = (
    "The quick brown fox jumps over the lazy dog, and doesn't look back. It's 1,234.56 euros (or 99%)! ",
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. Ça va? Où est l'élève? ",
    "日本語のテキストと中文字符 and русский текст, ελληνικά, עברית, العربية. ",
    "def run(x): return x  # code\n\tindented\r\n    more   spaces ",
)
TEXTS = (
    *CORPUS,
    "a",
    " ",
    "  two  spaces  ",
    "\t\n\r\x0b\x0c\x85\u00a0\u2003\u3000x",
    "[MASK] is [mask] and [CLS][SEP]",
    "before <mask> after<mask>x <mask>   y <s></s>",
    "we'll they've I'm you'd 'S 's",
    "İstanbul ǅ ß ﬁ Ⅷ ①②③ ½",
    "e\u0301 o\u0308 \u1e9b\u0323 \uac00\u1100\u1161",
    "emoji 😀👩‍👩‍👧 🇩🇪 and \U0001f9ff",
    "\u00ad\u200b\u200d\ufeff\ufffd\ue000 zero\u0000width\u0007",
    "$+<=>^`|~ -- … “quoted” «a» ¿que? ·",
    "x" * 300,
    "word " * 100,
    "unaffable embeddings hello12world 3.14",
)
MASK, UNKNOWN, PADDING = "<mask>", "[UNK]", "<pad>"
RANGES = ((32, 126), (160, 0x24F), (0x300, 0x52F), (0x600, 0x6FF), (0x1E00, 0x206F), (0x3000, 0x30FF), (0x4E00, 0x4E80))


def make_tokenizers() -> dict[str, Any]:
    """By name, as Hugging Face has them for BERT, GPT-2, RoBERTa and their like."""
    return {
        "bert": make_bert(lowercase=True),
        "bert-cased": make_bert(lowercase=False, strip_accents=False, handle_chinese_chars=False),
        "bert-accents": make_bert(lowercase=True, strip_accents=False, clean_text=False),
        "gpt": make_gpt(),
        "roberta": make_roberta(),
        "template": make_template(),
    }


def make_bert(**options: bool) -> Any:
    tool = Tokenizer(models.WordPiece(unk_token=UNKNOWN))
    tool.normalizer = normalizers.BertNormalizer(**options)
    tool.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tool.train_from_iterator(CORPUS, trainers.WordPieceTrainer(vocab_size=300, special_tokens=special))
    known = tool.get_vocab()
    letters = [chr(code) for first, last in RANGES for code in range(first, last + 1)]
    for token in (*letters, *(f"##{letter}" for letter in letters)):
        known.setdefault(token, len(known))
    tool.model = models.WordPiece(vocab=known, unk_token=UNKNOWN)
    tool.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return tool


def train_bytes(*, prefix: bool, special: list[Any]) -> Any:
    tool = Tokenizer(models.BPE())
    tool.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=600, special_tokens=special, initial_alphabet=alphabet)
    tool.train_from_iterator(CORPUS, trainer)
    return tool


def make_gpt() -> Any:
    tool = train_bytes(prefix=False, special=["<|endoftext|>"])
    tool.post_processor = processors.ByteLevel(trim_offsets=False)
    return tool


def make_roberta() -> Any:
    special = ["<s>", "<pad>", "</s>", "<unk>", AddedToken(MASK, lstrip=True, special=True)]
    tool = train_bytes(prefix=True, special=special)
    tool.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    tool.enable_padding(direction="left", pad_id=1, pad_token=PADDING)
    return tool


def make_template() -> Any:
    tool = train_bytes(prefix=False, special=["<s>"])
    tool.add_tokens([AddedToken("fox", single_word=True, normalized=True), AddedToken("lazy dog", rstrip=True)])
    template = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    tool.post_processor = processors.Sequence([processors.ByteLevel(), template])
    return tool


def write_texts(folder: Path) -> None:
    chance = random.Random(5)  # noqa: S311 (samples, not secrets)
    made = [_write_tokenizer(folder, name, tool, chance) for name, tool in make_tokenizers().items()]
    (folder / "tokenizers.json").write_text(json.dumps(made), "utf-8")


def _write_tokenizer(folder: Path, name: str, tool: Any, chance: random.Random) -> dict[str, Any]:
    path = folder / f"{name}.tokenizer.json"
    tool.save(str(path), pretty=False)
    texts = [*TEXTS, *(_invent(chance) for _ in range(150))]
    return {"name": name, "cases": [case for text in texts if (case := _answer(path, text, chance)) is not None]}


def _invent(chance: random.Random) -> str:
    return "".join(chr(chance.randint(*chance.choice((RANGES[0], *RANGES)))) for _ in range(chance.randint(1, 60)))


def _answer(path: Path, text: str, chance: random.Random) -> dict[str, Any] | None:
    """None for a text without tokens: it is no sample."""
    record = TextRecord(
        tokenizer=path.name,
        tokenizer_sha256=digest_file(path),
        ids="ids",
        attention_mask="mask",
        type_ids="types",
        max_length=chance.choice((5, 16, 512)),
        padding=chance.choice(("max_length", "longest", "none")),
        pad_id=1,
        constants={},
    )
    tool = _open_tokenizer(path)
    _prepare(tool, record)
    found = tool.encode(text)
    if not found.ids:
        return None
    answer = {"ids": found.ids, "mask": found.attention_mask, "types": found.type_ids}
    return {"text": text, "record": encode(record), **answer}


if __name__ == "__main__":
    write_texts(Path(sys.argv[1]))
