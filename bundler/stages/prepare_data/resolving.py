"""Complete a declaration from the model's signature. What cannot be decided is an error, never guessed."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np

from bundler.model.errors import UsageError
from bundler.model.signature import Port, Signature, describe_type
from bundler.onnxkit.elements import element_named
from bundler.onnxkit.value_files import Value

HINT = "docs/preprocessing.md lists every key; `bundler inspect MODEL` shows the model's inputs"


def refuse(message: str, *details: str, hint: str = HINT) -> UsageError:
    """The error of a declaration that does not fit this model."""
    return UsageError(f"the preprocessing does not fit the model: {message}", details=details, hint=hint)


def named_port(signature: Signature, name: str, key: str) -> Port:
    """The tensor input that a key names. Raises `UsageError`, with a similar name if there is one."""
    ports = {port.name: port for port in signature.inputs}
    if name not in ports:
        folded = {known.lower(): known for known in ports}
        near = difflib.get_close_matches(name.lower(), list(folded), n=1, cutoff=0.5)
        meant = f" (did you mean {folded[near[0]]!r}?)" if near else ""
        raise refuse(f"{key} names the input {name!r}, which does not exist{meant}", list_inputs(signature.inputs))
    if ports[name].type.kind != "tensor":
        raise refuse(f"{key} names {name!r}, which is {describe_type(ports[name].type)} and not a tensor")
    return ports[name]


def only_port(ports: Iterable[Port], signature: Signature, key: str, what: str) -> Port:
    """The only input that fits when `key` is left out. Raises `UsageError`."""
    found = list(ports)
    if len(found) != 1:
        count = "no input" if not found else f"{len(found)} inputs"
        raise refuse(f"it has {count} that can be {what}; name one with {key}", list_inputs(signature.inputs))
    return found[0]


def given_ports(signature: Signature, constants: Collection[str]) -> list[Port]:
    """The tensor inputs that a caller must give and that are not declared constant."""
    return [
        port
        for port in signature.inputs
        if not port.optional and port.type.kind == "tensor" and port.name not in constants
    ]


def list_inputs(ports: Iterable[Port]) -> str:
    """All inputs in one line."""
    return "inputs: " + (", ".join(f"{port.name!r} {describe_type(port.type)}" for port in ports) or "none")


def is_float_port(port: Port) -> bool:
    """Whether it takes floating-point numbers."""
    return "float" in (port.type.element_type or "")


def is_integer_port(port: Port) -> bool:
    """Whether it takes integers."""
    return "int" in (port.type.element_type or "")


def check_filled(signature: Signature, filled: Collection[str]) -> None:
    """Raise `UsageError` when an input that must be given is neither `filled` nor declared constant."""
    missing = [
        port
        for port in signature.inputs
        if not port.optional and port.type.kind != "optional" and port.name not in filled
    ]
    if missing:
        raise refuse(
            f"no value is declared for {', '.join(repr(port.name) for port in missing)}",
            *(f"{port.name!r}: {describe_type(port.type)}" for port in missing),
            hint="give each a value under [constants], or give all inputs by a Python function or .npz files",
        )


def make_constants(constants: Mapping[str, Any], signature: Signature) -> dict[str, Value]:
    """The declared constants as model inputs; one number fills the whole input where its sizes are fixed."""
    return {name: _constant(value, named_port(signature, name, "constants")) for name, value in constants.items()}


def _constant(value: Any, port: Port) -> np.ndarray:
    dtype = element_named(port.type.element_type or "float32").dtype
    try:
        array = np.array(value, dtype=np.object_ if dtype == np.object_ else None)
        if array.dtype == np.object_ and dtype != np.object_:
            raise ValueError("its rows do not have the same length")  # noqa: TRY301 - reported as those below
        made = array.astype(dtype)
    except (ValueError, TypeError, OverflowError) as error:
        reason = str(error).partition("\n")[0]
        raise refuse(f"constants.{port.name!r} is not {describe_type(port.type)}", reason) from error
    if dtype.kind in "iu" and not (made.astype(np.float64) == np.asarray(array, np.float64)).all():
        raise refuse(f"constants.{port.name!r} cannot be represented as {port.type.element_type}")
    shape = port.type.shape
    if made.ndim == 0 and shape:
        sizes = [size if isinstance(size, int) else 1 for size in shape]
        made = np.full(sizes, made, dtype)
    return made
