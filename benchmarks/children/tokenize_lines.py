"""Sentences as the inputs of a text encoder, one .npz each: tokenize_lines.py TOKENIZER-FOLDER LINES.txt FOLDER."""

import sys
from pathlib import Path

import numpy as np
from transformers import AutoTokenizer

MOST_TOKENS = 64

tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
folder = Path(sys.argv[3])
folder.mkdir(parents=True, exist_ok=True)
for index, line in enumerate(Path(sys.argv[2]).read_text(encoding="utf-8").splitlines()):
    found = tokenizer(line, truncation=True, max_length=MOST_TOKENS, return_tensors="np")
    np.savez(folder / f"{index:04d}.npz", **{name: np.asarray(values, np.int64) for name, values in found.items()})
