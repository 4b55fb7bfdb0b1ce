"""The report beside a bundle: one page for people, timings and downloads for programs, and the log."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bundler.model.codec import encode
from bundler.model.measurement import BRIEF_SECONDS, Measurement
from bundler.reporting.accuracy import chart_accuracy
from bundler.reporting.claims import LEAST_RUNS
from bundler.reporting.data import ComponentReport, ReportData, summarize_series
from bundler.reporting.downloads import chart_downloads, render_downloads
from bundler.reporting.figures import word_figures
from bundler.reporting.frontier import chart_precisions
from bundler.reporting.models import chart_sizes, count_operators, follow_model
from bundler.reporting.operators import OPERATORS_NAME, render_operators
from bundler.reporting.page import Page, Part
from bundler.reporting.placement import chart_placements, describe_unassigned, stack_providers
from bundler.reporting.speed import chart_speed
from bundler.reporting.story import (
    chart_files,
    collect_notes,
    describe_proof,
    explain_untimed,
    judged_by_seeds,
    list_phases,
    list_steps,
    make_cards,
    make_component_cards,
)
from bundler.reporting.timings import TIMINGS_NAME
from bundler.support.data import data_root
from bundler.support.files import replace_whole
from bundler.support.text import format_bytes, visible
from bundler.verification.words import BUILDING_HOST, describe_samples, describe_verification, name_verification

if TYPE_CHECKING:
    from jinja2 import Template

REPORT_NAME = "report.html"
LOG_NAME = "build.log"
DOWNLOADS_NAME = "downloads.json"
_LONGEST = 400
"""Characters of a string on the page; longer names, which models may have, are cut."""


def write_report(folder: Path, data: ReportData) -> Path:
    """Write the page, the timings, the log, the operators and, if there are any, the downloads into `folder`, each
    atomically. Returns the path of the page.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / TIMINGS_NAME, render_timings(data))
    _write(folder / LOG_NAME, "".join(f"{line}\n" for line in data.log))
    if data.downloads:
        _write(folder / DOWNLOADS_NAME, render_downloads(data.downloads))
    operators = render_operators(data)
    if operators is not None:
        _write(folder / OPERATORS_NAME, operators)
    else:
        (folder / OPERATORS_NAME).unlink(missing_ok=True)
    page = folder / REPORT_NAME
    _write(page, render_report(data))
    return page


def render_report(data: ReportData) -> str:
    """The page: one HTML document without scripts and network requests.

    The template escapes everything that came from a model, and the content security policy allows only one style
    sheet, by its digest.
    """
    from markupsafe import Markup  # noqa: PLC0415 - comes with jinja2

    style = (data_root("templates") / "report" / "report.css").read_text(encoding="utf-8")
    return page_template().render(
        page=make_page(data),
        style=Markup(style),  # noqa: S704 - our own style sheet
        style_digest=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
    )


@functools.cache
def page_template() -> Template:
    """The page's compiled template; a build may request it early, while it waits for something else."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 - heavy

    environment = Environment(
        loader=FileSystemLoader(data_root("templates") / "report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_tidy,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    for part in ("component.html.j2", "steps.html.j2"):  # every page includes them
        environment.get_template(part)
    return environment.get_template("report.html.j2")


def make_page(data: ReportData) -> Page:
    """All values that the template shows."""
    proven, unproven = describe_proof(data)
    sole = data.manifest.sole
    return Page(
        title=f"{sole.model.name if sole else data.manifest.name} for {data.manifest.target.id}",
        manifest=data.manifest,
        cards=make_cards(data),
        badge=name_verification(data.manifest.proof),
        judged_by_seeds=any(judged_by_seeds(component) for component in data.manifest.components),
        verification=(*describe_verification(data.manifest.proof, BUILDING_HOST), *describe_samples(data.manifest)),
        least_runs=LEAST_RUNS,
        proven=proven,
        unproven=unproven,
        downloads=chart_downloads(data),
        brief_seconds=f"{BRIEF_SECONDS:g}" if data.is_brief else "",
        parts=tuple(_make_part(data, part) for part in data.components),
        phases=() if sole else list_phases(data),
        files=chart_files(data.manifest.files),
        file_count=f"{len(data.manifest.files)} files and bundle.json, {format_bytes(data.bundle_bytes)}",
    )


def _make_part(data: ReportData, part: ComponentReport) -> Part:
    states = follow_model(part)
    alone = data.manifest.sole is not None
    return Part(
        name=part.record.name,
        key="" if alone else f"{part.record.name}-",
        model=part.record.model.name,
        cards=make_component_cards(data, part),
        judged_by_seeds=judged_by_seeds(part.record),
        names_samples=any(note.names_samples for outcome in part.outcomes for note in outcome.notes),
        sizes=chart_sizes(part, states),
        speed=chart_speed(part),
        unmeasured=explain_untimed(data),
        precisions=chart_precisions(part.frontiers),
        accuracy=chart_accuracy(part),
        operators=count_operators(part, states),
        placements=chart_placements(part),
        providers=stack_providers(part),
        unassigned=describe_unassigned(part, data.unassigned),
        decisions=part.record.decisions,
        notes=collect_notes(part),
        steps=(*list_steps(part), *(list_phases(data) if alone else ())),
    )


def render_timings(data: ReportData) -> str:
    """Seconds by step and phase, and every measurement with its spread, as JSON."""
    timings = {
        "schema": 1,
        "steps": [
            {
                "component": part.record.name,
                "step": outcome.step,
                "stage": outcome.stage,
                "seconds": outcome.seconds,
                "cached": outcome.cached,
            }
            for part in data.components
            for outcome in part.outcomes
        ],
        "phases": dict(data.phases),
        "brief": data.is_brief,
        "measurements": [_timing(measurement) for part in data.components for measurement in part.measurements],
        "proofs": {
            data.manifest.label(part.record.name, proof.variant): dict(proof.figures)
            for part in data.components
            for proof in part.proofs
        },
    }
    return json.dumps(word_figures(encode(timings)), sort_keys=True, indent=2, ensure_ascii=True) + "\n"


def _timing(measurement: Measurement) -> dict[str, Any]:
    series: dict[str, Sequence[float]] = {
        "opening_ms": measurement.opening_ms,
        "latency_ms": measurement.latency_ms,
        "baseline_opening_ms": measurement.baseline_opening_ms,
        "baseline_latency_ms": measurement.baseline_latency_ms,
    }
    return {
        "name": measurement.name,
        "component": measurement.component,
        "variant": measurement.variant,
        "others": measurement.others,
        **{name: {"values": list(values), "spread": summarize_series(values)} for name, values in series.items()},
    }


def _tidy(value: Any) -> Any:
    """A string as the page shows it: shortened, with control and bidirectional characters as escapes. Other values
    (markup, numbers) are unchanged.
    """
    if type(value) is not str:
        return value
    shown = value if len(value) <= _LONGEST else f"{value[:_LONGEST]}…"
    return visible(shown, keep="\n")


def _write(path: Path, text: str) -> None:
    replace_whole(path, text.encode("utf-8", "backslashreplace"))
