"""What a first visit fetches is counted file by file."""

from __future__ import annotations

import dataclasses
import gzip
from pathlib import Path

import brotli
import pytest

from bundler.emitters.contract import EmitRequest
from bundler.emitters.web import compression
from bundler.emitters.web.compression import Compressor, choose_quality
from bundler.emitters.web.emitter import EMITTER
from bundler.emitters.web.modules import find_modules
from bundler.model.artifacts import FileRecord
from bundler.model.digests import digest_file
from bundler.model.errors import DefectError
from bundler.model.proof import Emitted
from tests.unit.emitters.web.conftest import with_web


@pytest.fixture(scope="module")
def emitted(request_: EmitRequest, tmp_path_factory: pytest.TempPathFactory) -> Emitted:
    return EMITTER.emit(request_, tmp_path_factory.mktemp("downloads"))


def test_each_variant_on_each_of_its_builds(emitted: Emitted) -> None:
    assert [(download.variant, download.build) for download in emitted.downloads] == [
        ("webgpu", "jspi"),
        ("webgpu", "asyncify"),
        ("wasm", "wasm"),
    ]


def test_a_visit_fetches_the_loader_one_build_and_the_model(emitted: Emitted, bundle: Path) -> None:
    paths = [file.path for file in emitted.downloads[2].files]
    assert {"index.js", "runtime.js", "loader/index.js", "loader/browser.js"} <= set(paths)
    assert [path for path in paths if path.startswith("vendor/")] == [
        "vendor/ort.wasm.bundle.min.mjs.txt",
        "vendor/ort-wasm-simd-threaded.wasm",
    ]
    assert [path for path in paths if path.startswith("payload/")] == ["payload/models/webgpu/model.onnx"]
    assert not {"node.js", "loader/node.js", "README.md", "payload/runtime.json"} & set(paths)
    assert all((bundle / path).is_file() for path in paths)


def test_sizes_are_those_on_the_wire(emitted: Emitted, bundle: Path) -> None:
    for file in emitted.downloads[2].files:
        data = (bundle / file.path).read_bytes()
        assert file.size == len(data)
        assert file.brotli == min(len(brotli.compress(data, quality=11, lgwin=24)), len(data))
        assert file.gzip <= len(gzip.compress(data, 1))


def test_the_readme_tells_them(bundle: Path) -> None:
    assert "| webgpu | jspi | " in (bundle / "README.md").read_text()


def test_precompressed_files_are_the_files_again(request_: EmitRequest, tmp_path: Path) -> None:
    EMITTER.emit(with_web(request_, precompressed=True), tmp_path)
    compressed = [path for path in tmp_path.rglob("*") if path.suffix in {".br", ".gz"}]
    names = {path.name for path in compressed}
    assert {"index.js.br", "runtime.js.gz", "ort-wasm-simd-threaded.wasm.br", "index.html.br", "demo.css.gz"} <= names
    assert not [name for name in names if name.startswith(("LICENSE", "ThirdParty"))]
    for path in compressed:
        unpack = brotli.decompress if path.suffix == ".br" else gzip.decompress
        assert unpack(path.read_bytes()) == path.with_suffix("").read_bytes()
        assert path.stat().st_size < path.with_suffix("").stat().st_size
    names = {path.name for path in compressed}
    assert not names & {"README.md.br", "package.json.br", "node.js.br", "LICENSE.br", "index.d.ts.br"}


def test_what_was_compressed_once_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "file"
    source.write_bytes(b"abc" * 1000)
    record = FileRecord(path="file", size=3000, sha256=digest_file(source))
    compressor = Compressor(cache_root=tmp_path / "cache")
    sizes, forms = compressor.measure(source, record, best=False), compressor.compress(source, record, 11)
    monkeypatch.setattr(compression, "compress_brotli", pytest.fail)
    monkeypatch.setattr(compression, "compress_gzip", pytest.fail)
    source.unlink()
    again = dataclasses.replace(compressor)
    assert again.measure(source, record, best=False) == sizes
    assert again.measure(source, record, best=True) == sizes
    assert again.compress(source, record, 11) == forms
    assert sizes.brotli == len(forms[".br"])


def test_large_files_are_measured_quickly() -> None:
    assert choose_quality(100_000) == 11
    assert choose_quality(90_000_000) == 5


def test_the_runtime_is_not_compressed_to_be_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "compress_brotli", pytest.fail)
    digest = "3398c10d07d229bd91b364548e130e0e51a8e5704b88c7c083ebbeb78842dee2"
    record = FileRecord(path="vendor/ort-wasm-simd-threaded.wasm", size=14_239_897, sha256=digest)
    sizes = Compressor(cache_root=tmp_path).measure(tmp_path / "absent", record, best=False)
    assert 2_200_000 < sizes.brotli < 2_400_000 < sizes.gzip < 3_700_000


def test_modules_are_found_through_their_imports(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "index.js").write_text(
        'import {\n  a,\n  b,\n} from "./inner/a.js";\nimport "./inner/d.js";\n'
        '/** @typedef {import("./types.d.ts").X} X */\nconst later = import("./later.js");\n// import "./none.js";\n'
    )
    (tmp_path / "inner" / "a.js").write_text("export * from '../c.js';\nexport const a = \"./not.js\";\n")
    (tmp_path / "inner" / "d.js").write_text('import "./a.js";\nimport "node:fs";\n')
    (tmp_path / "c.js").write_text("")
    assert find_modules(tmp_path, "index.js") == ("index.js", "inner/a.js", "inner/d.js", "c.js")
    (tmp_path / "c.js").unlink()
    with pytest.raises(DefectError, match=r"lacks c\.js"):
        find_modules(tmp_path, "index.js")
