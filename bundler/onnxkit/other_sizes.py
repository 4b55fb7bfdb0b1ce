"""Find further sizes for each free dimension of a model that runs at one: most accept any, some only one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from bundler.model.free_dimensions import FreeDimension, Key, Role, free_dimensions
from bundler.model.golden_inputs import RefusedSize, TriedDimension
from bundler.onnxkit.canonical.rewriting import GENERATED_DIM_PREFIXES
from bundler.onnxkit.seeded_inputs import Maker
from bundler.onnxkit.size_search import SizeSearch

Changes = Mapping[Key, int]

_STEP: Final = 32
"""Image networks halve their input up to five times."""
_MAX_TRIES: Final = 3
_MAX_SINGLES: Final = 8
"""Number of dimensions that are tried individually when all of their kind are rejected together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherSizes:
    """`changes` are sets of sizes at which the model ran, each relative to those of the first sample."""

    changes: tuple[Changes, ...]
    dimensions: tuple[TriedDimension, ...]


@dataclass(slots=True, kw_only=True)
class _Trial:
    """Runs the model at changed sizes, and records the result for each dimension."""

    search: SizeSearch
    base: Maker
    ran: dict[Key, set[int]] = field(default_factory=dict)
    refused: dict[Key, dict[int, str]] = field(default_factory=dict)

    def runs(self, changes: Changes) -> bool:
        """Whether the model runs at these sizes; a rejected group says nothing about its single dimensions."""
        if self.search.is_over or not changes:
            return False
        self.search.report(0.0, "trying other sizes")
        maker = replace(self.base, changes=changes, plain=True)
        if self.search.attempt(maker) is None:
            self._note_refusal(changes)
            return False
        for key, size in changes.items():
            self.ran.setdefault(key, set()).add(size)
        return True

    def _note_refusal(self, changes: Changes) -> None:
        last = self.search.refused[-1]
        if last.by_model and len(set(changes.values())) == 1:
            for key, size in changes.items():
                self.refused.setdefault(key, {})[size] = last.reason


def find_other_sizes(search: SizeSearch, base: Maker) -> OtherSizes:
    """At least one other size of each free dimension, if the model accepts one."""
    free = free_dimensions(base.signature)
    sizes = base.assigned
    trial = _Trial(search=search, base=base)
    found = list(_find_changes(trial, free, sizes))
    if len(found) > 1:
        together: dict[Key, int] = {key: size for changes in found for key, size in changes.items()}
        found = [together] if trial.runs(together) else found
    least = {key: bounds.least for key, bounds in base.ranges.items() if bounds.least != sizes.get(key)}
    found += [least] if least not in found and trial.runs(least) else []
    apart = _apart(trial, [item for item in free if item.role != "channel" and _is_named(item)], sizes)
    found += [apart] if trial.runs(apart) else []
    return OtherSizes(changes=tuple(found), dimensions=tuple(_describe(item, sizes, trial) for item in free))


def _find_changes(trial: _Trial, free: tuple[FreeDimension, ...], sizes: Changes) -> Iterator[Changes]:
    """All at once if that runs; else all of one kind; else one dimension after another. Channels are tried alone."""
    common = [item for item in free if item.role != "channel"]
    joint = _uneven(trial, common, sizes)
    pending = list(free)
    if trial.runs(joint):
        yield joint
        pending = [item for item in free if item.key not in joint]
    for role in dict.fromkeys(item.role for item in pending):
        group = [item for item in pending if item.role == role]
        changes = _first_that_runs(trial, group, sizes)
        if changes is not None:
            yield changes
        elif len(group) > 1:
            singles = (_first_that_runs(trial, [item], sizes) for item in group[:_MAX_SINGLES])
            yield from (single for single in singles if single is not None)


def _uneven(trial: _Trial, items: Iterable[FreeDimension], sizes: Changes) -> dict[Key, int]:
    """The first other size of each; the last axis of an image differs from the others, to avoid squares."""
    options = {item.key: _options(trial, item, sizes) for item in items}
    changes = {key: found[0] for key, found in options.items() if found}
    spatial = [item for item in items if item.role == "space"]
    if len(spatial) > 1 and len(options[spatial[-1].key]) > 1:
        changes[spatial[-1].key] = options[spatial[-1].key][1]
    return changes


def _is_named(item: FreeDimension) -> bool:
    """Whether a person named the size: an exporter's numbers (`unk__7`, `Dim.0`) say nothing about what is equal."""
    return isinstance(item.key, str) and item.key.isidentifier() and not item.key.startswith(GENERATED_DIM_PREFIXES)


def _apart(trial: _Trial, items: Sequence[FreeDimension], sizes: Changes) -> dict[Key, int]:
    """Sizes of which no two of one kind are equal, as those of a graph's nodes and edges: or nothing shows whether one
    was taken for the other. Empty where the other sizes differ already, or where there are not enough. Beside equal
    sizes, not in their place: a model may run at sizes that do not belong together.
    """
    changes: dict[Key, int] = {}
    taken: dict[Role, set[int]] = {}
    for item in items:
        used = taken.setdefault(item.role, set())
        size = next((option for option in _options(trial, item, sizes) if option not in used), None)
        if size is None:
            return {}
        used.add(size)
        changes[item.key] = size
    return changes if changes != _uneven(trial, items, sizes) else {}


def _first_that_runs(trial: _Trial, group: list[FreeDimension], sizes: Changes) -> Changes | None:
    for place in range(_MAX_TRIES):
        options = {item.key: _options(trial, item, sizes) for item in group}
        changes = {key: found[place] for key, found in options.items() if place < len(found)}
        if trial.runs(changes):
            return changes
    return None


def _options(trial: _Trial, item: FreeDimension, sizes: Changes) -> tuple[int, ...]:
    """The ends of a dimension's range."""
    size, bounds = sizes[item.key], trial.base.ranges.get(item.key)
    if bounds is None:
        return other_sizes(item.role, size)
    return tuple(dict.fromkeys(end for end in (bounds.most, bounds.least) if end != size))


def other_sizes(role: Role, size: int) -> tuple[int, ...]:
    """The sizes to try beside one that runs, the cheap ones first."""
    half = size // 2 // _STEP * _STEP
    found = {
        "batch": (size + 1, size + 2, 4 * size),
        "channel": (1, 3, 4),
        "length": (size // 2, 2 * size, size + 1) if size > _MAX_TRIES else (size + 1, size + 2, 4 * size),
        "space": (half, size + _STEP, 2 * size) if half else (2 * size, size + _STEP, 4 * size),
    }[role]
    return tuple(dict.fromkeys(item for item in found if item > 0 and item != size))


def _describe(item: FreeDimension, sizes: Changes, trial: _Trial) -> TriedDimension:
    ran = sorted({sizes[item.key]} | trial.ran.get(item.key, set()))
    refused = trial.refused.get(item.key, {}) if len(ran) == 1 else {}
    return TriedDimension(
        label=item.label,
        symbol=item.key if isinstance(item.key, str) else "",
        port=item.port,
        axis=item.axis,
        sizes=tuple(ran),
        refused=tuple(RefusedSize(size=size, reason=reason) for size, reason in sorted(refused.items())),
    )
