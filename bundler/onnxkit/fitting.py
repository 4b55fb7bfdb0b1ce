"""Check that a user's samples fit the model. All problems are reported at once, as expected against got."""

from __future__ import annotations

import difflib
import keyword
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bundler.model.errors import ModelError, UsageError
from bundler.model.fixing import Fixing, fix_inputs
from bundler.model.free_dimensions import Key, dimension_key
from bundler.model.shapes import FixedShape, SizeRange, write_shape
from bundler.model.signature import Port, Signature, ValueType, describe_type
from bundler.onnxkit.elements import element_named, element_of_array, to_wide
from bundler.onnxkit.equality import numbers
from bundler.onnxkit.placement_facts import limit_lines
from bundler.onnxkit.value_files import Value

_MAX_SHOWN = 20
_MAX_HINTED = 3
_WRONG_NAME, _MISSING = "the model has no input ", " is missing ("
_SAVEZ_OWN = frozenset({"file", "allow_pickle"})
"""Names that `numpy.savez` itself takes."""

_NUMPY_TYPES = frozenset(
    {"float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"}
)


class Fitting:
    """Collects problems, to report all at once. NaN can be used for comparison, but not for calibration."""

    def __init__(
        self,
        signature: Signature,
        hint: str | None = None,
        *,
        allow_nan: bool = False,
        ranges: Mapping[Key, SizeRange] | None = None,
    ) -> None:
        self._signature = signature
        self._ranges = ranges or {}
        self._allow_nan = allow_nan
        self._hint = hint or _HINT
        self._problems: list[str] = []
        self._casts: dict[str, str] = {}
        self._misshapen: dict[str, str] = {}
        self._has_nan = False
        self._count = 0
        self._unreadable = False

    @property
    def full(self) -> bool:
        """Whether there are more problems than are listed."""
        return len(self._problems) > _MAX_SHOWN

    @property
    def fine(self) -> bool:
        """Whether there is no problem so far."""
        return not self._problems

    def reject(self, name: str, problem: str) -> None:
        """Add a sample that cannot be read."""
        self._count += 1
        self._unreadable = True
        self._problems.append(f"{name}: {problem}")

    def check(self, name: str, values: Mapping[str, Value]) -> bool:
        """Whether this sample fits the model's inputs."""
        found = list(sample_problems(values, self._signature)) or list(self._find_outside(values))
        if not found and not self._allow_nan:
            found = list(describe_non_finite(values, infinite=False))
            self._has_nan = self._has_nan or bool(found)
        self._problems += [f"{name}: {text}" for text in found]
        self._casts |= find_casts(values, self._signature) if found else {}
        self._misshapen |= find_misshapen(values, self._signature) if found else {}
        self._count += 1
        return not found

    def _find_outside(self, values: Mapping[str, Value]) -> Iterator[str]:
        """Sizes outside the ranges that the bundle is built for."""
        for port in self._signature.inputs:
            array = values.get(port.name)
            sizes = array.shape if isinstance(array, np.ndarray) else ()
            for axis, (declared, size) in enumerate(zip(port.type.shape or (), sizes, strict=False)):
                if isinstance(declared, int):
                    continue
                bounds = self._ranges.get(dimension_key(port.name, axis, declared))
                if bounds is not None and not bounds.least <= size <= bounds.most:
                    found = f"{size}, outside the given range {bounds.least} to {bounds.most}"
                    yield f"{port.name!r}: axis {axis} is {found}"

    def finish(self) -> None:
        """Raise `UsageError` with all problems, or when there was no sample at all."""
        if not self._count:
            raise UsageError("there are no samples", hint=self._hint)
        if self._problems:
            details = limit_lines(self._problems, _MAX_SHOWN)
            what = "samples cannot be read" if self._unreadable else "the samples do not fit the model"
            hint = self._describe_casts() or self._describe_names() or self._describe_shapes() or self._hint
            raise UsageError(what, details=details, hint=hint)

    def _describe_casts(self) -> str:
        """How to convert arrays where their types alone are wrong; empty for other problems."""
        if not self._casts or any(", got " not in problem for problem in self._problems):
            return ""
        casts = {name: f"{{}}.astype({wanted!r})" for name, wanted in self._casts.items()}
        return f"convert the arrays before they are saved: {_write_savez(casts)}"

    def _describe_names(self) -> str:
        """How to name arrays where their names alone are wrong; empty for other problems, or where a hint was given."""
        if self._hint is not _HINT or any(not _names_differ(problem) for problem in self._problems):
            return ""
        required = [port.name for port in self._signature.inputs if not port.optional and port.type.kind == "tensor"]
        call = _write_savez(dict.fromkeys(required, "{}"))
        return f"give one array for each input, by its name: {call}; `bundler inspect MODEL` shows the model's inputs"

    def _describe_shapes(self) -> str:
        """The shapes to give, or the NaN to remove, where these alone are wrong; as `_describe_names`."""
        if self._hint is not _HINT or any(_names_differ(problem) for problem in self._problems):
            return ""
        if self._misshapen:
            return "; ".join([*self._misshapen.values()][:_MAX_HINTED])
        return "remove the samples that hold NaN, or replace these values" if self._has_nan else ""


