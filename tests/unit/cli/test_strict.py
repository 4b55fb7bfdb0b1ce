"""`--strict` says what to do about each variant that is not verified."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from bundler.cli.strict import find_unverified, require_verified

UNCHECKED = find_unverified({"cpu": "ran-unchecked"}, {})
UNRUN = find_unverified({"gpu": "resolved"}, {"gpu": "there is no GPU here"})


@pytest.mark.parametrize(
    ("found", "hint"),
    [
        (UNCHECKED, "hint: build the bundle with inputs that make these outputs vary (--samples), or remove --strict"),
        (UNRUN, "hint: verify the bundle where these variants run (--on), or remove --strict"),
        ({**UNCHECKED, **UNRUN}, "(--samples), verify the bundle where these variants run (--on), or remove --strict"),
    ],
)
def test_the_hint_suits_the_reason(found: dict[str, str], hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended:
        require_verified({Path("bundle"): found})
    assert ended.value.exit_code == 8
    assert capsys.readouterr().err.strip().endswith(hint)


def test_verified_variants_pass() -> None:
    require_verified({Path("bundle"): find_unverified({"cpu": "executed"}, {})})
