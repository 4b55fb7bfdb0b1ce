"""What the user gave beside the model: samples, calibration data, a metric of his own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bundler.execution.executor import Source
from bundler.execution.sources import digest_source
from bundler.model.plan import CALIBRATION, METRIC, SAMPLES
from bundler.model.state import StateLink
from bundler.pipeline.data import DataArgument, check_used, read_argument
from bundler.pipeline.initial_values import open_initial_values
from bundler.pipeline.requests import BuildRequest
from bundler.pipeline.sample_shapes import read_first_shapes
from bundler.pipeline.sources import is_reference, parse_reference
from bundler.pipeline.workspace import Workspace
from bundler.planning.data import DataRequest
from bundler.profiles.schema import TargetProfile
from bundler.stages.export_huggingface.spec import ENVIRONMENT as EXPORTER
from bundler.stages.export_huggingface.spec import FETCHER


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenData:
    """What the user gave beside the model: files as sources, and what planning needs to know of them. `state` has the
    links with the roles of the files that they begin with.
    """

    sources: Mapping[str, Source]
    samples: DataRequest | None
    calibration: DataRequest | None
    state: tuple[StateLink, ...] = ()


def source_environments(request: BuildRequest) -> tuple[str, ...]:
    """The environments that what `request` names must go through before any plan is made of it."""
    found = {argument.environment for argument in _read_arguments(request).values()}
    if is_reference(str(request.model)):
        found |= {EXPORTER} if parse_reference(str(request.model)).folder is not None else {EXPORTER, FETCHER}
    return tuple(sorted(found))


def _read_arguments(request: BuildRequest) -> dict[str, DataArgument]:
    given = {SAMPLES: request.samples, CALIBRATION: request.calibration}
    arguments = {
        role: read_argument(
            str(text), request.preprocessing, f"`{role}` in {request.project}" if request.project else f"--{role}"
        )
        for role, text in given.items()
        if text is not None
    }
    check_used(request.preprocessing, tuple(arguments.values()))
    return arguments


def read_given(request: BuildRequest, profile: TargetProfile, workspace: Workspace) -> GivenData:
    """The data that `request` names. Raises `UsageError` for data that are not there or cannot be taken."""
    arguments = _read_arguments(request)
    sources = {
        name: source
        for role, argument in arguments.items()
        for name, source in argument.sources(role, workspace.cache).items()
    }
    metric = profile.accuracy.metric
    if metric is not None and metric.python is not None:
        sources[METRIC] = digest_source(Path(metric.python.rpartition(":")[0]), (), workspace.cache)
    state, initial = open_initial_values(request.state, workspace.cache)
    requests = {role: _data_request(role, argument) for role, argument in arguments.items()}
    samples = requests.get(SAMPLES)
    return GivenData(
        sources={**sources, **initial},
        samples=None if samples is not None and samples.synthetic else samples,
        calibration=requests.get(CALIBRATION),
        state=state,
    )


def _data_request(role: str, argument: DataArgument) -> DataRequest:
    return DataRequest(
        inputs=argument.inputs(role),
        options=argument.options,
        plain=role if argument.is_plain else "",
        synthetic=argument.kind == "synthetic",
        volatile=argument.volatile,
        environment=argument.environment,
        shapes=read_first_shapes(argument.path) if argument.is_plain and argument.path is not None else {},
    )
