"""Complete the declaration of texts from the model's signature and the tokenizer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from bundler.model.preprocessing import TextDeclaration, TextRecord
from bundler.model.signature import Port, Signature, describe_type
from bundler.stages.prepare_data.resolving import check_filled, given_ports, named_port, only_port, refuse

_DEFAULT_LENGTH: Final = 512
_PAD_TOKENS: Final = ("[PAD]", "<pad>", "<|endoftext|>", "</s>")
_MAX_AXES: Final = 2


def resolve_text(declaration: TextDeclaration, signature: Signature, tool: Any, digest: str) -> TextRecord:
    """The complete record; `tool` is the loaded tokenizer. Raises `UsageError` if undecidable or unsupported."""
    ids, mask, types = _find_ports(declaration, signature)
    last = (ids.type.shape or (None,))[-1]
    fixed = last if isinstance(last, int) else None
    length = declaration.max_length or fixed or (tool.truncation or {}).get("max_length") or _DEFAULT_LENGTH
    padding = declaration.padding or ("max_length" if fixed else "none")
    if fixed is not None and (length != fixed or padding != "max_length"):
        raise refuse(
            f"max_length is {length} and padding {padding}, and {ids.name!r} is {describe_type(ids.type)}",
            hint=f'remove both, or set max_length = {fixed} and padding = "max_length"',
        )
    names = [None if port is None else port.name for port in (mask, types)]
    check_filled(signature, {ids.name, *declaration.constants, *(name for name in names if name is not None)})
    return TextRecord(
        tokenizer=declaration.tokenizer,
        tokenizer_sha256=digest,
        ids=ids.name,
        attention_mask=names[0],
        type_ids=names[1],
        max_length=int(length),
        padding=padding,
        pad_id=None if padding == "none" else _pad_id(declaration, tool),
        constants=declaration.constants,
    )


def _find_ports(declaration: TextDeclaration, signature: Signature) -> tuple[Port, Port | None, Port | None]:
    ports = given_ports(signature, declaration.constants)
    mask = _named_or_like(declaration.attention_mask, "attention_mask", r"mask", ports, signature)
    types = _named_or_like(declaration.type_ids, "type_ids", r"type|segment", ports, signature)
    if declaration.ids is not None:
        ids = named_port(signature, declaration.ids, "ids")
    else:
        rest = [port for port in ports if port not in (mask, types) and "int" in (port.type.element_type or "")]
        like = [port for port in rest if re.search(r"input_?ids|token|^ids$", port.name, re.IGNORECASE)]
        ids = only_port(like if len(rest) > 1 else rest, signature, "ids", "token ids")
    for port in (port for port in (ids, mask, types) if port is not None and port.type.shape is not None):
        shape = port.type.shape or ()
        if not 1 <= len(shape) <= _MAX_AXES or any(isinstance(size, int) and size != 1 for size in shape[:-1]):
            raise refuse(f"{port.name!r} is {describe_type(port.type)}, and a text is one row of tokens")
    return ids, mask, types


def _named_or_like(
    name: str | None, key: str, pattern: str, ports: Sequence[Port], signature: Signature
) -> Port | None:
    if name is not None:
        return named_port(signature, name, key)
    found = [port for port in ports if re.search(pattern, port.name, re.IGNORECASE)]
    return only_port(found, signature, key, key.replace("_", " ")) if found else None


def _pad_id(declaration: TextDeclaration, tool: Any) -> int:
    if declaration.pad_token is not None:
        found = tool.token_to_id(declaration.pad_token)
        if found is None:
            raise refuse(f"the tokenizer has no token {declaration.pad_token!r} (pad_token)")
        return int(found)
    if tool.padding:
        return int(tool.padding["pad_id"])
    known = (tool.token_to_id(token) for token in _PAD_TOKENS)
    first = next((found for found in known if found is not None), None)
    if first is None:
        raise refuse("the tokenizer does not name its padding token", hint='name it, as in pad_token = "<pad>"')
    return int(first)
