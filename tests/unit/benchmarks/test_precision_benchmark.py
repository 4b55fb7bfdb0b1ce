"""The benchmark of precision treats everybody alike, keeps what it found when somebody fails, and says who did."""

from __future__ import annotations

import importlib
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.benchmarks.test_benchmarks import load

STATIC, DYNAMIC = "olive run, static", "optimum-cli quantize"


@dataclass
class Kit:
    """The benchmark's modules, and a bench whose runs only note their names; those of `failing` end with an error."""

    folder: Path
    patch: pytest.MonkeyPatch
    failing: tuple[str, ...] = ()
    order: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.runs: Any = load("subjects.precision_runs", self.patch)
        self.cases: Any = importlib.import_module("subjects.precision_cases")
        self.rivals: Any = importlib.import_module("subjects.precision_rivals")
        self.store: Any = importlib.import_module("subjects.precision_store")
        places = {name: self.folder / name for name in ("model", "calibration", "held_out")}
        self.subject = self.cases.Subject(name="m", **places)

    def case(self) -> Any:
        """Static quantisation, with two rivals."""
        method, rivals = "static-int8", (self.rivals.OLIVE_STATIC, self.rivals.OPTIMUM_QUANTIZE)
        options = {"per_channel": False}
        return self.cases.Case(subject="m", title="t", method=method, options=options, settings={}, rivals=rivals)

    def run(self) -> Any:
        """The findings of that case."""
        workplace = SimpleNamespace(folder=self.folder, pick=lambda _few, _many: 2)
        diary = self.store.Diary(self.folder)
        bench = self.runs.Bench(workplace=workplace, diary=diary, store=self.keep(resume=False))
        names = (self.runs.OURS, self.runs.PROVEN, STATIC, DYNAMIC)
        runs = {name: lambda name=name: self._note(name) for name in names}
        kind = self.runs.CaseRun
        self.patch.setattr(kind, "list_runs", lambda _: runs)
        self.patch.setattr(kind, "prove", lambda _: self._note("first"))
        made = self.runs.Made(model="m", size=10, figures={"sqnr_db": 20.0, "task": 1.0})
        peak = self.runs.Peak(shared_out=5, own=4, largest=3, seconds=1.0)
        pairs = self.runs.Pairs(ours=(1.0,), theirs=(2.0,))
        for name, kept, value in (("judge", "made", made), ("weigh", "peaks", peak), ("race", "latencies", pairs)):
            self.patch.setattr(kind, name, _keep(kept, value))
        return bench.run(self.case(), self.subject)

    def keep(self, *, resume: bool) -> Any:
        """Where findings are kept."""
        return self.store.Store(folder=self.folder / "found", resume=resume)

    def _note(self, name: str) -> Any:
        self.order.append(name)
        if name in self.failing:
            raise self.runs.CommandError([name], 1, "went wrong\nhint: never mind")
        return self.runs.Ran(seconds=1.0, cpu_seconds=0.5, output="")


def _keep(kept: str, value: Any) -> Any:
    def action(run: Any, who: str) -> None:
        getattr(run.found, kept)[who] = value

    return action


@pytest.fixture
def kit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Kit:
    return Kit(tmp_path, monkeypatch)


def test_everybody_runs_in_turns_and_who_begins_changes(kit: Kit) -> None:
    found = kit.run()
    names = [kit.runs.OURS, kit.runs.PROVEN, STATIC, DYNAMIC]
    assert kit.order == ["first", *names, *names[1:], names[0]]
    assert found.pairs(kit.runs.OURS, STATIC).ratios == (1.0, 1.0)
    assert (set(found.peaks), found.failed) == (set(names), {})


def test_a_rival_that_fails_costs_its_own_row_only(kit: Kit) -> None:
    kit.failing = (STATIC,)
    found = kit.run()
    assert kit.order.count(STATIC) == 1, "what failed is not tried again"
    assert found.failed == {STATIC: "went wrong"}
    assert set(found.made) == {kit.runs.OURS, DYNAMIC}
    tables = load("subjects.precision_tables", kit.patch)
    times, results = (table([found]).render() for table in (tables.wall_table, tables.result_table))
    choices = load("subjects.precision_choice", kit.patch)
    races = {f"t: {DYNAMIC}": kit.runs.Pairs(ours=(1.0,), theirs=(2.0,))}
    bars = tables.bars_table([found], {"m": choices.Choice(subject="m", races=races)}).render()
    assert f"| m | t | {STATIC} | the rival failed |" in bars
    verdicts = "1.00 **missed** | 1.00 **missed** | 1.00 met | met | met | 0.50 met"
    assert f"| m | t | {DYNAMIC} | {verdicts} |" in bars
    assert f"| {STATIC} | failed |" in times
    assert f"| {DYNAMIC} | 1 s (1…1) | 1 s (1…1) | 1.00 (1.00…1.00) |" in times
    assert "nothing to compare" in results


def test_our_own_failure_is_reported_as_ours(kit: Kit) -> None:
    kit.failing = (kit.runs.OURS,)
    tables = load("subjects.precision_tables", kit.patch)
    assert f"| m | t | {DYNAMIC} | ours failed |" in tables.bars_table([kit.run()], {}).render()


