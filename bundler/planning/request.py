"""A request for a plan, besides the model and the target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bundler.model.golden_inputs import GoldenKind
from bundler.model.open_sizes import Asker
from bundler.model.runtime import SOLE
from bundler.model.shapes import Shape
from bundler.model.state import StateLink
from bundler.planning.data import DataRequest, find_picture


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """The user's request besides the model and the target.

    `dimensions` fixes dynamic dimensions by name and `shapes` the sizes of inputs; both override the profile, in which
    `own_dimensions` and `own_shapes` are set by the user, too. `command` is the user's command as hints repeat it, and
    `project` the name of the project file. `synthetic_count` and `seed` are for the golden set without samples.
    `methods` are automatically chosen precisions by variant; `golden` says whether samples or synthetic inputs ship;
    `component` is the name in the bundle, and `state` links its outputs to inputs of the next call. `renamed` are new
    names by those that the original model has.
    """

    dimensions: Mapping[str, int] = field(default_factory=dict)
    samples: DataRequest | None = None
    calibration: DataRequest | None = None
    methods: Mapping[str, str] = field(default_factory=dict)
    synthetic_count: int = 8
    seed: int = 0
    own_dimensions: tuple[str, ...] = ()
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    own_shapes: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    project: str = ""
    golden: GoldenKind = "samples"
    component: str = SOLE
    state: tuple[StateLink, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)

    @property
    def asker(self) -> Asker:
        """What hints on fixing sizes refer to."""
        data = [given for given in (self.samples, self.calibration) if given is not None]
        return Asker(
            command=self.command,
            project=self.project,
            picture=find_picture(*data),
            samples=next((given.shapes for given in data if given.shapes), {}),
        )
