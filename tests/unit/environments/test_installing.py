"""Builds for CPUs: who has the wheel is asked first, then uv's own index, then who has the general build of it; all
answers are shown. uv is faked, except in the test of its words.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from bundler.emitters.python.tags import target_markers
from bundler.environments import installing
from bundler.environments.installing import cpu_builds, install_lock
from bundler.environments.lockfiles import Lock, parse_lock, shipped_lock, shipped_names
from bundler.environments.making import made_environments
from bundler.environments.registry import Environments
from bundler.model.errors import EnvironmentMissingError
from bundler.model.events import Event, Reporter
from tests.unit.environments.test_environments import says, wheelhouse, write_wheel

__all__ = ["wheelhouse"]

HASH = f"--hash=sha256:{'0' * 64}"
PLAIN = parse_lock("plain", f"numpy==2.4.6 {HASH}\n")
SPECIAL = parse_lock("special", f"numpy==2.4.6 {HASH}\nheavy==1.0+cpu {HASH}\nother==1.0+cpu ; os_name == 'x' {HASH}\n")
REPLACED = parse_lock(
    "replaced",
    f"heavy==1.0 ; extra == 'general' {HASH}  # 2100000000 bytes\n"
    f"heavy==1.0+cpu ; extra != 'general' {HASH}\n"
    f"nvidia-heavy==7.0 ; extra == 'general' {HASH}  # 220000000 bytes\n"
    f"numpy==2.4.6 {HASH}\n",
)
"""As `SPECIAL`, with a general build to fall back on."""
INSTALL_TORCH = [name for name in shipped_names() if any(pin.name == "torch" for pin in shipped_lock(name).pins)]


class FakeUv:
    """Fails as often as it is reported, and remembers whether it was asked for its own index and what it installed."""

    def __init__(self, failures: int, words: str = "there is no version of heavy==1.0+cpu") -> None:
        self.failures, self.words = failures, words
        self.backends: list[bool] = []
        self.wanted = ""

    def __call__(self, arguments: Sequence[str], doing: str) -> str:
        self.backends.append(tuple(arguments[-2:]) == ("--torch-backend", "cpu"))
        self.wanted = Path(arguments[arguments.index("-r") + 1]).read_text("utf-8")
        if len(self.backends) <= self.failures:
            details = (f"no wheel, try {len(self.backends)}", self.words)
            raise EnvironmentMissingError(f"could not {doing}", details=details)
        return ""


@pytest.mark.parametrize(("failures", "backends"), [(0, [False]), (1, [False, True])])
def test_a_build_for_cpus_comes_from_the_users_indexes_or_from_uvs_own(
    failures: int, backends: list[bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uv = FakeUv(failures)
    monkeypatch.setattr(installing, "run_uv", uv)
    heard: list[str] = []
    installed = install_lock(REPLACED, tmp_path / "python", tmp_path / "requirements.lock", heard.append)
    assert uv.backends == backends
    assert [f"{pin.name}=={pin.version}" for pin in installed] == ["heavy==1.0+cpu", "numpy==2.4.6"]
    assert "heavy==1.0+cpu" in uv.wanted
    assert "nvidia" not in uv.wanted
    assert ["heavy==1.0+cpu" in text for text in heard] == [True] * sum(backends)


def test_where_the_build_for_cpus_cannot_be_had_the_general_one_is_installed_and_its_size_said_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uv = FakeUv(2)
    monkeypatch.setattr(installing, "run_uv", uv)
    heard: list[tuple[int, str]] = []
    installed = install_lock(
        REPLACED,
        tmp_path / "python",
        tmp_path / "requirements.lock",
        lambda text: heard.append((len(uv.backends), text)),
    )
    assert [f"{pin.name}=={pin.version}" for pin in installed] == ["heavy==1.0", "nvidia-heavy==7.0", "numpy==2.4.6"]
    assert "+cpu" not in uv.wanted
    tries, text = heard[-1]
    assert tries == 2
    assert text == (
        "heavy==1.0+cpu cannot be downloaded here: installing the general build heavy==1.0 and 1 package that it "
        "requires, 2.32 GB to download (less where uv's cache has them)"
    )


@pytest.mark.parametrize(
    ("lock", "words", "tries"),
    [
        (SPECIAL, "there is no version of heavy==1.0+cpu", 2),
        (REPLACED, "No space left on device", 2),
        (REPLACED, "there is no version of heavy==1.0+cpu", 3),
    ],
    ids=["none named", "another reason", "not there either"],
)
def test_where_nobody_has_it_all_answers_are_shown_and_how_to_give_the_wheel(
    lock: Lock, words: str, tries: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uv = FakeUv(3, words)
    monkeypatch.setattr(installing, "run_uv", uv)
    with pytest.raises(EnvironmentMissingError, match=f"could not install the packages of {lock.name}") as caught:
        install_lock(lock, tmp_path / "python", tmp_path / "requirements.lock", lambda _: None)
    assert [line for line in caught.value.details if "try" in line] == [
        f"no wheel, try {number + 1}" for number in range(tries)
    ]
    assert len(uv.backends) == tries
    assert "heavy==1.0+cpu" in (caught.value.hint or "")
    assert "UV_FIND_LINKS" in (caught.value.hint or "")


def test_a_real_index_with_the_general_build_alone_is_enough(wheelhouse: Path, tmp_path: Path) -> None:
    """In uv's own words that it lacks a version; the environment is the same whichever build was there."""
    general = write_wheel(wheelhouse, "1.0").replace(" --hash", " ; extra == 'general' --hash")
    text = f"{general.strip()}  # 1234567 bytes\ntinytool==1.0+cpu ; extra != 'general' {HASH}\n"
    heard: list[Event] = []
    made = Environments(tmp_path / "cache", {"tool": text}).resolve("tool", ("tinytool",), Reporter(heard.append))
    assert made.versions == {"tinytool": "1.0"}
    assert list(made_environments(tmp_path / "cache").values()) == [{"tinytool": "1.0"}]
    assert "installing the general build tinytool==1.0" in says(heard)[-1]
    assert "1.2 MB" in says(heard)[-1]


