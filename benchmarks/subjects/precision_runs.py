"""Runs one case, ours and its rivals in turns, and tells of each: time, memory, accuracy, size, latency.

What fails is a finding, too, with its reason; it is left out of the rest.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from pairs import Pairs
from processes import BUNDLER, CommandError, Peak, Ran, run_child, run_timed, watch_memory
from subjects.precision_cases import Case, Subject, bare_command
from subjects.precision_rivals import OFFLINE, Job, Rival
from subjects.precision_store import Diary, Store
from workplace import TARGET, Built, Workplace, build_bundle

OURS, PROVEN, BARE = "bundler build --no-prove", "bundler build", "bare stages"
FAILURES = (CommandError, OSError, ValueError, KeyError, LookupError)
Run = Callable[[], Ran]
MEGABYTE = 1_000_000
TURNS_SECONDS = 50.0
"""No turn of a case begins later than that: all cases shall be done in half an hour."""
QUIET = ("--progress", "none")
ONE_PYTHON = ("--set", f'python.versions=["{sys.version_info.major}.{sys.version_info.minor}"]')
"""A target for many Pythons packs wheels for each: rivals pack none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A model that somebody made: where it is, its bytes, and how it answers on held-out samples."""

    model: str
    size: int
    figures: Mapping[str, float | None]


@dataclass(slots=True, kw_only=True)
class Findings:
    """What a case showed, by the name of who did it. `failed` has the reasons of those who could not; `measured` says
    when it was.
    """

    subject: str
    title: str
    rivals: tuple[str, ...]
    seconds: dict[str, tuple[float, ...]] = field(default_factory=dict)
    processor: dict[str, tuple[float, ...]] = field(default_factory=dict)
    peaks: dict[str, Peak] = field(default_factory=dict)
    made: dict[str, Made] = field(default_factory=dict)
    latencies: dict[str, Pairs] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    measured: str = ""

    @property
    def name(self) -> str:
        """`digits_cnn, static int8`."""
        return f"{self.subject}, {self.title}"

    def pairs(self, ours: str, rival: str) -> Pairs | None:
        """Wall times turn by turn, where both ran."""
        if ours not in self.seconds or rival not in self.seconds:
            return None
        return Pairs(ours=self.seconds[ours], theirs=self.seconds[rival])


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A place to build bundles in, and to compare what comes out."""

    workplace: Workplace
    diary: Diary
    store: Store

    def run(self, case: Case, subject: Subject) -> Findings:
        """All of one case."""
        return CaseRun(self, case, subject).finish()

    def build(self, arguments: Sequence[str], subject: Subject, *more: str) -> Built:
        """A bundle of the subject, with an empty cache but for what was downloaded."""
        self.workplace.forget_steps()
        words = (*arguments, *ONE_PYTHON, "--calibration", str(subject.calibration), *more)
        return build_bundle(self.workplace, subject.model, self._output(more), subject.held_out, arguments=words)

    def command(self, arguments: Sequence[str], subject: Subject, *more: str) -> list[str]:
        """The same as a command, for a process that is watched."""
        self.workplace.forget_steps()
        where = ["--target", TARGET, "--output", str(self._output(more)), "--cache", str(self.workplace.cache)]
        data = ["--calibration", str(subject.calibration), "--samples", str(subject.held_out)]
        return [BUNDLER, "build", str(subject.model), *where, *data, *arguments, *ONE_PYTHON, *more, *QUIET]

    def _output(self, more: Sequence[str]) -> Path:
        """Bundles with and without proof stand apart, so that the last one of each can be looked at."""
        return self.workplace.empty(f"precision-out-{'plain' if '--no-prove' in more else 'proven'}")

    def judge_bundle(self, built: Built, subject: Subject) -> Made:
        """The model of a bundle's first variant."""
        variant = built.config["components"][0]["variants"][0]
        return judge_model(subject, built.payload / variant["model"], sum(file["size"] for file in variant["files"]))

    def race(self, built: Built, subject: Subject, other: str | Path) -> Pairs:
        """Steady calls of the bundle beside a plain session on the other model, in one process, in turns."""
        feeds = self.workplace.empty("precision-feeds") / "feed.npz"
        write_feed(next(iter(sorted(subject.held_out.glob("*.npz")))), feeds)
        counts = ("1", str(self.workplace.pick(7, 25)))
        memory = {"XDG_CACHE_HOME": str(self.workplace.empty("precision-memory"))}
        ran = run_child("side_by_side.py", other, built.folder / built.package, feeds, *counts, env=memory)
        steady = json.loads(ran.output)["steady"]
        return Pairs(ours=tuple(steady["bundle"]), theirs=tuple(steady["raw"]))


