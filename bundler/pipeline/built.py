"""Components whose steps have run, and the bundle that they make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from bundler.model.manifest import PipelineRecord
from bundler.model.plan import VariantPlan
from bundler.model.results import StepOutcome
from bundler.model.runtime import RuntimeConfig
from bundler.pipeline.prepare import Prepared, PreparedBundle


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltPart:
    """A component with the outcomes of its plan's steps by id. `sharing` are the steps that stored once what its
    variants have in common, with each other or with other components; `shared` are its models, by variant. Those that
    were compiled into one file have the names of the components in it in `partners`.
    """

    prepared: Prepared
    outcomes: Mapping[str, StepOutcome]
    sharing: tuple[StepOutcome, ...] = ()
    shared: Mapping[str, StepOutcome] = field(default_factory=dict)
    partners: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def all_outcomes(self) -> tuple[StepOutcome, ...]:
        """Those of the steps before the plan, in it, and after it."""
        return (*self.prepared.earlier, *self.outcomes.values(), *self.sharing)

    def taking(
        self,
        models: Mapping[str, StepOutcome],
        sharing: StepOutcome,
        partners: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    ) -> BuiltPart:
        """The same with `models` in place of its variants' own, made by the step `sharing`."""
        return replace(
            self,
            sharing=(*self.sharing, sharing),
            shared={**self.shared, **models},
            partners={**self.partners, **partners},
        )

    def model(self, variant: VariantPlan) -> StepOutcome:
        """The model that the variant ships."""
        return self.shared.get(variant.name) or self.outcomes[variant.model]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltBundle:
    """All that is written into a bundle: `config` is its `runtime.json`, `pipeline` what the user's own answered."""

    prepared: PreparedBundle
    parts: tuple[BuiltPart, ...]
    config: RuntimeConfig
    pipeline: tuple[PipelineRecord, ...] = ()

    def measured(self) -> BuiltBundle:
        """The same as `--measure` asks for it."""
        request = replace(self.prepared.request, measure=True)
        return replace(self, prepared=replace(self.prepared, request=request))
