"""Measure throughput with several callers at once, and in batches."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from .config import Port
from .errors import InputError
from .timing import Call

ROUNDS = 5
"""Series for each number of callers, in turns, so that other load on the machine affects all alike."""


def count_calls(call: Call, callers: list[int], seconds: float) -> dict[int, list[float]]:
    """Calls per second of all threads together, `ROUNDS` figures for each number in `callers`; about `seconds` in
    all, and at least one call of each thread.
    """
    share = seconds / ROUNDS / len(callers)
    rates: dict[int, list[float]] = {number: [] for number in callers}
    for _ in range(ROUNDS):
        for number, found in rates.items():
            found.append(_run_together(call, number, share))
    return rates


def _run_together(call: Call, callers: int, seconds: float) -> float:
    ready = threading.Barrier(callers + 1)
    ends: list[tuple[int, float]] = []
    faults: list[Exception] = []

    def work() -> None:
        ready.wait()
        calls, until = 0, time.perf_counter() + seconds
        try:
            while not calls or time.perf_counter() < until:
                call()
                calls += 1
        except Exception as error:  # noqa: BLE001 (raised again below, in the thread that asked)
            faults.append(error)
        ends.append((calls, time.perf_counter()))

    threads = [threading.Thread(target=work, daemon=True) for _ in range(callers)]
    for thread in threads:
        thread.start()
    ready.wait()
    began = time.perf_counter()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]
    return sum(calls for calls, _ in ends) / (max(end for _, end in ends) - began)


def widen_inputs(ports: list[Port], inputs: Mapping[str, Any], batch: int) -> dict[str, Any]:
    """One sample's inputs, repeated along their first axis to `batch` rows. Raises `InputError` where a model has a
    fixed number of rows, or inputs differ in what that axis means.
    """
    given = [port for port in ports if inputs.get(port.name) is not None]
    for port in given:
        _check_free(port, batch)
    names = {port.shape[0] for port in given if port.shape and isinstance(port.shape[0], str)}
    if len(names) > 1:
        why = f"the first sizes of the inputs are called {', '.join(sorted(map(repr, names)))}"
        raise InputError(f"no batch of {batch} can be made of these inputs", why=why)
    return {**inputs, **{port.name: _repeat(inputs[port.name], batch) for port in given}}


def _check_free(port: Port, batch: int) -> None:
    if port.kind != "tensor" or not port.shape:
        raise InputError(f"no batch of {batch} can be made of input {port.python_name}", why="it has no first size")
    if isinstance(port.shape[0], int) and port.shape[0] != batch:
        raise InputError(
            f"no batch of {batch} can be given to input {port.python_name}",
            why=f"its first size is fixed to {port.shape[0]}",
            hint="build a bundle with this size left open, or fixed to the size that you want",
        )


def _repeat(value: np.ndarray, batch: int) -> np.ndarray:
    times = -(-batch // max(1, len(value)))
    return np.ascontiguousarray(np.concatenate([value] * times)[:batch])
