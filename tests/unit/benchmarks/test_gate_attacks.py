"""What fooled a gate once is held back by the default limits, and a good model of its kind is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.benchmarks.test_benchmarks import load


def test_wrong_models_are_held_back_and_good_ones_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    load("document", monkeypatch)
    attacks = load("subjects.gate_attacks", monkeypatch).ATTACKS
    verdicts = {name: bool(failures) for attack in attacks for name, _, failures in attack.judge(Path())}
    assert len(verdicts) == 2 * len(attacks)
    assert verdicts == {name: name.endswith("wrong") for name in verdicts}
