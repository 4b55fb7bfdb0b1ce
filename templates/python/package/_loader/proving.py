"""`self-test`: reproduces the golden set in every way in which a variant may run.

A variant is opened from the shipped file and, where the loader keeps a copy for the device, also from that copy.
"""

from __future__ import annotations

import os
import tempfile
import time
from typing import Any

from .config import Component, Variant
from .errors import IncompatibleError
from .golden import test_model
from .integrity import Memory
from .metrics import take_worse
from .model import BundledModel, choose_variants
from .opening import device_copy_wanted
from .sessions import count_nodes, find_last_provider
from .variants import add_missing, find_obstacle, find_reason

ModelType = type[BundledModel]

_FROM_COPY = "from the device's own copy: "


def try_variant(model: ModelType, component: Component, name: str) -> dict[str, Any]:
    """The outcome for one variant; `unavailable` with the reason where it cannot run here. What must be generated
    on the device is generated in a temporary folder, unless it exists already.
    """
    variant = choose_variants(component, name)[0]
    obstacle = find_obstacle(variant)
    if obstacle is not None:
        return _make_outcome(component, name, "unavailable", add_missing(obstacle, variant))
    if variant.prepare is not None and find_reason(variant, Memory(component.payload)) is not None:
        return _prewarm_and_try(model, component, variant)
    return _try_opening(model, component, variant)


def _try_opening(model: ModelType, component: Component, variant: Variant) -> dict[str, Any]:
    """A missing accelerator that the runtime supports is found only when the model is opened."""
    try:
        return prove_variant(model, component, variant.name, strict=None)
    except IncompatibleError as error:
        if variant.provider_names[0] == find_last_provider():
            raise
        return _make_outcome(component, variant.name, "unavailable", error.why.removeprefix(f"{variant.name}: "))


def _prewarm_and_try(model: ModelType, component: Component, variant: Variant) -> dict[str, Any]:
    from .prepared import VARIABLE
    from .prewarming import READY

    before = os.environ.get(VARIABLE)
    with tempfile.TemporaryDirectory(prefix="bundler-prewarm-", ignore_cleanup_errors=True) as folder:
        os.environ[VARIABLE] = folder
        try:
            (made,) = model.prewarm(variant=variant.name)
            if made["status"] not in READY:
                return _make_outcome(component, variant.name, made["status"], made["reason"])
            outcome = _try_opening(model, component, variant)
        finally:
            os.environ.pop(VARIABLE, None)
            if before is not None:
                os.environ[VARIABLE] = before
    outcome["figures"]["prewarm_seconds"] = made["seconds"]
    return outcome


def prove_variant(model: ModelType, component: Component, name: str | None, *, strict: bool | None) -> dict[str, Any]:
    """The outcome for the variant called `name`, or for the first that can run here, in all ways in which it may run.

    Figures are seconds; `nodes` counts the nodes of the graph assigned to each provider. Raises `BundleError` when no
    variant can be opened.
    """
    outcome = _prove_opened(model, component, name, strict=strict, device_copy=False)
    variant = choose_variants(component, outcome["variant"])[0]
    if variant.device_cache and device_copy_wanted():
        _add_copy(outcome, _prove_copy(model, component, variant))
    outcome["nodes"] = _count_nodes(component, variant)
    return outcome


def _count_nodes(component: Component, variant: Variant) -> dict[str, int]:
    """Nodes by provider; for what was generated on the device, those counted while it was generated."""
    if variant.prepare is None:
        return count_nodes(os.path.join(component.payload, variant.model), variant)
    from .prepared import find_prepared

    prepared = find_prepared(variant, Memory(component.payload))
    if isinstance(prepared, str) or prepared.find() is None:
        return {}
    counts: dict[str, int] = prepared.facts["nodes"]
    return counts


def _prove_opened(
    model: ModelType, component: Component, name: str | None, *, strict: bool | None, device_copy: bool
) -> dict[str, Any]:
    start = time.perf_counter()
    opened = model(name, strict=strict, device_copy=device_copy)
    opening = time.perf_counter() - start
    result = test_model(component, choose_variants(component, opened.report.variant)[0], opened._run)  # noqa: SLF001 (one package: the values are in the model's order already)
    status, report = "passed" if result.passed else "failed", opened.report
    outcome = _make_outcome(component, report.variant, status, "; ".join(result.faults))
    outcome.update(
        samples=result.samples,
        synthetic=result.synthetic,
        outputs=[figures.to_json(judged=figures.name not in result.unjudged) for figures in result.outputs],
        unjudged=result.unjudged,
        providers=report.providers,
        rejected=dict(report.rejected),
        figures={"opening_seconds": opening, "golden_seconds": time.perf_counter() - start - opening},
    )
    return outcome


def _prove_copy(model: ModelType, component: Component, variant: Variant) -> dict[str, Any]:
    """The first start writes the copy, unless it exists; the second runs it."""
    report = model(variant.name, device_copy=True).report
    if not report.device_copy:
        report = model(variant.name, device_copy=True).report
    if not report.device_copy:
        why = report.remark or _explain_missing(component)
        return _make_outcome(component, variant.name, "unavailable", why)
    return _prove_opened(model, component, variant.name, strict=None, device_copy=True)


def _explain_missing(component: Component) -> str:
    place = Memory(component.payload).place
    return "there is no cache folder for it" if place is None else f"it could not be kept at {os.path.dirname(place)}"


def _add_copy(outcome: dict[str, Any], copy: dict[str, Any]) -> None:
    """Merge the result of the copy into the `outcome` of the shipped model: the worse of both counts."""
    outcome["device_copy"] = {name: copy[name] for name in ("status", "reason", "outputs")}
    outcome["figures"].update({f"device_copy_{name}": seconds for name, seconds in copy["figures"].items()})
    if copy["status"] == "unavailable":
        return
    outcome["outputs"] = [take_worse(*pair) for pair in zip(outcome["outputs"], copy["outputs"], strict=True)]
    if copy["status"] == "failed":
        outcome["status"] = "failed"
        outcome["reason"] = "; ".join(filter(None, (outcome["reason"], _FROM_COPY + copy["reason"])))


def _make_outcome(component: Component, variant: str, status: str, reason: str) -> dict[str, Any]:
    about = {"component": component.name, "variant": variant, "status": status, "reason": reason}
    return {**about, "samples": 0, "outputs": [], "figures": {}}


def print_outcomes(outcomes: list[dict[str, Any]]) -> None:
    """Print the outcomes as text."""
    for outcome in outcomes:
        print(f"{outcome['variant']}: {outcome['status']}{', ' if outcome['reason'] else ''}{outcome['reason']}")
        for name, reason in outcome.get("rejected", {}).items():
            print(f"  variant {name} does not run here: {reason}")
        if "providers" in outcome:
            kind = "synthetic samples" if outcome["synthetic"] else "samples"
            print(f"  {outcome['samples']} {kind} on {', '.join(outcome['providers'])}")
        for output in outcome["outputs"]:
            print(f"  {output['name']!r}: {_describe_output(output, outcome['unjudged'])}")
        copy = outcome.get("device_copy")
        if copy is not None:
            print(f"  {_FROM_COPY}{copy['status']}{', ' if copy['reason'] else ''}{copy['reason']}")


def _describe_output(output: dict[str, Any], unjudged: dict[str, str]) -> str:
    why = unjudged.get(output["name"])
    if why is not None:
        return f"could not be judged: {why}"
    return "bit-identical" if output["equal"] else f"largest error {output['max_absolute']:.3g}"
