"""Texts: tokenized one at a time by the model's own tokenizer."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from tokenizers import Encoding, Tokenizer  # type: ignore[import-not-found,unused-ignore]

from bundler.model.digests import digest_file
from bundler.model.errors import UsageError
from bundler.model.preprocessing import TextDeclaration, TextRecord, read_declaration
from bundler.model.signature import Signature
from bundler.onnxkit.elements import element_named
from bundler.onnxkit.value_files import Value
from bundler.stages.prepare_data.dataset import DataSet, Samples, UnreadableError, Wanted
from bundler.stages.prepare_data.folders import find_files
from bundler.stages.prepare_data.resolving import make_constants, named_port
from bundler.stages.prepare_data.spec import Options
from bundler.stages.prepare_data.text_declaration import resolve_text
from bundler.stages.prepare_data.text_lines import decode_line, iterate_lines
from bundler.support.text import visible


def open_texts(
    root: Path, tokenizer: Path, signature: Signature, options: Options, bounds: Mapping[str, int]
) -> DataSet:
    """The texts in the files of a folder and below. `bounds` are the vocabulary sizes of the model, by input. Raises
    `UsageError`.
    """
    declaration = read_declaration(options.preprocessing)
    if not isinstance(declaration, TextDeclaration):
        raise TypeError("the declaration is not for text")
    tool = _open_tokenizer(tokenizer)
    record = resolve_text(declaration, signature, tool, digest_file(tokenizer))
    _prepare(tool, record)
    found = find_files(root, "text")
    maker = _Maker(tool, record, signature, bounds.get(record.ids))

    def take(wanted: Wanted) -> Samples:
        position = -1
        for path, name in zip(found.paths, found.names, strict=True):
            key = declaration.json_key if path.suffix.lower() == ".jsonl" else None
            for number, line in iterate_lines(path, name):
                position += 1
                if wanted(position):
                    yield f"{name}:{number}", lambda line=line, key=key: maker.make(line, key)  # type: ignore[misc]

    total = sum(1 for path, name in zip(found.paths, found.names, strict=True) for _ in iterate_lines(path, name))
    return DataSet(total=total, take=take, record=record, notes=found.notes)


class _Maker:
    """Converts a line to a sample."""

    def __init__(self, tool: Tokenizer, record: TextRecord, signature: Signature, bound: int | None) -> None:
        self._tool, self._bound = tool, bound
        named = ((record.ids, "ids"), (record.attention_mask, "attention_mask"), (record.type_ids, "type_ids"))
        ports = [(named_port(signature, name, what), what) for name, what in named if name is not None]
        self._inputs = [
            (port.name, what, element_named(port.type.element_type or "int64").dtype, len(port.type.shape or (1, 1)))
            for port, what in ports
        ]
        self._constants = make_constants(record.constants, signature)

    def make(self, line: bytes, key: str | None) -> Mapping[str, Value]:
        """The inputs of one text. Raises `UnreadableError`."""
        encoding = self._tool.encode(decode_line(line, key=key))
        greatest = max(encoding.ids, default=-1)
        if greatest < 0:
            raise UnreadableError("the tokenizer returns no token for it")
        if self._bound is not None and greatest >= self._bound:
            raise UnreadableError(
                f"it has the token {greatest}, and the model has {self._bound} tokens: is it the model's tokenizer?"
            )
        made = {name: _array(encoding, what, dtype, rank) for name, what, dtype, rank in self._inputs}
        return {**made, **self._constants}


def _array(encoding: Encoding, what: str, dtype: np.dtype, rank: int) -> np.ndarray:
    values = np.array(getattr(encoding, what), dtype)
    return values.reshape((1,) * (rank - 1) + (len(values),))


def _open_tokenizer(path: Path) -> Tokenizer:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    try:
        return Tokenizer.from_str(path.read_text(encoding="utf-8"))
    except Exception as error:  # the binding raises plain `Exception`
        hint = "give the file tokenizer.json of a Hugging Face tokenizer"
        details = (str(error).partition("\n")[0][:300],)
        raise UsageError(f"the tokenizer {visible(path.name)} cannot be read", details=details, hint=hint) from error


def _prepare(tool: Tokenizer, record: TextRecord) -> None:
    """Truncate and pad as the record specifies; only the side of the padding comes from the tokenizer's own file."""
    side = (tool.padding or {}).get("direction", "right")
    tool.no_padding()
    tool.enable_truncation(record.max_length)
    if record.padding == "max_length" and record.pad_id is not None:
        token = tool.id_to_token(record.pad_id) or "[PAD]"
        tool.enable_padding(direction=side, pad_id=record.pad_id, pad_token=token, length=record.max_length)
