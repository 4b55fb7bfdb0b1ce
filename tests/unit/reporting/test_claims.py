"""What speaks against figures of time."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from bundler.model.measurement import Measurement
from bundler.reporting.claims import BUSY, doubt_machine, doubt_measurement

GOOD = Measurement(
    name="golden sample 0", variant="cpu", opening_ms=(3.0,) * 30, latency_ms=(1.0, 1.1) * 50, others=0.01
)


def test_many_even_runs_on_a_quiet_machine_are_not_doubted() -> None:
    assert doubt_measurement(GOOD) == ()


def test_few_runs_are_reported() -> None:
    few = replace(GOOD, opening_ms=(3.0,), latency_ms=(1.0,) * 6)
    assert doubt_measurement(few) == (
        "only 1 timed load (at least 7 are needed)",
        "only 6 timed calls (at least 7 are needed)",
    )


def test_a_busy_machine_is_reported() -> None:
    assert "other programs kept 35% of the processors busy" in doubt_measurement(replace(GOOD, others=0.35))[0]
    assert doubt_measurement(replace(GOOD, others=None)) == ()


def test_calls_that_differ_are_reported() -> None:
    (reported,) = doubt_measurement(replace(GOOD, latency_ms=(1.0,) * 50 + (2.0,) * 50))
    assert reported == "calls differ: one in ten took 2 times as long as the quickest tenth"


def test_the_load_of_the_machine_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(os, "getloadavg", lambda: (3.0, 1.0, 1.0))
    assert doubt_machine() == "the load average was 3.0 on 4 processors before anything was timed"
    monkeypatch.setattr(os, "getloadavg", lambda: (4 * BUSY, 9.0, 9.0))
    assert doubt_machine() == ""
    monkeypatch.delattr(os, "getloadavg")
    assert doubt_machine() == ""
