"""What programs read is JSON, whatever names it holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bundler.cli.printing import print_json


@pytest.mark.parametrize("name", ["plain", "caf\u00e9", "caf\udce9"])
def test_paths_come_out_as_they_went_in(name: str, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    print_json({"bundle": Path(name)})
    assert json.loads(capsysbinary.readouterr().out.decode()) == {"bundle": name}