class CaseRun:
    """One case on its way: first everybody once, watched, which is no time that counts; then all in turns."""

    def __init__(self, bench: Bench, case: Case, subject: Subject) -> None:
        self._bench, self._case, self._subject = bench, case, subject
        self._rivals = {rival.name: rival for rival in case.rivals}
        self._built: Built | None = None
        self.found = Findings(
            subject=case.subject,
            title=case.title,
            rivals=tuple(self._rivals),
            measured=datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
        )

    def finish(self) -> Findings:
        """All that the case shows. What fails is left out of the rest, with its reason."""
        self._make_ready()
        runs = self.list_runs()
        runs = {who: run for who, run in runs.items() if self._attempt(who, "memory", lambda who=who: self.weigh(who))}
        self._time(runs)
        for who in (OURS, *self._rivals):
            if who in runs and who not in self.found.failed:
                self._attempt(who, "result", lambda who=who: self.judge(who))
        for who in self._rivals:
            if {OURS, who} <= set(self.found.made):
                self._attempt(f"{who}, beside ours", "latency", lambda who=who: self.race(who))
        return self.found

    def _attempt(self, who: str, what: str, action: Callable[[], Any]) -> bool:
        try:
            self._bench.diary.note(self.found.name, who, what, action())
        except FAILURES as error:
            self.found.failed[who] = describe_reason(error)
            self._bench.diary.note(
                self.found.name, who, f"{what} failed", f"{describe_reason(error)}\n{str(error)[-2000:]}"
            )
            return False
        return True

    def _make_ready(self) -> None:
        """Wheels and tool environments, as the rivals' are. What fails here fails again where it is reported."""
        try:
            self.prove()
        except FAILURES as error:
            self._bench.diary.note(self.found.name, PROVEN, "first build failed", describe_reason(error))

    def list_runs(self) -> dict[str, Run]:
        """Whole processes, each from a cold start, by who runs them."""
        runs: dict[str, Run] = {OURS: self._build, PROVEN: self.prove}
        if self._case.method:
            runs[BARE] = lambda: run_timed(self._bare())
        for rival in self._case.rivals:
            runs[rival.name] = lambda rival=rival: run_timed(self._command(rival), OFFLINE)  # type: ignore[misc]
        return runs

    def _build(self) -> Ran:
        self._built = self._bench.build(self._case.arguments, self._subject, "--no-prove")
        return self._built.ran

    def prove(self) -> Ran:
        """A whole build."""
        return self._bench.build(self._case.arguments, self._subject).ran

    def _bare(self) -> list[str]:
        folder = self._bench.workplace.folder / "precision-bare"
        shutil.rmtree(folder, ignore_errors=True)
        return bare_command(self._case, self._subject, folder)

    def _output(self, rival: Rival) -> Path:
        name = "".join(letter if letter.isalnum() else "-" for letter in f"{self._case.title}-{rival.name}")
        return self._bench.workplace.folder / "precision" / self._case.subject / "rivals" / name

    def _command(self, rival: Rival) -> list[str]:
        job = Job(model=self._subject.model, calibration=self._subject.calibration, output=self._output(rival))
        return rival.command(self._bench.workplace, job)

    def weigh(self, who: str) -> dict[str, float]:
        """The first run, watched: watching costs time, so that no time counts here."""
        if who in self._rivals:
            command = self._command(self._rivals[who])
        elif who == BARE:
            command = self._bare()
        else:
            more = ("--no-prove",) if who == OURS else ()
            command = self._bench.command(self._case.arguments, self._subject, *more)
        self.found.peaks[who] = peak = watch_memory(command, OFFLINE)
        return {"shared_out": peak.shared_out, "own": peak.own, "largest": peak.largest}

    def _time(self, runs: Mapping[str, Run]) -> None:
        """Everybody in turns, as many as there is time for; who begins changes from turn to turn."""
        taken: dict[str, list[Ran]] = {who: [] for who in runs}
        began = time.perf_counter()
        for turn in range(self._bench.workplace.pick(1, 3)):
            if turn and time.perf_counter() - began > TURNS_SECONDS:
                break
            order = [*runs][turn % len(runs) :] + [*runs][: turn % len(runs)] if runs else []
            for who in order:
                if who not in self.found.failed:
                    self._attempt(who, "seconds", lambda who=who: _keep(taken[who], runs[who]()))
        for who, values in taken.items():
            if who not in self.found.failed:
                self.found.seconds[who] = tuple(ran.seconds for ran in values)
                self.found.processor[who] = tuple(ran.cpu_seconds for ran in values)

    def judge(self, who: str) -> dict[str, Any]:
        """How what was made in the last turn answers."""
        if who == OURS and self._built is not None:
            made = self._bench.judge_bundle(self._built, self._subject)
        else:
            rival = self._rivals[who]
            model = self._output(rival) / rival.result
            made = judge_model(self._subject, model, sum(path.stat().st_size for path in model.parent.glob("*.onnx*")))
        self.found.made[who] = made
        return {"size": made.size, **made.figures}

    def race(self, who: str) -> list[float]:
        """Our bundle of the last turn beside that rival's model."""
        if self._built is None:
            raise ValueError("no bundle was built")
        self.found.latencies[who] = pairs = self._bench.race(self._built, self._subject, self.found.made[who].model)
        return [round(ratio, 3) for ratio in pairs.ratios]


def _keep(taken: list[Ran], ran: Ran) -> list[float]:
    """Keep a run, and answer its wall and processor time."""
    taken.append(ran)
    return [round(ran.seconds, 3), round(ran.cpu_seconds, 3)]


def describe_reason(error: BaseException) -> str:
    """What a command gave for its reason, else the error's own words."""
    return getattr(error, "reason", "") or str(error)


def judge_model(subject: Subject, model: Path, size: int) -> Made:
    """Figures of `model` beside the untouched one. Raises `CommandError`."""
    ran = run_child("judge_answers.py", subject.name, subject.model, model, subject.held_out)
    return Made(model=str(model), size=size, figures=json.loads(ran.output.splitlines()[-1]))


def show_size(size: int) -> str:
    """`41 kB`, `2.31 MB`."""
    return f"{size / 1e3:.0f} kB" if size < MEGABYTE else f"{size / MEGABYTE:.2f} MB"


def write_feed(sample: Path, path: Path) -> None:
    """A sample in the form that `children/side_by_side.py` reads."""
    with np.load(sample) as stored:
        values = {name: stored[name] for name in stored.files}
    columns = {f"value{position}": value for position, value in enumerate(values.values())}
    np.savez(path, names=np.array(list(values)), **columns)
