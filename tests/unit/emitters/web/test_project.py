"""The package as a folder: what a user gets."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from bundler.emitters.contract import EmitRequest
from bundler.emitters.web.emitter import EMITTER
from bundler.emitters.web.npm import NpmPackage
from bundler.model.artifacts import record_folder
from bundler.model.errors import DefectError, EnvironmentMissingError, UsageError
from bundler.profiles.resolve import resolve_target
from tests.support.bundles import sole_component, with_component
from tests.support.web_bundles import StandIn, runtime_file
from tests.unit.emitters.web.conftest import evaluate, with_web


def emit(request: EmitRequest, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    EMITTER.emit(request, folder)
    return folder


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_what_is_in_the_folder(bundle: Path, snapshot: SnapshotAssertion) -> None:
    files = sorted(path.relative_to(bundle).as_posix() for path in bundle.rglob("*") if path.is_file())
    assert [file for file in files if not file.startswith(("loader/", "demo/"))] == snapshot
    assert {"loader/index.js", "loader/types.d.ts", "demo/index.html", "demo/demo.css"} <= set(files)
    assert not [file for file in files if file.startswith(("_proof", "templates")) or file.endswith(".j2")]


def read_data(bundle: Path, node: str) -> dict[str, Any]:
    code = "".join(
        f"import * as {name} from {json.dumps(str(bundle / f'{name}.js'))};" for name in ("runtime", "golden")
    )
    code += "const assets = {...runtime.assets, ...golden.assets}; console.log(JSON.stringify({...runtime, assets}))"
    return dict(evaluate(node, code))


def check_assets(bundle: Path, node: str) -> dict[str, Any]:
    """Every file is the one that is named, whole and in parts."""
    assets: dict[str, Any] = read_data(bundle, node)["assets"]
    for path, asset in assets.items():
        parts = [Path(part["url"].removeprefix("file://").partition("?")[0]).read_bytes() for part in asset["parts"]]
        assert [(len(part), sha256(part)) for part in parts] == [(p["size"], p["sha256"]) for p in asset["parts"]], path
        data = b"".join(parts)
        assert (len(data), sha256(data)) == (asset["size"], asset["sha256"]), path
    return assets


def test_every_file_that_the_loader_fetches_is_named_with_its_digest(bundle: Path, node: str) -> None:
    assets = check_assets(bundle, node)
    held = {path.relative_to(bundle).as_posix() for path in (bundle / "payload").rglob("*.*")}
    assert held - {"payload/runtime.json"} == {path for path in assets if path.startswith("payload/")}


def test_an_import_has_the_files_of_its_variants_alone(bundle: Path, node: str) -> None:
    exports = json.loads((bundle / "package.json").read_text("utf-8"))["exports"]
    runs = [f"./{name}" for name in ("webgpu", "webgpu/jspi", "webgpu/asyncify", "wasm")]
    assert list(exports) == [".", *runs, "./self-test", "./runtime.json", "./package.json"]
    files = {
        "webgpu": ["ort.jspi.bundle.min.mjs", "ort.webgpu.bundle.min.mjs"],
        "webgpu.jspi": ["ort.jspi.bundle.min.mjs"],
        "webgpu.asyncify": ["ort.webgpu.bundle.min.mjs"],
        "wasm": ["ort.wasm.bundle.min.mjs"],
    }
    for stem, modules in files.items():
        assert all((bundle / "variants" / f"{stem}{ending}").is_file() for ending in (".js", ".node.js", ".d.ts"))
        module = json.dumps(str(bundle / f"runtime.{stem}.js"))
        data = evaluate(node, f"import * as data from {module}; console.log(JSON.stringify(data))")
        assert [path for path in data["assets"] if path.endswith(".mjs")] == [f"vendor/{name}" for name in modules]
        (component,) = data["config"]["components"]
        assert [variant["name"] for variant in component["variants"]] == [stem.partition(".")[0]]
        assert not [path for path in data["assets"] if "golden" in path]


def test_an_import_says_which_variant_it_leaves_out_and_where_that_is(bundle: Path, node: str) -> None:
    code = f"""
        import {{ load, probe }} from {json.dumps(str(bundle / "variants" / "wasm.node.js"))};
        const {{ name, message, hint }} = await load({{ variant: "webgpu" }}).catch((error) => error);
        console.log(JSON.stringify([await probe(), {{ name, message, hint }}]));
    """
    states, fault = evaluate(node, code)
    absent = "the variant webgpu is not part of tiny-cnn/wasm"
    advice = "import tiny-cnn/webgpu or tiny-cnn"
    assert [state["name"] for state in states] == ["webgpu", "wasm"]
    assert {state["name"]: state["reason"] for state in states} == {"webgpu": f"{absent}: {advice}", "wasm": ""}
    assert fault == {"name": "InputError", "message": absent, "hint": advice}


def test_bundlers_keep_small_files_as_files(bundle: Path, node: str) -> None:
    for asset in check_assets(bundle, node).values():
        assert [part["url"].endswith("?no-inline") for part in asset["parts"]] == [asset["size"] < 4096]


def test_the_configuration_is_that_of_the_payload(bundle: Path, node: str) -> None:
    text = (bundle / "payload" / "runtime.json").read_bytes()
    data = read_data(bundle, node)
    assert data["config"] == json.loads(text)
    assert data["identity"] == {"package": "tiny-cnn", "version": "1.2.3", "config_sha256": sha256(text)}
    assert list(data["builds"]) == ["jspi", "asyncify", "wasm"]


def test_variants_with_equal_models_share_them(bundle: Path) -> None:
    assert [path.name for path in (bundle / "payload" / "models").iterdir()] == ["webgpu"]


def test_only_the_builds_that_variants_need_are_vendored(request_: EmitRequest, tmp_path: Path) -> None:
    wasm = sole_component(request_).variants[1]
    request = dataclasses.replace(with_component(request_, variants=(wasm,)), profile=resolve_target("web-wasm", ()))
    vendored = {path.name for path in (emit(request, tmp_path / "bundle") / "vendor").iterdir()}
    assert vendored == {
        "ort.wasm.bundle.min.mjs.txt",
        "ort-wasm-simd-threaded.wasm",
        "LICENSE",
        "ThirdPartyNotices.txt",
    }


def test_vendored_files_are_untouched(bundle: Path) -> None:
    for path in (bundle / "vendor").glob("ort*"):
        assert path.read_bytes() == runtime_file(path.name.removesuffix(".txt"))


def test_the_same_request_gives_the_same_bytes(request_: EmitRequest, bundle: Path, tmp_path: Path) -> None:
    assert record_folder(emit(request_, tmp_path / "again")) == record_folder(bundle)


def test_what_is_reported_of_it(request_: EmitRequest, tmp_path: Path) -> None:
    (tmp_path / "bundle").mkdir()
    emitted = EMITTER.emit(request_, tmp_path / "bundle")
    assert (emitted.payload, emitted.package) == ("payload", "tiny-cnn")
    component, loader = emitted.dependencies
    assert loader.file == "loader"
    assert component.purl == "pkg:npm/onnxruntime-web@1.30.0"
    assert component.licence == "MIT"
    shipped = record_folder(tmp_path / "bundle" / "vendor").files
    assert {record.path: record.sha256 for record in component.files} == {
        f"vendor/{record.path}": record.sha256 for record in shipped
    }
    assert "MIT License" in component.licence_text
    assert "Notices" in component.licence_text


def test_large_files_are_stored_in_parts(request_: EmitRequest, tmp_path: Path, node: str) -> None:
    folder = emit(with_web(request_, part_mb=0.01), tmp_path / "bundle")
    assert max(path.stat().st_size for path in (folder / "vendor").glob("*.wasm*")) <= 10_000
    name = "ort-wasm-simd-threaded.asyncify.wasm"
    parts = sorted((folder / "vendor").glob(f"{name}.*"))
    assert [path.suffix for path in parts] == [".000", ".001", ".002"]
    assert b"".join(path.read_bytes() for path in parts) == runtime_file(name)
    check_assets(folder, node)
    assert "No file is larger than 0.01 MB" in (folder / "README.md").read_text()


def test_a_package_is_private_unless_the_profile_says_otherwise(
    request_: EmitRequest, bundle: Path, tmp_path: Path
) -> None:
    assert json.loads((bundle / "package.json").read_text())["private"] is True
    assert "web.private=false" in (bundle / "README.md").read_text()
    public = emit(with_web(request_, private=False), tmp_path / "bundle")
    assert "private" not in json.loads((public / "package.json").read_text())
    assert "web.private" not in (public / "README.md").read_text()


def test_an_unknown_format_is_refused(request_: EmitRequest, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no format 'wheel'") as error:
        EMITTER.emit(dataclasses.replace(request_, format="wheel"), tmp_path)
    assert error.value.hint == "its formats are dir, tgz"


@pytest.mark.parametrize("builds", [("webgl",), ()])
def test_a_variant_without_a_build_is_a_defect(request_: EmitRequest, tmp_path: Path, builds: tuple[str, ...]) -> None:
    variant = dataclasses.replace(sole_component(request_).variants[1], builds=builds)
    request = with_component(request_, variants=(variant,))
    with pytest.raises(DefectError, match="no build of the web runtime"):
        EMITTER.emit(request, tmp_path)


def test_a_runtime_without_licence_texts_is_refused(
    request_: EmitRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve = StandIn.resolve

    def without_notices(self: StandIn, *arguments: object) -> object:
        environment = resolve(self, *arguments)
        next(self.root.rglob("ThirdPartyNotices.txt")).unlink()
        return environment

    monkeypatch.setattr(StandIn, "resolve", without_notices)
    with pytest.raises(EnvironmentMissingError, match=r"lacks ThirdPartyNotices\.txt"):
        EMITTER.emit(request_, tmp_path)


def test_a_lock_of_all_that_is_fetched() -> None:
    locks = EMITTER.locks(resolve_target("web-webgpu", ()), "dir")
    assert locks == {
        "npm-onnxruntime-web-1.30.0": NpmPackage(name="onnxruntime-web", version="1.30.0"),
        "nodejs": None,
    }
