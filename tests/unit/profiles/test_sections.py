"""An ecosystem of another package brings its section of a profile, and replaces none."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint

import pytest

from bundler.model.errors import EnvironmentMissingError, UsageError
from bundler.model.registered import list_registered
from bundler.profiles import sections
from bundler.profiles.resolve import resolve_target
from bundler.profiles.schema import Section
from bundler.profiles.sections import EcosystemSection, profile_model


class Acme(EcosystemSection):
    """For bundles of another ecosystem."""

    channel: str = "stable"


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    profile_model.cache_clear()
    yield
    profile_model.cache_clear()


def register(monkeypatch: pytest.MonkeyPatch, name: str, found: object) -> None:
    point = EntryPoint(name=name, group=sections.GROUP, value="acme:FOUND")
    monkeypatch.setattr(sections, "list_registered", lambda group: (*list_registered(group), point))
    load = EntryPoint.load
    monkeypatch.setattr(EntryPoint, "load", lambda self: found if self == point else load(self))


def test_its_keys_are_checked_and_have_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, "acme", Acme)
    assert resolve_target("linux-x64").acme.channel == "stable"  # type: ignore[attr-defined]
    assert resolve_target("linux-x64", ("acme.channel=beta",)).acme.channel == "beta"  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="chanel"):
        resolve_target("linux-x64", ("acme.chanel=beta",))


@pytest.mark.parametrize(
    ("name", "found"),
    [
        *(("web", Acme), ("runtime", Acme), ("not-a-key", Acme), ("acme", dict), ("acme", Section), ("acme", Acme())),
        *(("model_dump", Acme), ("model_fields", Acme), ("_acme", Acme)),  # of the model itself, or never read
    ],
)
def test_what_is_no_section_of_its_own_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, found: object) -> None:
    register(monkeypatch, name, found)
    with pytest.raises(EnvironmentMissingError, match=f"bundler.profile_sections:{name}"):
        profile_model()


@pytest.mark.parametrize(
    "value",
    [
        'python.wheel_platforms=["manylinux_2_99999999_x86_64"]',
        'python.wheel_platforms=["manylinux_99999_1_x86_64"]',
        'python.wheel_platforms=["musllinux_1_99999999_x86_64"]',
        "web.part_mb=0.001",
    ],
)
def test_no_value_stands_for_millions_of_tags_or_files(value: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve_target("linux-x64", (value,))
    assert "expected" in str(caught.value.details)
