"""The one model of a target profile.

The docstring under each field becomes its description in the JSON Schema, in the docs tables and in error texts.
"""

from __future__ import annotations

import itertools
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from bundler.model.shapes import Shape, check_shape

Identifier = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=64)]
Word = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$", max_length=64)]
OptionValue = str | int | float | bool
# These values reach commands, requirements and file names, so each is held to the letters that it needs.
Line = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]+$", max_length=200)]
Sentence = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]+$", max_length=400)]
Distribution = Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$", max_length=100)]
Version = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)*((a|b|rc|\.post|\.dev)[0-9]+)?$", max_length=40)]
GivenShape = Annotated[
    Shape,
    BeforeValidator(check_shape),
    WithJsonSchema({"anyOf": [{"type": "array", "items": {"type": ["integer", "string"]}}, {"type": "string"}]}),
]
CoreName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=64)]


class Section(BaseModel):
    """A part of a profile: frozen, and unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Platform(Section):
    """Where the bundle runs."""

    system: Literal["linux", "macos", "windows", "android", "ios", "web"]
    """Operating system."""
    architecture: Literal["x64", "arm64", "armv7", "wasm32"]
    """Instruction set."""
    minimum: Version | None = None
    """Minimum version of the system: glibc for Linux (`2.28`), the macOS release, the Android API level."""
    cpu: CoreName | None = None
    """The CPU core, by QEMU's name, used when the bundle is verified under emulation (`cortex-a76`)."""
    compute_capability: Annotated[str, Field(pattern=r"^\d{1,2}\.\d$")] | None = None
    """CUDA compute capability of the GPU, where it matters (`7.5`): below 8.0 there is no TF32, so models in floating
    point lose no accuracy to it."""


class Runtime(Section):
    """The inference runtime that the bundle ships."""

    package: Distribution = "onnxruntime"
    """Its distribution in the ecosystem's package index."""
    version: Version
    """Its exact version; models are optimised with this version."""
    optimizer: Distribution = "onnxruntime"
    """The Python distribution that optimises models for it ahead of time, at the same version."""
    plugins: dict[Distribution, Version] = {}
    """Additional distributions that carry more execution providers (`onnxruntime-qnn`), with their exact versions."""
    custom_build: bool = False
    """The runtime is a custom build of ONNX Runtime, so it may have providers that no published one has."""


class Provider(Section):
    """One execution provider of a chain."""

    name: Annotated[str, Field(max_length=100)]
    """bundler's short name of the provider: a file in `bundler/providers/`."""
    options: dict[str, OptionValue] = {}
    """Provider options, checked against the provider's table."""


class Variant(Section):
    """One model file plus one provider chain and session options."""

    name: Identifier
    """Short name, used in paths and messages (`cpu`, `htp`)."""
    providers: tuple[Provider, ...] = Field(min_length=1)
    """The provider chain, the preferred one first."""
    session: dict[str, OptionValue] = {}
    """Attributes of the runtime's session options (`intra_op_num_threads`)."""
    session_config: dict[str, OptionValue] = {}
    """Configuration entries of a session (`session.intra_op.allow_spinning`)."""
    precision: Identifier | None = None
    """The precision method of this variant alone; default: the target's `precision.method`."""
    calibrated: Identifier | None = None
    """The method of this variant alone when calibration data are given; default: `precision.calibrated`."""
    compile: dict[str, OptionValue] = {}
    """How bundler compiles the model for the first provider before shipping, checked against the provider's table."""
    least_share: float = Field(default=0.0, ge=0, le=1)
    """Minimum share of the graph's nodes assigned to the first provider; with fewer, the build or the start fails."""
    shortfall: Literal["fail", "report"] = "fail"
    """When fewer nodes than `least_share` are assigned to the first provider: fail, or continue with a warning."""
    custom_build: bool = False
    """Requires a custom build of ONNX Runtime: left out, with a message, unless `runtime.custom_build`."""
    keep_on_device: bool = False
    """Outputs stay in the memory of the first provider's device until they are read, so that they can be the next run's
    inputs without a copy."""


