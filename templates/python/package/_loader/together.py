"""Opens components of a bundle at the same time: each on the best variant that it can run, or all of them on the
variant of one name.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from .config import Component, Variant, read_bundle
from .errors import IncompatibleError, naming
from .integrity import Memory
from .model import BundledModel, Settings
from .opening import Opened
from .variants import LoadReport, add_missing, find_obstacle, open_first, open_variant, refuse_all

ModelType = type[BundledModel]
Item = TypeVar("Item")
Result = TypeVar("Result")
Started = tuple[Opened, LoadReport]

REOPEN = "Bundle.open()"
"""How members are opened, as errors say it."""


def map_at_once(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """What `work` returns for each item, as many at the same time as there are processors. When all have ended, it
    raises the error of the first item that has one.
    """
    results: dict[int, Result] = {}
    errors: dict[int, BaseException] = {}
    queue = iter(enumerate(items))

    def take() -> None:
        for position, item in queue:
            try:
                results[position] = work(item)
            except BaseException as error:  # noqa: BLE001 (it crosses a thread and is raised again below)
                errors[position] = error

    helpers = [threading.Thread(target=take, daemon=True) for _ in range(min(len(items), _count_processors()) - 1)]
    for thread in helpers:
        thread.start()
    take()
    for thread in helpers:
        thread.join()
    if errors:
        results.clear()  # The error's traceback would keep the sessions.
        raise errors[min(errors)]
    return [results[position] for position in range(len(items))]


def _count_processors() -> int:
    """Those that this process may use, where the system says so."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Source:
    """Where components are opened from: their classes, `runtime.json`, read once, and what was asked for."""

    def __init__(self, models: tuple[ModelType, ...], settings: Settings, *, always: bool) -> None:
        pins = models[0].pins
        self.memory = Memory(pins.payload, always=always)
        self._models = {model.pins.component: model for model in models}
        self._settings = settings
        self._data = read_bundle(self.memory, pins.sha256)
        self.together: list[str] = self._data["together"]

    def open(self, names: Sequence[str]) -> dict[str, BundledModel]:
        """The models of these names: one, or all of those that belong together. Raises `BundleError` with the name."""
        components = [self._models[name].pins.pick(self._data) for name in names]
        remarks = [self._prepare(component) for component in components]
        with naming(" and ".join(names)):
            found = [self._open(components[0])] if len(components) == 1 else self._open_together(components)
        return {
            component.name: self._begin(component, started, remark)
            for component, started, remark in zip(components, found, remarks, strict=True)
        }

    def weigh(self, names: Sequence[str]) -> int:
        """Bytes of the preferred variants of these components."""
        components = [self._models[name].pins.pick(self._data) for name in names]
        return sum(file.size for component in components for file in component.variants[0].files)

    def _prepare(self, component: Component) -> str:
        with naming(component.name):
            return self._settings.prepare(component, component.variants, self.memory)

    def _open(self, component: Component) -> Started:
        strict = self._settings.is_strict(component)
        return open_first(component.variants, self.memory, strict=strict, copies=self._settings.copies)

    def _open_together(self, components: list[Component]) -> list[Started]:
        """All on the variant of one name: the first that all of them have and can run."""
        strict = self._settings.is_strict(components[0])
        rejected: list[tuple[str, str]] = []
        rows = list(_match_variants(components))
        for row in rows:
            found = self._open_row(row)
            if not isinstance(found, str):
                return [(opened, LoadReport(opened, list(rejected))) for opened in found]
            rejected.append((row[0].name, found))
            if strict:
                break
        raise refuse_all(rejected, strict=strict and len(rows) > 1) if rows else _refuse_unmatched()

    def _open_all(self, row: list[Variant]) -> list[Opened | str]:
        """At once, but in turn where a session takes over what the one before has loaded."""

        def work(variant: Variant) -> Opened | str:
            return open_variant(variant, self.memory, copies=self._settings.copies)

        takes_over = any("ep.share_ep_contexts" in variant.session_config for variant in row)
        return list(map(work, row)) if takes_over else map_at_once(work, row)

    def _open_row(self, row: list[Variant]) -> list[Opened] | str:
        """All of them with open sessions, or the reason why one of them cannot run."""
        found = [find_obstacle(variant) for variant in row]
        opened: list[Opened | str] = []
        if not any(found):
            opened = self._open_all(row)
            found = [result if isinstance(result, str) else None for result in opened]
        reasons = [(variant, reason) for variant, reason in zip(row, found, strict=True) if reason is not None]
        if reasons:
            return "; ".join(f"{variant.component}: {add_missing(reason, variant)}" for variant, reason in reasons)
        return [result for result in opened if isinstance(result, Opened)]

    def _begin(self, component: Component, started: Started, remark: str) -> BundledModel:
        opened, report = started
        report.add_remarks(self.memory.refusal, remark)
        kind = self._models[component.name]
        model = kind.__new__(kind)
        model._begin(component, opened, report, REOPEN)  # noqa: SLF001 (one package)
        return model


def _match_variants(components: list[Component]) -> Iterator[list[Variant]]:
    """The variants of each name that all components have, in the order of the first of them."""
    by_name = [{variant.name: variant for variant in component.variants} for component in components]
    for name in by_name[0]:
        if all(name in variants for variants in by_name):
            yield [variants[name] for variants in by_name]


def _refuse_unmatched() -> IncompatibleError:
    return IncompatibleError(
        "these components must run together, but have no variant of the same name", hint="build the bundle again"
    )
