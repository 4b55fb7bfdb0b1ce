"""The lines of a build's summary."""

from __future__ import annotations

import pytest

from bundler.cli.summary import _describe_visits
from bundler.pipeline.results import FirstVisit


def visit(variant: str, build: str, brotli: int) -> FirstVisit:
    return FirstVisit(variant=variant, build=build, size=3 * brotli, gzip=2 * brotli, brotli=brotli)


@pytest.mark.parametrize(
    ("other", "reported"),
    [(4_000_000, "2.7 to 4.0 MB"), (2_710_000, "2.7 MB"), (1_100_000_000, "2.7 MB to 1.10 GB")],
)
def test_a_first_visit_is_a_range_where_the_builds_of_a_variant_differ(other: int, reported: str) -> None:
    visits = (visit("webgpu", "jspi", 2_700_000), visit("webgpu", "asyncify", other), visit("wasm", "wasm", 2_800_000))
    assert _describe_visits(visits).startswith(f"{reported} (webgpu), 2.8 MB (wasm) with brotli;")
