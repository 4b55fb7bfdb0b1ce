"""Wheels of the bundles in one folder: the same files, real copies everywhere else, and never wrong in silence."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bundler.emitters.contract import EmitRequest, ProofRequest
from bundler.emitters.python.emitter import EMITTER
from bundler.emitters.python.wheels import WHEELS
from bundler.model.artifacts import record_folder
from bundler.model.errors import VerificationError
from bundler.model.events import Event, Message, Reporter, ignore
from tests.support import models
from tests.support.bundles import make_request
from tests.support.command_line import HERE, CommandLine

ELSEWHERE = Path("/dev/shm")  # noqa: S108 (another file system)
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts file systems and gives files away")


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> EmitRequest:
    folder = tmp_path_factory.mktemp("sharing")
    return make_request(models.cnn(), folder, name="tiny cnn", overrides=(f"python.versions=['{HERE}']",))


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    return tmp_path / "dist"


def emit(request: EmitRequest, bundle: Path) -> dict[str, Path]:
    """The wheels of a new bundle, by their names."""
    bundle.mkdir(parents=True)
    EMITTER.emit(request, bundle)
    return {path.name: path for path in (bundle / "wheels").iterdir()}


def inodes(wheels: dict[str, Path]) -> dict[str, int]:
    return {name: path.stat().st_ino for name, path in wheels.items()}


def alter(path: Path) -> None:
    """As who overrides the mode, and sets it and the time back."""
    before = path.stat()
    path.chmod(0o644)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    path.chmod(0o444)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def prove(request: EmitRequest, bundle: Path) -> bool | None:
    asked = ProofRequest(bundle=bundle, cache_root=request.environments.root, listener=ignore)
    return EMITTER.prove(asked)[0].passed


def test_bundles_of_a_folder_have_the_same_files_and_others_the_same_bytes(asked: EmitRequest, dist: Path) -> None:
    first, second = emit(asked, dist / "first"), emit(asked, dist / "second")
    apart = emit(asked, dist.parent / "elsewhere" / "third")
    assert inodes(first) == inodes(second)
    assert set(inodes(first).values()).isdisjoint(inodes(apart).values())
    assert {path.stat().st_nlink for path in second.values()} == {2}
    assert {path.stat().st_nlink for path in apart.values()} == {1}
    assert {path.stat().st_mode & 0o777 for path in (*first.values(), *apart.values())} == {0o444}
    assert record_folder(dist / "first") == record_folder(dist.parent / "elsewhere" / "third")
    kept = {path.stat().st_ino for path in (asked.environments.root / WHEELS).rglob("*.whl")}
    assert kept
    assert kept.isdisjoint(inodes(first).values()), "what a user writes to never reaches the cache"


def test_modes_are_the_same_under_any_umask(asked: EmitRequest, dist: Path) -> None:
    before = os.umask(0o077)
    try:
        wheels = emit(asked, dist / "first")
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in wheels.values()} == {0o444}


def test_a_bundle_outlives_its_neighbours_and_the_cache(asked: EmitRequest, dist: Path) -> None:
    emit(asked, dist / "first")
    kept = record_folder(dist / "first")
    emit(asked, dist / "second")
    shutil.rmtree(dist / "first")
    assert record_folder(dist / "second") == kept
    assert {path.stat().st_nlink for path in (dist / "second" / "wheels").iterdir()} == {1}
    assert prove(asked, dist / "second")


@pytest.mark.parametrize("how", ["cp -r", "cp -a", "mv", "tar"])
def test_a_bundle_that_leaves_its_folder_is_whole_and_its_own(asked: EmitRequest, dist: Path, how: str) -> None:
    shared = inodes(emit(asked, dist / "first"))
    emit(asked, dist / "second")
    kept = record_folder(dist / "second")
    target = ELSEWHERE / f"bundler-{os.getpid()}-{how[:2]}"
    target.mkdir()
    try:
        if how == "tar":
            with tarfile.open(target / "packed.tar", "w") as archive:
                archive.add(dist / "second", "second")
            with tarfile.open(target / "packed.tar") as archive:
                assert not [item for item in archive.getmembers() if item.islnk()]
                archive.extractall(target, filter="data")
        else:
            subprocess.run([*how.split(), dist / "second", target], check=True)
        moved = target / "second"
        assert record_folder(moved) == kept
        found = {path.name: path for path in (moved / "wheels").iterdir()}
        assert {path.stat().st_nlink for path in found.values()} == {1}
        alter(next(iter(found.values())))
        assert record_folder(dist / "first") == kept
        assert shared == inodes({path.name: path for path in (dist / "first" / "wheels").iterdir()})
    finally:
        shutil.rmtree(target)


def test_an_altered_wheel_is_found_in_each_bundle_and_goes_no_further(asked: EmitRequest, dist: Path) -> None:
    said: list[str] = []

    def listen(event: Event) -> None:
        said.extend([event.note.text] if isinstance(event, Message) else [])

    first = emit(asked, dist / "first")
    emit(asked, dist / "second")
    kept = record_folder(dist / "second")
    name = next(name for name in first if name.startswith("packaging-"))
    alter(first[name])
    for bundle in (dist / "first", dist / "second"):
        assert record_folder(bundle) != kept
        with pytest.raises(VerificationError, match="do not match the lock"):
            prove(asked, bundle)
    loud = EmitRequest(**{**_fields(asked), "reporter": Reporter(listen, "tiny")})
    third = emit(loud, dist / "third")
    assert record_folder(dist / "third") == kept
    assert third[name].stat().st_ino != first[name].stat().st_ino
    assert third[name].stat().st_nlink == 1
    (line,) = [text for text in said if name in text]
    for bundle in (dist / "first", dist / "second"):
        assert f"`bundler verify {bundle} --digests-only`" in line
    assert prove(asked, dist / "third")


def _fields(request: EmitRequest) -> dict[str, object]:
    return {name: getattr(request, name) for name in request.__dataclass_fields__}


def test_a_wheel_that_others_may_write_to_is_not_shared(asked: EmitRequest, dist: Path) -> None:
    first = emit(asked, dist / "first")
    for path in first.values():
        path.chmod(0o664)
    second = emit(asked, dist / "second")
    assert set(inodes(first).values()).isdisjoint(inodes(second).values())


@AS_ROOT
def test_a_wheel_of_another_user_is_not_shared(asked: EmitRequest, dist: Path) -> None:
    first = emit(asked, dist / "first")
    for path in first.values():
        os.chown(path, 65534, 65534)
    second = emit(asked, dist / "second")
    assert set(inodes(first).values()).isdisjoint(inodes(second).values())


def test_where_no_link_can_be_made_there_is_a_copy(asked: EmitRequest, dist: Path) -> None:
    """The neighbour is a link to a bundle in another file system."""
    far = ELSEWHERE / f"bundler-far-{os.getpid()}"
    try:
        emit(asked, far)
        dist.mkdir()
        (dist / "first").symlink_to(far)
        second = emit(asked, dist / "second")
        assert {path.stat().st_nlink for path in second.values()} == {1}
        assert record_folder(dist / "second") == record_folder(far)
    finally:
        shutil.rmtree(far)


@pytest.fixture
def copying_on_write(tmp_path: Path) -> Iterator[Path]:
    """A folder of a btrfs."""
    if os.geteuid() != 0 or not shutil.which("mkfs.btrfs"):
        pytest.skip("no file system that copies on write: it takes root and mkfs.btrfs (btrfs-progs) to make one")
    image, place = tmp_path / "image", tmp_path / "btrfs"
    place.mkdir()
    with image.open("wb") as stream:
        stream.truncate(512 << 20)
    subprocess.run(["mkfs.btrfs", "-q", image], check=True, capture_output=True)
    if subprocess.run(["mount", "-o", "loop", image, place], check=False, capture_output=True).returncode:
        pytest.skip("no file system that copies on write: this machine does not mount a btrfs")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


def test_a_file_system_that_copies_on_write_shares_blocks(asked: EmitRequest, copying_on_write: Path) -> None:
    root = copying_on_write / "cache"
    root.mkdir()
    shutil.copytree(asked.environments.root / WHEELS, root / WHEELS)
    os.sync()
    request = EmitRequest(**{**_fields(asked), "environments": type(asked.environments)(root)})
    before = shutil.disk_usage(copying_on_write).used
    bundles = [copying_on_write / "dist" / str(number) for number in range(4)]
    wheels = [emit(request, bundle) for bundle in bundles]
    os.sync()
    size = sum(path.stat().st_size for path in wheels[0].values())
    assert shutil.disk_usage(copying_on_write).used - before < size / 2
    assert len({ino for found in wheels for ino in inodes(found).values()}) == 4 * len(wheels[0])
    kept = record_folder(bundles[1])
    alter(next(iter(wheels[0].values())))
    assert record_folder(bundles[1]) == kept
    assert {path.stat().st_mode & 0o777 for path in wheels[1].values()} == {0o444}


def test_a_neighbour_leaves_a_bundle_up_to_date_and_a_forged_wheel_does_not(
    bundler: CommandLine, here: tuple[str, ...], tmp_path: Path
) -> None:
    """A link moves the change time of a file; so does who alters it and sets its time back."""
    one = models.save(models.mlp(), tmp_path / "in", "one.onnx")
    two = models.save(models.mlp(), tmp_path / "in", "two.onnx")
    options = (*here, "--no-prove", "--output", tmp_path / "out")
    bundle = Path(bundler.build(one, *options)["bundle"])
    wheel = next((bundle / "wheels").glob("numpy-*.whl"))
    digest = record_folder(bundle).digest
    bundler.build(two, *options)
    assert wheel.stat().st_nlink == 2
    for _ in range(2):
        assert bundler.build(one, *options)["up_to_date"]
    assert wheel.stat().st_nlink == 2
    alter(wheel)
    assert "numpy-" in bundler.run("verify", bundle, "--digests-only").expect(8).err
    assert not bundler.build(one, *options)["up_to_date"]
    assert record_folder(bundle).digest == digest
    bundler.run("verify", bundle, "--digests-only").expect(0)
    bundler.run("verify", tmp_path / "out" / "two-linux-x64", "--digests-only").expect(8)
    assert not bundler.build(two, *options)["up_to_date"]
    assert wheel.stat().st_nlink == 2
