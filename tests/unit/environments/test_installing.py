"""Builds for CPUs: who has the wheel is asked first, then uv's own index; both answers are shown. uv is faked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from bundler.emitters.python.tags import target_markers
from bundler.environments import installing
from bundler.environments.installing import cpu_builds, install_lock
from bundler.environments.lockfiles import parse_lock, shipped_lock, shipped_names
from bundler.model.errors import EnvironmentMissingError

HASH = f"--hash=sha256:{'0' * 64}"
PLAIN = parse_lock("plain", f"numpy==2.4.6 {HASH}\n")
SPECIAL = parse_lock("special", f"numpy==2.4.6 {HASH}\nheavy==1.0+cpu {HASH}\nother==1.0+cpu ; os_name == 'x' {HASH}\n")
INSTALL_TORCH = [name for name in shipped_names() if any(pin.name == "torch" for pin in shipped_lock(name).pins)]


class FakeUv:
    """Fails as often as it is reported, and remembers whether it was asked for its own index."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.backends: list[bool] = []

    def __call__(self, arguments: Sequence[str], doing: str) -> str:
        self.backends.append(tuple(arguments[-2:]) == ("--torch-backend", "cpu"))
        if len(self.backends) <= self.failures:
            raise EnvironmentMissingError(f"could not {doing}", details=(f"no wheel, try {len(self.backends)}",))
        return ""


@pytest.mark.parametrize(("failures", "backends"), [(0, [False]), (1, [False, True])])
def test_a_build_for_cpus_comes_from_the_users_indexes_or_from_uvs_own(
    failures: int, backends: list[bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uv = FakeUv(failures)
    monkeypatch.setattr(installing, "run_uv", uv)
    install_lock(SPECIAL, tmp_path / "python", tmp_path / "requirements.lock")
    assert uv.backends == backends
    assert "heavy==1.0+cpu" in (tmp_path / "requirements.lock").read_text()


def test_where_nobody_has_it_both_answers_are_shown_and_how_to_give_the_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installing, "run_uv", FakeUv(2))
    with pytest.raises(EnvironmentMissingError, match="could not install the packages of special") as caught:
        install_lock(SPECIAL, tmp_path / "python", tmp_path / "requirements.lock")
    assert "no wheel, try 1" in caught.value.details
    assert "no wheel, try 2" in caught.value.details
    assert "heavy==1.0+cpu" in (caught.value.hint or "")
    assert "UV_FIND_LINKS" in (caught.value.hint or "")


def test_other_packages_are_asked_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uv = FakeUv(1)
    monkeypatch.setattr(installing, "run_uv", uv)
    with pytest.raises(EnvironmentMissingError, match="could not install the packages of plain"):
        install_lock(PLAIN, tmp_path / "python", tmp_path / "requirements.lock")
    assert uv.backends == [False]


def test_only_builds_that_count_here_are_special() -> None:
    assert cpu_builds(PLAIN) == ()
    assert cpu_builds(SPECIAL) == ("heavy==1.0+cpu",)


@pytest.mark.parametrize("name", INSTALL_TORCH)
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
@pytest.mark.parametrize(
    ("tag", "torch"),
    [
        ("manylinux_2_28_x86_64", "2.13.0+cpu"),
        ("manylinux_2_28_aarch64", "2.13.0+cpu"),
        ("macosx_14_0_arm64", "2.13.0"),
        ("win_amd64", "2.13.0"),
    ],
)
def test_locks_with_torch_are_slim_everywhere(name: str, version: str, tag: str, torch: str) -> None:
    pins = shipped_lock(name).select(target_markers((tag,), version))
    names = [pin.name for pin in pins]
    assert len(names) == len(set(names))
    assert shipped_lock(name).versions(target_markers((tag,), version))["torch"] == torch
    assert not [item for item in names if item.startswith(("nvidia", "cuda", "triton"))]
