"""Execute one step in a process of its own. Arguments: cache, model, stage, options as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from bundler.execution.cache import open_cache
from bundler.execution.executor import Executor
from bundler.execution.sources import digest_source
from bundler.model.events import Reporter, ignore
from bundler.model.plan import Step


def main(root: str, model: str, stage: str, options: str) -> None:
    with open_cache(root) as cache, Executor(cache) as executor:
        sources = {"model": digest_source(Path(model), (), cache)}
        step = Step(id=stage, stage=stage, inputs={"model": "model"}, options=json.loads(options))
        outcome = executor.execute((step,), sources, Reporter(ignore, "build"))[stage]
        print(json.dumps({"cached": outcome.cached, "path": str(outcome.path)}))  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
