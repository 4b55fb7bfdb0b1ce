"""What a provider file describes, as rows of data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal

from bundler.providers.methods import Method

OptionKind = Literal["text", "flag", "integer", "number"]

FreeSizes = Literal["dynamic", "cpu", "fixed"]
"""How a provider treats dynamic sizes: it runs their nodes, leaves them to the CPU, or cannot compile the graph."""


Rounding = Literal["none", "half", "bfloat16"]
_LEAST_TF32 = 8.0
"""The compute capability of NVIDIA's Ampere, the first with TF32."""

SIZES: Mapping[FreeSizes, str] = {
    "dynamic": "",
    "cpu": "runs nodes with dynamic sizes on the CPU",
    "fixed": "requires fixed sizes",
}
"""How a provider treats dynamic sizes, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionRule:
    """One valid option: allowed `values` (None: any text), what it means, and the default that the runtime takes.

    `kind` is what the value must be; `least` and `most` bound integers and numbers, both included. `decided` is empty
    for options that a profile may set; for those that bundler sets it says what to use instead.
    """

    key: str
    values: tuple[str, ...] | None = None
    default: str
    meaning: str
    kind: OptionKind = "text"
    least: float | None = None
    most: float | None = None
    decided: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Availability:
    """One distribution of the runtime, or a plugin beside it, that has the provider.

    `package` is its name in the ecosystem's package index; `versions` which of its versions have it (a PEP 440
    specifier: `>=1.24.2`, `<1.23`; empty for all); `platforms` where (`linux/x64`, `android/arm64`; empty for all).
    A plugin extends the plain runtime of `runtime_versions`, and Python imports it as `module`.
    """

    package: str
    versions: str = ""
    platforms: tuple[str, ...] = ()
    module: str = ""
    runtime_versions: str = ""
    source: str = ""

    @property
    def is_plugin(self) -> bool:
        """Whether it extends the runtime instead of being one."""
        return bool(self.module)


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeRule:
    """How dynamic sizes are treated, under options that match `when` (as in `NeedRule`)."""

    sizes: FreeSizes
    when: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedRule:
    """Software that the provider requires on the device, which no bundle contains, and when.

    `what`, `version` and `check` are as in `bundler.model.requirements.Need`; `libraries` are those of
    each system, by the profile's name of it. It applies on `systems` (empty: on all), with runtimes of
    `runtime_versions` (a PEP 440 specifier; empty: all), and under options that match `when`: patterns of file names by
    key; an omitted option has its default. `source` is the evidence.
    """

    what: str
    version: str = ""
    check: str = ""
    libraries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    systems: tuple[str, ...] = ()
    runtime_versions: str = ""
    when: Mapping[str, str] = field(default_factory=dict)
    source: str = ""


Check = Callable[[Mapping[str, str]], Iterable[tuple[str, str]]]
"""From the options of a profile (as text) to the incompatible ones: the key, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolkit:
    """The vendor's development kit: its compiler writes what the device's libraries load.

    `compiler` is the distribution with the compiler, and its version. `releases` are the kit's versions by distribution
    and its version, None for distributions whose version is the kit's own, in the order in which a device's libraries
    are taken from them. Libraries load what the same or an older kit wrote, compared by `precision` leading numbers.
    """

    name: str
    compiler: tuple[str, str]
    releases: Mapping[str, Mapping[str, str] | None]
    precision: int = 2
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiler:
    """How a model is compiled for the provider on the building machine, before shipping.

    `stage` compiles, in the tool environment `environment`; `options` are those that a profile may set under a
    variant's `compile`. With `by_default` a variant is compiled unless the profile says otherwise. `executes`: the
    provider's library in that environment can also run the compiled model without the device, for the accuracy gate.
    Where it cannot run what was compiled with these options (one file for several chips), `validation_options` gives
    options with which it runs the model before compilation. A compiler that works `through_plugin` receives the
    library, options and selection; otherwise settings in `lists` are split at commas.

    `ranges` are the provider's options for the minimum, optimum and maximum shapes of dynamic inputs: without them, a
    model with dynamic dimensions is compiled on the device. `for_one_system`: the result runs on one operating system
    only, which the stage receives. `check` finds incompatible settings. `toolkit` is set where the device's libraries
    refuse what a newer compiler wrote. A compiler that takes a second model, the input `partner`, and writes one file
    of both, has in `shared_config` the session configuration with which their sessions take it from each other.
    `name_devices` gives the names that systems tell of the devices with the compiler's own. For a compiler that takes
    uint8 for truth values, casts to floating point are `wide_casts`: through int32.
    """

    stage: str
    environment: str
    options: tuple[OptionRule, ...] = ()
    by_default: bool = True
    executes: bool = False
    through_plugin: bool = True
    validation_options: Callable[[Mapping[str, str]], Mapping[str, str] | None] | None = None
    name_devices: Callable[[Iterable[str]], tuple[str, ...]] = lambda _devices: ()
    lists: Mapping[str, str] = field(default_factory=dict)
    ranges: tuple[str, ...] = ()
    for_one_system: bool = False
    check: Check | None = None
    toolkit: Toolkit | None = None
    shared_config: Mapping[str, str] = field(default_factory=dict)
    wide_casts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Companion:
    """An artifact that a variant ships beside its model, such as a library that the device's driver opens.

    `stage` makes it from the model that ships, in the tool environment `environment` and with the `toolchain` of that
    name (empty: none). Its options are the target's `system` and `architecture`.
    """

    stage: str
    environment: str
    toolchain: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deferral:
    """What is generated on the device, at installation or first start, because it depends on the device.

    `context`: the runtime compiles the model into a separate file, which is loaded from then on. `cache`: loading the
    model fills a folder, whose path is the provider option `folder_option`, as `folder_value` with `{folder}` in it;
    `options` are set, too. `thing` is its name in messages (`TensorRT engine`). `model_key` is the metadata entry that
    identifies a model in such a cache, where the cache does not compare models.
    """

    kind: Literal["context", "cache"]
    thing: str
    folder_option: str = ""
    folder_value: str = "{folder}"
    options: Mapping[str, str] = field(default_factory=dict)
    model_key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionTable:
    """The provider's options: `rules` for the valid ones, `replaced` from outdated keys to what to use instead;
    `check` finds incompatible ones.
    """

    rules: tuple[OptionRule, ...] = ()
    replaced: Mapping[str, str] = field(default_factory=dict)
    check: Check | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeBuild:
    """One build of a runtime that has several: the imported module, its binary, and the supported `browsers`, in
    words.
    """

    name: str
    module: str
    binary: str
    browsers: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementChecker:
    """A check of ONNX Runtime's mobile checker: its `function`, its name of the provider (`title`), and the file with
    the provider's `operators` where the function requires one.
    """

    function: str
    title: str
    operators: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppNeeds:
    """What an app on Android must do so that the provider reaches its device.

    Its manifest names `system_libraries` of the device. Libraries that match the patterns `foreign` are no code of the
    app's processor, and are not stripped. With `extracted`, libraries are opened as files, so that the installation
    must unpack them.
    """

    system_libraries: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    extracted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """Where the provider is available, and on which devices.

    `availability` lists the distributions that have it; for targets without one, `gone` says why and `instead` what
    to use. `builds` are the builds that have it, of a runtime with several, the preferred first. `select` is metadata
    that a plugin's device must have; `select_by` maps options that choose a device to keys of that metadata. `needs`
    are requirements on the device's software. `maven_groups` are the groups of its packages for Android, where they
    differ from the runtime's, and `app` what an app there must do; None for nothing.
    """

    availability: tuple[Availability, ...] = ()
    gone: str = ""
    instead: str = ""
    builds: tuple[RuntimeBuild, ...] = ()
    select: Mapping[str, str] = field(default_factory=dict)
    select_by: Mapping[str, str] = field(default_factory=dict)
    needs: tuple[NeedRule, ...] = ()
    maven_groups: Mapping[str, str] = field(default_factory=dict)
    app: AppNeeds | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Numerics:
    """The numeric formats of the provider.

    `precisions` are the precision methods whose models it runs, and `methods` those made for it alone; `tries` are
    those that an automatic choice tries, in this order, because they may be faster than the original model. `rounds`
    gives the precision in which it computes floating-point models under given options; with `tf32` that is TF32, which
    NVIDIA's GPUs have from compute capability 8.0. `exact` are the options with which it computes in the model's own
    precision, where it has such. `half_feature` is the device feature required for FP16, where not
    all devices have it. `wants_integers` says why the device of given options cannot compute in floating point, so that
    it requires quantised models; empty where it can. With `lacks_doubles` it runs nothing in float64, nor do the builds
    of the runtime that have it.
    """

    precisions: tuple[str, ...] = ()
    methods: tuple[Method, ...] = ()
    tries: tuple[str, ...] = ()
    rounds: Callable[[Mapping[str, str]], Rounding] | None = None
    tf32: bool = False
    exact: Mapping[str, str] = field(default_factory=dict)
    half_feature: str = ""
    wants_integers: Callable[[Mapping[str, str]], str] | None = None
    lacks_doubles: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacks:
    """What the builds of the runtime with a provider cannot run on any of their providers: `operators` are patterns of
    qualified names, and `strings` says that it is every tensor of strings, too. `instead` is what to use.
    """

    operators: tuple[str, ...]
    strings: bool
    instead: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphRules:
    """Which graphs the provider supports.

    The first matching rule of `free_sizes` decides on dynamic dimensions; without one, they are supported. `ranges` are
    the options for the minimum, optimum and maximum shapes of inputs, where it has them. `takes_fusions`: it runs the
    operators that the CPU's fusions create. `excluded_optimizers` are optimisers of the runtime whose result it does
    not support: they are disabled, here and on the device. `checker` gives, for given options, the checker that stage
    `check_placement` uses. `proofs` are the facts that prove success: `context` (EPContext
    nodes), `engine` (the engine's file), `nodes` (nodes assigned to it), `compatibility` (what the compiler wrote into
    the model). `lacks` is what its builds of the runtime lack; None for nothing.
    """

    lacks: Lacks | None = None
    free_sizes: tuple[SizeRule, ...] = ()
    ranges: tuple[str, ...] = ()
    takes_fusions: bool = False
    excluded_optimizers: tuple[str, ...] = ()
    checker: Callable[[Mapping[str, str]], PlacementChecker] | None = None
    proofs: tuple[Literal["context", "engine", "nodes", "compatibility"], ...] = ("nodes",)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderKnowledge:
    """All knowledge of one execution provider.

    `name` is the short name in profiles; `runtime_name` the runtime's own; `package` the distribution that carries it.
    `compiler` and `deferral` describe compilation ahead of time and on the device; `companions` are made for each
    variant that it runs. `validation_provider` is the short name of the provider that validates a stage's result on the
    building machine; empty where the Python runtime has the provider itself. `device_memory` is the runtime's name of
    the memory of its tensors, if it is not the CPU's. `uneven_options` are for models with
    `ModelFacts.uneven_convolutions`, which it computes wrong without them.
    """

    name: str
    runtime_name: str
    title: str
    package: str
    options: OptionTable = OptionTable()
    presence: Presence = Presence()
    numerics: Numerics = Numerics()
    graph: GraphRules = GraphRules()
    compiler: Compiler | None = None
    deferral: Deferral | None = None
    companions: tuple[Companion, ...] = ()
    validation_provider: str = ""
    device_memory: str | None = None
    uneven_options: Mapping[str, str] = field(default_factory=dict)

    def judge_free_sizes(self, options: Mapping[str, str]) -> FreeSizes:
        """How dynamic dimensions are treated under these options, as text."""
        return next((rule.sizes for rule in self.graph.free_sizes if self.matches(options, rule.when)), "dynamic")

    def judge_rounding(self, options: Mapping[str, str], capability: str | None = None) -> Rounding:
        """The precision in which it computes floating-point models under these options, as text, on a GPU of this
        compute capability (None: unknown).
        """
        rounds = self.numerics.rounds
        if rounds is None or (self.numerics.tf32 and capability and float(capability) < _LEAST_TF32):
            return "none"
        return rounds(options)

    def matches(self, options: Mapping[str, str], when: Mapping[str, str]) -> bool:
        """Whether options match all patterns of `when`; an omitted option has its default."""
        values = {**{rule.key: rule.default for rule in self.options.rules}, **options}
        return all(fnmatchcase(values.get(key, ""), pattern) for key, pattern in when.items())
