"""A plan: the ordered steps for one bundle and one target. Data only; `bundler plan` prints it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bundler.model.requirements import FixedSize, Need
from bundler.model.runtime import Gate, Preparation, ProviderEntry
from bundler.model.stage import Note
from bundler.model.state import StateLink

MODEL = "model"
ORIGINAL = "original"
"""The model as it was given, where `MODEL` has other names."""
SAMPLES = "samples"
CALIBRATION = "calibration"
METRIC = "metric"
"""Sources that no step makes: the user's files, hashed in place."""

HOST = "host"
"""The environment that bundler itself is installed in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call of a stage.

    `inputs` maps the stage's roles to a source (`model`, `samples`) or to the id of an earlier step. `variant` is the
    variant it serves, or None when all share it. `reason` says why it is in the plan; `title` is what people read,
    where the stage's own title does not say it. `toolchain` is the name of the compiler that it uses beside its
    environment (empty: none). `volatile` says that this step runs the user's code, whatever its stage: it is never
    recalled. When an `optional` step fails, that is a note, and its model goes on unchanged.
    """

    id: str
    stage: str
    inputs: Mapping[str, str]
    options: Mapping[str, Any] = field(default_factory=dict)
    environment: str = HOST
    toolchain: str = ""
    variant: str | None = None
    reason: str = ""
    volatile: bool = False
    optional: bool = False
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedArtifact:
    """What a bundle ships of a step. `kind` is what the step's stage produces: `model`, `golden`, or the word of
    another package's stage, such as `library`. `variant` is the variant that uses it, None when all share it.
    """

    kind: str
    step: str
    variant: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantPlan:
    """One variant of the bundle: which step's model it ships and how a session is opened on it.

    `providers` (in order), the runtime's `builds` that have them, `session` and `session_config` are as in
    `runtime.json`; `comparisons` are the ids of the `compare` steps in the order of the stages that they check.
    `reproduction` is the id of the comparison with the golden set itself where the others are with a larger set, else
    empty. `features` are what the provider's device must offer. `compiled` is the id of the step that compiles the
    model for the device, where that is done before shipping; `prepare` what is done on the device instead.
    `gate` is what its outputs must meet on the device, and `rounding` says what the device computes in where that is
    another gate than the stages'. `least_share` is as in `runtime.json`; with
    `tolerates_shortfall` fewer nodes are a reservation and no failure. `needs` are what its providers use of the
    device's own software. `companions` are artifacts that it ships beside its model.
    """

    name: str
    model: str
    providers: tuple[ProviderEntry, ...]
    session: Mapping[str, Any]
    session_config: Mapping[str, str]
    comparisons: tuple[str, ...]
    disabled_optimizers: tuple[str, ...] = ()
    device_cache: bool = False
    builds: tuple[str, ...] = ()
    reproduction: str = ""
    features: tuple[str, ...] = ()
    plugins: Mapping[str, str] = field(default_factory=dict)
    compiled: str = ""
    prepare: Preparation | None = None
    least_share: float = 0.0
    tolerates_shortfall: bool = False
    gate: Gate | None = None
    rounding: str = ""
    needs: tuple[Need, ...] = ()
    companions: tuple[PlannedArtifact, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Something that a rule decided, and why; shown by `bundler plan` and in the report."""

    subject: str
    choice: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentPlan:
    """The steps of one component of a bundle, under the `name` that applications use.

    `steps` are in an order in which every input comes before its use; `golden` is the id of the step that records
    the golden set; `gates` are what the comparisons must meet, by their step's id. `fixed_sizes` are the dynamic
    dimensions that have one size in the bundle; `notes` are what a person should know before the first step. `state`
    links outputs to inputs of the next call.
    """

    name: str
    model_name: str
    steps: tuple[Step, ...]
    golden: str
    variants: tuple[VariantPlan, ...]
    decisions: tuple[Decision, ...]
    gates: Mapping[str, Gate] = field(default_factory=dict)
    fixed_sizes: tuple[FixedSize, ...] = ()
    notes: tuple[Note, ...] = ()
    state: tuple[StateLink, ...] = ()

    @property
    def artifacts(self) -> tuple[PlannedArtifact, ...]:
        """All that the bundle ships of the steps: the golden set, and each variant's model with its companions."""
        golden = PlannedArtifact(kind="golden", step=self.golden)
        return (golden, *(artifact for variant in self.variants for artifact in variant_artifacts(variant)))

    def step(self, step_id: str) -> Step:
        """The step with this id. Raises `KeyError`."""
        for step in self.steps:
            if step.id == step_id:
                return step
        raise KeyError(step_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildPlan:
    """All that a build will do, made without touching a file. The components `together` run on the variant of one
    name, all or none.
    """

    name: str
    target: str
    emitter: str
    format: str
    components: tuple[ComponentPlan, ...]
    together: tuple[str, ...] = ()

    @property
    def sole(self) -> ComponentPlan | None:
        """The plan of a bundle of one model; None where there are several."""
        return self.components[0] if len(self.components) == 1 else None

    def label(self, component: str, name: str) -> str:
        """The name of a variant or a step as people read it: with its component where there are several."""
        return name if self.sole else f"{component}/{name}"


def variant_artifacts(variant: VariantPlan) -> tuple[PlannedArtifact, ...]:
    """A variant's model, and its companions."""
    return (PlannedArtifact(kind="model", step=variant.model, variant=variant.name), *variant.companions)
