"""What other packages register is found beside what bundler registers."""

from __future__ import annotations

from pathlib import Path

import pytest

from bundler.model.registered import find_registered, registered_names


def register(folder: Path, group: str, line: str) -> None:
    place = folder / "other-0.dist-info"
    place.mkdir()
    (place / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 0\n")
    (place / "entry_points.txt").write_text(f"[{group}]\n{line}\n")


def test_a_package_that_comes_onto_the_path_later_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_registered("bundler.stages", "of_others") is None
    register(tmp_path, "bundler.stages", "of_others = other.spec:SPEC")
    monkeypatch.syspath_prepend(tmp_path)
    found = find_registered("bundler.stages", "of_others")
    assert found is not None
    assert found.value == "other.spec:SPEC"
    assert {"of_others", "inspect"} <= set(registered_names("bundler.stages"))


def test_nobody_takes_the_name_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    register(tmp_path, "bundler.emitters", "web = other:EMITTER")
    monkeypatch.syspath_prepend(tmp_path)
    found = find_registered("bundler.emitters", "web")
    assert found is not None
    assert found.module == "bundler.emitters.web.emitter"
