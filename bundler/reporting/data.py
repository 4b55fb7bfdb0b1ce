"""The input of a report: all results of a build, including those that vary from run to run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bundler.model.attempts import Frontier
from bundler.model.facts import ModelFacts
from bundler.model.manifest import ComponentRecord, Manifest
from bundler.model.measurement import Measurement
from bundler.model.open_sizes import NOBODY, Asker
from bundler.model.plan import ComponentPlan
from bundler.model.proof import Download, VariantProof
from bundler.model.results import StepOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentReport:
    """What a report shows of one component. `outcomes` are those of all its steps, the inspection first; `proofs` and
    `measurements` are its own. `asker` is whom hints on sizes address; `frontiers` are for precisions that were chosen
    by measuring.
    """

    plan: ComponentPlan
    outcomes: Sequence[StepOutcome]
    facts: ModelFacts
    record: ComponentRecord
    proofs: Sequence[VariantProof] = ()
    measurements: Sequence[Measurement] = ()
    asker: Asker = NOBODY
    frontiers: tuple[Frontier, ...] = ()

    @property
    def assignments(self) -> dict[str, Mapping[str, int]]:
        """Nodes by provider for each variant whose runtime counted them."""
        return {proof.variant: proof.nodes for proof in self.proofs if proof.nodes}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportData:
    """The whole input of a report. `components` are in the order of the manifest's; `bundle_bytes` are those of all
    files of the bundle.

    `unmeasured` says why there are no measurements, `is_brief` that they took no longer than a build spends on them
    unless it is asked for more; `unassigned` why the assignment of nodes is not known. `phases` are seconds outside the
    steps (`emit`, `prove`). `downloads` are for web bundles.
    """

    manifest: Manifest
    components: tuple[ComponentReport, ...]
    bundle_bytes: int
    unmeasured: str = "nothing was run"
    is_brief: bool = False
    unassigned: str = "no runtime reported the assignment of nodes to providers"
    phases: Mapping[str, float] = field(default_factory=dict)
    downloads: Sequence[Download] = ()
    log: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Statistics of a series of measurements, in its own unit; `low` and `high` are the 10th and 90th percentile."""

    median: float
    low: float
    high: float
    count: int


def summarize_series(values: Sequence[float]) -> Spread | None:
    """Median, 10th and 90th percentile of the finite values; None when there are none."""
    ordered = sorted(value for value in values if math.isfinite(value))
    if not ordered:
        return None
    return Spread(
        median=_quantile(ordered, 0.5), low=_quantile(ordered, 0.1), high=_quantile(ordered, 0.9), count=len(ordered)
    )


def _quantile(ordered: Sequence[float], share: float) -> float:
    """The value below which `share` of the series lies, interpolated between its neighbours."""
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
