"""What is believed of the program that calls a bundle's classes, and what is said of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bundler.devices.contract import Command, Facts, Outcome
from bundler.emitters.brought import MAX_BYTES
from bundler.emitters.jvm import calling
from bundler.emitters.jvm.calling import Called, Classes, call_classes
from bundler.emitters.reports import Ending, Recorded
from bundler.environments.registry import Environments
from bundler.model.events import SILENT
from bundler.model.runtime import RuntimeConfig
from tests.support import models
from tests.support.bundles import combine_requests, make_request


class Machine:
    """A device on which every program prints one text."""

    facts = Facts(name="jvm", system="Linux", machine="x86_64", runs="classes")

    def __init__(self, output: str, code: int = 0) -> None:
        self.outcome = Outcome(code=code, output=output, errors="it broke", seconds=1.0)
        self.request: Mapping[str, Any] = {}

    def put(self, source: Path, name: str = "") -> str:
        del name
        return str(source)

    def run(self, command: Command) -> Outcome:
        self.request = json.loads(Path(command.argv[-1]).read_text("ascii"))
        return self.outcome


@pytest.fixture
def config(tmp_path: Path) -> RuntimeConfig:
    parts = {name: make_request(models.mlp(hidden=size), tmp_path / name) for name, size in (("see", 16), ("hear", 9))}
    return combine_requests(parts).config


def end(*passed: str, status: str = "passed") -> Ending:
    outcomes = [{"component": name, "variant": "cpu", "status": status} for name in passed]
    return Ending(report={"variants": outcomes}, failure=None, seconds=1.0)


def call(config: RuntimeConfig, machine: Machine, tested: Ending, package: str = "com.acme.several") -> Called:
    classes = Classes(
        config=config,
        package=package,
        loader=f"{package}.loader",
        sha256="0",
        path=("a.jar",),
        recorded=dict.fromkeys(("see", "hear"), Recorded(samples=3, output_bytes=(4, 4, MAX_BYTES))),
        outputs=Path("outputs"),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calling, "compile_caller", lambda *_: Path("calls"))
        return call_classes(classes, tested, machine, Environments(Path("cache")), SILENT)


HONEST = {name: {"variant": "cpu", "fault": ""} for name in ("see", "hear")}


def test_the_program_is_told_all_names(config: RuntimeConfig) -> None:
    machine = Machine(json.dumps({"calls": HONEST}))
    called = call(config, machine, end("see", "hear"))
    see = config.components[0]
    assert machine.request["class"] == "com.acme.several.SeveralBundle"
    about = machine.request["components"]["see"]
    assert (about["class"], about["getter"]) == ("com.acme.several.See", "getSee")
    assert list(about["inputs"]) == [port.name for port in see.signature.inputs]
    assert about["wanted"] == {"cpu": {"folder": "outputs/0", "copy": "0-copy", "samples": 2, "recorded": 3}}
    assert called.find_fault(see) == ""
    assert called.describe(see, see.variants[0]) == "; its class See gave the same outputs"
    assert called.describe(see, replace(see.variants[0], name="gpu")) == ""


@pytest.mark.parametrize(
    ("output", "code", "reason"),
    [
        (json.dumps({"calls": {**HONEST, "see": {"variant": "cpu", "fault": "See: run"}}}), 0, "See: run"),
        (json.dumps({"calls": {"hear": HONEST["hear"]}}), 0, "See cannot be used: not all of them were called"),
        (json.dumps({"calls": []}), 0, "See cannot be used: what they gave cannot be read"),
        (json.dumps({"unopened": "IntegrityException: no"}), 0, "See cannot be used: IntegrityException: no"),
        ("", 134, "See cannot be used: it exited with code 134: it broke"),
    ],
)
def test_what_cannot_be_called_is_a_fault(config: RuntimeConfig, output: str, code: int, reason: str) -> None:
    assert reason in call(config, Machine(output, code), end("see", "hear")).find_fault(config.components[0])


def test_a_package_that_bundler_never_gives_is_a_fault(config: RuntimeConfig) -> None:
    called = call(config, Machine(json.dumps({"calls": HONEST})), end("see", "hear"), "Bad")
    assert "cannot be the package" in called.find_fault(config.components[0])


@pytest.mark.parametrize("tested", [end("see"), end("see", "hear", status="unavailable")])
def test_what_does_not_run_here_is_not_called_and_nothing_is_said(config: RuntimeConfig, tested: Ending) -> None:
    called = call(config, Machine("", 1), tested)
    see = config.components[0]
    assert (called.find_fault(see), called.describe(see, see.variants[0])) == ("", "")


def test_models_that_belong_together_need_a_variant_of_one_name(config: RuntimeConfig) -> None:
    machine = Machine(json.dumps({"calls": HONEST}))
    apart = [
        {"component": "see", "variant": "cpu", "status": "passed"},
        {"component": "hear", "variant": "gpu", "status": "passed"},
    ]
    tested = Ending(report={"variants": apart}, failure=None, seconds=1.0)
    assert call(replace(config, together=("see", "hear")), machine, tested) == Called()
    assert call(config, machine, tested).calls
