"""Several builds, or several components of one, at the same time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from bundler.execution.executor import Executor
from bundler.support.processes import end_all

T = TypeVar("T")
R = TypeVar("R")


def run_each(function: Callable[[T], R], items: Sequence[T], executor: Executor, most: int = 4) -> list[R]:
    """The results in the order of `items`, of which up to `most` run at once; the executor bounds the processes.

    Raises what the first of them in order raised. An interruption ends all that the executor runs.
    """
    if len(items) == 1 or most == 1:
        return [function(item) for item in items]
    with ThreadPoolExecutor(max_workers=min(most, len(items))) as pool:
        try:
            return list(pool.map(function, items))
        except KeyboardInterrupt:
            executor.interrupt()  # leaving the pool waits for all that it runs
            end_all()
            raise
