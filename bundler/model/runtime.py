"""`runtime.json`: what the loader of every ecosystem obeys. The schema is this file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from bundler.model.artifacts import FileRecord
from bundler.model.requirements import FixedSize, Need
from bundler.model.signature import Signature

RUNTIME_SCHEMA = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderEntry:
    """One execution provider of a chain, by the runtime's own name, with its options as strings. `device` is the
    runtime's name of the memory that its tensors live in when that is not the CPU's: the loader then binds outputs.
    A provider that a plugin carries has the plugin's `library` (the Python module that knows where it lies), and may
    `select` devices by what the plugin says of them.
    """

    name: str
    options: Mapping[str, str]
    device: str | None = None
    library: str | None = None
    select: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """What was compiled before shipping, and for what: facts that decide whether a device can use it.

    `provider` is the runtime's name; `devices` the kinds of device by the provider's own names (`57`: a SoC model;
    `8.9`: a compute capability); `sdk` the version of the compiler; `statement` what it wrote into the model for the
    runtime's own judgement of compatibility, empty where it writes none.
    """

    provider: str
    devices: tuple[str, ...]
    sdk: str
    statement: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """What is made on the device before this variant runs; until then the next one does.

    `context`: the runtime compiles the model into a file of its own, opened from then on. `cache`: opening it fills a
    folder; `options` of the first provider name that folder by `{folder}`. `thing` is what people call it.
    """

    kind: Literal["context", "cache"]
    thing: str
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compatibility:
    """Facts that must hold where a variant runs. `systems` and `machines` are as Python's `platform` names them
    (`Linux`; `x86_64`); `runtime` is the exact version of the runtime that the model was baked with. `features` are
    what the provider's device must offer, by the names that the device gives them. `plugins` are the exact versions of
    the distributions that carry its providers; `compiled` is what was compiled for it before shipping. `needs` are what
    its providers use of the device's own software.
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
    """How close to the golden set an output must come. Every figure that is None sets no limit but the last.

    |actual - reference| <= `absolute` + `relative` * |reference| for each element (no limit on single elements when
    either is None). At least `sqnr_db` decibels over all samples, `low_sqnr_db` in all but a tenth of them (at least
    one of several), and `worst_sqnr_db` in every one; `bundler.model.reference` says what is the signal. At least this
    `cosine` similarity, and a share `top1_agreement` of rows whose highest value stays at its place;
    `scores_top1_agreement` asks the same of outputs that look like scores, and of no others. Of integers, booleans and
    strings a share of `agreement` must be equal; None asks for all. Of an output that is not `judged` nothing is asked.

    `typical_sqnr_db` is asked where a model is built and not on a device: what a model answers to its golden set there
    is held to the figures that it had here. With `scales`, `absolute` is for outputs up to 1 and grows with larger
    ones.
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

    def allow(self, reference: float) -> float:
        """The greatest error of an element whose reference has this magnitude; infinite where none is set."""
        if self.absolute is None or self.relative is None:
            return math.inf
        return self.absolute + self.relative * reference


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What every output must meet: `default`, but for the `outputs` that have a tolerance of their own, by name."""

    default: Tolerance
    outputs: Mapping[str, Tolerance] = field(default_factory=dict)

    def of(self, name: str) -> Tolerance:
        """The tolerance of one output."""
        return self.outputs.get(name, self.default)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeVariant:
    """One way to run the model. `model` and the paths in `files` are relative to the payload folder.

    `session` holds attributes of the runtime's session options, `session_config` its configuration entries;
    `disabled_optimizers` are graph optimisers that were applied when the model was baked and need not run again.
    `builds` are the builds of the runtime that have its providers, the preferred first; empty where there is but one.
    `device_cache` lets the loader keep the model, as the runtime laid it out for the device's own CPU, in the user's
    cache folder after the first start, and open that from then on.
    `gate` is what this variant's answers must meet: variants may differ in precision. `least_share` is the least share
    of the graph's nodes that the first provider must take; fewer is no success. `prepare` is what is made on the device
    before it runs.
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
class RuntimeConfig:
    """The whole of `runtime.json`. Variants stand in order of preference.

    `fallback`: `report` takes the next variant and says why, `strict` raises. `golden_digest` is the digest of the
    golden set's artifact; `unstable_outputs` are outputs that a random operator makes different on each run: for
    them only names, types and shapes are promised. `preprocessing` is what became of pictures, sound or text
    before the model saw them when it was judged (`bundler.model.preprocessing`): an application must do the same.
    `fixed_sizes` are the dynamic dimensions of the model that have one size in `signature`, and who fixed them.
    """

    schema: int
    model: str
    model_digest: str
    target: str
    signature: Signature
    variants: tuple[RuntimeVariant, ...]
    fallback: Literal["report", "strict"]
    golden_digest: str
    unstable_outputs: tuple[str, ...] = ()
    telemetry: bool = False
    preprocessing: Mapping[str, Any] | None = None
    fixed_sizes: tuple[FixedSize, ...] = ()
