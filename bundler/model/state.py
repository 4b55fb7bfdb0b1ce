"""State: an output of a call that is an input of the next one."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from bundler.model.errors import UsageError
from bundler.model.signature import Port, Signature, describe_type


@dataclass(frozen=True, slots=True, kw_only=True)
class StateLink:
    """`output` of one call becomes `input` of the next.

    The `initial` value of the input is `zeros`, a `constant` (every element is `value`), or the raw little-endian
    tensor in `file`, a path relative to the payload folder. `grows` is the axis along which the output is longer than
    the input was, such as the axis of a decoder's keys and values: its initial size is 0, or that of the file. None
    where input and output have equal shapes. Links that a user asks for are neither of a file nor grow.
    """

    input: str
    output: str
    initial: Literal["zeros", "constant", "file"] = "zeros"
    value: float = 0.0
    file: str = ""
    shape: tuple[int, ...] = ()
    grows: int | None = None


_EXAMPLE = "for example --state h0=hn, or --state h0=hn,initial=0.5"


def parse_state(texts: Sequence[str]) -> tuple[StateLink, ...]:
    """`h0=hn` and `h0=hn,initial=0.5` as links. Raises `UsageError`."""
    return tuple(map(_parse_link, texts))


def _parse_link(text: str) -> StateLink:
    link, *settings = text.split(",")
    taken, equals, given = link.partition("=")
    if not equals or not taken or not given:
        raise UsageError(f"--state {text[:200]}: not an input and an output", hint=_EXAMPLE)
    initial: float | str = "zeros"
    for setting in settings:
        key, _, initial = setting.partition("=")
        if key != "initial":
            raise UsageError(f"--state {text[:200]}: {key!r} is no setting of a state", hint=_EXAMPLE)
    return make_link(taken, given, initial)


def make_link(taken: str, given: str, initial: float | str = "zeros") -> StateLink:
    """A link with an initial value: `zeros` or a finite number. Raises `UsageError`."""
    if initial == "zeros":
        return StateLink(input=taken, output=given)
    try:
        value = float(initial)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UsageError(f"state {taken!r}: {initial!r} is no initial value", hint="give a finite number, or zeros")
    return StateLink(input=taken, output=given, initial="constant", value=value)


def show_state(links: Sequence[StateLink]) -> tuple[str, ...]:
    """Links as `--state` takes them."""
    return tuple(
        f"{link.input}={link.output}" + (f",initial={link.value!r}" if link.initial == "constant" else "")
        for link in links
    )


def check_state(signature: Signature, links: Sequence[StateLink]) -> None:
    """Raise `UsageError` with every reason why these links are no state of the model, whose sizes are fixed already.

    An output may be the state of one input only: two inputs that always hold the same are one input.
    """
    problems = tuple(problem for place, link in enumerate(links) for problem in _find_problems(signature, links, place))
    if problems:
        known = {(link.input, link.output) for link in links}
        ports = {port.name: port for port in (*signature.inputs, *signature.outputs)}
        likely = [
            pair
            for pair in find_state_pairs(signature)
            if (pair.input, pair.output) not in known and find_growth(ports[pair.input], ports[pair.output]) is None
        ]
        pairs = show_state(likely)
        hint = f"likely: {' '.join(f'--state {pair}' for pair in pairs)}" if pairs else ""
        raise UsageError(
            "the state does not fit the model",
            details=problems,
            hint=hint or "`bundler inspect MODEL` shows the inputs and outputs",
        )


def _find_problems(signature: Signature, links: Sequence[StateLink], place: int) -> Iterator[str]:
    link = links[place]
    inputs, outputs = ({port.name: port for port in ports} for ports in (signature.inputs, signature.outputs))
    label = f"{link.input[:80]}={link.output[:80]}"
    if link.input in [other.input for other in links[:place]]:
        yield f"{label}: input {link.input[:80]!r} is linked twice"
    if link.output in [other.output for other in links[:place]]:
        yield f"{label}: output {link.output[:80]!r} is linked twice"
    missing = [
        f"{label}: the model has no {kind} {name[:80]!r}{_suggest(name, ports)}"
        for kind, name, ports in (("input", link.input, inputs), ("output", link.output, outputs))
        if name not in ports
    ]
    yield from missing
    if not missing:
        yield from (f"{label}: {reason}" for reason in _find_mismatches(inputs[link.input], outputs[link.output], link))


def _suggest(name: str, ports: Mapping[str, Port]) -> str:
    close = get_close_matches(name, ports, n=1, cutoff=0.5)
    return f"; did you mean {close[0][:80]!r}?" if close else f"; it has {', '.join(ports)[:200] or 'none'}"


def _find_mismatches(taken: Port, given: Port, link: StateLink) -> Iterator[str]:
    if taken.optional:
        yield f"input {taken.name[:80]!r} is optional; a state is an input of every call"
    if not _same_type(taken, given):
        yield f"the input is {describe_type(taken.type)}, the output {describe_type(given.type)}"
        return
    if taken.type.element_type in ("str", "bool") or (taken.type.element_type or "").startswith("float8"):
        yield f"{taken.type.element_type} is no type of a state; numbers are"
    elif "int" in (taken.type.element_type or "") and not link.value.is_integer():
        yield f"the initial value {link.value} is none of {taken.type.element_type}"
    sizes = taken.type.shape
    axis = find_growth(taken, given)
    if axis is not None:
        yield f"the output may be longer than the input along axis {axis}: a state keeps its shape, and none grows"
    elif sizes is None or not all(isinstance(size, int) for size in sizes):
        yield f"input {taken.name[:80]!r} is {describe_type(taken.type)}: fix its sizes (--dim or --shape)"


def find_growth(taken: Port, given: Port) -> int | None:
    """The axis along which a state likely grows, as a decoder's keys and values do: its sizes are open, and have
    different names. None where there is no such axis.
    """
    pairs = zip(taken.type.shape or (), given.type.shape or (), strict=False)
    return next(
        (
            axis
            for axis, (size, found) in enumerate(pairs)
            if isinstance(size, str) and isinstance(found, str) and size != found
        ),
        None,
    )


def _same_type(taken: Port, given: Port) -> bool:
    """Tensors of one type; sizes of the output that are not known may be those of the input."""
    one, other = taken.type, given.type
    if one.kind != "tensor" or other.kind != "tensor" or one.element_type != other.element_type:
        return False
    if one.shape is None or other.shape is None:
        return True
    pairs = zip(one.shape, other.shape, strict=False)
    return len(one.shape) == len(other.shape) and all(
        size == found for size, found in pairs if isinstance(size, int) and isinstance(found, int)
    )


_TAKEN = re.compile(
    r"(?:^|(?<=[_.\W]))(?:past_key_values|past|prev|previous|initial|init|in|input|cache|0)(?=[_.\W]|$)|_?(?:in|0)$",
    re.IGNORECASE,
)
_GIVEN = re.compile(
    r"(?:^|(?<=[_.\W]))(?:present|new|next|updated|final|out|output|n)(?=[_.\W]|$)|_?(?:out|new|next)$|(?<=[a-z])_?[nN]$",
    re.IGNORECASE,
)


def find_state_pairs(signature: Signature) -> tuple[StateLink, ...]:
    """Inputs and outputs that are likely one state, by their names, of equal types and shapes: `h0` and `hn`, `state`
    and `stateN`, `past_key` and `present_key`.
    """
    pairs: list[StateLink] = []
    for taken in signature.inputs:
        used = {pair.output for pair in pairs}
        found = [given for given in signature.outputs if given.name not in used and _is_likely(taken, given)]
        if len(found) == 1 and not taken.optional:
            pairs.append(StateLink(input=taken.name, output=found[0].name))
    return tuple(pairs)


def _is_likely(taken: Port, given: Port) -> bool:
    if taken.type.shape is None or given.type.shape is None or not _same_type(taken, given):
        return False
    stems = (_stem(_TAKEN, taken.name), _stem(_GIVEN, given.name))
    changed = taken.name != stems[0] or given.name != stems[1]
    return changed and stems[0].strip("_.").lower() == stems[1].strip("_.").lower() and bool(stems[0].strip("_."))


def _stem(pattern: re.Pattern[str], name: str) -> str:
    return pattern.sub("", name, count=1)
