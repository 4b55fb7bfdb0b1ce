"""Models that are no ONNX file yet: `hf:FOLDER` and `hf:MODEL`, exported before anything else looks at them.

`hf:./folder`, `hf:org/name`, `hf:org/name@revision`, each with `?task=…&opset=…` where the export needs them.
An existing folder is taken; any other name is that of a model, which is fetched.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl

from bundler.environments.variables import hub_environment
from bundler.execution.executor import Source
from bundler.execution.sources import digest_source, source_of
from bundler.model.codec import conforms, decode, parse_json
from bundler.model.errors import BundlerError, EnvironmentMissingError, ModelError, StageError, UsageError
from bundler.model.events import Reporter
from bundler.model.paths import real_path, user_path
from bundler.model.plan import Step
from bundler.model.results import StepOutcome
from bundler.pipeline.workspace import Workspace
from bundler.stages.export_huggingface import fetch
from bundler.stages.export_huggingface.folder import CONFIG, PREPROCESSING, read_folder
from bundler.stages.export_huggingface.spec import ENVIRONMENT, FETCHER, SPEC
from bundler.support.processes import run_process

PREFIX = "hf:"
EXPORT_ID = "export"
FOLDER = "folder"
"""The export step's source."""

_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}(/[A-Za-z0-9][A-Za-z0-9._-]{0,95})?")
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,127}")
_TASK = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_WANTED = (
    CONFIG,
    "model.safetensors",
    "model-*-of-*.safetensors",
    "model.safetensors.index.json",
    "modules.json",
    *PREPROCESSING,
)
_FORMS = "write hf:FOLDER, hf:ORGANISATION/MODEL or hf:ORGANISATION/MODEL@REVISION, and ?task=TASK&opset=N behind it"
_DOWNLOAD = "without a network, download the model's folder where there is one, and give it as hf:./FOLDER"


@dataclass(frozen=True, slots=True, kw_only=True)
class HubReference:
    """One `hf:` argument. Either `folder` is there, or `model_id` is the name of a model to fetch."""

    folder: Path | None
    model_id: str = ""
    revision: str = ""
    task: str = "auto"
    opset: int = 0

    @property
    def name(self) -> str:
        """What a bundle of it is called when nobody says otherwise."""
        return real_path(self.folder).name if self.folder is not None else self.model_id.rpartition("/")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """A model after its export. `source` is its ONNX file in the artifact store, with its external data; `revision` is
    the commit that was fetched, empty for a folder.
    """

    reference: HubReference
    source: Source
    outcome: StepOutcome
    revision: str


def is_reference(text: str) -> bool:
    """Whether a model argument means a model of the Transformers library rather than an ONNX file."""
    return text.startswith(PREFIX)


def parse_reference(text: str) -> HubReference:
    """The parsed `hf:` argument. Raises `UsageError`."""
    place, _, query = text.removeprefix(PREFIX).partition("?")
    if Path(text.removeprefix(PREFIX)).is_dir():  # a folder with a question mark in its name
        place, query = text.removeprefix(PREFIX), ""
    options = _parse_query(query, text)
    task, opset = options.get("task", "auto"), options.get("opset", "0")
    if not _TASK.fullmatch(task) or not re.fullmatch(r"[0-9]{1,3}", opset):
        raise UsageError(f"{_show(text)} has an invalid task or opset", hint=_FORMS)
    folder = user_path(place)
    if place and (folder.is_dir() or place.startswith((".", "/", "~", "\\")) or "\\" in place):
        return HubReference(folder=folder, task=task, opset=int(opset))
    model, _, revision = place.partition("@")
    if not _MODEL.fullmatch(model) or ".." in place or (revision and not _REVISION.fullmatch(revision)):
        raise UsageError(f"{_show(text)} is neither a folder nor the name of a model", hint=_FORMS)
    if place.endswith("@"):
        raise UsageError(f"{_show(text)} names no revision", hint=_FORMS)
    return HubReference(folder=None, model_id=model, revision=revision, task=task, opset=int(opset))


