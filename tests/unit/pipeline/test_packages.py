"""Model packages of ONNX Runtime as input: which model in them is taken, and what is refused."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import helper

from bundler.cli.requests import make_requests
from bundler.emitters.neutral.emitter import EMITTER
from bundler.model.errors import ModelError, UsageError
from bundler.pipeline.package_manifest import is_package, read_components
from bundler.pipeline.packages import (
    PackageReference,
    find_model,
    is_package_argument,
    join_model,
    parse_package,
)
from tests.support import models
from tests.support.neutral_bundles import make_files_request
from tests.support.package_reader import open_package

CPU = "CPUExecutionProvider"
QNN = "QNNExecutionProvider"


def body(**changes: Any) -> dict[str, Any]:
    return {"ep": CPU, "executor_info": {"ort": {"model_file": "model.onnx"}}, **changes}


def write(root: Path, variants: dict[str, Any] | None = None, **manifest: Any) -> PackageReference:
    """A package whose variants all have a folder with a small model."""
    variants = {"cpu": body()} if variants is None else variants
    for name in variants:
        (root / name).mkdir(parents=True, exist_ok=True)
        (root / name / "model.onnx").write_bytes(models.mlp().SerializeToString())
    data = {"schema_version": "1.0", "components": {"model": {"variants": variants}}, **manifest}
    (root / "manifest.json").write_text(json.dumps(data))
    return PackageReference(folder=root)


def compiled() -> bytes:
    """A model whose one node stands for compiled code."""
    value = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])
    node = helper.make_node("EPContext", ["x"], ["y"], domain="com.microsoft")
    graph = helper.make_graph([node], "g", [value], [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1])])
    return helper.make_model(graph).SerializeToString()


def why(reference: PackageReference) -> str:
    with pytest.raises(ModelError) as error:
        find_model(reference)
    return " ".join((error.value.message, *error.value.details))


def test_what_bundler_writes_bundler_reads(tmp_path: Path) -> None:
    request = make_files_request(models.cnn(), tmp_path / "made", "htp", "xnnpack", "cpu", format="ortpackage")
    (tmp_path / "package").mkdir()
    EMITTER.emit(request, tmp_path / "package")
    found = find_model(PackageReference(folder=tmp_path / "package"))
    assert (found.component, found.variant, found.weights) == ("model", "cpu", None)
    assert found.model.samefile(tmp_path / "package" / "models" / "cpu" / "model.onnx")


def test_the_cpu_s_model_is_taken_wherever_it_stands(tmp_path: Path) -> None:
    assert find_model(write(tmp_path, {"gpu": body(ep="CUDAExecutionProvider"), "cpu": body()})).variant == "cpu"


def test_one_for_any_provider_comes_before_one_for_another(tmp_path: Path) -> None:
    anybody = body()
    del anybody["ep"]
    assert find_model(write(tmp_path, {"gpu": body(ep="CUDAExecutionProvider"), "any": anybody})).variant == "any"


def test_what_was_compiled_is_left_aside(tmp_path: Path) -> None:
    variants = {"npu": body(ep=QNN, compatibility_string="v2"), "gpu": body(ep="CUDAExecutionProvider")}
    assert find_model(write(tmp_path, variants)).variant == "gpu"


def test_a_package_of_compiled_models_alone_is_refused(tmp_path: Path) -> None:
    reference = write(tmp_path / "p", {"a": body(ep=QNN, compatibility_string="v2"), "b": body(ep=QNN), "c": body()})
    (tmp_path / "p" / "b" / "model.onnx").write_bytes(compiled())
    (tmp_path / "p" / "c" / "model.onnx").rename(tmp_path / "p" / "c" / "model.ort")
    manifest = json.loads((tmp_path / "p" / "manifest.json").read_text())
    manifest["components"]["model"]["variants"]["c"]["executor_info"]["ort"]["model_file"] = "model.ort"
    (tmp_path / "p" / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ModelError, match="the model package p holds no model in plain ONNX") as error:
        find_model(reference)
    assert error.value.details == (
        "variant 'a': it was compiled for QNNExecutionProvider",
        "variant 'b': it was compiled for QNNExecutionProvider",
        "variant 'c': it is in the ORT format",
    )


def test_a_variant_that_names_no_file_is_none(tmp_path: Path) -> None:
    assert "variant 'cpu': it names no file for ONNX Runtime" in why(write(tmp_path, {"cpu": {"ep": CPU}}))


def test_a_variant_with_a_name_that_no_file_system_takes_is_refused(tmp_path: Path) -> None:
    reference = write(tmp_path)
    variants = {"a" * 5000: body()}
    manifest = {"schema_version": "1.0", "components": {"model": {"variants": variants}}}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    assert "it has no 'model.onnx'" in why(reference)


def test_external_components_and_orders(tmp_path: Path) -> None:
    (tmp_path / "decoder" / "cpu").mkdir(parents=True)
    (tmp_path / "decoder" / "cpu" / "m.onnx").write_bytes(models.mlp().SerializeToString())
    (tmp_path / "decoder" / "cpu" / "ort_info.json").write_text(json.dumps({"model_file": "m.onnx"}))
    component = {"variants": {"cpu": {"ep": CPU, "executor_info": {"ort": "ort_info.json"}}}}
    (tmp_path / "decoder" / "component.json").write_text(json.dumps(component))
    manifest = {"schema_version": "1.0", "components": {"decoder": "decoder"}}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    found = find_model(PackageReference(folder=tmp_path))
    assert (found.component, found.model.name) == ("decoder", "m.onnx")
    assert open_package(tmp_path, "decoder").selected == "cpu"


def share(root: Path, **files: bytes) -> str:
    """A shared asset; its digest as `sha256sum` would make it."""
    lines = [f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted(files.items())]
    digest = hashlib.sha256("".join(lines).encode()).hexdigest()
    folder = root / "shared_assets" / f"sha256-{digest}"
    folder.mkdir(parents=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return digest


def share_weights(root: Path) -> tuple[PackageReference, str]:
    """A model whose weights stand in a shared asset, as packages of several providers have them."""
    model = models.mlp(hidden=64)
    (root / "parts").mkdir(parents=True)
    onnx.save(model, root / "parts" / "model.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    digest = share(root, **{"w.bin": (root / "parts" / "w.bin").read_bytes()})
    (root / "parts" / "w.bin").unlink()
    options = {"session.model_external_initializers_file_folder_path": f"sha256:{digest}"}
    orders = {"ort": {"model_file": "model.onnx", "session_options": options}}
    reference = write(root, {})
    data = json.loads((root / "manifest.json").read_text())
    data["components"]["model"]["variants"]["cpu"] = body(variant_directory="parts", executor_info=orders)
    (root / "manifest.json").write_text(json.dumps(data))
    return reference, digest


def test_weights_that_stand_apart_are_put_beside_the_model(tmp_path: Path) -> None:
    reference, _ = share_weights(tmp_path / "p")
    assert open_package(tmp_path / "p").inputs == 1
    found = find_model(reference)
    (tmp_path / "joined").mkdir()
    joined = join_model(found, tmp_path / "joined")
    onnx.checker.check_model(str(joined), full_check=True)
    assert sorted(path.name for path in joined.parent.iterdir()) == ["model.onnx", "w.bin"]


def test_a_model_that_is_whole_stays_where_it_is(tmp_path: Path) -> None:
    found = find_model(write(tmp_path / "p"))
    assert join_model(found, tmp_path / "nowhere") == found.model


def test_an_altered_shared_asset_is_refused(tmp_path: Path) -> None:
    reference, digest = share_weights(tmp_path / "p")
    weights = tmp_path / "p" / "shared_assets" / f"sha256-{digest}" / "w.bin"
    weights.write_bytes(b"\0" + weights.read_bytes()[1:])
    assert f"the files of the shared asset {digest} do not match this digest" in why(reference)


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        ({"schema_version": "2.0"}, "it has schema 2.0; this bundler reads 1"),
        ({"schema_version": "moon"}, "its schema_version is not a version"),
        ({"components": ["model"]}, "its layout is older than ONNX Runtime 1.28"),
        ({"components": {}}, "it has no components"),
        ({"components": {"model": 3}}, "component 'model' is neither a path nor an object"),
        ({"components": {"model": {}}}, "component 'model' has no variants"),
        ({"components": {"model": "../elsewhere"}}, "the path '../elsewhere' leaves the package"),
        ({"components": {"model": "C:\\x"}}, "leaves the package"),
        ({"components": {"model": "absent"}}, "it has no 'absent'"),
        ({"components": {"model": "\ud800"}}, "it has no '\\ud800'"),
        ({"layout": "installed"}, "its layout must be portable"),
        ({"moon": 1}, "the manifest has the unknown field 'moon'"),
        ({"shared_assets": []}, "shared_assets of the manifest is not an object"),
    ],
)
def test_a_manifest_that_does_not_fit_says_why(tmp_path: Path, manifest: dict[str, Any], reason: str) -> None:
    assert reason in why(write(tmp_path, **manifest))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"ep": 3}, "ep of variant 'cpu' is not a string"),
        ({"moon": 1}, "variant 'cpu' has the unknown field 'moon'"),
        ({"variant_directory": "../.."}, "leaves the package"),
        ({"variant_directory": "/etc"}, "leaves the package"),
        ({"executor_info": {"ort": {"model_file": "../../etc/passwd"}}}, "leaves the package"),
        ({"executor_info": {"ort": {"model_file": f"sha256:{'0' * 64}/m.onnx"}}}, "it has no 'shared_assets/sha256-"),
        ({"executor_info": {"ort": []}}, "executor_info of variant 'cpu' is not an object"),
    ],
)
def test_a_variant_that_does_not_fit_says_why(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    assert reason in why(write(tmp_path, {"cpu": body(**changes)}))


def test_a_link_that_leads_out_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret.onnx").write_bytes(b"x")
    reference = write(tmp_path / "p")
    (tmp_path / "p" / "cpu" / "model.onnx").unlink()
    (tmp_path / "p" / "cpu" / "model.onnx").symlink_to(tmp_path / "secret.onnx")
    assert "leads through something other than a folder or a regular file" in why(reference)


@pytest.mark.parametrize("kind", ["symbolic", "hard", "folder", "fifo"])
def test_weights_with_a_link_among_them_copy_nothing(tmp_path: Path, kind: str) -> None:
    """Weights that stand apart are copied beside the model: a link among them would carry off what it points to."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "private.txt").write_text("the user's own")
    reference = write_weights_apart(tmp_path / "p")
    place = tmp_path / "p" / "weights" / "w2.bin"
    if kind == "symbolic":
        place.symlink_to(tmp_path / "home" / "private.txt")
    elif kind == "hard":
        place.hardlink_to(tmp_path / "home" / "private.txt")
    elif kind == "folder":
        place.symlink_to(tmp_path / "home", target_is_directory=True)
    else:
        os.mkfifo(place)
    found = find_model(reference)
    (tmp_path / "joined").mkdir()
    with pytest.raises(ModelError) as error:
        join_model(found, tmp_path / "joined")
    assert "the folder of its weights may hold only regular files: 'w2.bin'" in error.value.details[0]
    assert not list((tmp_path / "joined").iterdir())


