"""Qualcomm's chips by the compiler's numbers, and checks for incompatible numbers.

The compiler reports few errors: an unknown number silently leaves the whole model to the CPU, an unknown name
compiles for no particular chip (it does not know `SM8735` or `QCS6490`, whose numbers are 85 and 93), and an
architecture of another chip is written unchanged into the model's compatibility string. All measured with
onnxruntime-qnn 2.6.0 and 2.7.0. Each row is what the compiler wrote into a context for the number alone (`soc_type`,
`arch`), except where a comment says otherwise.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """One chip: its number (`soc_model`), the generation of its tensor processor (`htp_arch`), and its names.

    `half`: it computes in FP16; without, every floating-point node stays on the CPU. The 888 has no FP16 either,
    although the compiler and its emulator accept such models for it.
    """

    number: int
    architecture: int
    parts: tuple[str, ...]
    title: str
    half: bool = True


CHIPS: tuple[Chip, ...] = (
    Chip(number=30, architecture=68, parts=("SM8350",), title="Snapdragon 888", half=False),
    Chip(number=35, architecture=68, parts=("SM7325",), title="Snapdragon 778G", half=False),
    Chip(number=36, architecture=69, parts=("SM8450",), title="Snapdragon 8 Gen 1"),
    # The compiler writes code of generation 68 for it, which 69 runs; ExecuTorch's table of chips says 69.
    Chip(number=42, architecture=69, parts=("SM8475",), title="Snapdragon 8+ Gen 1"),
    Chip(number=43, architecture=73, parts=("SM8550",), title="Snapdragon 8 Gen 2"),
    Chip(number=57, architecture=75, parts=("SM8650",), title="Snapdragon 8 Gen 3"),
    Chip(number=60, architecture=73, parts=("SC8380XP",), title="Snapdragon X Elite"),
    Chip(number=66, architecture=73, parts=("QCS8550", "QCM8550"), title="QCS8550"),
    Chip(number=68, architecture=73, parts=("SM8635",), title="Snapdragon 8s Gen 3", half=False),
    Chip(number=69, architecture=79, parts=("SM8750",), title="Snapdragon 8 Elite"),
    # The compiler knows the die as QCS9100, of which QCS9075 is a variant.
    Chip(number=77, architecture=73, parts=("QCS9075", "QCS9100"), title="QCS9075"),
    Chip(number=85, architecture=73, parts=("SM8735",), title="Snapdragon 8s Gen 4", half=False),
    Chip(number=87, architecture=81, parts=("SM8850",), title="Snapdragon 8 Elite Gen 5"),
    Chip(number=88, architecture=81, parts=("SC8480XP",), title="Snapdragon X2 Elite"),
    # Qualcomm's list of SoC models; older lists put it under 35, which is the phone's chip of the same family.
    Chip(number=93, architecture=68, parts=("QCS6490", "QCM6490"), title="QCS6490", half=False),
    Chip(number=97, architecture=81, parts=("SM8845",), title="Snapdragon 8 Gen 5"),
    Chip(number=120, architecture=73, parts=("SC8340XP",), title="Snapdragon X Plus 8-core"),
)

ARCHITECTURES = tuple(sorted({chip.architecture for chip in CHIPS}))
NEWEST_DMA = 81
"""The first generation with the extended user DMA."""
_MOST_TOLD = 3
"""Limit of reported unknown numbers; each report lists the known ones."""
FIRST_BFLOAT = 88
"""The lowest chip number for which the provider supports bfloat16; older generations with a higher number do not."""

_BY_NUMBER: Mapping[str, Chip] = {str(chip.number): chip for chip in CHIPS}
_BY_PART: Mapping[str, Chip] = {part.lower(): chip for chip in CHIPS for part in chip.parts}


def split_list(value: str) -> list[str]:
    """The items of a comma-separated list, stripped."""
    return [item.strip() for item in value.split(",")]


def find_chips(models: str) -> list[Chip]:
    """The known chips of a `soc_model`, in its order."""
    return [_BY_NUMBER[item] for item in split_list(models) if item in _BY_NUMBER]


def name_parts(numbers: Iterable[str]) -> tuple[str, ...]:
    """The part names of the chips with these numbers; empty where one of them is unknown."""
    chips = [_BY_NUMBER.get(number) for number in numbers]
    return () if None in chips else tuple(part for chip in chips if chip for part in chip.parts)


def check_chips(options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What is wrong with `soc_model` and `htp_arch`, alone and together: the key, and why."""
    models, architectures = options.get("soc_model"), options.get("htp_arch")
    if architectures is not None:
        yield from _check_architectures(split_list(architectures))
    if models is None:
        return
    problems = list(_check_models(split_list(models)))
    yield from problems
    if architectures is None:
        yield "soc_model", f"requires the architecture as well: {_architecture_hint(find_chips(models))}"
    elif not problems:
        yield from _check_pairs(split_list(models), split_list(architectures))


