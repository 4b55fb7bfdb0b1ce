import io
import json
import shutil
import tarfile
from pathlib import Path

import pytest

from bundler.emitters.web.package import open_package
from bundler.model.errors import VerificationError
from tests.support.web_packages import write_package


def pack(folder: Path, place: Path, *more: tarfile.TarInfo) -> Path:
    place.mkdir()
    with tarfile.open(place / "tiny-1.0.0.tgz", "w:gz") as archive:
        archive.add(folder, "package")
        for entry in more:
            archive.addfile(entry, io.BytesIO(b"x" * entry.size))
    return place


def make_entry(name: str, **changes: object) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size = 1
    for field, value in changes.items():
        setattr(entry, field, value)
    return entry


def test_a_packed_package_is_unpacked_for_as_long_as_it_is_needed(tmp_path: Path) -> None:
    bundle = pack(write_package(tmp_path / "package", {"wasm": {}}), tmp_path / "bundle")
    with open_package(bundle) as package:
        root = package.root
        assert (root / "index.js").is_file()
        assert [variant.name for _, variant in package.config.pairs] == ["wasm"]
    assert not root.exists()


def test_a_loader_with_another_configuration_than_the_checked_one_is_refused(tmp_path: Path) -> None:
    package = write_package(tmp_path / "package", {"wasm": {}})
    runtime = package / "runtime.js"
    runtime.write_text(runtime.read_text("utf-8").replace("tiny", "other"), "utf-8")
    with pytest.raises(VerificationError) as caught, open_package(package):
        pass
    assert caught.value.details == ("runtime.js has another configuration than payload/runtime.json",)


@pytest.mark.parametrize(
    "entry",
    [
        make_entry("../outside.txt"),
        make_entry("package/link", type=tarfile.SYMTYPE, linkname="../../outside", size=0),
        make_entry("package/pipe", type=tarfile.FIFOTYPE, size=0),
        make_entry("package/" + "d/" * 1500 + "deep.txt"),
    ],
)
def test_an_archive_that_reaches_outside_is_refused(tmp_path: Path, entry: tarfile.TarInfo) -> None:
    bundle = pack(write_package(tmp_path / "package", {"wasm": {}}), tmp_path / "bundle", entry)
    with pytest.raises(VerificationError, match="is not a complete web bundle"), open_package(bundle):
        pass


def test_an_archive_that_would_fill_the_disk_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = pack(write_package(tmp_path / "package", {"wasm": {}}), tmp_path / "bundle", make_entry("x", size=10**6))
    full = shutil.disk_usage(tmp_path)._replace(free=10**6)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    with pytest.raises(VerificationError) as caught, open_package(bundle):
        pass
    assert caught.value.details == ("unpacked it is larger than 90% of the free disk",)


@pytest.mark.parametrize("data", [b"", b"no archive", b"\x1f\x8b\x08broken"])
def test_an_archive_that_is_none_is_said(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "tiny.tgz").write_bytes(data)
    with pytest.raises(VerificationError, match="is not a complete web bundle"), open_package(tmp_path):
        pass


def test_two_archives_are_one_too_many(tmp_path: Path) -> None:
    bundle = pack(write_package(tmp_path / "package", {"wasm": {}}), tmp_path / "bundle")
    (bundle / "other.tgz").write_bytes(b"")
    with pytest.raises(VerificationError), open_package(bundle):
        pass


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        (
            {"session": {"optimized_model_filepath": "/x.onnx"}},
            '"optimized_model_filepath" is not a known option',
        ),
        ({"session": {"enable_profiling": True}}, 'session."enable_profiling" is not a known option'),
        ({"session": {"intra_op_num_threads": 10**9}}, 'session."intra_op_num_threads": got'),
        (
            {"session_config": {"ep.context_file_path": "x"}},
            'session_config."ep.context_file_path" is not allowed in a bundle',
        ),
        ({"model": "../model.onnx"}, "is not among its files"),
        ({"files": [{"path": "../outside.onnx", "size": 1, "sha256": "0" * 64}]}, "leaves its folder"),
        ({"files": [{"path": "models/none.onnx", "size": 1, "sha256": "0" * 64}]}, "is missing"),
        ({"providers": [{"name": "wasm", "options": {"path": "x"}}]}, 'wasm."path" is not a known option'),
        ({"providers": [{"name": "shell", "options": {}}]}, "is not a provider that this bundler knows"),
        ({"name": "../up"}, "not a name"),
    ],
)
def test_a_configuration_that_asks_for_what_is_never_written_is_refused(
    tmp_path: Path, changes: dict[str, object], fault: str
) -> None:
    folder = write_package(tmp_path / "package", {"wasm": {}})
    path = folder / "payload" / "runtime.json"
    config = json.loads(path.read_text())
    config["components"][0]["variants"][0].update(changes)
    path.write_text(json.dumps(config))
    with pytest.raises(VerificationError, match="has values that bundler never writes") as caught, open_package(folder):
        pass
    assert fault in "\n".join(caught.value.details)


def test_a_model_in_parts_is_there(tmp_path: Path) -> None:
    folder = write_package(tmp_path / "package", {"wasm": {}})
    model = folder / "payload" / "models" / "model.onnx"
    model.rename(model.with_name("model.onnx.000"))
    with open_package(folder) as package:
        assert package.root == folder


def test_a_configuration_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    folder = write_package(tmp_path / "package", {"wasm": {}})
    (folder / "payload" / "runtime.json").write_text("[" * 100_000)
    with pytest.raises(VerificationError, match="is not a complete bundle"), open_package(folder):
        pass
