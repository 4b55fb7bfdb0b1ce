"""What a provider file must describe: rows of data and one Protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal

from bundler.providers.methods import Method

OptionKind = Literal["text", "flag", "integer", "number"]

FreeSizes = Literal["taken", "left", "refused"]
"""What becomes of sizes that are not fixed before a session opens: the provider takes them, leaves nodes of such sizes
to the CPU, or cannot compile the graph at all."""


Rounding = Literal["none", "half", "bfloat16"]
_LEAST_TF32 = 8.0
"""The compute capability of NVIDIA's Ampere, the first that has TF32."""

SIZES: Mapping[FreeSizes, str] = {
    "taken": "",
    "left": "runs nodes with dynamic sizes on the CPU",
    "refused": "requires fixed sizes",
}
"""What becomes of sizes that are not fixed, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionRule:
    """One valid option: allowed `values` (None: any text), what it means, and the default that the runtime takes.

    `kind` is what the value must be; `least` and `most` bound integers and numbers, both included. `decided` is empty
    for options that a profile may set; for one that bundler sets itself it says what to use instead.
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
    A plugin stands beside the plain runtime of `runtime_versions`, and Python imports it as `module`.
    """

    package: str
    versions: str = ""
    platforms: tuple[str, ...] = ()
    module: str = ""
    runtime_versions: str = ""
    source: str = ""

    @property
    def is_plugin(self) -> bool:
        """Whether it stands beside the runtime in place of being one."""
        return bool(self.module)


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeRule:
    """What becomes of sizes that are not fixed, under options that match `when` (as in `NeedRule`)."""

    sizes: FreeSizes
    when: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedRule:
    """What the provider uses of the device's own software, which is in no bundle, and when.

    `what`, `version` and `check` are as in `bundler.model.requirements.Need`; `libraries` are those of one system each,
    by the profile's name of it. It holds on `systems` (empty: on all), with runtimes of `runtime_versions` (a PEP 440
    specifier; empty: all), and under options that match `when`, patterns of file names by key, where an option that is
    left out counts by its default. `source` says where that is known from.
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
"""Options of a profile (as text) to the incompatible ones: the key that is wrong, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolkit:
    """The vendor's development kit whose compiler writes what the device's libraries open.

    `compiler` is the distribution with the compiler, and its version. `releases` are the kit's versions by distribution
    and its version, None for distributions whose version is the kit's own; they stand in the order in which a device's
    libraries come from them. Libraries open what a kit of the same `precision` leading numbers wrote, or an older one.
    """

    name: str
    compiler: tuple[str, str]
    releases: Mapping[str, Mapping[str, str] | None]
    precision: int = 2
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiler:
    """How a model is compiled for the provider on the building machine, before shipping.

    `stage` does it, in the tool environment `environment`; `options` are those that a profile may set under a variant's
    `compile`. With `by_default` it is done unless the profile says otherwise. `executes` says that the provider's
    library in that environment can also run what was compiled, without the device: for the accuracy gate. Where it
    cannot run what was compiled with these options (one file for several chips), `validation_options` gives options
    with which it runs the model that was compiled. A compiler that works `through_plugin` is given the library,
    options and selection; of another's settings, `lists` are handed on as lists of what stands between commas.

    `ranges` are the provider's options that give dynamic inputs their least, best and greatest shapes: without them, a
    model with dynamic dimensions is left for the device. `for_one_system`: what is compiled opens on one operating
    system alone, so the stage receives it. `check` finds incompatible settings. `toolkit` is
    there where libraries refuse what a newer compiler wrote.
    """

    stage: str
    environment: str
    options: tuple[OptionRule, ...] = ()
    by_default: bool = True
    executes: bool = False
    through_plugin: bool = True
    validation_options: Callable[[Mapping[str, str]], Mapping[str, str] | None] | None = None
    lists: Mapping[str, str] = field(default_factory=dict)
    ranges: tuple[str, ...] = ()
    for_one_system: bool = False
    check: Check | None = None
    toolkit: Toolkit | None = None


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
    """What is generated on the device, at install or first start, because nobody else can.

    `context`: the runtime compiles the model into a file of its own, which is opened from then on. `cache`: opening the
    model fills a folder, whose path goes into the provider option `folder_option`, as `folder_value` with `{folder}` in
    it; `options` are set beside it. `thing` is what people call it (`TensorRT engine`). `model_key` is the metadata
    entry of a model by which such a cache knows it, where the cache does not look at the model itself.
    """

    kind: Literal["context", "cache"]
    thing: str
    folder_option: str = ""
    folder_value: str = "{folder}"
    options: Mapping[str, str] = field(default_factory=dict)
    model_key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionTable:
    """The provider's options: `rules` for the valid ones, `replaced` from keys of old playbooks to what to use today;
    `check` finds incompatible ones.
    """

    rules: tuple[OptionRule, ...] = ()
    replaced: Mapping[str, str] = field(default_factory=dict)
    check: Check | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeBuild:
    """One compiled form of a runtime of several: the module that is imported, the binary that it runs, and which
    `browsers` take it, in words.
    """

    name: str
    module: str
    binary: str
    browsers: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementChecker:
    """An estimate of ONNX Runtime's mobile checker: its `function`, what it calls the provider (`title`), and the file
    with the provider's `operators` where the function takes one.
    """

    function: str
    title: str
    operators: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """Where the provider is available, and on which devices.

    `availability` says which distributions have it; where that is not what a target ships, `gone` says what became of
    it and `instead` what to use. `builds` are the builds of a runtime of several builds that have it, the preferred
    first. `select` is what a plugin's device must say of itself to be taken; `select_by` maps options that choose a
    device to the keys of what the plugin says of its devices. `needs` are what it uses of the device's own software,
    beside what a bundle can carry. `maven_groups` are the groups of its packages for Android, where they are not the
    runtime's.
    """

    availability: tuple[Availability, ...] = ()
    gone: str = ""
    instead: str = ""
    builds: tuple[RuntimeBuild, ...] = ()
    select: Mapping[str, str] = field(default_factory=dict)
    select_by: Mapping[str, str] = field(default_factory=dict)
    needs: tuple[NeedRule, ...] = ()
    maven_groups: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Numerics:
    """In which numbers the provider computes.

    `precisions` are the precision methods whose models it runs, and `methods` those that it alone wants; `tries` are
    those that an automatic choice tries, in this order, for they may be faster than the model as it is. `rounds` says
    how coarsely it computes on models in floating point under given options; with `tf32` it is TF32 that it does so in,
    which GPUs of NVIDIA have from compute capability 8.0. `half_feature` is what its device must offer to compute in
    half precision, where not all do. `wants_integers` says why the device of given options cannot compute in floating
    point, so that it takes quantised models alone; empty where it can.
    """

    precisions: tuple[str, ...] = ()
    methods: tuple[Method, ...] = ()
    tries: tuple[str, ...] = ()
    rounds: Callable[[Mapping[str, str]], Rounding] | None = None
    tf32: bool = False
    half_feature: str = ""
    wants_integers: Callable[[Mapping[str, str]], str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphRules:
    """What of a graph the provider takes.

    The first of `free_sizes` that holds says what becomes of dynamic dimensions; where none does, it takes them.
    `ranges` are the options for the least, best and greatest shapes of inputs, where it has them. `takes_fusions`: it
    runs the operators that the CPU's fusions make. `excluded_optimizers` are the runtime's own optimisers whose result
    it does not take: they are left out, here and on the device. `checker` gives, for given options, the estimate of the
    stage `check_placement` that knows its operators. `proofs` are the facts that prove success: `context` (EPContext
    nodes), `engine` (the engine's file), `nodes` (nodes assigned to it), `compatibility` (what the compiler wrote into
    the model).
    """

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
    `compiler` and `deferral` are how its work is done before shipping, or on the device; `companions` are made for each
    variant that it runs. `validation_provider` is the
    short name of the provider that a stage's result is validated with on the building machine; empty where the Python
    runtime has it. `device_memory` is the runtime's name of the memory that its tensors live in, when that
    is not the CPU's.
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

    def judge_free_sizes(self, options: Mapping[str, str]) -> FreeSizes:
        """What becomes of dynamic dimensions under these options, as text."""
        return next((rule.sizes for rule in self.graph.free_sizes if self.matches(options, rule.when)), "taken")

    def judge_rounding(self, options: Mapping[str, str], capability: str | None = None) -> Rounding:
        """How coarsely it computes on models in floating point under these options, as text, on a GPU of this compute
        capability (None: not known).
        """
        rounds = self.numerics.rounds
        if rounds is None or (self.numerics.tf32 and capability and float(capability) < _LEAST_TF32):
            return "none"
        return rounds(options)

    def matches(self, options: Mapping[str, str], when: Mapping[str, str]) -> bool:
        """Whether options match all patterns of `when`; one that is left out counts by its default."""
        values = {**{rule.key: rule.default for rule in self.options.rules}, **options}
        return all(fnmatchcase(values.get(key, ""), pattern) for key, pattern in when.items())
