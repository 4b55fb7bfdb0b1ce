"""A profile is settled once, in one place."""

from __future__ import annotations

from pathlib import Path

import pytest

import bundler
from bundler.planning.data import DataRequest
from bundler.planning.request import PlanRequest
from bundler.planning.settle import foresee_profile, settle_profile
from bundler.profiles.resolve import resolve_target, target_ids
from tests.support.facts import make_facts

ROOT = Path(bundler.__file__).parent
SETTLING = {"planning/settle.py", "planning/ranges.py"}
RESOLVING = {"profiles/resolve.py", "profiles/options.py"}


@pytest.mark.parametrize("name", target_ids())
def test_what_is_settled_stays_when_it_is_settled_again(name: str) -> None:
    request = PlanRequest(dimensions={"batch": 1}, calibration=DataRequest(plain="calibration"))
    settled = settle_profile(resolve_target(name, ("optimization.preset=O2",)), make_facts(), request)
    again = settle_profile(settled.profile, make_facts(), request)
    assert again.profile == settled.profile
    assert not again.left_out
    assert foresee_profile(settled.profile) == settled.profile


def test_only_settling_changes_a_resolved_profile() -> None:
    changing = {
        path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py") if "model_copy(" in path.read_text("utf-8")
    }
    assert changing == SETTLING | RESOLVING


def test_sizes_that_stay_open_leave_compiling_for_ranges_to_the_device() -> None:
    profile = resolve_target("rtx-4090")
    open_sizes = settle_profile(profile, make_facts(), PlanRequest()).profile
    fixed = settle_profile(profile, make_facts(), PlanRequest(dimensions={"batch": 1})).profile
    assert open_sizes.variants[0].compile["here"] is False
    assert fixed.variants[0] == profile.variants[0]


@pytest.mark.parametrize(("count", "layout"), [(0, None), (2, "NCHW")])
def test_convolutions_that_a_provider_computes_wrong_get_another_layout(count: int, layout: str | None) -> None:
    settled = settle_profile(resolve_target("web-webgpu"), make_facts(uneven_convolutions=count), PlanRequest())
    webgpu, wasm = settled.profile.variants
    assert webgpu.providers[0].options.get("preferredLayout") == layout
    assert "preferredLayout" not in wasm.providers[0].options
    told = [note.text for note in settled.notes if "preferredLayout=NCHW" in note.text]
    assert len(told) == bool(count)
    assert all("WebGPU computed 2 convolutions of this kind wrong" in text for text in told)
