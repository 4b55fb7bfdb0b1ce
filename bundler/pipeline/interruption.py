"""How an interruption of several builds says which of them are done."""

from __future__ import annotations

from collections.abc import Sequence

from bundler.pipeline.results import BuildResult


class BuildsInterruptedError(KeyboardInterrupt):
    """The user stopped several builds: `finished` of `total` are done."""

    def __init__(self, finished: Sequence[BuildResult], total: int) -> None:
        super().__init__()
        self.finished, self.total = tuple(finished), total