class Optimization(Section):
    """How the graph is optimised before shipping."""

    simplifier: Literal["none", "onnxscript", "onnxslim", "onnxsim", "onnxoptimizer"] = "none"
    """Run a simplifier before the runtime's own optimiser. None improves a model that ONNX Runtime runs
    (benchmarks/RESULTS.md); compilers of other runtimes may need one. `onnxscript` is the one that broke no model."""
    preset: Literal["none", "O1", "O2", "O3", "O4"] = "none"
    """One of Optimum's levels, which sets a `level`, fusions and, for O4, a precision."""
    level: Literal["auto", "none", "basic", "extended"] = "auto"
    """Level of optimisation ahead of time: `auto` is the highest one with right results on every CPU of the target."""
    format: Literal["auto", "onnx", "ort"] = "auto"
    """Model format: `auto` decides by rule from the model's operators and size."""


class Fusion(Section):
    """How the operators of transformers are fused (attention, layer normalisation, GELU), before the runtime's own
    optimiser.
    """

    model_type: Word = "none"
    """`none`, `auto` (found from the structure), or one of `onnxruntime.transformers` (`bert`, `gpt2`, `vit`)."""
    heads: int = Field(default=0, ge=0)
    """Attention heads; 0: found from the structure."""
    hidden_size: int = Field(default=0, ge=0)
    """Hidden size; 0: found from the structure."""
    disabled: tuple[Word, ...] = ()
    """Fusions to disable (`attention`, `skip-layer-norm`)."""
    gelu_approximation: bool = False
    """Compute GELU by its fast approximation."""
    mask: Literal["raw", "end", "none"] = "raw"
    """How attention uses its mask: `raw` is right for every mask; `end` keeps only each row's length, which is wrong
    for any mask but a run of ones from the left; `none` omits it."""
    packed: bool = False
    """Padding is removed before the blocks and put back after them: for CUDA only; the mask must be as for `end`."""
    backend: Literal["onnxruntime", "onnxruntime-tools"] = "onnxruntime"
    """Source of the fusions: the runtime, or its predecessor."""


ElementType = Literal["uint8", "int8", "uint16", "int16"]


class Precision(Section):
    """How numbers are stored and computed. The method sets the default of each value."""

    calibrated: Identifier = "none"
    """The method for a model in floating point when calibration data are given and `method` is `none`."""
    method: Identifier = "none"
    """`none`, a method (`bundler targets methods` shows them), or `auto`: try those of `order`, and keep the fastest
    whose accuracy gate holds."""
    order: tuple[Identifier, ...] = ()
    """Methods that `auto` tries, in this order; default: the methods that suit the variant's provider."""
    calibration: Literal["minmax", "entropy", "percentile", "distribution"] | None = None
    """How ranges are found from calibration data."""
    percentile: float | None = Field(default=None, gt=0, le=100)
    """Share of values, in percent, that the range covers with `percentile`."""
    format: Literal["qdq", "qoperator"] | None = None
    """Quantised operators as such, or as float operators between quantise and dequantise nodes."""
    activation_type: ElementType | None = None
    """Type of quantised activations."""
    weight_type: ElementType | None = None
    """Type of quantised weights."""
    per_channel: bool | None = None
    """One scale for each output channel of a weight, or one for the tensor."""
    reduce_range: bool | None = None
    """Weights of 7 bits, for x86 CPUs whose 8-bit products saturate (without VNNI)."""
    symmetric_activations: bool | None = None
    """Symmetric activations: the zero point is in the middle."""
    symmetric_weights: bool | None = None
    """Symmetric weights: the zero point is in the middle."""
    operators: tuple[Line, ...] = ()
    """Operator types to quantise; default: the method's."""
    exclude_operators: tuple[Line, ...] = ()
    """Operator types that are not quantised or converted."""
    exclude_nodes: tuple[Annotated[str, Field(max_length=1000)], ...] = ()
    """Names of nodes that are not quantised or converted."""
    exclude_structures: tuple[Literal["depthwise", "squeeze", "narrow"], ...] | None = None
    """Convolutions that keep their precision, because int8 gains them little: depthwise ones, the ones of
    squeeze-and-excitation blocks, and the ones with few channels."""
    keep_float: Literal["none", "auto"] | None = None
    """`auto` searches for the nodes that must stay in floating point until the gate holds."""
    keep_io: bool | None = None
    """Inputs and outputs keep their types when the inside is converted to half precision."""
    bits: Literal[4, 8] | None = None
    """Bits of a weight, where only weights are quantised."""
    block_size: Literal[16, 32, 64, 128, 256] | None = None
    """Number of weights that share a scale, where only weights are quantised."""
    algorithm: Literal["rtn", "hqq", "gptq"] | None = None
    """How low-bit weights are computed: rounding to nearest, half-quadratic, or from calibration data."""
    accuracy_level: Literal[0, 1, 2, 3, 4] | None = None
    """Minimum precision of products with low-bit weights: 0 the runtime's choice, 1 float32, 4 int8."""
    preset: Literal["performance", "mixed"] | None = None
    """NNCF's preset: symmetric activations, or asymmetric ones where it helps."""


