from __future__ import annotations

from pathlib import Path

import pytest

from bundler.environments.indexes import index_variables


@pytest.fixture(autouse=True)
def only_the_named_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bundler.environments.indexes._uv_files", lambda _: ())
    monkeypatch.setattr(
        "bundler.environments.indexes._pip_files",
        lambda environ: [Path(environ["PIP_CONFIG_FILE"])] if "PIP_CONFIG_FILE" in environ else [],
    )


def test_uv_is_reported_what_pips_file_says(tmp_path: Path) -> None:
    path = tmp_path / "pip.conf"
    path.write_text(
        "[global]\nindex-url = https://mirror.example/simple\n"
        "[install]\nfind_links =\n  /a\n  /b\nextra-index-url = x y\n"
    )
    assert index_variables({"PIP_CONFIG_FILE": str(path)}) == {
        "UV_DEFAULT_INDEX": "https://mirror.example/simple",
        "UV_FIND_LINKS": "/a,/b",
        "UV_INDEX": "x y",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
    }


def test_a_variable_of_pip_wins_over_its_file(tmp_path: Path) -> None:
    path = tmp_path / "pip.conf"
    path.write_text("[global]\nindex-url = https://old.example\n")
    environ = {"PIP_CONFIG_FILE": str(path), "PIP_INDEX_URL": "https://new.example"}
    assert index_variables(environ) == {"UV_DEFAULT_INDEX": "https://new.example"}


def test_pip_is_reported_what_uvs_variables_say() -> None:
    environ = {"UV_INDEX_URL": "https://mirror.example", "UV_FIND_LINKS": "/a,/b"}
    assert index_variables(environ) == {"PIP_INDEX_URL": "https://mirror.example", "PIP_FIND_LINKS": "/a /b"}


def test_when_both_are_configured_nothing_is_added() -> None:
    assert index_variables({"UV_INDEX_URL": "https://a.example", "PIP_INDEX_URL": "https://b.example"}) == {}


def test_without_any_configuration_nothing_is_added() -> None:
    assert index_variables({}) == {}


def test_a_broken_file_is_left_to_pip(tmp_path: Path) -> None:
    path = tmp_path / "pip.conf"
    path.write_text("no section = here\n\xff")
    assert index_variables({"PIP_CONFIG_FILE": str(path)}) == {}
