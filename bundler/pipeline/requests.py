"""What a caller asks for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated

from bundler.model.attempts import RecordedChoice
from bundler.model.component_names import check_component_names
from bundler.model.errors import UsageError
from bundler.model.golden_inputs import GoldenKind
from bundler.model.options import (
    On,
    Option,
    Overrides,
    find_options,
    parse_dimensions,
    parse_pythons,
    parse_shapes,
    show_pairs,
    show_shapes,
)
from bundler.model.runtime import SOLE
from bundler.model.shapes import Shape
from bundler.model.state import StateLink, parse_state, show_state

MAXIMUM_NAME = 64
"""Characters of a bundle's name: with the target and file names it stays below what file systems take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineMetric:
    """The user's function `entry` of `file`, which gives a number for all answers: at least `least`, and at most `drop`
    below that for the original models' answers. None is no limit.
    """

    file: Path
    entry: str
    least: float | None = None
    drop: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineRequest:
    """The user's function `entry` of `file`, which runs all components on each file of the folder `samples`. At least a
    share `least` of its answers must equal those with the original models: two numbers do if they differ by no more
    than `absolute` and `relative` times the original's. It reads `files`, which lie beside its own or below, and
    imports packages that satisfy `requires`.
    """

    file: Path
    entry: str
    samples: Path
    files: tuple[Path, ...] = ()
    requires: tuple[str, ...] = ()
    least: float = 1.0
    absolute: float = 1e-3
    relative: float = 1e-2
    metric: PipelineMetric | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRequest:
    """One model for one target. What a command line may say of it says its option here, and nowhere else.

    `output` is the folder in which the bundle's folder `<name>-<target>` is made. `dimensions` fixes sizes by their
    name, `shapes` by input; None takes what the help calls the default. `rename` gives inputs, outputs and dimensions
    other names, which all else here uses. `prove` runs the golden set in the bundle's own
    runtime and times it, with `measure` at length; without it the manifest claims no more than `resolved`. `on` names
    the device that runs it, as `NAME` or `NAME:SETTING`. `decisions` are what was measured before, by `decision_key`
    and variant; with `locked` nothing new is measured. `project` is the name of the project file that asks, and
    `origin` where in it (`bundler.toml:7`); both are empty where none does.

    `components` are several models in one bundle, by name, as `combine_requests` makes it: each has its own request,
    and what belongs to the bundle is said by the one that holds them. Those `together` take variants of one name;
    `pipeline` is what an application does with all of them.
    """

    model: Path
    target: str
    output: Annotated[Path, Option("--output", "-o", help="Folder for the bundles.")] = Path("dist")
    samples: Annotated[
        str | Path | None,
        Option(
            "--samples",
            metavar="PATH|FUNCTION",
            help="Inputs for the golden set: a folder, an .npz file or file.py:function (docs/smaller.md, Data).",
            default="seeded synthetic inputs",
            of_one_model=True,
        ),
    ] = None
    golden: Annotated[
        GoldenKind,
        Option(
            "--golden",
            metavar="samples|synthetic",
            help="Golden set in the bundle: up to 16 of the --samples, or seeded inputs like them.",
        ),
    ] = "samples"
    calibration: Annotated[
        str | Path | None,
        Option(
            "--calibration",
            metavar="PATH|FUNCTION",
            help="Data for the ranges of quantised values: as --samples, or the word synthetic (not for shipping).",
            default="most of the samples",
            of_one_model=True,
        ),
    ] = None
    preprocessing: Annotated[
        Path | None,
        Option(
            "--preprocessing",
            metavar="FILE",
            help="TOML file that declares how images, audio or texts are prepared (docs/preprocessing.md).",
            default="preprocessing.toml in their folder",
            of_one_model=True,
        ),
    ] = None
    dimensions: Annotated[
        Mapping[str, int],
        Option(
            "--dim",
            metavar="NAME=N",
            help="Fix a dynamic dimension; may be given several times.",
            read=parse_dimensions,
            show=show_pairs,
            of_one_model=True,
        ),
    ] = field(default_factory=dict)
    shapes: Annotated[
        Mapping[str, Shape],
        Option(
            "--shape",
            metavar="INPUT=SIZES",
            help="Fix the sizes of an input, also unnamed ones: x=1,3,48,192 (docs/targets.md); may be given several "
            "times.",
            read=parse_shapes,
            show=show_shapes,
            of_one_model=True,
        ),
    ] = field(default_factory=dict)
    state: Annotated[
        tuple[StateLink, ...],
        Option(
            "--state",
            metavar="INPUT=OUTPUT",
            help="Feed an output to an input of the next call (docs/python.md, Streams); may be given several times.",
            read=parse_state,
            show=show_state,
            of_one_model=True,
        ),
    ] = ()
    rename: Mapping[str, str] = field(default_factory=dict)
    overrides: Overrides = ()
    format: Annotated[
        str | None,
        Option(
            "--format",
            "-f",
            help="Python: dir, wheel, pex; Java: jar; Android: gradle, aar; web: dir, tgz; any: files, ortpackage.",
        ),
    ] = None
    python: Annotated[
        tuple[str, ...],
        Option(
            "--python",
            metavar="VERSION",
            help="Python version of a Python bundle, such as 3.12; may be given several times.",
            default="the target's Python versions",
            read=parse_pythons,
            show=lambda versions: versions,
        ),
    ] = ()
    name: Annotated[
        str | None, Option("--name", "--bundle", help="Name of the bundle [the file's].", of_one_model=True)
    ] = None
    version: Annotated[str, Option("--version", help="Version of the emitted package.", of_one_model=True)] = "1.0.0"
    package_name: Annotated[
        str | None,
        Option(
            "--package-name",
            help="Name of the emitted package; {model} stands for the bundle's name, {target} for the target "
            "[made from the bundle's name].",
        ),
    ] = None
    prove: Annotated[bool, Option("--no-prove", help="Do not run the bundle; its manifest then claims no proof.")] = (
        True
    )
    measure: Annotated[
        bool,
        Option(
            "--measure",
            help="Time every variant for some seconds, next to the original model.",
            default="about 0.5 s for the first variant that runs",
        ),
    ] = False
    on: On = None
    seed: Annotated[
        int, Option("--seed", least=0, most=2**64 - 1, help="Seed of synthetic inputs.", of_one_model=True)
    ] = 0
    trust_target: Annotated[
        bool,
        Option("--trust-target", help="Allow the target's own file to name programs to run (accuracy.metric)."),
    ] = False
    synthetic_count: int = 8
    decisions: Mapping[str, Mapping[str, RecordedChoice]] = field(default_factory=dict)
    locked: bool = False
    project: str = ""
    origin: str = ""
    components: Mapping[str, BuildRequest] = field(default_factory=dict)
    together: tuple[str, ...] = ()
    pipeline: PipelineRequest | None = None

    @property
    def where(self) -> str:
        """Where it was asked for, before a message about it: `bundler.toml:7: `, or nothing."""
        return f"{self.origin}: " if self.origin else ""

    @property
    def subject(self) -> str:
        """What it is for, in messages: the model, or the bundle of several."""
        return str(self.name if self.components else self.model)

    def name_models(self) -> dict[str, object]:
        """What it is for, in JSON."""
        if not self.components:
            return {"model": str(self.model)}
        return {"bundle": self.name, "models": {name: str(part.model) for name, part in self.components.items()}}


