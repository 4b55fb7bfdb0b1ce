"""`runtime.json`: the configuration for the loader of every ecosystem. This file is its schema."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from bundler.model.artifacts import FileRecord
from bundler.model.requirements import FixedSize, Need
from bundler.model.signature import Signature
from bundler.model.state import StateLink

RUNTIME_SCHEMA = 4
SOLE = "model"
"""The component of a bundle of one model that nobody named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderEntry:
    """One execution provider of a chain, by the runtime's own name, with its options as strings. `device` is the
    runtime's name of the memory that its tensors live in when that is not the CPU's: the loader then binds outputs.
    A provider from a plugin has the plugin's `library` (the Python module that knows its path), and may `select`
    devices by their metadata.
    """

    name: str
    options: Mapping[str, str]
    device: str | None = None
    library: str | None = None
    select: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """What was compiled ahead of time, and for what: facts that decide whether a device can use it.

    `provider` is the runtime's name; `devices` the kinds of device by the provider's own names (`57`: a SoC model;
    `8.9`: a compute capability); `sdk` the version of the compiler; `statement` its compatibility string in the model
    for the runtime's own check, empty where it writes none. `names` are the devices' names as their systems tell them
    (`SM8650`), empty where none does. `partners` are all components whose graphs are in the file,
    where there are several: their sessions take it from each other.
    """

    provider: str
    devices: tuple[str, ...]
    sdk: str
    statement: str = ""
    names: tuple[str, ...] = ()
    partners: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """What is generated on the device before this variant runs; until then the next variant runs.

    `context`: the runtime compiles the model into a file, which is opened from then on. `cache`: opening the model
    fills a folder, which `options` of the first provider name by `{folder}`. `thing` is its name in messages.
    """

    kind: Literal["context", "cache"]
    thing: str
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compatibility:
    """The requirements of a variant. `systems` and `machines` are names of Python's `platform` (`Linux`; `x86_64`);
    `runtime` is the exact version of the runtime that the model was optimised with. `features` are features that the
    provider's device must support, by the device's own names. `plugins` are the exact versions of the distributions
    that contain its providers; `compiled` is what was compiled for it ahead of time. `needs` is the software that its
    providers use on the device.
    """

    systems: tuple[str, ...]
    machines: tuple[str, ...]
    runtime: str
    features: tuple[str, ...] = ()
    plugins: Mapping[str, str] = field(default_factory=dict)
    compiled: Compiled | None = None
    needs: tuple[Need, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """How close an output must be to the golden set. A figure that is None sets no limit, except for `agreement`.

    |actual - reference| <= `absolute` + `relative` * |reference| for each element (no limit on single elements when
    either is None). At least `sqnr_db` decibels over all samples, `low_sqnr_db` in all but a tenth of them (at least
    one of several), and `worst_sqnr_db` in every one; `bundler.model.reference` says what is the signal. At least this
    `cosine` similarity, and a share `top1_agreement` of rows whose highest value stays at its place;
    `scores_top1_agreement` asks the same of outputs that look like scores, and of no others. Of integers, booleans and
    strings a share of `agreement` must be equal; None asks for all. Of an output that is not `judged` nothing is asked.

    `typical_sqnr_db` is checked when a model is built, not on a device: there its outputs are compared with the golden
    set by the figures that they had here. With `scales`, `absolute` is for outputs up to 1 and grows with larger
    ones. A ratio that a user set holds for every error when a model is built: `waives_rounding` is false. All others
    are waived where float32 rounding is the only error, and so are all on a device, whose kernels round otherwise.
    """

    absolute: float | None = None
    relative: float | None = None
    sqnr_db: float | None = None
    low_sqnr_db: float | None = None
    worst_sqnr_db: float | None = None
    typical_sqnr_db: float | None = None
    cosine: float | None = None
    top1_agreement: float | None = None
    scores_top1_agreement: float | None = None
    agreement: float | None = None
    judged: bool = True
    scales: bool = False
    waives_rounding: bool = True

    def allow(self, reference: float) -> float:
        """The largest allowed error of an element whose reference has this magnitude; infinite without a limit."""
        if self.absolute is None or self.relative is None:
            return math.inf
        return self.absolute + self.relative * reference


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What every output must meet: `default`, except for the `outputs` with their own tolerance, by name."""

    default: Tolerance
    outputs: Mapping[str, Tolerance] = field(default_factory=dict)

    def of(self, name: str) -> Tolerance:
        """The tolerance of one output."""
        return self.outputs.get(name, self.default)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeVariant:
    """One way to run the model. `model` and the paths in `files` are relative to the payload folder.

    `session` holds attributes of the runtime's session options, `session_config` its configuration entries;
    `disabled_optimizers` are graph optimisers that must not run: they were applied ahead of time, or break the model.
    `builds` are the builds of the runtime that have its providers, the preferred first; empty where there is but one.
    `device_cache` lets the loader keep the model, as the runtime optimised it for the device's own CPU, in the user's
    cache folder after the first start, and open that copy from then on. `gate` is what this variant's outputs must
    meet: variants may differ in precision. `least_share` is the minimum share of the graph's nodes that must be
    assigned to the first provider. `prepare` is what is generated on the device before it runs.
    """

    name: str
    model: str
    files: tuple[FileRecord, ...]
    providers: tuple[ProviderEntry, ...]
    session: Mapping[str, Any]
    session_config: Mapping[str, str]
    disabled_optimizers: tuple[str, ...]
    requires: Compatibility
    gate: Gate
    device_cache: bool = False
    builds: tuple[str, ...] = ()
    least_share: float = 0.0
    prepare: Preparation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeComponent:
    """One model of the bundle, under the `name` that applications use. Variants are in order of preference.

    `golden` is the folder of its golden set, relative to the payload folder, and `golden_digest` the digest of that
    set's artifact; `unstable_outputs` are outputs that a random operator makes different on each run: for
    them only names, types and shapes are promised. `preprocessing` is what became of pictures, sound or text
    before the model saw them when it was judged (`bundler.model.preprocessing`): an application must do the same.
    `fixed_sizes` are the dynamic dimensions of the model that have one size in `signature`, and who fixed them.
    `state` links outputs to inputs of the next call. `metadata` are the entries of the original model's
    `metadata_props`: the files of the variants may have lost some, or have others besides.
    """

    name: str
    model: str
    model_digest: str
    signature: Signature
    variants: tuple[RuntimeVariant, ...]
    golden: str
    golden_digest: str
    unstable_outputs: tuple[str, ...] = ()
    preprocessing: Mapping[str, Any] | None = None
    fixed_sizes: tuple[FixedSize, ...] = ()
    state: tuple[StateLink, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)

    def variant(self, name: str) -> RuntimeVariant:
        """The variant with this name. Raises `KeyError`."""
        for variant in self.variants:
            if variant.name == name:
                return variant
        raise KeyError(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeConfig:
    """The whole of `runtime.json`. `name` is the bundle's; `components` are in the order in which they were given.

    `fallback`: `report` uses the next variant and says why, `strict` raises. The components `together` (none, or at
    least two) run on the variant of one name, all or none: they share memory or weights.
    """

    schema: int
    name: str
    target: str
    components: tuple[RuntimeComponent, ...]
    fallback: Literal["report", "strict"]
    telemetry: bool = False
    together: tuple[str, ...] = ()

    @property
    def sole(self) -> RuntimeComponent | None:
        """The component of a bundle of one model; None where there are several."""
        return self.components[0] if len(self.components) == 1 else None

    def component(self, name: str) -> RuntimeComponent:
        """The component with this name. Raises `KeyError`."""
        for component in self.components:
            if component.name == name:
                return component
        raise KeyError(name)

    @property
    def pairs(self) -> tuple[tuple[RuntimeComponent, RuntimeVariant], ...]:
        """Every variant with its component, in order."""
        return tuple((component, variant) for component in self.components for variant in component.variants)

    def label(self, component: str, variant: str) -> str:
        """A variant's name as people read it: with its component where there are several."""
        return variant if self.sole else f"{component}/{variant}"
