"""What a visitor of a page waits for and downloads: a bundle beside the runtime as its documentation shows it."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from document import Section, Table
from models import Ready, measure_each
from processes import CommandError
from web_host import Host, open_host
from web_pages import CONTESTS, Contest, gather_files
from web_tables import Round, Taken, tabulate
from workplace import Workplace, build_bundle

from bundler.devices.browser.programs import find_browser

if TYPE_CHECKING:
    from web_visits import Browser, Network

MODELS = ("rapidocr_cls", "rapidocr_det", "magika", "encoder_90mb")
QUICK = ("rapidocr_cls",)
SOFTWARE_MODELS = ("rapidocr_cls", "magika")
"""For WebGPU on a software adapter, which takes seconds for what a GPU does in milliseconds."""

MEGABITS, LATENCY = 20.0, 20.0
LONG_DOWNLOAD = 20_000_000
"""Bytes of a model from which on the slower network is left out: it would time the weights alone, for minutes. On the
software adapter it is left out, too: shaders take most of a visit there."""

ADAPTER = "WebGPU"
CLOSE = 1e-3


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Circumstance:
    """A network (None: this machine's own) and whether the host compresses; `rounds` are taken in it."""

    name: str
    network: Network | None
    compress: bool
    rounds: int


def measure(workplace: Workplace) -> Section:
    executable = find_browser()
    if executable is None:
        return _unmeasured("no browser of the Chromium family was found")
    try:
        import web_visits  # noqa: PLC0415 - playwright may be missing
    except ImportError:
        return _unmeasured("playwright is not installed (it comes with the development environment)")
    tables: list[Table] = []
    notes: list[str] = []
    figures = {}
    with web_visits.drive(executable) as browser:
        for contest in CONTESTS:
            names = _choose(workplace, contest)
            place = dataclasses.replace(workplace, models=names)
            taken, failures = measure_each(place, names, lambda w, m, c=contest: _measure(w, m, c, browser))
            tables += tabulate(contest.title, list(taken.values()))
            notes += [f"{contest.title}: {failure}" for failure in failures]
            notes += [note for one in taken.values() for note in one.notes]
            figures[contest.target] = {name: one.figures() for name, one in taken.items()}
    return Section(
        name="web",
        title="a visit in the browser",
        method=_describe_method(),
        tables=tuple(tables),
        notes=tuple(dict.fromkeys(notes)),
        figures=figures,
    )


def _describe_method() -> str:
    return (
        "The smallest page that loads the bundle and runs one inference, beside a page that imports onnxruntime-web "
        "as its documentation shows and opens the raw model; one host on this machine serves both with the same "
        "headers (kept for good, cross-origin isolated) and the same brotli levels. A first visit has an empty "
        "profile, the second a new process with the profile that the first left; times are measured from the "
        f"navigation to the first inference. The slower network is Chromium's own emulation: {MEGABITS:g} Mbit/s and "
        f"{LATENCY:g} ms. WebGPU runs on the software adapter, so that its times say nothing about a GPU."
    )


def _choose(workplace: Workplace, contest: Contest) -> tuple[str, ...]:
    if workplace.models:
        return workplace.models
    if workplace.quick:
        return QUICK
    return SOFTWARE_MODELS if contest.title == ADAPTER else MODELS


def _unmeasured(why: str) -> Section:
    return Section(name="web", title="a visit in the browser", method=f"Not measured: {why}.", tables=())


def _measure(workplace: Workplace, model: Ready, contest: Contest, browser: Browser) -> Taken:
    from web_visits import VisitError  # noqa: PLC0415 - playwright may be missing

    built = build_bundle(workplace, model.path, workplace.empty("web"), model.samples, target=contest.target)
    ours, *theirs = pages = ["/bundle.html", *(f"/{entry.module}.html" for entry in contest.entries)]
    taken = Taken(model=model.name, ours=ours, theirs=tuple(theirs))
    with open_host(gather_files(workplace, contest, model, built)) as host:
        try:
            for circumstance in _circumstances(workplace, contest, model):
                taken.rounds[circumstance.name] = _take_turns(host, browser, pages, circumstance)
            counts = {"blocks": workplace.pick(4, 11), "seconds": workplace.pick(1, 2)}
            blocks = browser.time_blocks([host.url + page for page in pages], **counts)
        except VisitError as error:
            raise CommandError(["visit", contest.target], 1, str(error)) from error
    taken.steady = dict(zip(pages, blocks, strict=True))
    taken.notes += _compare_answers(taken)
    return taken


def _circumstances(workplace: Workplace, contest: Contest, model: Ready) -> tuple[Circumstance, ...]:
    from web_visits import Network  # noqa: PLC0415 - playwright may be missing

    slow = Network(megabits=MEGABITS, latency=LATENCY)
    gpu = contest.title == ADAPTER
    long = gpu or model.path.stat().st_size > LONG_DOWNLOAD
    rounds = workplace.pick(1, 2 if gpu else 3)
    here = Circumstance(name="this machine", network=None, compress=True, rounds=rounds)
    if long:
        return (here, Circumstance(name="this machine, not compressed", network=None, compress=False, rounds=1))
    there = f"{MEGABITS:g} Mbit/s"
    return (
        here,
        Circumstance(name=there, network=slow, compress=True, rounds=workplace.pick(1, 3)),
        Circumstance(name=f"{there}, not compressed", network=slow, compress=False, rounds=1),
    )


def _take_turns(
    host: Host, browser: Browser, pages: Sequence[str], circumstance: Circumstance
) -> dict[str, list[Round]]:
    """Which page comes first changes from round to round."""
    found: dict[str, list[Round]] = {page: [] for page in pages}
    host.compress = circumstance.compress
    for turn in range(circumstance.rounds):
        start = turn % len(pages)
        for page in (*pages[start:], *pages[:start]):
            found[page].append(_visit_twice(host, browser, page, circumstance.network))
    return found


def _visit_twice(host: Host, browser: Browser, page: str, network: Network | None) -> Round:
    from web_visits import fresh_profile  # noqa: PLC0415 - playwright may be missing

    with fresh_profile() as profile:
        at_first, first = host.count(), browser.visit(profile, host.url + page, network)
        then, second = host.count(), browser.visit(profile, host.url + page, network)
    print(f"    {page}: {first.seconds:.2f} s, then {second.seconds:.2f} s", file=sys.stderr, flush=True)
    return Round(
        first=first.seconds,
        second=second.seconds,
        first_bytes=at_first.total,
        second_bytes=then.total,
        answers=(*at_first.answers,),
        reported=(first.reported, second.reported),
    )


def _compare_answers(taken: Taken) -> list[str]:
    """A note for each page that answers otherwise than ours: its times would compare unlike things."""
    answers: Mapping[str, list[float]] = {
        page: rounds[0].reported[0]["values"] for page, rounds in taken.rounds["this machine"].items()
    }
    ours = answers[taken.ours]
    return [
        f"**{taken.model}: {page} answers otherwise**: {values} instead of {ours}"
        for page, values in answers.items()
        if not all(math.isclose(a, b, rel_tol=CLOSE, abs_tol=CLOSE) for a, b in zip(ours, values, strict=True))
    ]
