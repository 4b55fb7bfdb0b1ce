"""Model packages of ONNX Runtime: what is written is opened by the runtime itself."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from bundler.emitters.contract import EmitRequest
from bundler.emitters.neutral.emitter import EMITTER
from bundler.emitters.neutral.model_package import DOCUMENTATION
from bundler.model.artifacts import record_folder
from bundler.model.errors import UsageError
from bundler.pipeline.packages import find_model, parse_package
from bundler.profiles.resolve import resolve_target
from bundler.support.data import data_root
from tests.support import models
from tests.support.bundles import combine_requests, with_component
from tests.support.neutral_bundles import make_files_request
from tests.support.package_reader import PackageError, open_package


@pytest.fixture(scope="module")
def package(request_: EmitRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("package")
    EMITTER.emit(dataclasses.replace(request_, format="ortpackage"), folder)
    return folder


def read(package: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((package / "manifest.json").read_text("ascii"))
    return data


def test_it_is_the_folder_of_files_with_a_manifest(package: Path, bundle: Path) -> None:
    held = {record.path for record in record_folder(package).files}
    assert held - {"manifest.json"} == {record.path for record in record_folder(bundle).files}


def test_the_manifest(package: Path, snapshot: SnapshotAssertion) -> None:
    assert read(package) == snapshot


def test_the_variants_keep_their_order(package: Path, request_: EmitRequest) -> None:
    variants = read(package)["components"]["model"]["variants"]
    assert list(variants) == [variant.name for variant in request_.config.components[0].variants]


def test_the_runtime_opens_it(package: Path) -> None:
    opened = open_package(package)
    assert opened.variants == {
        "model": {
            "htp": "QNNExecutionProvider",
            "series": "QNNExecutionProvider",
            "tensorrt": "TensorrtExecutionProvider",
            "openvino": "OpenVINOExecutionProvider",
            "xnnpack": "XnnpackExecutionProvider",
            "cpu": "CPUExecutionProvider",
        }
    }
    assert (opened.selected, opened.inputs) == ("cpu", 1)
    assert opened.folder.samefile(package / "models" / "cpu")


def test_a_hostile_name_is_no_obstacle_to_the_runtime(tmp_path: Path) -> None:
    request = make_files_request(models.cnn(), tmp_path / "made", name='a"b\\\n\udc80é\u202e', format="ortpackage")
    (tmp_path / "package").mkdir()
    EMITTER.emit(request, tmp_path / "package")
    assert open_package(tmp_path / "package").inputs == 1


def test_the_runtime_refuses_what_it_does_not_know(package: Path, tmp_path: Path) -> None:
    """Were that not so, the tests above would say little."""
    (tmp_path / "manifest.json").write_text(json.dumps({**read(package), "moon": 1}))
    with pytest.raises(PackageError, match="unknown field 'moon'"):
        open_package(tmp_path)


def test_the_readme_says_what_a_package_cannot(package: Path, bundle: Path) -> None:
    reported = (package / "README.md").read_text("utf-8")
    assert "## As a model package of ONNX Runtime" in reported
    assert "- files generated on the device: opened" in reported
    assert "model package" not in (bundle / "README.md").read_text("utf-8")


def test_of_the_cpu_alone_less_is_left_unsaid(tmp_path: Path) -> None:
    request = make_files_request(models.cnn(), tmp_path / "made", format="ortpackage")
    (tmp_path / "package").mkdir()
    EMITTER.emit(request, tmp_path / "package")
    assert "generated on the device" not in (tmp_path / "package" / "README.md").read_text("utf-8")


def refusal(request: EmitRequest, folder: Path) -> UsageError:
    with pytest.raises(UsageError) as error:
        EMITTER.emit(dataclasses.replace(request, format="ortpackage"), folder)
    assert error.value.hint is not None
    assert error.value.hint.endswith(f"see {DOCUMENTATION}")
    return error.value


def test_an_older_runtime_is_refused(request_: EmitRequest, tmp_path: Path) -> None:
    profile = request_.profile
    old = profile.model_copy(update={"runtime": profile.runtime.model_copy(update={"version": "1.27.1"})})
    error = refusal(dataclasses.replace(request_, profile=old), tmp_path)
    assert error.message == "onnxruntime 1.27.1 cannot open model packages: 1.28 was the first"
    assert not list(tmp_path.iterdir())


def test_the_web_is_refused(request_: EmitRequest, tmp_path: Path) -> None:
    error = refusal(dataclasses.replace(request_, profile=resolve_target("web-wasm", ())), tmp_path)
    assert error.message.startswith("applications on the web cannot open model packages")


def test_an_entry_that_writes_files_is_refused(request_: EmitRequest, tmp_path: Path) -> None:
    forbidden = {"session.collect_node_memory_stats_to_file": "x"}
    variant = dataclasses.replace(request_.config.components[0].variants[-1], session_config=forbidden)
    error = refusal(with_component(request_, variants=(variant,)), tmp_path)
    assert "must not set session.collect_node_memory_stats_to_file" in error.message


def test_several_components_are_written_and_read_and_opened_by_the_runtime(tmp_path: Path) -> None:
    requests = {
        "detect": make_files_request(models.cnn(), tmp_path / "cnn", "htp", "cpu", format="ortpackage"),
        "recognise": make_files_request(models.mlp(), tmp_path / "mlp", "cpu", format="ortpackage"),
    }
    several = combine_requests(requests, name="ocr", together=("detect", "recognise"))
    package = tmp_path / "ocr.ortpackage"
    EMITTER.emit(several, package)
    opened = open_package(package, component="recognise")
    assert opened.variants == {
        "detect": {"htp": "QNNExecutionProvider", "cpu": "CPUExecutionProvider"},
        "recognise": {"cpu": "CPUExecutionProvider"},
    }
    assert opened.folder == package / "models" / "recognise" / "cpu"
    assert "- which components must run on the variant of one name" in (package / "README.md").read_text("utf-8")
    for name in requests:
        found = find_model(parse_package(f"{package}?component={name}"))
        assert found.model == package / several.config.component(name).variant("cpu").model
    with pytest.raises(UsageError, match="holds several models: 'detect', 'recognise'"):
        find_model(parse_package(str(package)))


def test_the_documentation_that_is_named_is_there() -> None:
    assert (data_root("templates").parent / DOCUMENTATION).is_file()
