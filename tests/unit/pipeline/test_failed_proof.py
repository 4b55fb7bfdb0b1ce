"""What is advised after a failed verification follows from its reason."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from bundler.emitters.proofs import make_unproven
from bundler.model.results import Comparison, OutputComparison
from bundler.pipeline.finish import _hint_after
from bundler.profiles.resolve import resolve_target

UNOPENED = make_unproven("model", "cpu", "the runtime could not open it", passed=False)
DIFFERING = replace(UNOPENED, comparison=Comparison(samples=1, outputs=(OutputComparison.__new__(OutputComparison),)))


def part(
    *,
    level: str = "extended",
    synthetic: bool = False,
    quantized: bool = False,
    doubles: tuple[str, ...] = (),
    half: dict[str, Any] | None = None,
) -> Any:
    """A built component, as far as the advice looks at it."""
    steps = [SimpleNamespace(stage="optimize", options={"level": level}, variant="cpu")]
    steps += [SimpleNamespace(stage="convert_float", options=half, variant="cuda")] if half is not None else []
    profile = resolve_target("h200")
    variants = [SimpleNamespace(name=name, providers=(SimpleNamespace(name=name),)) for name in ("cpu", "webgpu")]
    plan = SimpleNamespace(name="model", golden="golden", steps=steps, variants=variants)
    prepared = SimpleNamespace(plan=plan, profile=profile, facts=SimpleNamespace(quantized=quantized, doubles=doubles))
    golden = SimpleNamespace(read_facts=lambda _: SimpleNamespace(synthetic=synthetic))
    return SimpleNamespace(prepared=prepared, outcomes={"golden": golden})


def test_no_level_of_optimisation_is_advised_for_a_model_that_did_not_open() -> None:
    hint = _hint_after((UNOPENED,), (part(),))
    assert "--no-prove" in hint
    assert "optimization.level" not in hint


def test_float64_is_named_where_an_accelerator_could_not_open_the_model() -> None:
    refused = replace(UNOPENED, variant="webgpu")
    assert "wide is float64" in _hint_after((refused,), (part(doubles=("wide",)),))
    assert "float64" not in _hint_after((UNOPENED,), (part(doubles=("wide",)),))


def test_less_optimisation_is_advised_for_outputs_that_differ() -> None:
    assert "--set optimization.level=basic" in _hint_after((DIFFERING,), (part(),))
    assert "--no-prove" in _hint_after((DIFFERING, UNOPENED), (part(),))


def test_full_precision_is_advised_where_the_provider_may_compute_in_tf32() -> None:
    hint = _hint_after((replace(DIFFERING, variant="cuda"),), (part(),))
    assert "--set variants.cuda.providers.cuda.options.use_tf32=0" in hint
    assert "optimization.level" not in hint, "the variant that differs was optimised at another level"
    assert "use_tf32" not in _hint_after((DIFFERING,), (part(),))


@pytest.mark.parametrize(("half", "searched"), [({}, True), ({"search": True}, False)])
def test_single_precision_is_advised_for_a_model_in_half_precision(half: dict[str, Any], *, searched: bool) -> None:
    hint = _hint_after((replace(DIFFERING, variant="cuda"),), (part(half=half),))
    assert "--set variants.cuda.precision=none" in hint
    assert ("--set variants.cuda.precision=mixed-fp16 --calibration PATH" in hint) is searched
    assert "use_tf32" not in hint


def test_less_optimisation_is_not_advised_where_it_was_built_so() -> None:
    assert "optimization.level" not in _hint_after((DIFFERING,), (part(level="basic"),))


@pytest.mark.parametrize(("kind", "said"), [("synthetic", "--samples PATH"), ("quantized", "floating-point model")])
def test_the_advice_fits_the_inputs_and_the_model(kind: str, said: str) -> None:
    assert said in _hint_after((DIFFERING,), (part(**{kind: True}),))
    assert said not in _hint_after((DIFFERING,), (part(),))
