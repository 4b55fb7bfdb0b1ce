"""The loader obeys `runtime.json` only as far as a profile goes: whoever replaces a model's folder gains no more."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bundler.emitters.contract import EmitRequest
from bundler.emitters.python.permitting import PERMITTED
from bundler.model.artifacts import record_folder
from tests.integration.python.packages import Package, write_package

Alter = Callable[[dict[str, Any], Path], None]


def _save_elsewhere(variant: dict[str, Any], target: Path) -> None:
    variant["session"]["optimized_model_filepath"] = str(target)


def _profile(variant: dict[str, Any], target: Path) -> None:
    variant["session"].update(enable_profiling=True, profile_file_prefix=str(target))


def _write_context(variant: dict[str, Any], target: Path) -> None:
    variant["session_config"].update({"ep.context_enable": "1", "ep.context_file_path": str(target)})


def _collect_statistics(variant: dict[str, Any], target: Path) -> None:
    variant["session_config"]["session.collect_node_memory_stats_to_file"] = str(target)


def _name_outside(variant: dict[str, Any], target: Path) -> None:
    digest = hashlib.sha256(target.with_name("secret").read_bytes()).hexdigest()
    variant["files"].append({"path": "../../../secret", "size": 6, "sha256": digest})


def _open_outside(variant: dict[str, Any], target: Path) -> None:
    variant["model"] = str(target)


def _import_a_module(variant: dict[str, Any], _: Path) -> None:
    variant["providers"][0]["library"] = "antigravity"


def _pass_an_option(variant: dict[str, Any], target: Path) -> None:
    variant["providers"][0]["options"]["profiling_file_path"] = str(target)


def _choose_a_provider(variant: dict[str, Any], target: Path) -> None:
    variant["providers"].insert(0, {"name": "QNNExecutionProvider", "options": {"backend_path": str(target)}})


def _prepare_elsewhere(variant: dict[str, Any], target: Path) -> None:
    variant["prepare"] = {"kind": "cache", "thing": "cache", "options": {"cache_dir": str(target)}}


@pytest.mark.parametrize(
    "alter",
    [
        _save_elsewhere,
        _profile,
        _write_context,
        _collect_statistics,
        _name_outside,
        _open_outside,
        _import_a_module,
        _pass_an_option,
        _choose_a_provider,
        _prepare_elsewhere,
    ],
)
def test_what_a_profile_may_not_say_is_refused_and_nothing_is_written(
    package: Package, tmp_path: Path, alter: Alter
) -> None:
    (tmp_path / "secret").write_text("secret")
    package.rewrite(lambda component: alter(component["variants"][0], tmp_path / "target"))
    error = package.ask("self-test", "--json")["error"]
    assert error["message"] == "runtime.json has an entry that is not permitted"
    assert error["why"].startswith("cpu: ")
    assert sorted(entry.name for entry in tmp_path.iterdir() if entry.name.startswith("target")) == []


def test_a_golden_set_reads_no_file_outside(package: Package) -> None:
    golden = package.payload / "golden"
    index = golden / "index.json"
    text = index.read_text("utf-8")
    first = text.split('"file":')[1].split('"')[1]
    (package.payload / "outside.bin").write_bytes((golden / first).read_bytes())
    index.write_text(text.replace(f'"{first}"', '"../outside.bin"'), "utf-8")
    digest = record_folder(golden).digest
    package.rewrite(lambda component: component.update(golden_digest=digest))
    assert "names a file outside" in package.call("self-test", "--json").stdout


def test_a_stream_begins_with_no_file_outside(package: Package) -> None:
    link = {"input": "x", "output": "y", "initial": "file", "file": "../outside.bin"}
    package.rewrite(lambda component: component.update(state=[link]))
    assert "state: the file ../outside.bin is outside" in package.call("self-test", "--json").stdout


def test_every_option_of_a_bundle_is_among_those_that_it_may_have(cnn_request: EmitRequest, tmp_path: Path) -> None:
    package = write_package(cnn_request, tmp_path)
    permitted = json.loads((package.root / package.name / "_loader" / PERMITTED).read_text("utf-8"))
    assert permitted["providers"].keys() == {"CPUExecutionProvider"}
    assert not [name for part in ("session", "session_config") for name in permitted[part] if "file" in name]
    assert package.ask("self-test", "--json")["variants"][0]["status"] == "passed"
