"""Calls the generated classes of a bundle in Kotlin as an app does, by a program of bundler's own.

It is started after the bundle's self-test, and knows what the classes must be from `runtime.json` alone. It is compiled
once: a machine without the compiler verifies a bundle without it, and says so.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from bundler.devices.contract import Command, Device
from bundler.emitters.brought import Brought, Wanted, fetch_outputs, list_wanted
from bundler.emitters.contract import Compare
from bundler.emitters.jvm.artifacts import COMPILER, COMPILER_LOCK, COROUTINES, STDLIB
from bundler.emitters.jvm.compiling import Compilation
from bundler.emitters.jvm.context import describe_classes, name_bundle
from bundler.emitters.jvm.kept_classes import keep_classes
from bundler.emitters.jvm.launching import QUIET, TIME_LIMIT
from bundler.emitters.jvm.maven import fetch_artifacts
from bundler.emitters.jvm.names import choose_names
from bundler.emitters.jvm.sources import LOADER, rename_package, write_sources
from bundler.emitters.reports import UNREADABLE, Ending, Key, Recorded, Reported, list_outcomes, read_ending
from bundler.environments.registry import Environments
from bundler.execution.temporary import temporary_folder
from bundler.model.errors import EnvironmentMissingError, StageError, UsageError
from bundler.model.events import Reporter
from bundler.model.runtime import RuntimeComponent, RuntimeConfig, RuntimeVariant
from bundler.support.data import data_root

MOST_SHOWN: Final = 300
_PACKAGE: Final = "bundler.calls"
_MAIN: Final = f"{_PACKAGE}.Calls"
_JSON: Final = "kotlin/core/Json.kt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Classes:
    """What is called: the classes in `package` of a bundle with the class `path` on its device, and the package of its
    loader. `sha256` is that of its `runtime.json`. One for Android has a folder of `assets`, and in it a `payload`.
    Their outputs for what is `recorded`, by component, are brought into the folder `outputs` of this machine.
    """

    config: RuntimeConfig
    package: str
    loader: str
    sha256: str
    path: Sequence[str]
    recorded: Mapping[str, Recorded]
    outputs: Path
    assets: str | None = None
    payload: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """What came of it: by component, the variant on which its class ran, and why it answers otherwise than its model
    (empty: it does not). `missing` says what this machine lacks to call them, and `failure` why none could be called.
    `wanted` are the outputs that were asked for and can be read here; empty: none.
    """

    calls: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    missing: str = ""
    failure: str = ""
    types: Mapping[str, str] = field(default_factory=dict)
    wanted: Wanted = field(default_factory=dict)

    def find_fault(self, component: RuntimeComponent) -> str:
        """Why the class of a component is not what its users need; empty where it is, or was not called."""
        if self.failure:
            return f"the class {self.types.get(component.name, component.name)} cannot be used: {self.failure}"
        return self.calls.get(component.name, ("", ""))[1]

    def describe(self, component: RuntimeComponent, variant: RuntimeVariant) -> str:
        """What to say of a variant that passed."""
        if self.missing:
            return f"; its classes were not called: {self.missing}"
        if self.calls.get(component.name, ("", ""))[0] != variant.name:
            return ""
        streams = " and its streams" if component.state and not component.unstable_outputs else ""
        return f"; its class {self.types[component.name]}{streams} gave the same outputs"


_ROUNDING: Final = 1e-5
"""By how much the outputs of two processes may differ, as a share of the largest value: threads share the work in
another way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Compares the outputs of `classes` that were `called`. `find_golden` gives the index of a component's golden set;
    without `compare` the loader's own comparison counts.
    """

    classes: Classes
    called: Called
    compare: Compare | None
    find_golden: Callable[[RuntimeComponent], Path]

    def judge(self, found: Reported, component: RuntimeComponent, variant: RuntimeVariant) -> Reported:
        """What is believed of the loader's report on a variant. Never raises."""
        fault = self.called.find_fault(component) if found.passed else ""
        if fault:
            return replace(found, passed=False, reason=fault, comparison=None)
        if self.compare is None or not self.called.wanted:
            return found
        brought = Brought(
            folder=self.classes.outputs,
            wanted=self.called.wanted,
            compare=self.compare,
            find_golden=self.find_golden,
            rounding=lambda _: _ROUNDING,
        )
        return brought.judge(found, component, variant, self.classes.recorded[component.name])


