"""The one model of the project file. Docstrings under fields are what people read of them."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from bundler.model.golden_inputs import GoldenKind
from bundler.model.renaming import NAME_PATTERN
from bundler.profiles.schema import Accuracy, Budget, GivenShape, Precision
from bundler.support.text import visible

MAX_REQUIREMENT = 200
"""Characters of a requirement."""

PythonVersion = Annotated[str, Field(pattern=r"^3\.[0-9]{1,2}$")]


class Section(BaseModel):
    """A part of the project file: frozen, and unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class State(Section):
    """The output that is an input of the next call, and what the first call has in its place."""

    output: str = Field(min_length=1)
    """Name of the output."""
    initial: Annotated[float, Field(allow_inf_nan=False)] | str = "zeros"
    """The first call's input: a number for every element, `zeros`, or a `.npy` file like `start.npy`, in the folder of
    the project file or below it. Its array becomes part of the bundle.
    """
    grows: int | None = Field(default=None, ge=0)
    """The axis along which the output is longer than the input, such as that of a decoder's keys and values, counted
    from 0. The first call's input has the length 0 there, or that of the file.
    """


class ProjectModel(Section):
    """One model to build."""

    path: str = Field(min_length=1)
    """The ONNX file, relative to the project file."""
    name: str | None = None
    """Name of its bundles; default: the file's name."""
    version: str = "1.0.0"
    """Version of the emitted packages."""
    package_name: str | None = None
    """Name of the emitted packages, in which `{model}` and `{target}` stand for the bundle's name and the target.
    Without it, one is made from the bundle's name.
    """
    samples: str | None = None
    """Inputs for the golden set, relative to the project file; see `bundler build --help`."""
    golden: GoldenKind = "samples"
    """Samples that the bundles carry: `samples`, up to 16 of yours, or `synthetic`, seeded inputs like them."""
    calibration: str | None = None
    """Data to calibrate with, relative to the project file, or `synthetic`; see `bundler build --help`."""
    preprocessing: str | None = None
    """TOML file with the preprocessing of images, audio or texts, relative to the project file."""
    rename: dict[Annotated[str, Field(min_length=1)], Annotated[str, Field(pattern=NAME_PATTERN)]] = {}
    """New names of inputs, outputs and dynamic dimensions, by the model's own: `{ "scale_0.tmp_1" = "scores" }`.
    Samples, `dimensions`, `shapes`, `state` and gates use the new names.
    """
    dimensions: dict[str, Annotated[int, Field(gt=0)]] = {}
    """Dynamic dimensions to fix, by name."""
    shapes: dict[str, GivenShape] = {}
    """Shapes to fix, by the name of the input: `{ x = [1, 3, 48, 192] }`; see `--shape` of `bundler build`."""
    state: dict[str, str | State] = {}
    """Outputs that are inputs of the next call, by input: `{ h0 = "hn" }`, or with a first value other than zeros
    `{ h0 = { output = "hn", initial = 0.5 } }`; keys and values of a decoder are
    `{ past_k = { output = "present_k", grows = 2 } }`. The samples are then the steps of one stream.
    """
    targets: tuple[str, ...] = ()
    """Targets of this model alone; default: the project's targets."""
    python: tuple[PythonVersion, ...] = ()
    """Python versions of its Python bundles, like `["3.12"]`; default: the target's."""
    format: str | None = None
    """Format of its bundles; default: the target's."""
    measure: bool = False
    """Time every variant of its bundles for some seconds, as `--measure` of `bundler build`."""


class ComponentModel(Section):
    """One model of a bundle of several, under the name that applications use."""

    path: str = Field(min_length=1)
    """The ONNX file, relative to the project file."""
    samples: str | None = None
    """Inputs for its golden set, relative to the project file; see `bundler build --help`."""
    golden: GoldenKind = "samples"
    """Samples that the bundles carry: `samples`, up to 16 of yours, or `synthetic`, seeded inputs like them."""
    calibration: str | None = None
    """Data to calibrate with, relative to the project file, or `synthetic`; see `bundler build --help`."""
    preprocessing: str | None = None
    """TOML file with the preprocessing of images, audio or texts, relative to the project file."""
    rename: dict[Annotated[str, Field(min_length=1)], Annotated[str, Field(pattern=NAME_PATTERN)]] = {}
    """New names of inputs, outputs and dynamic dimensions, by the model's own: `{ "scale_0.tmp_1" = "scores" }`.
    Samples, `dimensions`, `shapes`, `state` and gates use the new names.
    """
    dimensions: dict[str, Annotated[int, Field(gt=0)]] = {}
    """Dynamic dimensions to fix, by name."""
    shapes: dict[str, GivenShape] = {}
    """Shapes to fix, by the name of the input: `{ x = [1, 3, 48, 192] }`; see `--shape` of `bundler build`."""
    state: dict[str, str | State] = {}
    """Outputs that are inputs of the next call, by input: `{ h0 = "hn" }`, or with a first value other than zeros
    `{ h0 = { output = "hn", initial = 0.5 } }`; keys and values of a decoder are
    `{ past_k = { output = "present_k", grows = 2 } }`. The samples are then the steps of one stream.
    """
    precision: Precision = Precision()
    """How this model's numbers are stored and computed; overrides targets and `overrides`."""
    accuracy: Accuracy = Accuracy()
    """The gate of this model; overrides the gates of targets and of the project."""


