"""Download size of the first visit to a page: a chart and tables for each variant and build of the runtime.

Only web bundles have it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from bundler.model.proof import Download, DownloadFile, DownloadRole
from bundler.reporting.data import ReportData
from bundler.reporting.page import Audience, Card, DownloadBar, DownloadRow, Downloads, DownloadTotal, Segment
from bundler.reporting.scales import Scale, linear_scale
from bundler.support.text import format_bytes

MEGABYTE: Final = 1_000_000

ROLES: Final[tuple[DownloadRole, ...]] = ("runtime", "model", "loader")
"""The parts of a download, in the order of a bar from the left."""


def chart_downloads(data: ReportData) -> Downloads | None:
    """The first visit, for each variant and build; None for a bundle that is not for the web."""
    if not data.downloads:
        return None
    budget = _read_budget(data)
    sizes = [float(item.brotli) for item in data.downloads]
    scale = linear_scale((*sizes, *([budget] if budget else [])), lambda value: format_bytes(round(value)))
    return Downloads(
        scale=scale,
        bars=tuple(_bar(data, item, scale) for item in data.downloads),
        audiences=_list_audiences(data.downloads),
        gate=scale.place(budget) if budget else None,
        gate_text=_describe_budget(budget, max(sizes)) if budget else "",
        totals=tuple(_total(data, item) for item in data.downloads),
        files=_list_files(data.downloads),
    )


def make_download_card(data: ReportData) -> Card:
    """The download size of the preferred variants, each file once; web bundles show it instead of the model's size."""
    firsts = {item.component: item for item in reversed(data.downloads)}
    files = {file.path: file for item in firsts.values() for file in item.files}
    whole = sum(file.brotli for file in files.values())
    budget, models = _read_budget(data), sum(file.brotli for file in files.values() if file.role == "model")
    sole = data.manifest.sole
    tag = f", {data.downloads[0].variant}" if sole and len(sole.variants) > 1 else ""
    return Card(
        label=f"First visit{tag}" if sole else "First visit, all components",
        value=format_bytes(whole),
        change=f"within {format_bytes(round(budget))}" if budget and whole <= budget else "",
        detail=f"with brotli, {'model' if sole else 'models'} {format_bytes(models)}; "
        f"a second visit loads {'it' if sole else 'them'} from the browser's cache",
        tone="good" if budget else "plain",
    )


def render_downloads(downloads: Sequence[Download]) -> str:
    """Every figure as JSON, in bytes: uncompressed, with gzip and with brotli."""
    document = {"schema": 1, "first_visits": [_encode(item) for item in downloads]}
    return json.dumps(document, sort_keys=True, indent=2, ensure_ascii=True) + "\n"


def _encode(item: Download) -> dict[str, Any]:
    return {
        "component": item.component,
        "variant": item.variant,
        "build": item.build,
        **_sum(item.files),
        "parts": {role: _sum(_part(item, role)) for role in ROLES},
        "files": [{"path": file.path, "role": file.role, **_sum([file])} for file in item.files],
        "second_visit": 0,
    }


def _sum(files: Sequence[DownloadFile]) -> dict[str, int]:
    return {
        "size": sum(file.size for file in files),
        "gzip": sum(file.gzip for file in files),
        "brotli": sum(file.brotli for file in files),
    }


def _part(item: Download, role: DownloadRole) -> list[DownloadFile]:
    return [file for file in item.files if file.role == role]


def _bar(data: ReportData, item: Download, scale: Scale) -> DownloadBar:
    segments, start = [], 0
    for number, role in enumerate(ROLES):
        size = _sum(_part(item, role))["brotli"]
        left, right = scale.place(start), scale.place(start + size)
        segments.append(
            Segment(label=role, start=left, width=round(right - left, 2), value=format_bytes(size), series=number)
        )
        start += size
    return DownloadBar(
        label=data.manifest.label(item.component, item.variant),
        tag=item.build if item.build != item.variant else "",
        segments=tuple(segments),
        value=format_bytes(item.brotli),
        detail=f"gzip {format_bytes(item.gzip)}, uncompressed {format_bytes(item.size)}",
    )


def _list_audiences(downloads: Sequence[Download]) -> tuple[Audience, ...]:
    builds = {item.build: item.browsers for item in downloads}
    return tuple(Audience(build=build, browsers=browsers) for build, browsers in builds.items())


def _total(data: ReportData, item: Download) -> DownloadTotal:
    parts = (_sum(_part(item, role))["brotli"] for role in ROLES)
    return DownloadTotal(
        variant=data.manifest.label(item.component, item.variant),
        build=item.build,
        figures=tuple(format_bytes(size) for size in (*parts, item.brotli, item.gzip, item.size, 0)),
    )


def _list_files(downloads: Sequence[Download]) -> tuple[DownloadRow, ...]:
    """Every file of the first visits, the largest first."""
    files = {file.path: file for item in downloads for file in item.files}
    return tuple(
        DownloadRow(
            path=file.path,
            role=file.role,
            figures=(format_bytes(file.brotli), format_bytes(file.gzip), format_bytes(file.size)),
        )
        for file in sorted(files.values(), key=lambda file: (-file.brotli, file.path))
    )


def _read_budget(data: ReportData) -> float | None:
    limit = data.manifest.budget_mb.get("download")
    return None if limit is None else limit * MEGABYTE


def _describe_budget(budget: float, greatest: float) -> str:
    return f"budget {format_bytes(round(budget))} with brotli, {'met' if greatest <= budget else 'not met'}"