class Calibration(Section):
    """Data for calibration, and data held out to evaluate the result."""

    limit: int = Field(default=0, ge=0)
    """Maximum number of samples; 0: all."""
    held_out_every: int = Field(default=5, ge=2)
    """Without `--samples`, one in this many calibration samples is held out and evaluates the result."""


class Figures(Section):
    """Limits on the figures of one output. Limits that are not set follow `accuracy`."""

    absolute: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Maximum absolute error of a single element, added to `relative` times the reference. Default: 0.0001, or 0.05
    for a model that came quantised; no limit after a step that loses precision."""
    relative: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Maximum relative error of a single element. Default: 0.001, or 0.05 for a model that came quantised; no limit
    after a step that loses precision."""
    sqnr_db: float | None = Field(default=None, allow_inf_nan=False, ge=-300, le=1000)
    """Minimum signal-to-quantisation-noise ratio in dB over all samples, of the signal without its mean. Default: 40,
    or 30 for a model that came quantised; after a step that loses precision 30 (half precision), 25 (computed in
    bfloat16), 15 (int8) or 10 (int4)."""
    low_sqnr_db: float | None = Field(default=None, allow_inf_nan=False, ge=-300, le=1000)
    """The same ratio in each sample, except a tenth of them (and at least one of several). Default: 5 dB below
    `sqnr_db`; 10 below for a model that came quantised, 4 for int4."""
    worst_sqnr_db: float | None = Field(default=None, allow_inf_nan=False, ge=-300, le=1000)
    """The same ratio in the worst sample. Default: 10 dB below `sqnr_db`; 15 below in half precision and for a model
    that came quantised, 13 in bfloat16, 7 for int4."""
    typical_sqnr_db: float | None = Field(default=None, allow_inf_nan=False, ge=-300, le=1000)
    """The same ratio of the input-dependent part of the output: an output that is the same for every input reaches
    about 0. Default: 15 for FP16, 12 for bfloat16, 8 for int8, 5 for int4, no limit elsewhere."""
    cosine: float | None = Field(default=None, ge=-1, le=1)
    """Minimum cosine similarity."""
    top1_agreement: float | None = Field(default=None, ge=0, le=1)
    """Minimum share of rows (along the last axis) whose highest score stays at the same place, in every output that has
    such rows. Default: 0.99, or 0.98 for a model that came quantised, in outputs that look like scores of classes, and
    no limit in others; after a step that loses precision 0.99 (half precision), 0.98 (bfloat16), 0.95 (int8) or 0.9
    (int4)."""
    agreement: float | None = Field(default=None, ge=0, le=1)
    """Minimum share of equal values in an output of integers, booleans or strings. Default: 1; 0.98 for a model that
    came quantised or is computed in bfloat16, 0.99, 0.97 or 0.9 after a step that leaves half precision, int8 or int4.
    Integers that are rounded numbers (boxes) rather than labels are then judged by `sqnr_db` instead."""
    judged: bool = True
    """Whether the output has limits: `false` for an output that nobody reads, or that only `metric` can judge (a
    varying number of boxes)."""

    @model_validator(mode="after")
    def _check_limits(self) -> Self:
        limits = [(name, getattr(self, name)) for name in ("worst_sqnr_db", "low_sqnr_db", "sqnr_db")]
        given = [(name, limit) for name, limit in limits if limit is not None]
        for (lower, small), (upper, great) in itertools.pairwise(given):
            if small > great:
                text = f"`{lower}` {small:g} is above `{upper}` {great:g}"
                raise ValueError(f"{text}: a limit for single samples cannot exceed the limit over all samples")
        limited = [
            name for name in sorted(Figures.model_fields) if name != "judged" and getattr(self, name) is not None
        ]
        if not self.judged and limited:
            raise ValueError(f"`judged = false` cannot be used with the limit `{limited[0]}`: remove one of the two")
        return self


