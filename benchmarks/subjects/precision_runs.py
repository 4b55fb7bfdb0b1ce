"""Runs one case, ours and its rivals in turns, and tells of each: time, memory, accuracy, size, latency.

Every finding goes to `precision.jsonl` in the work folder as soon as it is there, and what fails is a finding, too.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from pairs import Pairs
from processes import BUNDLER, CommandError, Peak, Ran, run_child, run_timed, watch_memory
from subjects.precision_cases import Case, Subject, bare_command
from subjects.precision_rivals import OFFLINE, Job, Rival
from workplace import TARGET, Built, Workplace, build_bundle

OURS, PROVEN, BARE = "bundler build --no-prove", "bundler build", "bare stages"
FAILURES = (CommandError, OSError, ValueError, KeyError, LookupError)
Run = Callable[[], Ran]
MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A model that somebody made: where it is, its bytes, and how it answers on held-out samples."""

    model: Path
    size: int
    figures: Mapping[str, float | None]


@dataclass(slots=True, kw_only=True)
class Findings:
    """What a case showed, by the name of who did it. `failed` has the reasons of those who could not."""

    case: Case
    subject: Subject
    seconds: dict[str, tuple[float, ...]] = field(default_factory=dict)
    processor: dict[str, tuple[float, ...]] = field(default_factory=dict)
    peaks: dict[str, Peak] = field(default_factory=dict)
    made: dict[str, Made] = field(default_factory=dict)
    latencies: dict[str, Pairs] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def pairs(self, ours: str, rival: str) -> Pairs | None:
        """Wall times turn by turn, where both ran."""
        if ours not in self.seconds or rival not in self.seconds:
            return None
        return Pairs(ours=self.seconds[ours], theirs=self.seconds[rival])


