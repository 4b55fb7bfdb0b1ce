"""What a user imports."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import typing

import pytest

from bundler import api
from tests.support.command_line import ROOT


@pytest.mark.parametrize("name", api.__all__)
def test_every_public_name_is_there_and_has_its_types(name: str) -> None:
    found = getattr(api, name)
    if callable(found) and not isinstance(found, type) and name != "Listener":
        assert found.__doc__
        late = {name: getattr(api, name) for name in api.__all__}
        assert "return" in typing.get_type_hints(found, localns=late)


def test_another_name_is_none_of_the_api() -> None:
    with pytest.raises(AttributeError, match="no attribute 'bild'"):
        _ = api.bild


def test_importing_the_api_loads_no_library() -> None:
    code = "import sys, bundler.api; print(*(name for name in ('pydantic', 'typer', 'jinja2') if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_the_page_on_the_api_has_the_example_that_runs_and_every_function() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    example = textwrap.indent(page.split("```python\n")[1].split("```")[0], "    ", lambda line: bool(line.strip()))
    assert example in (api.__doc__ or "")
    named = set(re.findall(r"`(\w+)`", page))
    assert {name for name in api.__all__ if name.islower()} <= named
    assert {name for name in named if name.islower()} - set(api.__all__) <= {"dimensions", "shapes", "overrides"}
