"""What of a user's samples leaves the machine: what the user lets go, and never the names of their files."""

from __future__ import annotations

import dataclasses
import io
import shutil
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support import models
from tests.support.command_line import ONE_PYTHON, CommandLine
from tests.support.documents import read_document

pytestmark = pytest.mark.timeout(600)

PATIENT = "patient-4711"
COUNT = 20
FILES = ("--target=linux-x64", "--format=files")
KINDS = {
    "files": FILES,
    "python": ("--target=linux-x64", f"--set={ONE_PYTHON}"),
    "wheel": ("--target=linux-x64", f"--set={ONE_PYTHON}", "--format=wheel", "--no-prove"),
    "pex": ("--target=linux-x64", f"--set={ONE_PYTHON}", "--format=pex", "--no-prove"),
    "web": ("--target=web-wasm", "--no-prove"),
    "web-archive": ("--target=web-wasm", "--format=tgz", "--no-prove"),
    "package": ("--target=linux-x64", "--format=ortpackage"),
}
LOSSY = "--set=precision.method=dynamic-int8"


def values() -> np.ndarray:
    """float32[samples, 1, 8]; one of them holds NaN, which the build tells by its name."""
    made = np.random.default_rng(11).normal(3, 2, (COUNT, 1, 8)).astype(np.float32)
    made[7, 0, 5] = np.nan
    return made


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("given")
    (folder / "samples").mkdir()
    for number, array in enumerate(values()):
        np.savez(folder / "samples" / f"{PATIENT}-{number:02d}.npz", x=array)
    return models.save(models.mlp(), folder, "mlp.onnx"), folder / "samples"


def read_all(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every file by name, and everything in archives."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield from unpack(str(path.relative_to(folder)), path.read_bytes())


def unpack(name: str, content: bytes) -> Iterator[tuple[str, bytes]]:
    yield name, content
    if zipfile.is_zipfile(io.BytesIO(content)):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for item in archive.namelist():
                yield from unpack(f"{name}/{item}", archive.read(item))
    elif name.endswith((".tgz", ".tar.gz")):
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            for member in archive:
                stream = archive.extractfile(member)
                yield f"{name}/{member.name}", stream.read() if stream else b""


def find_samples(folder: Path) -> list[str]:
    """The files that hold the numbers of a sample, or any eight bytes of two neighbours of one."""
    wanted = [array.tobytes()[at : at + 8] for array in values() for at in range(0, 24, 4)]
    return [name for name, content in read_all(folder) if any(part in content for part in wanted)]


def find_names(folder: Path) -> list[str]:
    return [name for name, content in read_all(folder) if PATIENT.encode() in content or PATIENT in name]


def read_manifest(bundle: str) -> dict[str, Any]:
    document: dict[str, Any] = read_document(Path(bundle) / "bundle.json")
    return document


@pytest.mark.parametrize("kind", KINDS)
def test_synthetic_golden_sets_hold_nothing_of_the_samples(
    warm: CommandLine, given: tuple[Path, Path], tmp_path: Path, kind: str
) -> None:
    model, samples = given
    asked = ("--samples", samples, "--golden=synthetic", "--output", tmp_path / "out")
    built = warm.build(model, *KINDS[kind], *asked)
    bundle = Path(built["bundle"])
    assert find_samples(bundle) == []
    assert find_names(bundle) == []
    golden = read_manifest(built["bundle"])["golden"]
    assert (golden["inputs"], golden["judging"]) == ("like-samples", 16)
    readme = (bundle / "README.md").read_text("utf-8")
    assert "seeded inputs and none of the 16 samples that judged the build" in readme
    if "--no-prove" not in KINDS[kind]:
        assert built["proof"] in ("executed", "stand-in")


@pytest.mark.parametrize("kind", ["files", "web"])
def test_samples_that_ship_are_reported_and_have_numbers_for_names(
    warm: CommandLine, given: tuple[Path, Path], tmp_path: Path, kind: str
) -> None:
    model, samples = given
    answer = warm.run("build", model, *KINDS[kind], "--samples", samples, "--output", tmp_path / "out").expect(0)
    assert "up to 16 of the samples ship in the bundle's golden set, without their file names" in answer.err
    assert PATIENT in answer.err, "the machine that builds may know them"
    bundle = next((tmp_path / "out").glob("*/bundle.json")).parent
    assert find_names(bundle) == []
    assert find_samples(bundle), "the search finds what it should"
    golden = read_manifest(str(bundle))["golden"]
    assert (golden["inputs"], golden["samples"]) == ("samples", 16)
    assert "16 samples that were given to the build" in (bundle / "README.md").read_text("utf-8")
    report = next((tmp_path / "out").glob("*.report/report.html")).read_text("utf-8")
    assert PATIENT in report
    assert "this report stays where the bundle was built" in report


def test_the_gates_judge_by_the_real_samples(warm: CommandLine, given: tuple[Path, Path], tmp_path: Path) -> None:
    """The same figures whatever ships; and what ships is within their ranges."""
    model, samples = given[0], tmp_path / "numbers"
    shutil.copytree(given[1], samples)
    (samples / f"{PATIENT}-07.npz").unlink()  # int8 knows no NaN
    found = {}
    for golden in ("samples", "synthetic"):
        asked = (f"--golden={golden}", "--samples", samples, LOSSY, "--set=accuracy.sqnr_db=5")
        built = warm.build(model, *FILES, *asked, "--output", tmp_path / golden)
        (accuracy,) = built["accuracies"]
        found[golden] = (accuracy["samples"], accuracy["sqnr_db"], accuracy["worst_sqnr_db"])
    assert found["samples"] == found["synthetic"]
    assert found["samples"][0] == COUNT - 1
    kept = [np.fromfile(path, "<f4") for path in sorted((tmp_path / "synthetic").glob("*/golden/*/in-*.bin"))]
    assert len(kept) == 16
    real = values()
    assert np.nanmin(real) <= np.min(kept) < np.max(kept) <= np.nanmax(real)


def test_a_project_file_says_it_once_for_all(warm: CommandLine, given: tuple[Path, Path], tmp_path: Path) -> None:
    model, samples = given
    (tmp_path / "bundler.toml").write_text(
        f'targets = ["linux-x64"]\n[[models]]\npath = "{model}"\nsamples = "{samples}"\n'
        'golden = "synthetic"\nformat = "files"\n'
    )
    inside = dataclasses.replace(warm, cwd=tmp_path)
    inside.run("build").expect(0)
    assert find_samples(tmp_path / "dist" / "mlp-linux-x64") == []
    planned = inside.run("plan").expect(0).out
    assert "the samples judge the build and do not ship" in planned