def _names_differ(problem: str) -> bool:
    return _WRONG_NAME in problem or _MISSING in problem


def _write_savez(values: Mapping[str, str]) -> str:
    """A call of `numpy.savez` as Python takes it: `{}` in a value stands for the array; not every name is a keyword."""
    if all(name.isidentifier() and not keyword.iskeyword(name) and name not in _SAVEZ_OWN for name in values):
        pairs = ", ".join(f"{name}={value.format(name)}" for name, value in values.items())
        return f"numpy.savez(file, {pairs})"
    pairs = ", ".join(f"{name!r}: " + value.format(f"arrays[{name!r}]") for name, value in values.items())
    return f"numpy.savez(file, **{{{pairs}}})"


def check_samples(
    samples: Sequence[tuple[str, Mapping[str, Value]]],
    signature: Signature,
    ranges: Mapping[Key, SizeRange] | None = None,
) -> None:
    """Check every sample against the model's inputs. Raises `UsageError` with all problems."""
    fitting = Fitting(signature, allow_nan=True, ranges=ranges)
    for name, values in samples:
        fitting.check(name, values)
    fitting.finish()


_HINT = (
    "give a folder of .npz files (one per sample, arrays named like the inputs), a folder of ONNX test_data_set_* "
    "folders, or one .npz whose arrays have a leading sample axis; `bundler inspect MODEL` shows the model's inputs"
)


def sample_problems(values: Mapping[str, Value], signature: Signature) -> Iterator[str]:
    """Problems of one sample: names, types, shapes."""
    ports = {port.name: port for port in signature.inputs}
    for name in values:
        if name not in ports:
            yield f"{_WRONG_NAME}{name!r}" + _suggest(name, [port for port in ports if port not in values])
    for name, port in ports.items():
        if name in values:
            yield from _value_problems(repr(name), values[name], port.type)
        elif not port.optional and port.type.kind != "optional":
            yield f"input {name!r}{_MISSING}{describe_type(port.type)})"


def find_casts(values: Mapping[str, Value], signature: Signature) -> dict[str, str]:
    """The types that inputs need whose arrays fit but for their type, where NumPy can convert one to the other."""
    found = {}
    for port in signature.inputs:
        value, kind, wanted = values.get(port.name), port.type.kind, port.type.element_type or ""
        if kind != "tensor" or not isinstance(value, np.ndarray) or not shape_fits(value.shape, port.type.shape):
            continue
        if value.dtype.kind in "biuf" and wanted in _NUMPY_TYPES and str(value.dtype) != wanted:
            found[port.name] = wanted
    return found


def find_misshapen(values: Mapping[str, Value], signature: Signature) -> dict[str, str]:
    """What to give for the inputs whose arrays have another shape than the model's."""
    found = {}
    for port in signature.inputs:
        value, shape = values.get(port.name), port.type.shape
        if port.type.kind != "tensor" or not isinstance(value, np.ndarray) or shape_fits(value.shape, shape):
            continue
        found[port.name] = f"give {port.name!r} as {describe_type(port.type)}, not {_describe(value)}"
        if len(value.shape) == len(shape or ()) + 1:
            found[port.name] += ": one .npz whose first axis counts the samples is given itself, not its folder"
    return found


def _suggest(name: str, candidates: list[str]) -> str:
    lowered = {candidate.lower(): candidate for candidate in candidates}
    close = difflib.get_close_matches(name.lower(), list(lowered), 1, cutoff=0.5)
    return f" (did you mean {lowered[close[0]]!r}?)" if close else ""