def export_model(reference: HubReference, workspace: Workspace, reporter: Reporter) -> Exported:
    """Fetch the model where it is no folder, and export it. A model that was exported before is recalled.

    Raises `ModelError`, `UsageError`, `EnvironmentMissingError` and `StageError`.
    """
    folder, commit = _locate(reference, workspace, reporter)
    files = read_folder(folder).files
    source = digest_source(files[0], files[1:], workspace.cache)
    steps = (export_step(reference, commit),)
    outcome = workspace.executor.execute(steps, {FOLDER: source}, reporter)[EXPORT_ID]
    if outcome.artifact is None:
        raise StageError(f"the export of {reference.name} made no model")
    return Exported(reference=reference, source=source_of(outcome), outcome=outcome, revision=commit)


def export_step(reference: HubReference, commit: str = "") -> Step:
    """The step that exports a folder; `commit` is where it was fetched from."""
    options = {"model_id": reference.model_id, "revision": commit, "task": reference.task, "opset": reference.opset}
    return Step(
        id=EXPORT_ID,
        stage=SPEC.name,
        inputs={"source": FOLDER},
        options=options,
        environment=ENVIRONMENT,
        reason="a PyTorch model must be exported to ONNX",
    )


def _parse_query(query: str, text: str) -> dict[str, str]:
    pairs = parse_qsl(query, keep_blank_values=True)
    unknown = sorted({key for key, _ in pairs} - {"task", "opset"})
    if unknown or len(pairs) != len(dict(pairs)) or (query and not pairs):
        what = (
            f"has the unknown option {', '.join(map(_show, unknown))}"
            if unknown
            else "is empty, or has an option twice"
        )
        raise UsageError(f"the part after ? in {_show(text)} {what}", hint=_FORMS)
    return dict(pairs)


def _locate(reference: HubReference, workspace: Workspace, reporter: Reporter) -> tuple[Path, str]:
    if reference.folder is not None:
        return reference.folder, ""
    python = workspace.environments.resolve(FETCHER, ("huggingface-hub",), reporter).python
    reporter.say(f"fetching {reference.model_id}")
    script = Path(fetch.__file__)
    answer = _ask([str(python), "-I", str(script), reference.model_id, reference.revision, *_WANTED])
    if answer.error or not answer.folder:
        raise _fetch_error(reference, answer)
    return Path(answer.folder), answer.commit


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What `fetch` printed: the folder and its commit, or a kind of error and the library's words."""

    folder: str = ""
    commit: str = ""
    error: str = ""
    text: str = ""


def _ask(command: list[str]) -> _Answer:
    try:
        done = run_process(command, text=True, errors="replace", env=hub_environment())
        answer = parse_json(done.stdout.splitlines()[-1])
    except (OSError, ValueError, IndexError):
        answer = None
    if not conforms(_Answer, answer):
        return _Answer(error="unreachable", text="the program that fetches models did not respond")
    return decode(_Answer, answer)


def _fetch_error(reference: HubReference, answer: _Answer) -> BundlerError:
    name, details = reference.model_id, (ascii(answer.text)[1:-1][:300],)
    if answer.error == "gated":
        hint = "accept its terms on its page, set HF_TOKEN, and build again; or download it and give hf:./FOLDER"
        return ModelError(
            f"the model {name} can be downloaded only after its terms are accepted", details=details, hint=hint
        )
    if answer.error == "missing":
        hint = "check its name; a private model needs HF_TOKEN; a folder is written hf:./FOLDER"
        return ModelError(f"there is no model {name}, or none that you may read", details=details, hint=hint)
    if answer.error == "revision":
        message = f"the model {name} has no revision {reference.revision}"
        return ModelError(message, details=details, hint="give a branch, a tag or a commit that it has")
    return EnvironmentMissingError(f"the model {name} could not be fetched", details=details, hint=_DOWNLOAD)


def _show(text: str) -> str:
    """A user's text in a message: escaped, on one line, not long."""
    return ascii(text)[:120]