def test_every_finding_is_on_disk_at_once(kit: Kit) -> None:
    kit.failing = (DYNAMIC,)
    kit.run()
    entries = [json.loads(line) for line in (kit.folder / "precision.jsonl").read_text().splitlines()]
    assert [entry["who"] for entry in entries if entry["what"] == "seconds failed"] == [DYNAMIC]
    assert {"case": "m, t", "who": kit.runs.OURS, "what": "seconds", "value": [1.0, 0.5]} in entries


def test_a_run_that_was_cut_off_takes_up_what_it_had_found(kit: Kit) -> None:
    kit.failing = (STATIC,)
    found = kit.keep(resume=False).recall_or_make(kit.runs.Findings, "m, t", kit.run)
    again = kit.keep(resume=True).recall_or_make(kit.runs.Findings, "m, t", lambda: pytest.fail("measured again"))
    assert again == found
    fresh = kit.keep(resume=False).recall_or_make(kit.runs.Findings, "m, t", lambda: replace(found, title="new"))
    assert fresh.title == "new", "without --resume everything is measured"


def test_every_table_can_be_made_of_stored_findings(kit: Kit) -> None:
    """A crash at the end of a long run would lose all."""
    kit.failing = (STATIC,)
    choices = load("subjects.precision_choice", kit.patch)
    precision = load("subjects.precision", kit.patch)
    found, peak = kit.run(), kit.runs.Peak(shared_out=5, own=4, largest=3, seconds=1.0)
    attempts = ({"method": "fp16", "state": "broken", "ratio": None, "model_bytes": None}, ATTEMPT)
    made = kit.runs.Made(model="m", size=41_000, figures={"sqnr_db": float("inf"), "task": None})
    chosen = choices.Choice(subject="m", chosen="none", made=made, attempts=attempts)
    grown = (choices.Growth(who="ours", few=peak, many=peak), choices.Growth(who="theirs", failed="no memory"))
    found.made[kit.runs.OURS] = made
    pieces = ((kit.runs.Findings, found), (choices.Choice, chosen), (choices.Growths, choices.Growths(found=grown)))
    for kind, piece in pieces:
        kit.keep(resume=False).recall_or_make(kind, kind.__name__, lambda piece=piece: piece)
    one, two, three = (
        kit.keep(resume=True).recall_or_make(kind, kind.__name__, lambda: pytest.fail("not kept")) for kind, _ in pieces
    )
    section = precision.make_section([one], [two], three, ("a note",), SimpleNamespace(quick=True))
    text = section.render("now")
    assert all(len(row) == len(table.columns) for table in section.tables for row in table.rows)
    for expected in ("the same", "no memory", "a note", "static-int8 chosen, 0.50 times the time, 41 kB", "went wrong"):
        assert expected in text
    json.dumps(section.figures)


ATTEMPT = {"method": "static-int8", "state": "chosen", "ratio": 0.5, "model_bytes": 41_000}


def test_a_rival_starts_in_an_empty_folder_with_nothing_kept_from_before(kit: Kit) -> None:
    kit.patch.setattr(kit.rivals, "find_program", lambda *_: Path("/env/bin/olive"))
    output = kit.folder / "out" / "result"
    place = output.with_suffix(".run")
    (place / ".olive-cache").mkdir(parents=True)
    output.mkdir()
    job = kit.rivals.Job(model=kit.subject.model, calibration=kit.subject.calibration, output=output)
    command = kit.rivals.OLIVE_STATIC.command(SimpleNamespace(folder=kit.folder), job)
    assert (command[:2], command[3:5]) == (["sh", "-c"], [str(place), "/env/bin/olive"])
    assert (list(place.iterdir()), output.exists()) == ([], False)
    config = json.loads(Path(command[-1]).read_text())
    assert config["data_configs"][0]["load_dataset_config"]["data_dir"] == str(kit.subject.calibration)


def test_a_case_says_the_same_to_the_command_line_and_to_the_stage(kit: Kit) -> None:
    case = kit.case()
    assert case.arguments == ["--set", "precision.method=static-int8", "--set", "precision.per_channel=false"]
    command = kit.cases.bare_command(case, kit.subject, kit.folder / "out")
    assert command[2:4] == ["static-int8", '{"per_channel": false}']


def test_the_cases_name_methods_and_keys_that_there_are(kit: Kit) -> None:
    from bundler.profiles.methods import METHODS  # noqa: PLC0415
    from bundler.profiles.schema import Precision  # noqa: PLC0415

    for case in kit.cases.CASES:
        assert not case.method or case.method in METHODS
        Precision(**case.options)
        assert case.subject in kit.cases.MAKERS


def test_the_fastest_rival_is_the_one_that_comes_closest_to_ours(kit: Kit) -> None:
    choice = load("subjects.precision_choice", kit.patch)
    pairs = {who: choice.Pairs(ours=(1.0,), theirs=(theirs,)) for who, theirs in (("slow", 4.0), ("fast", 1.25))}
    made = choice.Made(model="m", size=41_000, figures={"sqnr_db": 20.0})
    one = choice.Choice(subject="m", chosen="static-int8", made=made, races=pairs)
    assert one.best_rival == "fast"
    row = "| m | static-int8 | 41 kB | 20.0 dB |  | fast | 0.80 (0.80…0.80) | met |"
    assert row in choice.choice_table([one]).render()
