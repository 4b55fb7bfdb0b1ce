"""The same input gives the same bytes: in two folders, with two cold caches, under two hash seeds."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest

from tests.support import models
from tests.support.command_line import CommandLine, digest_folder
from tests.support.real_models import LIGHT


def build_apart(number: int, model: Path, options: tuple[str, ...], bundler: CommandLine, tmp_path: Path) -> Path:
    """One build that shares nothing with another but the wheels, which are files by digest from the index."""
    cache = tmp_path / f"cache-{number}"
    shutil.copytree(bundler.cache / "packages", cache / "packages", copy_function=_link_or_copy)
    shutil.copyfile(bundler.cache / "CACHEDIR.TAG", cache / "CACHEDIR.TAG")
    home = tmp_path / ("a" if number else "another folder with a long name")
    (home / "in").mkdir(parents=True)
    for path in (model, *model.parent.glob("*.bin")):
        shutil.copyfile(path, home / "in" / path.name)
    program = dataclasses.replace(
        bundler, cache=cache, env={"PYTHONHASHSEED": str(7 * number), "TZ": f"Etc/GMT-{number * 9}"}
    )
    return Path(program.build(home / "in" / model.name, *options, "--output", home / "out")["bundle"])


def _link_or_copy(source: str, target: str) -> None:
    try:
        Path(target).hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)


@pytest.fixture(scope="module")
def wheels(bundler: CommandLine, here: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> None:
    """The wheels of this target are in the cache of the session."""
    folder = tmp_path_factory.mktemp("warm")
    bundler.build(models.save(models.identity(), folder), *here, "--no-prove", "--output", folder / "out")


@pytest.mark.usefixtures("wheels")
@pytest.mark.parametrize("bundle_format", ["dir", "wheel", pytest.param("pex", marks=pytest.mark.slow)])
def test_a_bundle_is_the_same_to_the_byte(
    bundler: CommandLine, here: tuple[str, ...], content_type_model: Path, tmp_path: Path, bundle_format: str
) -> None:
    proof = () if bundle_format == "dir" else ("--no-prove",)
    options = (*here, "--format", bundle_format, *proof)
    first, second = (build_apart(n, content_type_model, options, bundler, tmp_path) for n in (0, 1))
    assert digest_folder(first) == digest_folder(second)


@pytest.mark.usefixtures("wheels")
@pytest.mark.parametrize("kind", ["convolutions", "trees", "text-orientation", "old-format"])
def test_what_the_runtime_saves_is_the_same_to_the_byte(
    bundler: CommandLine, here: tuple[str, ...], orientation_model: Path, tmp_path: Path, kind: str
) -> None:
    model = _choose(kind, orientation_model, tmp_path / "model")
    options = (*here, "--no-prove", "--format", "wheel")
    first, second = (build_apart(n, model, options, bundler, tmp_path) for n in (0, 1))
    assert digest_folder(first) == digest_folder(second)


def _choose(kind: str, orientation: Path, folder: Path) -> Path:
    if kind == "convolutions":
        return models.save_external(models.cnn(), folder)
    if kind == "trees":
        return models.save(models.scaler_pipeline(), folder)
    if kind == "old-format":
        folder.mkdir()
        return Path(shutil.copyfile(LIGHT / "light_shufflenet.onnx", folder / "shufflenet.onnx"))
    return orientation
