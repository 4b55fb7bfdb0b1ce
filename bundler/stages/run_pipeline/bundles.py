"""A bundle as a pipeline sees it: components with `run`, as the loader of a Python bundle has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import onnxruntime

from bundler.model.codec import encode
from bundler.model.errors import StageError, UsageError
from bundler.onnxkit.running import RunError, run_session
from bundler.onnxkit.sessions import REFERENCE, open_session, read_settings
from bundler.stages.run_pipeline.spec import ComponentOptions
from bundler.support.text import visible


class Component:
    """One model. `run` takes its inputs by name, and gives a named tuple of its outputs."""

    def __init__(self, options: ComponentOptions, session: onnxruntime.InferenceSession) -> None:
        self._options, self._session = options, session
        self._outputs: Any = NamedTuple("Outputs", [(name, Any) for name in options.outputs])  # type: ignore[misc]

    def run(self, **inputs: Any) -> Any:
        """All outputs. Raises `UsageError` for an input that the model does not have, or does not take."""
        known = self._options.inputs
        unknown = [name for name in inputs if name not in known]
        if unknown:
            raise UsageError(
                f"{self._options.name}.run was given {visible(unknown[0])}, which is none of its inputs",
                hint=f"its inputs are {', '.join(known)}",
            )
        feeds = {known[name]: value for name, value in inputs.items() if value is not None}
        try:
            outputs = run_session(self._session, feeds)
        except RunError as error:
            raise UsageError(f"{self._options.name}.run failed: {error}") from error
        return self._outputs._make(outputs[name] for name in self._options.outputs.values())


_SESSION = ("providers", "session", "session_config", "disabled_optimizers")


def open_bundle(
    components: Sequence[ComponentOptions], inputs: Mapping[str, Path], role: str, *, as_given: bool
) -> SimpleNamespace:
    """The components' models in the inputs `role.NAME`; `as_given`, they are run as golden sets are recorded."""
    opened = {}
    for options in components:
        given = encode(options)
        settings = REFERENCE if as_given else read_settings({name: given[name] for name in _SESSION})
        session = open_session(inputs[f"{role}.{options.name}"], settings, error=StageError)
        opened[options.name] = Component(options, session)
    return SimpleNamespace(**opened)