OF_BUNDLE = (
    *("target", "output", "format", "python", "version", "package_name", "prove", "measure", "on", "trust_target"),
    *("decisions", "locked", "project"),
)
"""What belongs to a bundle, and not to one of its components."""


def combine_requests(components: Mapping[str, BuildRequest], name: str, together: Sequence[str] = ()) -> BuildRequest:
    """The request for one bundle, called `name`, of several components. Raises `UsageError` for a name that is none,
    and for requests that differ in what belongs to the bundle.
    """
    check_component_names(components)
    strange = [other for other in together if other not in components]
    if strange or len(together) == 1 or len(set(together)) != len(together):
        raise UsageError(
            f"together must name two or more components of the bundle, not {', '.join(map(repr, together))}",
            hint=f"the components are {', '.join(components)}",
        )
    first = next(iter(components.values()))
    for field_name in OF_BUNDLE:
        different = [key for key, part in components.items() if getattr(part, field_name) != getattr(first, field_name)]
        if different:
            raise UsageError(
                f"{field_name} must be the same for all components of the bundle; component {different[0]!r} differs",
                hint="give every component the same value, or build them as separate bundles",
            )
    return replace(first, name=name, components=dict(components), together=tuple(together))


def locate_function(text: str, folder: Path) -> tuple[Path, str]:
    """`file.py:function` as the file, relative to `folder`, and the entry. Raises `UsageError`."""
    place, colon, name = text.rpartition(":")
    if not colon or not place.endswith(".py") or not name.isidentifier():
        raise UsageError(f"{text[:200]!r} does not name a function", hint='write it as "pipeline.py:run"')
    return folder / place, f":{name}"


