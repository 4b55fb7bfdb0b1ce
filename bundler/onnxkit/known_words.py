"""Find the words that a model of texts knows: those that its tables of categories and terms list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
from onnx import ModelProto, NodeProto

from bundler.onnxkit.tree_thresholds import spread
from bundler.onnxkit.value_flow import ValueFlow, read_flow

Words = Mapping[int | None, tuple[str, ...]]
"""The words of each column of an input; None has those of the columns that are not told apart."""

_TABLES: Final = {
    "OneHotEncoder": "cats_strings",
    "LabelEncoder": "keys_strings",
    "CategoryMapper": "cats_strings",
    "TfIdfVectorizer": "pool_strings",
}
"""The attributes that list words, by operator."""
_KEEPING: Final = frozenset({"Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Concat", "Slice", "Split"})
_PICKING: Final = frozenset({"Gather", "ArrayFeatureExtractor"})
"""Operators that give the column that their second input names."""
_MAX_WORDS: Final = 64
"""Words of a column that are kept, evenly spread."""
_MAX_LETTERS: Final = 60


def known_words(model: ModelProto, names: tuple[str, ...]) -> dict[str, Words]:
    """For each input of texts that reaches a table: its words."""
    if not any(node.op_type in _TABLES for node in model.graph.node):
        return {}
    flow = read_flow(model)
    found = {name: _by_column(name, flow) for name in names}
    return {name: words for name, words in found.items() if words}


def draw_words(values: np.ndarray, words: Words, generator: np.random.Generator) -> np.ndarray:
    """`values` with words of the model in them."""
    drawn = np.array(values, dtype=object)
    if None in words:
        drawn[...] = generator.choice(np.array(words[None], dtype=object), size=drawn.shape)
    for column in sorted(column for column in words if column is not None):
        if drawn.ndim and -drawn.shape[-1] <= column < drawn.shape[-1]:
            drawn[..., column] = generator.choice(np.array(words[column], dtype=object), size=drawn.shape[:-1])
    return drawn


def _by_column(start: str, flow: ValueFlow) -> Words:
    columns: dict[int | None, dict[str, None]] = {}
    for node, column in _tables(start, flow):
        columns.setdefault(column, {}).update(dict.fromkeys(_read_words(node)))
    return {column: tuple(spread(list(words), _MAX_WORDS)) for column, words in columns.items() if words}


def _tables(start: str, flow: ValueFlow) -> Iterator[tuple[NodeProto, int | None]]:
    pending: list[tuple[str, int | None]] = [(start, None)]
    seen = set(pending)
    while pending:
        name, column = pending.pop()
        for node, position in flow.readers.get(name, ()):
            if node.op_type in _TABLES:
                yield node, column
                continue
            picked = node.op_type in _PICKING and position == 0 and len(node.input) > 1
            number = flow.number(node.input[1]) if picked and column is None else None
            if picked or node.op_type in _KEEPING:
                after = column if number is None else int(number)
                fresh = [(output, after) for output in node.output if (output, after) not in seen]
                seen.update(fresh)
                pending.extend(fresh)


def _read_words(node: NodeProto) -> Iterator[str]:
    for item in node.attribute:
        if item.name == _TABLES[node.op_type]:
            for text in item.strings:
                word = text.decode("utf-8", "replace")
                if word.isprintable() and len(word) <= _MAX_LETTERS:
                    yield word
