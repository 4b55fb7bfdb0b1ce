"""A model that was inspected before is not believed to be whole still: its external data are looked at each time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bundler.execution.sources import digest_source
from bundler.model.errors import BundlerError, ModelError
from bundler.model.events import ignore
from bundler.pipeline.opening import is_as_checked, open_model
from bundler.pipeline.requests import BuildRequest
from bundler.pipeline.workspace import Workspace, open_workspace
from tests.support import models
from tests.support.facts import make_facts


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with open_workspace(str(tmp_path_factory.mktemp("warm") / "cache"), 1) as workspace:
        yield workspace


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return models.save_external(models.cnn(), tmp_path)


def inspect(model: Path, workspace: Workspace) -> bool:
    """Whether the inspection was recalled. Raises what it raises."""
    return open_model(BuildRequest(model=model, target=""), "", workspace, ignore).outcomes[-1].cached


def cut(data: Path) -> None:
    data.write_bytes(data.read_bytes()[:-1])


def grow(data: Path) -> None:
    data.write_bytes(data.read_bytes() + b"0")


def link(data: Path) -> None:
    data.symlink_to(data.rename(data.with_name("real")).absolute())


def link_hard(data: Path) -> None:
    os.link(data, data.with_name("second"))


def make_endless(data: Path) -> None:
    data.unlink()
    data.symlink_to("/dev/zero")


def make_pipe(data: Path) -> None:
    data.unlink()
    os.mkfifo(data)


def link_to_itself(data: Path) -> None:
    data.unlink()
    data.symlink_to(data.name)


def test_an_original_model_is_recalled(model: Path, workspace: Workspace) -> None:
    inspect(model, workspace)
    assert inspect(model, workspace)


@pytest.mark.parametrize("spoil", [cut, Path.unlink, link, link_hard, make_endless, make_pipe, link_to_itself])
def test_a_warm_cache_says_what_a_cold_one_says(
    model: Path, workspace: Workspace, tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    inspect(model, workspace)
    spoil(tmp_path / "weights.bin")
    with pytest.raises(ModelError) as warm:
        inspect(model, workspace)
    with open_workspace(str(tmp_path / "cold"), 1) as cold, pytest.raises(ModelError) as expected:
        inspect(model, cold)
    assert warm.value.to_json() == expected.value.to_json()
    assert warm.value.message == "the model's external data cannot be used"


def test_data_that_grew_are_looked_at_again(model: Path, workspace: Workspace, tmp_path: Path) -> None:
    inspect(model, workspace)
    grow(tmp_path / "weights.bin")
    opened = open_model(BuildRequest(model=model, target=""), "", workspace, ignore)
    assert not opened.outcomes[-1].cached
    assert opened.facts.external_bytes == (tmp_path / "weights.bin").stat().st_size
    assert inspect(model, workspace)


@pytest.mark.parametrize("name", ["/dev/zero", "../secret", "", "a\0b", "folder"])
def test_whatever_facts_name_nothing_outside_is_opened(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    facts = make_facts(external_files=(name,), external_sizes=(4096,))
    assert not is_as_checked(tmp_path / "model.onnx", facts)


def test_a_device_is_no_source(tmp_path: Path, workspace: Workspace) -> None:
    (tmp_path / "endless").symlink_to("/dev/zero")
    with pytest.raises(BundlerError, match="is not a regular file"):
        digest_source(tmp_path / "endless", (), workspace.cache)