def list_parts(request: BuildRequest) -> dict[str, BuildRequest]:
    """The request for each component; one model alone is the component `model`."""
    if not request.components:
        return {SOLE: request}
    common = {name: getattr(request, name) for name in OF_BUNDLE}
    return {name: replace(part, **common) for name, part in request.components.items()}


def target_overrides(request: BuildRequest) -> tuple[str, ...]:
    """What the request changes in any profile: what its format requires, then what the user has set.

    Raises `UsageError` for an unknown target.
    """
    if request.format is None:
        return request.overrides
    from bundler.emitters.registry import find_move  # noqa: PLC0415 (most commands need no emitter)
    from bundler.profiles.resolve import read_ecosystem  # noqa: PLC0415

    return (*find_move(read_ecosystem(request.target), request.format), *request.overrides)


def profile_overrides(request: BuildRequest) -> tuple[str, ...]:
    """All that the request changes in a profile for Python packages."""
    listed = ", ".join(f'"{version}"' for version in request.python)
    return (*target_overrides(request), *((f"python.versions=[{listed}]",) if request.python else ()))


def decision_key(name: str, target: str) -> str:
    """Under which what was decided by measuring is kept, for a bundle's name and a target's id."""
    return f"{name}-{target}"


def bundle_name(request: BuildRequest) -> str:
    """The bundle's name: as given, else the model file's stem, reduced to letters, digits, `.`, `_` and `-`."""
    if request.name is not None and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", request.name):
        raise UsageError(
            f"{request.where}{request.name!r} cannot be the name of a bundle",
            hint="use up to 64 letters, digits, '.', '_' and '-', beginning with a letter or digit",
        )
    stem = request.name or request.model.stem
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-._")[:MAXIMUM_NAME] or "model"


def check_clashes(requests: Iterable[BuildRequest]) -> None:
    """Raise `UsageError` when two builds would write the same bundle."""
    seen: dict[tuple[str, str, Path], BuildRequest] = {}
    for request in requests:
        key = (bundle_name(request), request.target, request.output)
        if key in seen:
            raise UsageError(
                f"{seen[key].where}{seen[key].subject} and {request.where}{request.subject} would both become "
                f"{key[0]}-{request.target}",
                hint=f"give each a unique name in {request.project}"
                if request.project
                else "build them one by one with --name, or give each a name in bundler.toml",
            )
        seen[key] = request


def repeat_command(request: BuildRequest, *, sandbox: bool = False) -> tuple[str, ...]:
    """`bundler build MODEL --target TARGET` with all that was given and is not the default, `--sandbox` among it."""
    # A path that starts with a hyphen would be read as an option.
    model = f"./{request.model}" if str(request.model).startswith("-") else str(request.model)
    named = [f"{name}={part.model}" for name, part in request.components.items()] or [model]
    shut = ("--sandbox",) if sandbox else ()
    return ("bundler", "build", *named, "--target", request.target, *_list_options(_share_data(request)), *shut)


def _share_data(request: BuildRequest) -> BuildRequest:
    """The request with the folders that hold the data of all components, as one command line names them."""
    if len(request.components) <= 1:  # data are the only model's own
        return request
    return replace(
        request, samples=_share_folder(request, "samples"), calibration=_share_folder(request, "calibration")
    )


def _share_folder(request: BuildRequest, role: str) -> str | Path | None:
    """The folder with a part of that name for each component; the first component's data where there is none."""
    places = {name: Path(str(getattr(part, role))) for name, part in request.components.items()}
    folders = {place.parent if place.stem == name else None for name, place in places.items()}
    shared = folders.pop() if len(folders) == 1 else None
    found: str | Path | None = shared or getattr(request, role)
    return found


def _list_options(request: BuildRequest) -> Iterator[str]:
    defaults = {field.name: field.default for field in fields(BuildRequest)}
    for name, option in find_options(BuildRequest).items():
        value = getattr(request, name)
        if value != defaults[name] and value is not None:
            yield from option.write(value)
