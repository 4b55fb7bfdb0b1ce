"""Other names for the inputs, outputs and dynamic dimensions of a model."""

from __future__ import annotations

import difflib
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from bundler.model.errors import UsageError
from bundler.model.signature import Signature, ValueType

NAME_PATTERN: Final = r"^[A-Za-z_][A-Za-z0-9_]{0,63}$"
"""New names: identifiers in all languages of bundles."""
_RESERVED: Final = "__proto__"
"""A key of this name in a JavaScript object is not an input, but its prototype."""
_GENERATED: Final = re.compile(r"unk__[0-9]+")
"""Names that tf2onnx gives to dimensions without one."""
_COMPUTED: Final = re.compile(r"[-+*/ ()]")
"""In names of dimensions: formulas of others (`2*n`)."""


def check_names(signature: Signature, names: Mapping[str, str]) -> None:
    """Raise `UsageError` for the name of nothing that the model has, and for a new name that two would have."""
    if _RESERVED in names.values():
        raise UsageError(f"rename: no input or output can have the name {_RESERVED!r}", hint="choose another name")
    ports = tuple(dict.fromkeys(port.name for port in (*signature.inputs, *signature.outputs)))
    symbols = tuple(dict.fromkeys(_symbols(signature)))
    known = (*ports, *symbols)
    for old in names:
        if old not in known:
            close = difflib.get_close_matches(old, known, 1)
            raise UsageError(
                f"rename: the model has no input, output or dynamic dimension {old!r}",
                details=(f"it has: {', '.join(map(repr, known))}",),
                hint=f"did you mean {close[0]!r}?" if close else "`bundler inspect MODEL` shows all of them",
            )
    for what, found in (("inputs or outputs", ports), ("dimensions", symbols)):
        twice = [name for name, count in Counter(names.get(name, name) for name in found).items() if count > 1]
        if twice:
            both = [repr(name) for name in found if names.get(name, name) == twice[0]]
            raise UsageError(
                f"rename: two {what} would have the name {twice[0]!r}: {' and '.join(both)}",
                hint="give each of them a unique name",
            )


def propose_names(signature: Signature) -> dict[str, str]:
    """Identifiers, by the old name, for names that are not, and for dimensions of inputs that a converter named."""
    ports = [port.name for port in (*signature.inputs, *signature.outputs)]
    symbols = [name for name in signature.symbols if not _COMPUTED.search(name)]
    ugly = [name for name in dict.fromkeys(ports) if not re.match(NAME_PATTERN, name)]
    vague = [name for name in dict.fromkeys(symbols) if not re.match(NAME_PATTERN, name) or _GENERATED.fullmatch(name)]
    taken = {*ports, *_symbols(signature)} - {*ugly, *vague}
    proposed: dict[str, str] = {}
    for name in dict.fromkeys((*ugly, *vague)):
        wanted = "size" if _GENERATED.fullmatch(name) else _to_identifier(name)
        numbered = itertools.chain((wanted,), (f"{wanted[:60]}_{number}" for number in itertools.count(1)))
        proposed[name] = next(text for text in numbered if text not in taken)
        taken.add(proposed[name])
    return proposed


def _to_identifier(name: str) -> str:
    """The last part of a path, with underscores (`save_infer_model/scale_0.tmp_1` becomes `scale_0_tmp_1`), without
    TensorFlow's number of an output (`input:0`).
    """
    text = re.sub(r"[^A-Za-z0-9_]+", "_", re.split(r"[/:]", re.sub(r":[0-9]+$", "", name))[-1]).strip("_")[:60]
    return text if text and not text[0].isdigit() else f"value_{text}".rstrip("_")


def _symbols(signature: Signature) -> Iterator[str]:
    for port in (*signature.inputs, *signature.outputs):
        yield from _symbols_of(port.type)


def _symbols_of(kind: ValueType) -> Iterator[str]:
    yield from (size for size in kind.shape or () if isinstance(size, str))
    if kind.element is not None:
        yield from _symbols_of(kind.element)
