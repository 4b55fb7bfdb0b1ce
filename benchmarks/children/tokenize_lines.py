"""Sentences as the inputs of a text encoder, one .npz each: tokenize_lines.py TOKENIZER-FOLDER LINES.txt FOLDER."""

import sys
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

MOST_TOKENS = 64

tokenizer = Tokenizer.from_file(str(Path(sys.argv[1]) / "tokenizer.json"))
tokenizer.no_padding()
tokenizer.enable_truncation(MOST_TOKENS)
folder = Path(sys.argv[3])
folder.mkdir(parents=True, exist_ok=True)
for index, line in enumerate(Path(sys.argv[2]).read_text(encoding="utf-8").splitlines()):
    found = tokenizer.encode(line)
    rows = {"input_ids": found.ids, "attention_mask": found.attention_mask, "token_type_ids": found.type_ids}
    np.savez(folder / f"{index:04d}.npz", **{name: np.array([row], np.int64) for name, row in rows.items()})
