"""Threads and spinning in the loader of Python bundles: what is accepted, and what comes first."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from bundler.support.data import data_root
from tests.vectors.write import FIGURES

COUNTS = json.loads(FIGURES.with_name("threads.json").read_text("utf-8"))


@pytest.fixture
def tuning(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(data_root("templates") / "python" / "package"))
    monkeypatch.delenv("BUNDLER_THREADS", raising=False)
    monkeypatch.delenv("BUNDLER_SPINNING", raising=False)
    yield importlib.import_module("_loader.tuning")
    for module in [module for module in sys.modules if module.startswith("_loader")]:
        del sys.modules[module]


def raises(error: str, *words: str) -> Any:
    return pytest.raises(
        Exception, check=lambda found: type(found).__name__ == error and all(w in str(found) for w in words)
    )


@pytest.mark.parametrize("case", COUNTS, ids=[json.dumps(case["threads"]) for case in COUNTS])
def test_numbers_of_threads_are_those_of_the_vectors(tuning: ModuleType, case: dict[str, Any]) -> None:
    if case["accepted"]:
        assert tuning.resolve_tuning(case["threads"], None).threads == case["threads"]
        return
    with raises("InputError", f"threads={case['threads']!r}", "from 0 (one a physical core) to 1024"):
        tuning.resolve_tuning(case["threads"], None)


@pytest.mark.parametrize("value", [10**5000, -(10**5000), "9" * 5000], ids=["great", "small", "text"])
def test_a_value_of_thousands_of_digits_is_refused_in_a_short_message(tuning: ModuleType, value: Any) -> None:
    for arguments in ((value, None), (None, value)):
        with raises("InputError", "give ") as found:
            tuning.resolve_tuning(*arguments)
        assert len(str(found.value)) < 200


def test_an_argument_comes_before_the_environment(tuning: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tuning.resolve_tuning(None, None).is_empty
    monkeypatch.setenv("BUNDLER_THREADS", "3")
    monkeypatch.setenv("BUNDLER_SPINNING", "0")
    found = tuning.resolve_tuning(None, None)
    assert (found.threads, found.spinning) == (3, False)
    found = tuning.resolve_tuning(0, True)
    assert (found.threads, found.spinning) == (0, True)
    monkeypatch.setenv("BUNDLER_THREADS", "")
    assert tuning.resolve_tuning(None, None).threads is None


@pytest.mark.parametrize("text", ["-1", "1025", "two", "1.0", " 2", "²", "9" * 5000])
def test_a_wrong_number_in_the_environment_is_named(
    tuning: ModuleType, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("BUNDLER_THREADS", text)
    with raises("InputError", "BUNDLER_THREADS", repr(text[:40]), "unset it"):
        tuning.resolve_tuning(None, None)


def test_spinning_is_yes_or_no(tuning: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    with raises("InputError", "spinning=0", "True or False"):
        tuning.resolve_tuning(None, 0)
    monkeypatch.setenv("BUNDLER_SPINNING", "false")
    with raises("InputError", "BUNDLER_SPINNING='false'", "set it to 1", "or 0"):
        tuning.resolve_tuning(None, None)
    assert tuning.resolve_tuning(None, spinning=True).spinning is True


def test_affinities_hold_for_the_number_of_the_bundle_alone(tuning: ModuleType) -> None:
    entries = {"session.intra_op_thread_affinities": "1;2", "session.force_spinning_stop": "1"}
    assert tuning.Tuning(spinning=True).adjust_entries(entries).items() >= entries.items()
    assert tuning.Tuning(threads=2).adjust_entries(entries) == {"session.force_spinning_stop": "1"}
