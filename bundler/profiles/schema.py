"""The one model of a target profile.

The docstring under each field becomes its description in the JSON Schema, in the docs tables and in error texts.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Identifier = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=64)]
OptionValue = str | int | float | bool
# These values reach commands, requirements and file names, so each is held to the letters that it needs.
Line = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]+$", max_length=200)]
Distribution = Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$", max_length=100)]
Version = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)*((a|b|rc|\.post|\.dev)[0-9]+)?$", max_length=40)]
PythonVersion = Annotated[str, Field(pattern=r"^3\.[0-9]+$", max_length=6)]
PlatformTag = Annotated[str, Field(pattern=r"^[a-z0-9_]+$", max_length=64)]
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
    """Least version of the system: glibc for Linux (`2.28`), the macOS release, the Android API level."""
    cpu: CoreName | None = None
    """The CPU core, by the name that QEMU gives it, used when the bundle is proven under emulation (`cortex-a76`)."""


class Runtime(Section):
    """The inference runtime that the bundle ships."""

    package: Distribution = "onnxruntime"
    """Its distribution in the ecosystem's package index."""
    version: Version
    """Its exact version; models are baked with this version."""
    baker: Distribution = "onnxruntime"
    """The Python distribution that bakes models for it, at the same version."""


class PythonSettings(Section):
    """For bundles that are Python packages."""

    versions: tuple[PythonVersion, ...] = ("3.11", "3.12", "3.13")
    """Python versions whose wheels are vendored."""
    wheel_platforms: tuple[PlatformTag, ...] = ()
    """Platform tags that the device's pip accepts, the most specific first (`manylinux_2_28_x86_64`)."""


class WebSettings(Section):
    """For bundles that run in a browser."""

    part_mb: float = Field(default=25.0, gt=0, allow_inf_nan=False)
    """Largest file, in MB of 1,000,000 bytes; what is larger is stored in parts that the loader joins."""
    precompressed: bool = False
    """Also write every file that a visitor downloads as `.br` and `.gz`, for hosts that serve those."""


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
    keep_on_device: bool = False
    """Outputs stay in the memory of the first provider's device until they are read, so that they can be the next run's
    inputs without a copy."""


class Optimization(Section):
    """How the graph is optimised before shipping."""

    simplify: bool = False
    """Run a simplifier (onnxscript's) before the runtime's own optimiser. Where ONNX Runtime runs the model it gains
    nothing (benchmarks/RESULTS.md); compilers of other runtimes may want it."""
    level: Literal["auto", "none", "basic", "extended"] = "auto"
    """What is baked: `auto` is the highest level whose result is right on every CPU of the target."""
    format: Literal["auto", "onnx", "ort"] = "auto"
    """Model format: `auto` decides by rule from the model's operators and size."""


class Accuracy(Section):
    """The gate: how close every output must come to the untouched model's. What is left out follows the model: a model
    that is quantised already rounds in steps, and other kernels round elsewhere.
    """

    absolute: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Greatest absolute error, added to `relative` times the reference. Left out: 0.0001, or 0.05 for a quantised
    model."""
    relative: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Greatest relative error. Left out: 0.001, or 0.05 for a quantised model."""
    sqnr_db: float | None = Field(default=None, allow_inf_nan=False)
    """Least signal-to-quantisation-noise ratio in dB. Left out: 40, or 30 for a quantised model."""
    cosine: float | None = Field(default=None, ge=-1, le=1)
    """Least cosine similarity."""
    top1_agreement: float | None = Field(default=None, ge=0, le=1)
    """Least share of samples whose highest score stays at the same place."""


class Budget(Section):
    """Sizes that the bundle must not exceed."""

    model_mb: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Largest model (all files of one variant), in MB of 1,000,000 bytes."""
    bundle_mb: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Largest bundle, in MB of 1,000,000 bytes."""
    download_mb: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Largest download of a first visit, over all variants, in MB of 1,000,000 bytes with brotli; for web bundles."""


class Bundle(Section):
    """What is written."""

    ecosystem: Identifier = "python"
    """The emitter: `python`, `web`."""
    format: Identifier = "dir"
    """One of the emitter's formats: `dir`, `wheel`, `pex` for Python, `dir`, `tgz` for the web."""
    fallback: Literal["report", "strict"] = "report"
    """When a variant cannot run: take the next and report why, or raise."""


class TargetProfile(Section):
    """Where a bundle runs, fully resolved."""

    id: Identifier
    """The target's name on the command line."""
    title: Line
    """One line for people."""
    group: Line
    """Heading under which lists show it."""
    description: str = ""
    """What to know before choosing it."""
    platform: Platform
    runtime: Runtime
    python: PythonSettings = PythonSettings()
    web: WebSettings = WebSettings()
    variants: tuple[Variant, ...] = Field(min_length=1)
    optimization: Optimization = Optimization()
    dimensions: dict[str, Annotated[int, Field(gt=0)]] = {}
    """Dynamic dimensions that are fixed, by name."""
    accuracy: Accuracy = Accuracy()
    budget: Budget = Budget()
    bundle: Bundle = Bundle()
    sources: dict[str, str] = {}
    """Where values that are not obvious come from, by dotted key."""
