"""Time an application's pipeline over a bundle of several models, in the environment that the bundle is installed in.

time_pipeline.py PACKAGE FUNCTION SAMPLES SECONDS

FUNCTION is one of `pipeline.py` beside the package; SAMPLES is a folder of which each file is a sample: the arrays of
an `.npz`, else its path. Prints JSON: seconds from the start of loading to the first answer, seconds of each later
answer, and each model's variant; or the error of the pipeline, and where it arose.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np

MOST_OPENINGS = 10
"""At most half of the time goes into loading."""


def main(package: str, function: str, samples: str, seconds: str) -> None:
    """Print the times, or why there are none."""
    sys.path[:] = [place for place in sys.path if place != str(Path(__file__).parent)]
    try:
        with contextlib.redirect_stdout(sys.stderr):
            run = getattr(importlib.import_module("pipeline"), function)
            bundles = importlib.import_module(package).Bundle
            found = measure(run, bundles, [_read_sample(path) for path in _list_samples(samples)], float(seconds))
    except Exception as error:  # noqa: BLE001 - the user's own code may raise anything
        found = {"error": {"message": f"{type(error).__name__}: {error}"[:300], "why": _locate(error)}}
    sys.stdout.write(json.dumps(found) + "\n")


def measure(run: Any, bundles: Any, samples: list[Any], seconds: float) -> dict[str, Any]:
    """Load and answer again and again, then answer sample after sample."""
    start, firsts, latencies = time.perf_counter(), list[float](), list[float]()
    while not firsts or (len(firsts) < MOST_OPENINGS and time.perf_counter() - start < seconds / 2):
        began = time.perf_counter()
        bundle = bundles.open()
        run(bundle, samples[0])
        firsts.append(time.perf_counter() - began)
        bundle.close()
    with bundles.open() as bundle:
        for sample in samples:
            run(bundle, sample)
        while not latencies or time.perf_counter() - start < seconds:
            for sample in samples:
                began = time.perf_counter()
                run(bundle, sample)
                latencies.append(time.perf_counter() - began)
        variants = {name: report.variant for name, report in bundle.report.items()}
    return {"bundle": {"first_answer_seconds": firsts, "latency_seconds": latencies}, "variants": variants}


def _locate(error: BaseException) -> str:
    """The last line of the pipeline's own files that the error passed."""
    places = [place for place in traceback.extract_tb(error.__traceback__) if place.filename != __file__]
    own = [place for place in places if "site-packages" not in place.filename and "importlib" not in place.filename]
    return f"{Path(own[-1].filename).name}, line {own[-1].lineno}" if own else ""


def _list_samples(folder: str) -> list[Path]:
    return [path for path in sorted(Path(folder).iterdir()) if path.is_file() and not path.name.startswith(".")]


def _read_sample(path: Path) -> Any:
    if path.suffix != ".npz":
        return path
    with np.load(path, allow_pickle=False) as archive:
        return dict(archive)


if __name__ == "__main__":
    main(*sys.argv[1:])