def write_weights_apart(root: Path) -> PackageReference:
    """A model whose weights stand in a folder of the package that no digest names."""
    (root / "weights").mkdir(parents=True)
    (root / "weights" / "w.bin").write_bytes(b"weights")
    options = {"session.model_external_initializers_file_folder_path": "weights"}
    orders = {"ort": {"model_file": "cpu/model.onnx", "session_options": options}}
    return write(root, {"cpu": body(variant_directory=".", executor_info=orders)})


@pytest.mark.parametrize("name", ["manifest.json", "decoder/component.json"])
def test_a_description_that_never_ends_is_not_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "decoder").mkdir()
    (tmp_path / "manifest.json").write_text('{"schema_version": "1.0", "components": {"decoder": "decoder"}}')
    (tmp_path / name).unlink(missing_ok=True)
    (tmp_path / name).symlink_to("/dev/zero")
    assert f"{Path(name).name!r} is not a regular file" in why(PackageReference(folder=tmp_path))


def test_a_newer_minor_may_have_fields_of_its_own(tmp_path: Path) -> None:
    write(tmp_path, schema_version="1.3", moon=1)
    assert list(read_components(tmp_path)) == ["model"]


def test_of_several_models_one_must_be_named(tmp_path: Path) -> None:
    two = {"encoder": {"variants": {}}, "decoder": {"variants": {"cpu": body()}}}
    write(tmp_path / "p", components=two)
    with pytest.raises(UsageError, match="holds several models: 'encoder', 'decoder'") as caught:
        find_model(PackageReference(folder=tmp_path / "p"))
    assert (caught.value.hint or "").endswith("name each: 'NAME=PACKAGE?component=NAME' and --bundle")
    assert find_model(parse_package(f"{tmp_path / 'p'}?component=decoder")).component == "decoder"
    with pytest.raises(UsageError, match="has no such component"):
        find_model(parse_package(f"{tmp_path / 'p'}?component=moon"))


