"""What a user imports."""

from __future__ import annotations

import subprocess
import sys
import typing

import pytest

from bundler import api


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
