"""`--only`."""

from __future__ import annotations

from pathlib import Path

import pytest

from bundler.model.errors import UsageError
from bundler.pipeline.requests import BuildRequest, bundle_name
from bundler.project.narrowing import narrow_requests

REQUESTS = tuple(
    BuildRequest(model=Path(f"{name}.onnx"), target=target)
    for name in ("detector", "speech")
    for target in ("linux-x64", "raspberry-pi-5", "own/board.toml")
)


def picked(*patterns: str) -> list[str]:
    return [f"{bundle_name(request)} {request.target}" for request in narrow_requests(REQUESTS, patterns)]


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (("speech-linux-x64",), ["speech linux-x64"]),
        (("raspberry-*",), ["detector raspberry-pi-5", "speech raspberry-pi-5"]),
        (("speech", "detector-linux-*"), ["detector linux-x64", *(f"speech {r.target}" for r in REQUESTS[3:])]),
        (("board",), ["detector own/board.toml", "speech own/board.toml"]),
    ],
)
def test_bundles_models_and_targets_are_picked_by_name_and_glob(patterns: tuple[str, ...], expected: list[str]) -> None:
    assert picked(*patterns) == expected


def test_without_a_pattern_all_stay() -> None:
    assert narrow_requests(REQUESTS, ()) == REQUESTS


def test_a_pattern_that_picks_nothing_is_reported_with_what_there_is() -> None:
    with pytest.raises(UsageError, match=r'--only linux-x46 matches no bundle.*did you mean "linux-x64"') as caught:
        picked("speech", "linux-x46")
    assert "detector-raspberry-pi-5" in caught.value.details
