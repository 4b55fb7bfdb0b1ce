"""A folder of files: what an application gets that takes what it needs from there."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from bundler.emitters.contract import EmitRequest
from bundler.emitters.device import describe_device
from bundler.emitters.neutral.deferring import describe_deferral
from bundler.emitters.neutral.emitter import EMITTER
from bundler.model.artifacts import record_folder
from bundler.model.codec import decode
from bundler.model.errors import UsageError
from bundler.model.runtime import RuntimeConfig
from bundler.model.state import StateLink
from bundler.planning.traits import variant_needs
from bundler.profiles.resolve import resolve_target
from tests.support import models
from tests.support.bundles import combine_requests, with_component
from tests.support.neutral_bundles import make_files_request

HOSTILE = "# <script>alert(1)</script> | [x](http://y) `code`\n![i](j)\u202e${1}"


def readme(bundle: Path) -> str:
    return (bundle / "README.md").read_text("utf-8")


def test_what_is_in_the_folder(bundle: Path, snapshot: SnapshotAssertion) -> None:
    assert sorted(path.relative_to(bundle).as_posix() for path in bundle.rglob("*") if path.is_file()) == snapshot


def test_the_readme_tells_all_that_an_application_needs(bundle: Path, snapshot: SnapshotAssertion) -> None:
    assert readme(bundle) == snapshot


def test_a_bundle_of_the_cpu_alone_has_a_short_readme(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    request = make_files_request(models.cnn(), tmp_path / "made", fallback="strict")
    (tmp_path / "bundle").mkdir()
    EMITTER.emit(request, tmp_path / "bundle")
    assert readme(tmp_path / "bundle") == snapshot


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> EmitRequest:
    made = tmp_path_factory.mktemp("several")
    requests = {
        "detect": make_files_request(models.cnn(), made / "cnn", "htp", "cpu"),
        "recognise": make_files_request(models.mlp(), made / "mlp", "htp", "cpu"),
    }
    return combine_requests(requests, name="ocr", together=("detect", "recognise"))


def test_several_models_are_one_folder_with_one_readme(
    several: EmitRequest, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    EMITTER.emit(several, tmp_path / "bundle")
    assert readme(tmp_path / "bundle") == snapshot
    paths = {record.path for record in record_folder(tmp_path / "bundle").files}
    assert {"golden/detect/index.json", "golden/recognise/index.json"} <= paths
    assert {variant.model for _, variant in several.config.pairs} <= paths


def test_the_readme_names_what_the_next_call_takes(tmp_path: Path) -> None:
    request = make_files_request(models.mlp(), tmp_path / "made")
    state = (
        StateLink(input="x", output="y"),
        StateLink(input="past", output="present", initial="constant", value=1.5, grows=2),
    )
    EMITTER.emit(with_component(request, state=state), tmp_path / "bundle")
    text = readme(tmp_path / "bundle")
    assert "- y is x of the next call, at first zeros\n" in text
    assert "- present is past of the next call, at first 1.5 everywhere; it grows along axis 2\n" in text


def test_the_configuration_is_the_request_s(bundle: Path, request_: EmitRequest) -> None:
    assert decode(RuntimeConfig, json.loads((bundle / "runtime.json").read_bytes())) == request_.config


def test_every_variant_s_files_are_there_with_their_digests(bundle: Path, request_: EmitRequest) -> None:
    held = {(record.path, record.sha256) for record in record_folder(bundle).files}
    assert {
        (file.path, file.sha256) for variant in request_.config.components[0].variants for file in variant.files
    } <= held


def test_the_same_request_gives_the_same_bytes(request_: EmitRequest, bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    EMITTER.emit(request_, tmp_path / "again")
    assert record_folder(tmp_path / "again") == record_folder(bundle)


def test_nothing_is_vendored_and_nothing_is_locked(request_: EmitRequest, tmp_path: Path) -> None:
    (tmp_path / "bundle").mkdir()
    emitted = EMITTER.emit(request_, tmp_path / "bundle")
    assert (emitted.payload, emitted.package) == (".", "Tiny CNN")
    assert [component.provided_by for component in emitted.dependencies] == ["the application"]
    assert EMITTER.locks(request_.profile, "files") == {}


def test_names_of_a_model_are_no_markup(tmp_path: Path) -> None:
    model = models.cnn()
    model.graph.input[0].name = HOSTILE
    for node in model.graph.node:
        node.input[:] = [HOSTILE if name == "image" else name for name in node.input]
    request = make_files_request(model, tmp_path / "made", name=HOSTILE)
    (tmp_path / "bundle").mkdir()
    EMITTER.emit(request, tmp_path / "bundle")
    text = readme(tmp_path / "bundle")
    assert not re.search(r"(?<!\\)<script|(?<!\\)\[x(?<!\\)\]|\u202e", text)
    assert not re.search(r"^#[^#\n]*\n(?=!)", text, re.MULTILINE)
    row = next(line for line in text.splitlines() if "alert" in line and line.startswith("|"))
    assert len(re.findall(r"(?<!\\)\|", row)) == 4
    assert json.loads((tmp_path / "bundle" / "runtime.json").read_bytes())["components"][0]["model"] == HOSTILE


def test_the_plugins_of_a_profile_are_named(tmp_path: Path) -> None:
    profile = resolve_target("linux-arm64", ())
    runtime = profile.runtime.model_copy(update={"plugins": {"onnxruntime-qnn": "2.7.0"}})
    request = make_files_request(models.cnn(), tmp_path / "made")
    (tmp_path / "bundle").mkdir()
    EMITTER.emit(
        dataclasses.replace(request, profile=profile.model_copy(update={"runtime": runtime})), tmp_path / "bundle"
    )
    assert "| onnxruntime-qnn | 2.7.0 | plugin, or a package that one requires |" in readme(tmp_path / "bundle")


def test_android_s_runtime_is_named_as_maven_has_it(tmp_path: Path) -> None:
    profile = resolve_target("linux-arm64", ())
    platform = profile.platform.model_copy(update={"system": "android"})
    plugins = {"onnxruntime-android-qnn": "2.6.0", "moon": "1"}
    runtime = profile.runtime.model_copy(update={"package": "onnxruntime-android", "plugins": plugins})
    changed = profile.model_copy(update={"platform": platform, "runtime": runtime})
    request = dataclasses.replace(make_files_request(models.cnn(), tmp_path / "made"), profile=changed)
    (tmp_path / "bundle").mkdir()
    EMITTER.emit(request, tmp_path / "bundle")
    reported = readme(tmp_path / "bundle")
    assert "| com.microsoft.onnxruntime:onnxruntime-android | 1.31.1 | runtime |" in reported
    assert "| com.qualcomm.qti:onnxruntime-android-qnn | 2.6.0 | plugin" in reported
    assert "| moon | 1 | plugin" in reported


def test_an_unknown_format_is_refused(request_: EmitRequest, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no format 'wheel'") as error:
        EMITTER.emit(dataclasses.replace(request_, format="wheel"), tmp_path)
    assert error.value.hint == "its formats are files, ortpackage"


NAMES = ("NchwcFusionX", "Odd_Name")


def test_the_optimisers_that_must_not_run_stand_in_the_readme_as_they_are_set(tmp_path: Path) -> None:
    request = make_files_request(models.cnn(), tmp_path / "made", format="ortpackage")
    variant = dataclasses.replace(request.config.components[0].variants[0], disabled_optimizers=NAMES)
    (tmp_path / "bundle").mkdir()
    EMITTER.emit(with_component(request, variants=(variant,)), tmp_path / "bundle")
    reported = readme(tmp_path / "bundle")
    row = next(line for line in reported.splitlines() if line.startswith("| `disabled_optimizers`"))
    assert row.replace("\\", "").endswith("| optimization.disable_specified_optimizers | NchwcFusionX;Odd_Name |")
    assert "`optimization.disable_specified_optimizers` to all of these names, separated by semicolons" in reported
    assert "- optimisers that must not run at load time" in reported


def test_where_none_is_left_out_nothing_is_said_of_optimisers(bundle: Path) -> None:
    assert "optimizers" not in readme(bundle)


@pytest.mark.parametrize(
    ("target", "variant", "reported"),
    [
        ("l4", "tensorrt", "It can only be generated on the device."),
        ("rtx-4090", "tensorrt-rtx", "fix all of them (--dim, --shape) to compile it."),
        ("rtx-4090-windows", "tensorrt-rtx", "The target's profile asks for this."),
    ],
)
def test_why_it_is_left_to_the_device(target: str, variant: str, reported: str) -> None:
    assert describe_deferral(resolve_target(target, ()), variant).endswith(reported)


@pytest.mark.parametrize(
    ("target", "version", "times"),
    [("ios-arm64", "1.24.2", 0), ("ios-arm64", "1.29.0", 1), ("l4", "1.31.1", 1)],
)
def test_usage_is_only_said_to_be_reported_by_a_runtime_that_does(
    target: str, version: str, times: int, tmp_path: Path
) -> None:
    profile = resolve_target(target, (f"runtime.version={version}",))
    request = dataclasses.replace(make_files_request(models.cnn(), tmp_path / "made"), profile=profile)
    (tmp_path / "bundle").mkdir()
    EMITTER.emit(request, tmp_path / "bundle")
    assert readme(tmp_path / "bundle").count("This runtime may send telemetry") == times


@pytest.mark.parametrize(("minimum", "lines"), [("15.1", ["for cpu: iOS 18 or later"]), ("18", [])])
def test_one_version_of_the_system_is_asked_for(minimum: str, lines: list[str], tmp_path: Path) -> None:
    profile = resolve_target("iphone-16-pro", (f"platform.minimum={minimum}",))
    request = dataclasses.replace(make_files_request(models.cnn(), tmp_path / "made"), profile=profile)
    (plain,) = request.config.components[0].variants
    needs = variant_needs(profile.variants[0], profile)
    variant = dataclasses.replace(plain, requires=dataclasses.replace(plain.requires, needs=needs))
    system, *reported = describe_device(with_component(request, variants=(variant,))).needs
    assert system == f"iOS {minimum} or later on arm64"
    assert [line.partition(" (")[0] for line in reported] == lines


@pytest.mark.parametrize("compiled", [True, False])
def test_only_what_was_compiled_is_said_to_be(tmp_path: Path, *, compiled: bool) -> None:
    request = make_files_request(models.cnn(), tmp_path / "made", *(["htp"] if compiled else []))
    (tmp_path / "bundle").mkdir()
    EMITTER.emit(request, tmp_path / "bundle")
    assert ("the models were optimised and compiled for them" in readme(tmp_path / "bundle")) is compiled


def test_an_application_is_asked_to_turn_telemetry_off_when_the_bundle_is_built(tmp_path: Path) -> None:
    request = make_files_request(models.cnn(), tmp_path / "made")
    (tmp_path / "bundle").mkdir()
    (note,) = EMITTER.emit(request, tmp_path / "bundle").notes
    assert "ORT_DISABLE_TELEMETRY=1" in note
    assert "ORT_DISABLE_TELEMETRY=1" in readme(tmp_path / "bundle")
