"""What arrives while something is being finished is handled afterwards, by the same handlers."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from bundler.support.interruption import postponable


def _nothing(postpone: Callable[[], None]) -> None:
    del postpone


def _postpone(postpone: Callable[[], None]) -> None:
    postpone()


def _work(begin: Callable[[Callable[[], None]], None], counted: list[str]) -> None:
    with postponable() as postpone:
        begin(postpone)
        os.kill(os.getpid(), signal.SIGINT)
        counted.append("finished")


@pytest.mark.parametrize(("begin", "expected"), [(_postpone, ["finished"]), (_nothing, [])])
def test_an_interruption_waits_only_where_asked(
    begin: Callable[[Callable[[], None]], None], expected: list[str]
) -> None:
    counted: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        _work(begin, counted)
    assert counted == expected
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_inside_is_not_lost_without_an_interruption() -> None:
    def fail() -> None:
        with postponable() as postpone:
            postpone()
            raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        fail()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_in_other_threads_nothing_changes() -> None:
    def work() -> str:
        with postponable() as postpone:
            postpone()
        return "finished"

    with ThreadPoolExecutor() as pool:
        assert pool.submit(work).result() == "finished"