def _check_models(models: Sequence[str]) -> Iterator[tuple[str, str]]:
    unknown = [model for model in dict.fromkeys(models) if model not in _BY_NUMBER]
    for model in unknown[:_MOST_TOLD]:
        yield "soc_model", _describe_unknown(model)
    for model in sorted({model for model in models if model in _BY_NUMBER and models.count(model) > 1}):
        yield "soc_model", f"names the chip {model[:40]!r} more than once"


def _check_architectures(architectures: Sequence[str]) -> Iterator[tuple[str, str]]:
    known = ", ".join(str(architecture) for architecture in ARCHITECTURES)
    numbers = {str(number) for number in ARCHITECTURES}
    for architecture in [item for item in dict.fromkeys(architectures) if item not in numbers][:_MOST_TOLD]:
        bare = architecture.lower().removeprefix("v")
        meant = f'; write "{bare}"' if bare in numbers else ""
        yield "htp_arch", f"{architecture[:40]!r} is not a known architecture (known: {known}){meant}"


def _check_pairs(models: Sequence[str], architectures: Sequence[str]) -> Iterator[tuple[str, str]]:
    if len(models) != len(architectures):
        lengths = f"{len(models)} in `soc_model`, {len(architectures)} here"
        yield (
            "htp_arch",
            f"requires one architecture for each chip ({lengths}): {_architecture_hint(find_chips(','.join(models)))}",
        )
        return
    for model, architecture in zip(models, architectures, strict=True):
        chip = _BY_NUMBER[model]
        if architecture != str(chip.architecture):
            text = (
                f"{architecture[:40]!r} is incompatible with `soc_model` {model}: {_name(chip)} has {chip.architecture}"
            )
            near = [other for other in CHIPS if str(other.architecture) == architecture]
            also = f" ({architecture} is of {', '.join(_name(other) for other in near)})" if near else ""
            yield "htp_arch", text + also


def _describe_unknown(model: str) -> str:
    part = _BY_PART.get(model.lower())
    if part is not None:
        return f'{model!r} is a part number, of which the compiler knows only some; write its number, "{part.number}"'
    of_architecture = [str(chip.number) for chip in CHIPS if str(chip.architecture) == model]
    if of_architecture:
        return f"{model} is an architecture (`htp_arch`), not a chip; chips with it: {', '.join(of_architecture)}"
    close = difflib.get_close_matches(model.lower()[:40], [*_BY_NUMBER, *_BY_PART], n=1)
    chip = (_BY_NUMBER.get(close[0]) or _BY_PART[close[0]]) if close else None
    meant = f"; did you mean {chip.number} ({_name(chip)})?" if chip else ""
    known = ", ".join(f"{chip.number} {chip.title}" for chip in CHIPS)
    return f"{model[:40]!r} is not a known chip (known: {known}){meant}"


def _architecture_hint(chips: Sequence[Chip]) -> str:
    wanted = ",".join(str(chip.architecture) for chip in chips)
    return f'`htp_arch = "{wanted}"`' if wanted else "`htp_arch`"


def _name(chip: Chip) -> str:
    return f"{chip.title} ({chip.parts[0]})" if chip.parts[0] != chip.title else chip.title
