"""Real trained models as packages of PyPI and npm carry them, built for one target of each ecosystem."""

from __future__ import annotations

import functools
import hashlib
import json
import shutil
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import onnx
from document import Row, Section, Table
from processes import BUNDLER, CommandError
from real_models import FetchError, RealModel, fetch_model, list_models
from workplace import Workplace

from bundler.model.proof import PROOF_MEANINGS

ECOSYSTEMS: dict[str, tuple[str, ...]] = {
    "Python": ("--target", "linux-x64"),
    "files": ("--target", "linux-x64", "--format", "files"),
    "web": ("--target", "web-wasm"),
    "Java": ("--target", "linux-x64", "--format", "jar"),
    "Android": ("--target", "android-arm64"),
}
QUICK = ("silero_vad_op15", "validity_forest", "hello_deepa")
NOT_BUILT = "not built in time"
PROGRAM = ("bundler", "targets", "templates")
LIMIT_SECONDS = 600
BUDGET_SECONDS = 2400
"""No build begins later: a run with `--resume` builds what is left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a build answered. `levels` are the levels of proof by variant, `worst` the lowest SQNR of a sample, in
    dB, and `equal` says that all outputs were; a refusal has its exit code and message.
    """

    seconds: float
    levels: Mapping[str, str] = field(default_factory=dict)
    size: int = 0
    worst: float | None = None
    equal: bool = False
    code: int = 0
    message: str = ""


def measure(workplace: Workplace) -> Section:
    chosen = workplace.models or (QUICK if workplace.quick else ())
    models = [model for model in list_models() if not chosen or model.name in chosen]
    paths, failures = _fetch(workplace, models)
    began = time.perf_counter()
    found: Found = {model: (path, {}) for model, path in paths.items()}
    for name in ECOSYSTEMS:
        for model, (path, row) in found.items():
            outcome = _recall(workplace, model, path, name, in_time=time.perf_counter() - began < BUDGET_SECONDS)
            if outcome:
                row[name] = outcome
    return Section(
        name="real",
        title="real models of public packages",
        method=(
            f"{len(found)} trained models, as packages of PyPI and npm carry them (locked by version and SHA-256 in "
            "`real_models.toml`), each built once for a target of every ecosystem with no option but "
            + ", ".join(f"`{' '.join(options)}` ({name})" for name, options in ECOSYSTEMS.items())
            + ". A cell has the level of proof of each variant from `--json`, seconds of the whole process, MB of the "
            "bundle, and the lowest SQNR of a sample beside the original model. Inputs are synthetic. All builds share "
            "one cache, so the first of a model also inspects it and makes the golden set. A `resolved` variant "
            "needs a device that is not here. A run ends after a time: cells that "
            f"say {NOT_BUILT!r} wait for the next."
        ),
        tables=(_count(tuple(found.values())), _list(found)),
        notes=(*_explain(found), *failures),
        figures={
            model.name: {name: asdict(outcome) for name, outcome in row.items()} for model, (_, row) in found.items()
        },
    )


Found = dict[RealModel, tuple[Path, dict[str, Outcome]]]


def _fetch(workplace: Workplace, models: Sequence[RealModel]) -> tuple[dict[RealModel, Path], list[str]]:
    paths, failures = {}, []
    for model in models:
        try:
            paths[model] = fetch_model(model, workplace.folder / "packages")
        except FetchError as error:
            failures.append(f"**{model.name} could not be fetched**: {str(error).splitlines()[0]}")
    return paths, failures


def _recall(workplace: Workplace, model: RealModel, path: Path, ecosystem: str, *, in_time: bool) -> Outcome | None:
    """The outcome of an earlier run of the same program in this folder, with `--resume`; otherwise of a build."""
    folder = workplace.folder / "real"
    folder.mkdir(exist_ok=True)
    kept = folder / f"{model.name}-{ecosystem}-{_digest_program()[:16]}.json"
    if workplace.resume and kept.exists():
        return Outcome(**json.loads(kept.read_text(encoding="utf-8")))
    if not in_time:
        return None
    print(f"  {model.name} ({ecosystem})", file=sys.stderr, flush=True)
    outcome = _build(workplace, model, path, ecosystem)
    kept.write_text(json.dumps(asdict(outcome)), encoding="utf-8")
    return outcome


