"""Seeded inputs that a model runs on: sizes are guessed until it does."""

from __future__ import annotations

from collections.abc import Mapping

import onnxruntime

from bundler.model.errors import ModelError
from bundler.model.signature import Signature
from bundler.workbench.running import RunError, run_session
from bundler.workbench.seeded_inputs import Maker, guesses


def find_maker(
    session: onnxruntime.InferenceSession, signature: Signature, bounds: Mapping[str, int], seed: int
) -> Maker:
    """A maker of inputs, of the first guess at sizes that the model runs on. Raises `ModelError` when none does."""
    failure = ""
    for sizes in guesses(signature):
        maker = Maker(signature=signature, sizes=sizes, bounds=bounds)
        values = maker.make(seed, 0)
        try:
            run_session(session, values)
        except RunError as error:
            failure = failure or str(error)
            continue
        return maker
    raise ModelError(
        "the model does not run on any seeded input that fits its signature",
        details=(failure,),
        hint="give real inputs with --samples, or sizes with --dim NAME=SIZE",
    )
