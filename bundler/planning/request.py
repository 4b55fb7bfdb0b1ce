"""What a plan is asked for, beside the model and the target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bundler.model.golden_inputs import GoldenKind
from bundler.model.open_sizes import Asker
from bundler.model.shapes import Shape
from bundler.planning.data import DataRequest, find_picture


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """What the user asked for beside the model and the target.

    `dimensions` fixes dynamic dimensions by name, and `shapes` the sizes of inputs, over those of the profile, of which
    those in `own_dimensions` and `own_shapes` are the user's as well. `command` is what the user ran, as far as a hint
    says it again, and `project` the name of the project file that asks. `format` is one of the emitter's, or None
    for the profile's; `synthetic_count` and `seed` are for the golden set when there are no samples. `methods` are the
    precisions that were chosen by trying, by variant; `golden` what ships of samples.
    """

    dimensions: Mapping[str, int] = field(default_factory=dict)
    format: str | None = None
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

    @property
    def asker(self) -> Asker:
        """Who is told how to fix sizes."""
        data = [given for given in (self.samples, self.calibration) if given is not None]
        return Asker(
            command=self.command,
            project=self.project,
            picture=find_picture(*data),
            samples=next((given.shapes for given in data if given.shapes), {}),
        )