def test_a_model_whose_name_is_none_of_a_component_can_be_given_one(tmp_path: Path) -> None:
    package = tmp_path / "x.ortpackage"
    variants = {"variants": {"cpu": body()}}
    write(package, components={"Text-Encoder": variants, "decoder": variants})
    with pytest.raises(UsageError) as caught:
        make_requests((package,), ("linux-x64",), {}, ())
    assert "x.ortpackage: 'Text-Encoder' cannot be the name of a component" in caught.value.message
    named = [Path(text) for text in shlex.split(caught.value.hint or "") if text.startswith("NAME=")]
    renamed = [Path(str(text).replace("NAME", name, 1)) for name, text in zip(("text", "read"), named, strict=True)]
    (request,) = make_requests(renamed, ("linux-x64",), {"name": "both"}, ())
    assert [str(part.model) for part in request.components.values()] == [
        f"{package}?component=Text-Encoder",
        f"{package}?component=decoder",
    ]


def test_a_variant_may_be_named(tmp_path: Path) -> None:
    write(tmp_path / "p", {"cpu": body(), "gpu": body(ep="CUDAExecutionProvider")})
    assert find_model(parse_package(f"{tmp_path / 'p'}?variant=gpu")).variant == "gpu"
    with pytest.raises(UsageError, match="has no such variant") as error:
        find_model(parse_package(f"{tmp_path / 'p'}?variant=npu"))
    assert error.value.hint == "it has 'cpu', 'gpu'"


@pytest.mark.parametrize("query", ["moon=1", "component=", "component=a&component=b", "x"])
def test_an_argument_that_says_something_else_is_refused(tmp_path: Path, query: str) -> None:
    write(tmp_path / "p")
    with pytest.raises(UsageError, match="names neither a component nor a variant"):
        parse_package(f"{tmp_path / 'p'}?{query}")


def test_what_is_a_package_and_what_is_not(tmp_path: Path) -> None:
    write(tmp_path / "cnn.ortpackage")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "manifest.json").write_text('{"name": "an extension of a browser"}')
    assert is_package(tmp_path / "cnn.ortpackage")
    assert is_package_argument(f"{tmp_path / 'cnn.ortpackage'}?variant=cpu")
    assert not is_package_argument(str(tmp_path / "other"))
    assert not is_package_argument(str(tmp_path / "model.onnx"))
    assert parse_package(str(tmp_path / "cnn.ortpackage")).name == "cnn"
