"""What other packages register is found beside what bundler registers."""

from __future__ import annotations

from pathlib import Path

import pytest

from bundler.model.registered import find_registered, registered_names
from tests.support.stages_faults.register import write_distribution

STAGES = "bundler.stages"


def test_a_package_that_comes_onto_the_path_later_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_registered(STAGES, "crash") is None
    write_distribution(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    found = find_registered(STAGES, "crash")
    assert found is not None
    assert found.value == "tests.support.stages_faults.crash.spec:SPEC"
    assert {"crash", "inspect"} <= set(registered_names(STAGES))


def test_nobody_takes_the_name_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "other-0.dist-info"
    place.mkdir()
    (place / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 0\n")
    (place / "entry_points.txt").write_text("[bundler.emitters]\nweb = other:EMITTER\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = find_registered("bundler.emitters", "web")
    assert found is not None
    assert found.module == "bundler.emitters.web.emitter"