class Diary:
    """Keeps findings on disk while the run goes on, and says on standard error what it is at."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "precision.jsonl"
        self._path.write_text("", encoding="utf-8")

    def note(self, case: str, who: str, what: str, value: Any) -> None:
        """One finding."""
        entry = json.dumps({"case": case, "who": who, "what": what, "value": value}, default=str)
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(f"{entry}\n")
        print(f"    {entry}", file=sys.stderr, flush=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A place to run cases in."""

    workplace: Workplace
    diary: Diary

    def run(self, case: Case, subject: Subject) -> Findings:
        """All of one case. What fails is left out of the rest, with its reason."""
        found = Findings(case=case, subject=subject)
        runs = self._list_runs(case, subject)
        runs = {
            who: run for who, run in runs.items() if self._attempt(found, who, "works", lambda run=run: run().seconds)
        }
        self._time(found, runs)
        for who in runs:
            self._attempt(found, who, "memory", lambda who=who: self._weigh(found, who))
        for who in (OURS, *(rival.name for rival in case.rivals)):
            if who in runs:
                self._attempt(found, who, "result", lambda who=who: self._judge(found, who))
        for rival in case.rivals:
            if OURS in found.made and rival.name in found.made:
                self._attempt(found, rival.name, "latency", lambda rival=rival: self._race(found, rival.name))
        return found

    def _attempt(self, found: Findings, who: str, what: str, action: Callable[[], Any]) -> bool:
        title = f"{found.case.subject}, {found.case.title}"
        try:
            self.diary.note(title, who, what, action())
        except FAILURES as error:
            found.failed[who] = getattr(error, "reason", "") or str(error)
            self.diary.note(title, who, f"{what} failed", str(error)[-2000:])
            return False
        return True

    def _list_runs(self, case: Case, subject: Subject) -> dict[str, Run]:
        """Whole processes, each from a cold start, by who runs them."""
        runs: dict[str, Run] = {
            OURS: lambda: self.build(case.arguments, subject, "--no-prove").ran,
            PROVEN: lambda: self.build(case.arguments, subject).ran,
        }
        if case.method:
            runs[BARE] = lambda: run_timed(self._bare(case, subject))
        for rival in case.rivals:
            runs[rival.name] = lambda rival=rival: run_timed(self._command(case, rival, subject), OFFLINE)  # type: ignore[misc]
        return runs

    def build(self, arguments: Sequence[str], subject: Subject, *more: str) -> Built:
        """A bundle of the subject, with an empty cache but for what was downloaded."""
        self.workplace.forget_steps()
        words = (*arguments, "--calibration", str(subject.calibration), *more)
        return build_bundle(self.workplace, subject.model, self._ours, subject.held_out, arguments=words)

    @property
    def _ours(self) -> Path:
        return self.workplace.empty("precision-out")

    def _bare(self, case: Case, subject: Subject) -> list[str]:
        folder = self.workplace.folder / "precision-bare"
        shutil.rmtree(folder, ignore_errors=True)
        return bare_command(case, subject, folder)

    def _output(self, case: Case, rival: Rival) -> Path:
        name = "".join(letter if letter.isalnum() else "-" for letter in f"{case.title}-{rival.name}")
        return self.workplace.folder / "precision" / case.subject / "rivals" / name

    def _command(self, case: Case, rival: Rival, subject: Subject) -> list[str]:
        job = Job(model=subject.model, calibration=subject.calibration, output=self._output(case, rival))
        return rival.command(self.workplace, job)

    def _time(self, found: Findings, runs: Mapping[str, Run]) -> None:
        """Everybody in turns; who begins changes from turn to turn. The first run of each (above) does not count."""
        taken: dict[str, list[Ran]] = {who: [] for who in runs}
        for turn in range(self.workplace.pick(1, 3)):
            order = [*runs][turn % len(runs) :] + [*runs][: turn % len(runs)] if runs else []
            for who in order:
                if who not in found.failed:
                    self._attempt(found, who, "a turn", lambda who=who: taken[who].append(runs[who]()))
        for who, values in taken.items():
            if who not in found.failed:
                found.seconds[who] = tuple(ran.seconds for ran in values)
                found.processor[who] = tuple(ran.cpu_seconds for ran in values)
                figures = {"wall": found.seconds[who], "processor": found.processor[who]}
                self.diary.note(f"{found.case.subject}, {found.case.title}", who, "seconds", figures)

    def _weigh(self, found: Findings, who: str) -> dict[str, float]:
        """One more run, watched: watching costs time, so that no time counts here."""
        case, subject = found.case, found.subject
        rivals = {rival.name: rival for rival in case.rivals}
        if who in rivals:
            command = self._command(case, rivals[who], subject)
        elif who == BARE:
            command = self._bare(case, subject)
        else:
            command = self.command(case.arguments, subject, *(("--no-prove",) if who == OURS else ()))
        found.peaks[who] = peak = watch_quietly(command)
        return {"shared_out": peak.shared_out, "own": peak.own, "largest": peak.largest}

    def command(self, arguments: Sequence[str], subject: Subject, *more: str) -> list[str]:
        """`bundler build` as a command, for a process that is watched."""
        self.workplace.forget_steps()
        where = ["--target", TARGET, "--output", str(self._ours), "--cache", str(self.workplace.cache)]
        data = ["--calibration", str(subject.calibration), "--samples", str(subject.held_out)]
        return [BUNDLER, "build", str(subject.model), *where, *data, *arguments, *more, "--progress", "none"]

    def _judge(self, found: Findings, who: str) -> dict[str, Any]:
        case, subject = found.case, found.subject
        rivals = {rival.name: rival for rival in case.rivals}
        if who == OURS:
            made = self.judge_bundle(self.build(case.arguments, subject, "--no-prove"), subject)
        else:
            model = self._output(case, rivals[who]) / rivals[who].result
            made = judge_model(subject, model, sum(path.stat().st_size for path in model.parent.glob("*.onnx*")))
        found.made[who] = made
        return {"size": made.size, **made.figures}

    def judge_bundle(self, built: Built, subject: Subject) -> Made:
        """The model of a bundle's first variant."""
        variant = built.config["variants"][0]
        return judge_model(subject, built.payload / variant["model"], sum(file["size"] for file in variant["files"]))

    def _race(self, found: Findings, who: str) -> list[float]:
        built = self.build(found.case.arguments, found.subject, "--no-prove")
        found.latencies[who] = pairs = self.race(built, found.subject, found.made[who].model)
        return list(pairs.ratios)

    def race(self, built: Built, subject: Subject, other: Path) -> Pairs:
        """Steady calls of the bundle beside a plain session on the other model, in one process, in turns."""
        feeds = self.workplace.empty("precision-feeds") / "feed.npz"
        write_feed(next(iter(sorted(subject.held_out.glob("*.npz")))), feeds)
        counts = ("1", str(self.workplace.pick(7, 25)))
        memory = {"XDG_CACHE_HOME": str(self.workplace.empty("precision-memory"))}
        ran = run_child("side_by_side.py", other, built.folder / built.package, feeds, *counts, env=memory)
        steady = json.loads(ran.output)["steady"]
        return Pairs(ours=tuple(steady["bundle"]), theirs=tuple(steady["raw"]))


def judge_model(subject: Subject, model: Path, size: int) -> Made:
    """Figures of `model` beside the untouched one. Raises `CommandError`."""
    ran = run_child("judge_answers.py", subject.name, subject.model, model, subject.held_out)
    return Made(model=model, size=size, figures=json.loads(ran.output.splitlines()[-1]))


def show_size(size: int) -> str:
    """`41 kB`, `2.31 MB`."""
    return f"{size / 1e3:.0f} kB" if size < MEGABYTE else f"{size / MEGABYTE:.2f} MB"


def write_feed(sample: Path, path: Path) -> None:
    """A sample in the form that `children/side_by_side.py` reads."""
    with np.load(sample) as stored:
        values = {name: stored[name] for name in stored.files}
    columns = {f"value{position}": value for position, value in enumerate(values.values())}
    np.savez(path, names=np.array(list(values)), **columns)


def watch_quietly(command: Sequence[str]) -> Peak:
    """The memory of a command whose own words nobody wants."""
    return watch_memory(["sh", "-c", 'exec "$@" 2>/dev/null', "sh", *command], OFFLINE)