def _value_problems(label: str, value: Value, kind: ValueType) -> Iterator[str]:
    if kind.kind == "optional":
        if value is not None and kind.element is not None:
            yield from _value_problems(label, value, kind.element)
    elif kind.kind == "sequence" and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _value_problems(f"{label}[{index}]", item, kind.element or ValueType())
    elif kind.kind == "tensor" and isinstance(value, np.ndarray):
        if _type_name(value) != kind.element_type or not shape_fits(value.shape, kind.shape):
            yield f"{label}: expected {describe_type(kind)}, got {_describe(value)}"
    elif not (kind.kind == "map" and isinstance(value, dict)):
        yield f"{label}: expected {describe_type(kind)}, got {_describe(value)}"


def describe_non_finite(values: Mapping[str, Value], *, infinite: bool = True) -> Iterator[str]:
    """`'x' holds 1 NaN among 8 values`, for each input with NaN or, with `infinite`, with infinity."""
    for name, value in values.items():
        arrays = [to_wide(array) for array in numbers(value)]
        counts = {"NaN": sum(int(np.isnan(array).sum()) for array in arrays)}
        if infinite:
            counts["infinite"] = sum(int(np.isinf(array).sum()) for array in arrays)
        found = " and ".join(f"{count} {what}" for what, count in counts.items() if count)
        if found:
            yield f"{name!r} holds {found} among {sum(array.size for array in arrays)} values"


def shape_fits(shape: Sequence[int], wanted: Sequence[Any] | None) -> bool:
    """Whether a shape has these sizes; those that are not numbers are free."""
    if wanted is None:
        return True
    return len(shape) == len(wanted) and all(
        not isinstance(want, int) or have == want for have, want in zip(shape, wanted, strict=True)
    )


def _type_name(array: np.ndarray) -> str:
    try:
        return element_of_array(array).name
    except ModelError:
        return str(array.dtype)


def _describe(value: Value) -> str:
    if isinstance(value, np.ndarray):
        return f"{_type_name(value)}[{', '.join(map(str, value.shape))}]"
    return {list: "a sequence", dict: "a map", type(None): "nothing"}[type(value)]


def adopt_types(values: Mapping[str, Value], signature: Signature) -> dict[str, Value]:
    """Convert arrays to the form that the runtime accepts: text as objects, and raw bytes (how NumPy saves bfloat16 and
    similar types) as the type that the model declares.
    """
    ports = {port.name: port for port in signature.inputs}
    return {name: _adopt(value, ports.get(name)) for name, value in values.items()}


def _adopt(value: Value, port: Port | None) -> Value:
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.kind == "U":
        return value.astype(object)
    if value.dtype.kind == "V" and port is not None and port.type.element_type is not None:
        element = element_named(port.type.element_type)
        if element.dtype.itemsize == value.dtype.itemsize:
            return value.view(element.dtype)
    return value


def fix_signature(signature: Signature, fixing: Fixing) -> Signature:
    """The signature with these sizes in its inputs. Raises `UsageError` for unknown names and impossible shapes."""
    unknown = sorted(set(fixing.dimensions) - set(signature.symbols))
    if unknown:
        raise UsageError(
            f"the model has no dynamic dimension named {', '.join(map(repr, unknown))}",
            details=(f"its dynamic dimensions are: {', '.join(map(repr, signature.symbols)) or 'none'}",),
            hint="`bundler inspect MODEL` shows every input with its dimensions",
        )
    check_shapes(signature, fixing)
    return fix_inputs(signature, fixing)


def check_shapes(signature: Signature, fixing: Fixing) -> None:
    """Raise `UsageError` for shapes of unknown inputs, of inputs that are not tensors, or of another rank."""
    ports = {port.name: port.type for port in signature.inputs if port.type.kind == "tensor"}
    problems = [
        f"no input {name!r} can have the shape {write_shape(shape)}"
        for name, shape in fixing.shapes.items()
        if name not in ports or not _can_have(ports[name].shape, shape)
    ]
    if problems:
        raise UsageError(
            "the shapes cannot be fixed", details=tuple(problems), hint="`bundler inspect MODEL` shows every input"
        )


def _can_have(known: tuple[Any, ...] | None, shape: FixedShape) -> bool:
    if known is None:
        return None not in shape
    return len(known) == len(shape) and all(
        size is None or (have is None and size > 0) for have, size in zip(known, shape, strict=True)
    )