def test_other_packages_are_asked_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uv = FakeUv(1)
    monkeypatch.setattr(installing, "run_uv", uv)
    with pytest.raises(EnvironmentMissingError, match="could not install the packages of plain"):
        install_lock(PLAIN, tmp_path / "python", tmp_path / "requirements.lock", lambda _: None)
    assert uv.backends == [False]


def test_only_builds_that_count_here_are_special() -> None:
    assert cpu_builds(PLAIN) == ()
    assert cpu_builds(SPECIAL) == ("heavy==1.0+cpu",)


TAGS = {
    "manylinux_2_28_x86_64": "2.13.0+cpu",
    "manylinux_2_28_aarch64": "2.13.0+cpu",
    "macosx_14_0_arm64": "2.13.0",
    "win_amd64": "2.13.0",
}


@pytest.mark.parametrize("name", INSTALL_TORCH)
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
@pytest.mark.parametrize("tag", TAGS)
def test_locks_with_torch_are_slim_everywhere(name: str, version: str, tag: str) -> None:
    pins = shipped_lock(name).select(target_markers((tag,), version))
    names = [pin.name for pin in pins]
    assert len(names) == len(set(names))
    assert [pin.version for pin in pins if pin.name == "torch"] == [TAGS[tag]]
    assert not [item for item in names if item.startswith(("nvidia", "cuda", "triton"))]


@pytest.mark.parametrize("name", INSTALL_TORCH)
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
@pytest.mark.parametrize("tag", [tag for tag, torch in TAGS.items() if torch.endswith("+cpu")])
def test_each_build_for_cpus_has_a_general_one_with_its_size(name: str, version: str, tag: str) -> None:
    lock, markers = shipped_lock(name), target_markers((tag,), version)
    slim, general = lock.select(markers), lock.select_general(markers)
    added = [pin for pin in general if pin not in slim]
    assert {pin.name for pin in slim} < {pin.name for pin in general}
    assert lock.versions(markers).items() <= {pin.name: pin.version for pin in general}.items()
    assert all(pin.size for pin in added)
    assert 2e9 < sum(pin.size for pin in added) < 3e9
