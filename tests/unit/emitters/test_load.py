"""How busy other programs kept the machine."""

from pathlib import Path

import pytest

from bundler.emitters import load
from bundler.emitters.load import LoadWatch


@pytest.fixture
def stat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Sets what the kernel counts: ticks of user and idle time."""
    path = tmp_path / "stat"
    monkeypatch.setattr(load, "_STAT", path)
    monkeypatch.setattr(load.sys, "platform", "linux")

    def count(user: int, idle: int) -> None:
        path.write_text(f"cpu  {user} 0 0 {idle} 0 0 0 0 0 0\ncpu0 1 1 1 1\n")

    return count


def test_a_machine_that_does_nothing_else_is_quiet(stat) -> None:
    stat(1000, 1000)
    watch = LoadWatch()
    stat(1000, 3000)
    assert watch.others() == 0.0


def test_what_others_take_is_a_share_of_all_processors(stat) -> None:
    stat(1000, 1000)
    watch = LoadWatch()
    stat(2000, 4000)
    assert watch.others() == pytest.approx(0.25, abs=0.01)


def test_what_our_own_children_take_is_not_counted(stat, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter((0.0, 10.0))

    class Times:
        children_user = 0.0
        children_system = 0.0

    def times() -> Times:
        found = Times()
        found.children_user = next(seconds)
        return found

    monkeypatch.setattr(load.os, "times", times)
    monkeypatch.setattr(load.os, "sysconf", lambda _name: 100)
    stat(0, 0)
    watch = LoadWatch()
    stat(1000, 1000)
    assert watch.others() == 0.0


def test_where_the_system_does_not_tell_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load.sys, "platform", "win32")
    assert LoadWatch().others() is None


@pytest.mark.usefixtures("stat")
def test_a_kernel_that_writes_something_else_is_not_believed(tmp_path: Path) -> None:
    (tmp_path / "stat").write_text("")
    assert LoadWatch().others() is None
