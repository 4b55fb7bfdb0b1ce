"""State: an output of a call that is an input of the next one."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, Literal

from bundler.model.errors import UsageError
from bundler.model.open_sizes import NOBODY, Asker, explain_command
from bundler.model.signature import Port, Signature, describe_type


@dataclass(frozen=True, slots=True, kw_only=True)
class StateLink:
    """`output` of one call becomes `input` of the next.

    The `initial` value of the input is `zeros`, a `constant` (every element is `value`), or a `file`. In a request that
    is the path of a .npy file, in a plan the role of its source, and in a bundle the path, relative to the payload
    folder, of the raw little-endian tensor of this `shape` with this `sha256`. `grows` is the axis along which the
    output is longer than the input was, such as the axis of a decoder's keys and values: its initial size is 0, or that
    of the file. None where input and output have equal shapes.
    """

    input: str
    output: str
    initial: Literal["zeros", "constant", "file"] = "zeros"
    value: float = 0.0
    file: str = ""
    shape: tuple[int, ...] = ()
    sha256: str = ""
    grows: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InitialFile:
    """The tensor that a stream begins with, as it was recorded: its `file` in the golden set, and its `shape`."""

    file: str
    shape: tuple[int, ...]


ARRAY_SUFFIX: Final = ".npy"
"""What tells an initial value in a file from a number."""
MAX_SHOWN_LINKS: Final = 4
"""Likely links that a hint writes out for a project file."""
_EXAMPLE = "for example --state h0=hn, --state h0=hn,initial=0.5 (or start.npy), or --state past_k=present_k,grows=2"


def parse_state(texts: Sequence[str]) -> tuple[StateLink, ...]:
    """`h0=hn`, `h0=hn,initial=0.5` and `past_k=present_k,grows=2` as links. Raises `UsageError`."""
    return tuple(map(_parse_link, texts))


def _parse_link(text: str) -> StateLink:
    link, *settings = text.split(",")
    taken, equals, given = link.partition("=")
    if not equals or not taken or not given:
        raise UsageError(f"--state {text[:200]}: expected INPUT=OUTPUT", hint=_EXAMPLE)
    found = {"initial": "zeros", "grows": ""}
    for setting in settings:
        key, _, value = setting.partition("=")
        if key not in found:
            raise UsageError(f"--state {text[:200]}: {key!r} is not a setting of a state", hint=_EXAMPLE)
        found[key] = value
        if key == "grows" and not (value.isascii() and value.isdecimal()):
            raise UsageError(f"--state {text[:200]}: {value!r} is not an axis; axes count from 0", hint=_EXAMPLE)
    return make_link(taken, given, found["initial"], int(found["grows"]) if found["grows"] else None)


def make_link(taken: str, given: str, initial: float | str = "zeros", grows: int | None = None) -> StateLink:
    """A link with an initial value: `zeros`, a finite number, or the path of a .npy file. Raises `UsageError`."""
    if initial == "zeros":
        return StateLink(input=taken, output=given, grows=grows)
    if isinstance(initial, str) and initial.endswith(ARRAY_SUFFIX):
        return StateLink(input=taken, output=given, initial="file", file=initial, grows=grows)
    try:
        value = float(initial)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UsageError(
            f"state {taken!r}: {initial!r} is not an initial value", hint="give a finite number, zeros, or a .npy file"
        )
    if grows is not None:
        raise UsageError(
            f"state {taken!r} begins with the length 0, which the number {value:g} cannot fill",
            hint="remove initial, or give a .npy file",
        )
    return StateLink(input=taken, output=given, initial="constant", value=value)


def show_state(links: Sequence[StateLink]) -> tuple[str, ...]:
    """Links as `--state` takes them."""
    return tuple(f"{link.input}={link.output}{_show_settings(link)}" for link in links)


def _show_settings(link: StateLink) -> str:
    value = {"zeros": "", "constant": repr(link.value), "file": link.file}[link.initial]
    grows = "" if link.grows is None else f",grows={link.grows}"
    return (f",initial={value}" if value else "") + grows


def _show_table(links: Sequence[StateLink]) -> str:
    """Links as a project file has them; of many the first."""
    shown = [f"{json.dumps(link.input)} = {_show_value(link)}" for link in links[:MAX_SHOWN_LINKS]]
    more = ["…"] if len(links) > MAX_SHOWN_LINKS else []
    return f"state = {{ {', '.join([*shown, *more])} }}"


def _show_value(link: StateLink) -> str:
    output = json.dumps(link.output)
    return output if link.grows is None else f"{{ output = {output}, grows = {link.grows} }}"


def check_state(signature: Signature, links: Sequence[StateLink], asker: Asker = NOBODY) -> None:
    """Raise `UsageError` with every reason why these links are no state of the model, whose sizes are fixed already.

    An output may be the state of one input only: two inputs that always hold the same are one input.
    """
    problems = tuple(problem for place, link in enumerate(links) for problem in _find_problems(signature, links, place))
    if problems:
        known = {(link.input, link.output, link.grows) for link in links}
        likely = [pair for pair in find_state_pairs(signature) if (pair.input, pair.output, pair.grows) not in known]
        options = " ".join(f"--state {pair}" for pair in show_state(likely))
        hint = f"likely: {options}; in a project file {_show_table(likely)}" if likely else ""
        hint = hint or _explain_open(signature, links, problems, asker)
        raise UsageError(
            "the state does not fit the model",
            details=problems,
            hint=hint or "`bundler inspect MODEL` shows the inputs and outputs",
        )


_SIZES: Final = "sizes (--dim or --shape)"
"""The end of a problem that fixing sizes solves."""


def _explain_open(signature: Signature, links: Sequence[StateLink], problems: Sequence[str], asker: Asker) -> str:
    """A command that fixes the sizes of the states, where nothing else is wrong."""
    if not all(problem.endswith(_SIZES) for problem in problems) or any(link.grows is not None for link in links):
        return ""
    linked = {link.input for link in links}
    states = Signature(inputs=tuple(port for port in signature.inputs if port.name in linked), outputs=())
    return f"fix them{explain_command(states, asker)}"


def doubt_state(signature: Signature, links: Sequence[StateLink]) -> Iterator[str]:
    """A sentence for each pair that is likely by its names, where some state is linked, and this otherwise or not."""
    given = {link.input: link.output for link in links}
    for pair in find_state_pairs(signature) if links else ():
        (shown,) = show_state([pair])
        if pair.input in given and given[pair.input] != pair.output:
            yield f"state {pair.input[:80]}={given[pair.input][:80]}: the names suggest {shown[:200]}"
        elif pair.input not in given and pair.output not in given.values():
            yield f"{pair.input[:80]} and {pair.output[:80]} are likely a state: link them with --state {shown[:200]}"


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
        yield f"input {taken.name[:80]!r} is optional; a state must be an input of every call"
    if not _same_type(taken, given, link.grows):
        yield f"the input is {describe_type(taken.type)}, the output {describe_type(given.type)}"
        return
    if taken.type.element_type in ("str", "bool") or (taken.type.element_type or "").startswith("float8"):
        yield f"{taken.type.element_type} cannot be a state; the type must be a number"
    elif "int" in (taken.type.element_type or "") and not link.value.is_integer():
        yield f"the initial value {link.value} cannot be represented as {taken.type.element_type}"
    obstacle = None if link.grows is None else _find_obstacle(taken, given, link.grows)
    if obstacle:
        yield obstacle
        return
    sizes = taken.type.shape
    axis = _find_growth(taken, given)
    if axis is not None and link.grows is None:
        yield f"the output may be longer than the input along axis {axis}: set grows={axis}, or fix both sizes"
    elif sizes is None or not all(isinstance(size, int) for place, size in enumerate(sizes) if place != link.grows):
        others = "" if link.grows is None else "other "
        yield f"input {taken.name[:80]!r} is {describe_type(taken.type)}: fix its {others}{_SIZES}"


def _find_obstacle(taken: Port, given: Port, axis: int) -> str | None:
    """Why the state cannot grow along an axis; None where it can."""
    sizes = taken.type.shape or ()
    if axis >= len(sizes):
        return f"input {taken.name[:80]!r} is {describe_type(taken.type)} and has no axis {axis} (the first is 0)"
    size, found = sizes[axis], given.type.shape[axis] if given.type.shape else None
    if isinstance(size, int):
        return (
            f"it cannot grow along axis {axis}, where input {taken.name[:80]!r} has the fixed size {size}: export the "
            "model with that size open"
        )
    if isinstance(found, int):
        return f"it does not grow along axis {axis}: output {given.name[:80]!r} has the fixed size {found} there"
    if size is not None and size == found:
        return f"it does not grow along axis {axis}: input and output both have the size {size[:80]!r} there"
    return None


def _find_growth(taken: Port, given: Port) -> int | None:
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


def _same_type(taken: Port, given: Port, grows: int | None = None) -> bool:
    """Tensors of one type; sizes of the output that are not known may be those of the input, and that along the axis
    `grows` is another.
    """
    one, other = taken.type, given.type
    if one.kind != "tensor" or other.kind != "tensor" or one.element_type != other.element_type:
        return False
    if one.shape is None or other.shape is None:
        return True
    pairs = enumerate(zip(one.shape, other.shape, strict=False))
    return len(one.shape) == len(other.shape) and all(
        size == found
        for axis, (size, found) in pairs
        if axis != grows and isinstance(size, int) and isinstance(found, int)
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
    and `stateN`, `past_key` and `present_key`. Those whose open sizes have different names likely grow there.
    """
    pairs: list[StateLink] = []
    for taken in signature.inputs:
        used = {pair.output for pair in pairs}
        found = [given for given in signature.outputs if given.name not in used and _is_likely(taken, given)]
        if len(found) == 1 and not taken.optional:
            pairs.append(StateLink(input=taken.name, output=found[0].name, grows=_find_growth(taken, found[0])))
    return tuple(pairs)


def _is_likely(taken: Port, given: Port) -> bool:
    if taken.type.shape is None or given.type.shape is None or not _same_type(taken, given):
        return False
    after = _stem(_GIVEN, given.name)
    changed = _TAKEN.search(taken.name) or _GIVEN.search(given.name)
    # The second is for names with a word of both kinds: `cache_0` and `next_cache_0`.
    return bool(changed and after) and after in (_stem(_TAKEN, taken.name), _plain(taken.name))


def _stem(pattern: re.Pattern[str], name: str) -> str:
    return _plain(pattern.sub("", name, count=1))


def _plain(name: str) -> str:
    return name.strip("_.").lower()