class Metric(Section):
    """Your metric of the model's outputs: a Python function or a command; higher is better."""

    python: Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]+\.py:[A-Za-z_][A-Za-z0-9_]*$", max_length=1000)] | None = (
        None
    )
    """A function of a file, `metric.py:measure`, called with an iterable of samples that have `name`, `inputs`,
    `reference` and `answers` (arrays by name); it returns a number."""
    command: tuple[Annotated[str, Field(max_length=10_000)], ...] = ()
    """A program with its arguments (no shell), in which `{inputs}`, `{reference}` and `{answers}` are replaced by
    folders with one .npz file per sample; the last line that it prints is the number."""
    least: float | None = Field(default=None, allow_inf_nan=False)
    """Minimum value."""
    drop: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Maximum drop of the value below that of the original model's outputs."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.python is None) == (not self.command):
            raise ValueError("give either `python` or `command`")
        if self.least is None and self.drop is None:
            raise ValueError("give `least`, `drop`, or both: a metric without a limit judges nothing")
        return self

    @property
    def name(self) -> str:
        """`metric.py:share_right`, or the program's name: the same wherever the file lies."""
        return (self.python or self.command[0]).replace("\\", "/").rpartition("/")[2]


class Accuracy(Figures):
    """The gate: how close every output must be to the original model's. Defaults depend on the model and on its steps:
    a quantised model rounds in steps, other kernels round differently, and a step that loses precision is judged by
    how much of the signal is left.
    """

    outputs: dict[Annotated[str, Field(max_length=1000)], Figures] = {}
    """Limits of single outputs by name; they override the limits for all."""
    metric: Metric | None = None
    """Your metric, in addition to the figures."""


class Budget(Section):
    """Maximum sizes of the bundle."""

    model_mb: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Maximum size of a model (all files of one variant), in MB of 1,000,000 bytes."""
    bundle_mb: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Maximum size of the bundle, in MB of 1,000,000 bytes."""
    download_mb: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Maximum download of a first visit, over all variants, in MB of 1,000,000 bytes with brotli; for web bundles."""


class Bundle(Section):
    """The bundle that is written."""

    ecosystem: Identifier = "python"
    """The emitter: `python`, `web`."""
    format: Identifier = "dir"
    """One of the emitter's formats: `dir`, `wheel`, `pex` for Python, `dir`, `tgz` for the web."""
    fallback: Literal["report", "strict"] = "report"
    """When a variant cannot run: take the next and report why, or raise."""


class LanguageModel(Section):
    """Sizes that suit language models on the device, for their export and their bundles."""

    batch_size: int = Field(default=1, gt=0)
    """Number of sequences generated at once."""
    prompt_tokens: int = Field(default=128, gt=0)
    """Prompt tokens processed in one step, where the provider requires fixed shapes."""
    context_tokens: int = Field(default=2048, gt=0)
    """Longest context that the memory holds for a model of its size."""


class TargetProfile(Section):
    """A target profile, fully resolved."""

    id: Identifier
    """The target's name on the command line."""
    title: Line
    """One line for people."""
    group: Line
    """Heading under which lists show it."""
    description: str = ""
    """What to know before choosing it."""
    aliases: tuple[Line, ...] = ()
    """Names of the device: products, boards, part numbers (`Galaxy S24 Ultra`, `SM8650`)."""
    cautions: dict[Line, Sentence] = {}
    """What to check before choosing this target for one of `aliases`, by that name: phones with different chips."""
    serves: dict[Line, Sentence] = {}
    """Devices without a separate target that this target runs on, by the words that their names share (`Jetson`,
    `AI HAT`; the longest applies), with why it runs there and which hardware stays unused."""
    refuses: dict[Line, Sentence] = {}
    """Exceptions to `serves`: devices whose names match it and that this target does not run on, with why
    (`Raspberry Pi Pico`). A longer name in `serves` that has these words takes precedence."""
    platform: Platform
    runtime: Runtime
    variants: tuple[Variant, ...] = Field(min_length=1)
    optimization: Optimization = Optimization()
    fusion: Fusion = Fusion()
    precision: Precision = Precision()
    calibration: Calibration = Calibration()
    language_model: LanguageModel = LanguageModel()
    dimensions: dict[str, Annotated[int, Field(gt=0)]] = {}
    """Dynamic dimensions that are fixed, by name."""
    shapes: dict[str, GivenShape] = {}
    """Shapes that are fixed, by the name of the input: `[1, 3, 48, 192]` or `"1,3,48,192"`, where `"?"` leaves a size
    as the model has it, and `"64..320"` is a range for providers that take ranges. Also for sizes without a name;
    inputs that a model does not have are ignored."""
    accuracy: Accuracy = Accuracy()
    budget: Budget = Budget()
    bundle: Bundle = Bundle()
    sources: dict[str, str] = {}
    """Sources of values that are not obvious, by dotted key."""