class PipelineMetric(Section):
    """Your metric of a pipeline's answers; higher is better."""

    python: str
    """A function, as `score.py:words_right`, relative to the project file. It is called with a sequence of samples that
    have `name`, `sample` (what the pipeline was given), `reference` (its answer with the original models) and `answer`;
    it returns a number."""
    least: float | None = Field(default=None, allow_inf_nan=False)
    """Minimum value."""
    drop: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Maximum drop of the value below that of the original models' answers."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.least is None and self.drop is None:
            raise ValueError("give `least`, `drop`, or both: a metric without a limit judges nothing")
        return self


def check_requirement(text: str) -> None:
    """Raise `ValueError` unless `text` names a package of an index, and which of its versions, as PEP 508 has it."""
    from packaging.requirements import InvalidRequirement, Requirement  # noqa: PLC0415 - few projects have any

    try:
        found = Requirement(text[:MAX_REQUIREMENT])
    except InvalidRequirement:
        found = None
    if found is None or len(text) > MAX_REQUIREMENT:
        raise ValueError(f"{visible(text[:80])} is not a requirement: write it like `Pillow>=11`")
    if found.url is not None:
        raise ValueError(f"{found.name} is given by an address; name a package of your index, like `Pillow>=11`")
    if found.name.lower().startswith("onnxruntime"):
        raise ValueError(f"remove {found.name}: the bundle brings its own runtime")


class Pipeline(Section):
    """A function that runs all models of a bundle as an application does. The original models' answers judge it."""

    python: str
    """The function, as `pipeline.py:run`, relative to the project file. It is given the bundle and a sample."""
    samples: str
    """Folder of samples, relative to the project file. Each file is one: the arrays of an `.npz`, else its path."""
    files: tuple[str, ...] = ()
    """Other files that the function reads, relative to the project file, in the function's folder or below it. Python
    bundles carry them next to the function, with the modules of that folder that it imports.
    """
    requires: tuple[str, ...] = ()
    """Packages that the function imports besides NumPy, as requirements like `Pillow>=11`. bundler pins them in
    `bundler.lock` and in the bundle, and runs the function in an environment that has them. Without any, a build runs
    it in bundler's own environment.
    """
    least: float | None = Field(default=None, gt=0, le=1)
    """Minimum share of answers that equal the original models' answers; default: 1, or no limit with a `metric`."""
    absolute: float = Field(default=1e-3, ge=0, allow_inf_nan=False)
    """Maximum absolute difference of two numbers that count as equal."""
    relative: float = Field(default=1e-2, ge=0, allow_inf_nan=False)
    """Additional difference, relative to the original's number."""
    metric: PipelineMetric | None = None
    """Your metric of the answers; it replaces `least` unless both are given."""

    @field_validator("requires")
    @classmethod
    def _check_requires(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        for text in given:
            check_requirement(text)
        return given


class ProjectBundle(Section):
    """One bundle of several models."""

    name: str
    """Name of the bundles."""
    models: dict[str, ComponentModel] = Field(min_length=1)
    """The models by the names that applications use: lower-case letters, digits and underscores."""
    together: tuple[str, ...] = ()
    """Models that all run the variant of one name on a device, or none does: they share memory or weights."""
    pipeline: Pipeline | None = None
    """A function that runs all of them as an application does; every variant must give the same answers."""
    version: str = "1.0.0"
    """Version of the emitted packages."""
    package_name: str | None = None
    """Name of the emitted packages, in which `{model}` and `{target}` stand for the bundle's name and the target.
    Without it, one is made from the bundle's name.
    """
    targets: tuple[str, ...] = ()
    """Targets of this bundle alone; default: the project's targets."""
    python: tuple[PythonVersion, ...] = ()
    """Python versions of its Python bundles, like `["3.12"]`; default: the target's."""
    format: str | None = None
    """Format of its bundles; default: the target's."""
    measure: bool = False
    """Time every variant of its bundles for some seconds, as `--measure` of `bundler build`."""


class Project(Section):
    """The whole project file."""

    output: str = "dist"
    """Folder for the bundles, relative to the project file."""
    targets: tuple[str, ...] = ()
    """Target ids, or paths of profiles relative to the project file."""
    models: tuple[ProjectModel, ...] = ()
    """The models that each become a separate bundle, built for every target."""
    bundles: tuple[ProjectBundle, ...] = ()
    """The bundles of several models, each built for every target."""
    accuracy: Accuracy = Accuracy()
    """The gate of all builds; overrides the profiles' gates. The file of a metric is relative to the project file."""
    budget: Budget = Budget()
    """Sizes that no bundle may exceed; overrides the profiles' budgets."""
    overrides: dict[str, dict[str, Any]] = {}
    """Parts of profiles to replace, by glob of target id: `[overrides."raspberry-*".optimization]`."""

    @property
    def entries(self) -> tuple[tuple[tuple[str, int], ProjectModel | ProjectBundle], ...]:
        """All that is built for targets, each with its place in the file."""
        return (
            *((("models", number), model) for number, model in enumerate(self.models)),
            *((("bundles", number), bundle) for number, bundle in enumerate(self.bundles)),
        )