@functools.cache
def _digest_program() -> str:
    root = Path(__file__).resolve().parents[2]
    files = (path for part in PROGRAM for path in (root / part).rglob("*") if path.suffix != ".pyc" and path.is_file())
    lines = (f"{path.relative_to(root)} {hashlib.sha256(path.read_bytes()).hexdigest()}\n" for path in sorted(files))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _build(workplace: Workplace, model: RealModel, path: Path, ecosystem: str) -> Outcome:
    output = workplace.empty("real-out")
    command = [BUNDLER, "build", str(path), "--name", model.name, *ECOSYSTEMS[ecosystem], "--output", str(output)]
    command += ["--json", "--progress", "none", "--cache", str(workplace.cache)]
    began = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS)
    seconds = time.perf_counter() - began
    shutil.rmtree(output)
    try:
        answer = json.loads(done.stdout)
    except ValueError as error:
        raise CommandError(command, done.returncode, f"{done.stdout}\n{done.stderr}") from error
    if "error" in answer:
        return Outcome(seconds=seconds, code=answer["error"]["exit_code"], message=answer["error"]["message"])
    (built,) = answer["bundles"]
    worst = [item["worst_sqnr_db"] for item in built["accuracies"] if item["worst_sqnr_db"] is not None]
    return Outcome(
        seconds=seconds,
        levels=built["proofs"],
        size=built["bundle_bytes"],
        worst=min(worst, default=None),
        equal=all(item["equal"] for item in built["accuracies"]),
    )


def _count(rows: Sequence[tuple[Path, dict[str, Outcome]]]) -> Table:
    counts = {name: Counter(_name_result(row.get(name)) for _, row in rows) for name in ECOSYSTEMS}
    words = [
        word for word in (*PROOF_MEANINGS, "refused", NOT_BUILT) if any(word in count for count in counts.values())
    ]
    return Table(
        title="Models by result",
        columns=("ecosystem", *words),
        rows=tuple((name, *(str(count[word]) for word in words)) for name, count in counts.items()),
    )


def _name_result(outcome: Outcome | None) -> str:
    """The highest level of a variant; of a refusal, that word."""
    if outcome is None:
        return NOT_BUILT
    return "refused" if outcome.code else next(level for level in PROOF_MEANINGS if level in outcome.levels.values())


def _list(found: Found) -> Table:
    rows = tuple(_row(model, path, outcomes) for model, (path, outcomes) in found.items())
    return Table(title="Each model", columns=("model", "package", "what it is", "MB", "opset", *ECOSYSTEMS), rows=rows)


def _row(model: RealModel, path: Path, outcomes: Mapping[str, Outcome]) -> Row:
    package = model.package
    size = sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))
    opsets = onnx.load(path, load_external_data=False).opset_import
    opset = next((str(item.version) for item in opsets if item.domain in ("", "ai.onnx")), "none")
    origin = f"{package.registry}: {package.name} {package.version}, {package.licence or 'no licence stated'}"
    cells = (_show(outcomes.get(name)) for name in ECOSYSTEMS)
    return (f"`{model.name}`", origin, model.kind, f"{size / 1e6:.2f}", opset, *cells)


def _show(outcome: Outcome | None) -> str:
    if outcome is None:
        return NOT_BUILT
    if outcome.code:
        return f"**refused** (exit {outcome.code}), {outcome.seconds:.1f} s"
    variants = defaultdict(list)
    for variant, level in outcome.levels.items():
        variants[level].append(variant)
    levels = "; ".join(f"{level}: {', '.join(names)}" for level, names in variants.items())
    figure = "no figure" if outcome.worst is None else f"{outcome.worst:.0f} dB"
    worst = "equal" if outcome.equal else figure
    return f"{levels}; {outcome.seconds:.1f} s, {outcome.size / 1e6:.1f} MB, {worst}"


def _explain(found: Found) -> tuple[str, ...]:
    """A line for each message of a refusal, with the models and ecosystems that had it."""
    refused = defaultdict(list)
    for model, (_, outcomes) in found.items():
        for name, outcome in outcomes.items():
            if outcome.code:
                refused[outcome.code, outcome.message, model.name].append(name)
    return tuple(
        f"**{model}** ({', '.join(names)}), exit {code}: {' '.join(message.split())}"
        for (code, message, model), names in refused.items()
    )