def compile_caller(environments: Environments, reporter: Reporter) -> Path:
    """The classes of the program. Raises `EnvironmentMissingError` where they must be compiled, and cannot."""
    lock = environments.lock_for(COMPILER_LOCK, COMPILER, reporter)
    artifacts = fetch_artifacts(lock, environments, reporter)
    with temporary_folder("calls") as scratch:
        own = write_sources(("calls",), _PACKAGE, Path(scratch))
        json_reader = rename_package(data_root("templates") / _JSON, LOADER, _PACKAGE, Path(scratch))
        libraries = artifacts[STDLIB], artifacts[COROUTINES]
        work = Compilation(sources=(*own, json_reader), libraries=libraries, module="calls")
        return keep_classes(work, lock.digest, environments, reporter)


def call_classes(
    classes: Classes, tested: Ending, device: Device, environments: Environments, reporter: Reporter
) -> Called:
    """Start the program on the device where the bundle's self-test ended as `tested`. A machine that has neither it nor
    what compiles it does without.
    """
    passed = _list_passed(tested)
    if not _must_open(classes.config, passed):
        return Called()
    try:
        type_ = choose_names(classes.config.name, classes.package).type
        caller = compile_caller(environments, reporter)
    except UsageError as error:
        return Called(failure=error.message)
    except (EnvironmentMissingError, StageError) as error:
        return Called(missing=error.message)
    about = describe_classes(classes.config, classes.package, type_)
    wanted, place = list_wanted(classes.config, classes.recorded), device.put(classes.outputs)
    for name, each in about.items():
        each["wanted"] = {
            variant: {**task, "folder": f"{place}/{task['folder']}", "recorded": classes.recorded[name].samples}
            for variant, task in wanted[name].items()
            if (name, variant) in passed
        }
    request = {
        **{name: getattr(classes, name) for name in ("loader", "sha256", "assets", "payload")},
        "class": f"{classes.package}.{name_bundle(classes.config, type_)}",
        "components": about,
    }
    with temporary_folder("request") as scratch:
        file = Path(scratch) / "request.json"
        file.write_text(json.dumps(request), "ascii")
        where = os.pathsep.join((device.put(caller), *classes.path))
        argv = (*QUIET, "-cp", where, _MAIN, device.put(file))
        command = Command(argv=argv, seconds=TIME_LIMIT, writable=(classes.outputs,))
        found = _read_calls(read_ending(device.run(command)), set(about))
    types = {name: str(each["class"]).rpartition(".")[2] for name, each in about.items()}
    return replace(found, types=types, wanted=wanted if fetch_outputs(device, place, classes.outputs) else {})


def _list_passed(tested: Ending) -> frozenset[Key]:
    try:
        return frozenset(key for key, outcome in list_outcomes(tested).items() if outcome["status"] == "passed")
    except UNREADABLE:
        return frozenset()


def _must_open(config: RuntimeConfig, passed: Collection[Key]) -> bool:
    """Whether all models run here at once, as an app opens them: those that belong together on one variant."""
    free = [(each.name,) for each in config.components if each.name not in config.together]
    groups = [*free, *([config.together] if config.together else [])]
    variants = {variant for _, variant in passed}
    return all(any(all((name, variant) in passed for name in group) for variant in variants) for group in groups)


def _read_calls(ending: Ending, components: set[str]) -> Called:
    """What the program printed. It shares its process with the bundle's code, and is read as that is."""
    try:
        if ending.failure is not None or "unopened" in ending.report:
            return Called(failure=ending.failure or str(ending.report["unopened"])[:MOST_SHOWN])
        calls = {
            name: (str(each["variant"]), str(each["fault"])[:MOST_SHOWN])
            for name, each in ending.report["calls"].items()
        }
    except UNREADABLE as error:
        return Called(failure=f"what they gave cannot be read ({type(error).__name__}: {error})"[:MOST_SHOWN])
    return Called(calls=calls) if set(calls) == components else Called(failure="not all of them were called")
