"""A bundle as a pipeline sees it: components with `run` and `stream`, as the loader of a Python bundle has them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np
import onnxruntime

from bundler.model.codec import encode
from bundler.model.errors import StageError, UsageError
from bundler.onnxkit.golden import GoldenSet, read_golden
from bundler.onnxkit.running import RunError, run_session
from bundler.onnxkit.sessions import REFERENCE, open_session, read_settings
from bundler.onnxkit.user_code import StopError
from bundler.stages.run_pipeline.spec import ComponentOptions
from bundler.support.text import visible

Alter = Callable[[Any], Any]
"""What makes another value of the same type of an output."""


class EndlessError(StopError):
    """A component with altered outputs was called again and again."""


class Component:
    """One model. `run` takes its inputs by name, and gives a named tuple of its outputs; `calls` counts."""

    def __init__(
        self, options: ComponentOptions, session: onnxruntime.InferenceSession, golden: GoldenSet | None
    ) -> None:
        self._options, self._session, self._golden = options, session, golden
        self._outputs = _make_outputs(options.outputs)
        self._alter: Alter | None = None
        self._most_calls = 0
        self.calls = 0

    def run(self, **inputs: Any) -> Any:
        """All outputs. Raises `UsageError` for an input that the model does not have, or does not take."""
        outputs = self._call(self._name_inputs(inputs, "run"))
        return self._outputs._make(outputs[name] for name in self._options.outputs.values())

    def stream(self) -> Stream:
        """Calls that go on from each other. Raises `UsageError` for a model without state."""
        if self._golden is None:
            name = self._options.name
            raise UsageError(f"{name}.stream: {name} has no state", hint="declare it in the project file: state")
        return Stream(self._options, self._golden, self._name_inputs, self._call)

    def _name_inputs(self, values: Mapping[str, Any], call: str) -> dict[str, Any]:
        known = self._options.inputs
        unknown = [name for name in values if name not in known]
        if unknown:
            raise UsageError(
                f"{self._options.name}.{call} has no input {visible(unknown[0])}",
                hint=f"its inputs are {', '.join(known)}",
            )
        return {known[name]: value for name, value in values.items() if value is not None}

    def _call(self, feeds: Mapping[str, Any]) -> Mapping[str, Any]:
        self.calls += 1
        if self._alter is not None and self.calls > self._most_calls:
            raise EndlessError
        try:
            outputs = run_session(self._session, feeds)
        except RunError as error:
            raise UsageError(f"{self._options.name}.run failed: {error}") from error
        alter = self._alter
        return {name: alter(value) for name, value in outputs.items()} if alter else outputs

    @contextlib.contextmanager
    def altered(self, alter: Alter, most_calls: int) -> Iterator[None]:
        """Meanwhile calls give altered outputs. Raises `EndlessError` when there are more of them than that."""
        self.calls, self._alter, self._most_calls = 0, alter, most_calls
        try:
            yield
        finally:
            self._alter = None


class Stream:
    """Calls of a component that go on from each other; it begins where the stream of the golden set does."""

    def __init__(
        self,
        options: ComponentOptions,
        golden: GoldenSet,
        name_inputs: Callable[[Mapping[str, Any], str], dict[str, Any]],
        call: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    ) -> None:
        self._name_inputs, self._call, self._links = name_inputs, call, golden.state
        inputs = golden.sample(0).inputs
        self._initial = {taken: inputs[taken] for taken in golden.state}
        self._names = {name: taken for name, taken in options.inputs.items() if taken in golden.state}
        given = set(golden.state.values())
        self._wanted = {name: output for name, output in options.outputs.items() if output not in given}
        self._outputs = _make_outputs(self._wanted)
        self._state: dict[str, Any] = dict(self._initial)

    def run(self, **inputs: Any) -> Any:
        """The outputs of the next step that are no state. Raises `UsageError` as the component's `run` does."""
        outputs = self._call({**self._name_inputs(inputs, "stream().run"), **self._state})
        self._state = {taken: outputs[given] for taken, given in self._links.items()}
        return self._outputs._make(outputs[name] for name in self._wanted.values())

    @property
    def state(self) -> dict[str, Any]:
        """A copy of the state, by the Python names of its inputs; assigned, the stream goes on from there."""
        return {name: np.array(self._state[taken]) for name, taken in self._names.items()}

    @state.setter
    def state(self, values: Mapping[str, Any]) -> None:
        self._state = {taken: np.array(values[name]) for name, taken in self._names.items()}

    def reset(self) -> None:
        """Begin again with the initial state."""
        self._state = dict(self._initial)

    def close(self) -> None:
        """Free the state."""
        self._state = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _make_outputs(names: Mapping[str, str]) -> Any:
    """The class of outputs, which has them by the names in the model, too, as the loader's."""
    positions = {name: place for place, name in (*enumerate(names), *enumerate(names.values()))}

    def find(outputs: tuple[Any, ...], key: Any) -> Any:
        return tuple.__getitem__(outputs, positions[key] if isinstance(key, str) else key)

    return type("Outputs", (_make_tuple(names),), {"__slots__": (), "__getitem__": find})


def _make_tuple(names: Mapping[str, str]) -> Any:
    return NamedTuple("Outputs", [(name, Any) for name in names])


class Bundle:
    """The components as attributes, and all of them by name in `components`."""

    def __init__(self, components: Mapping[str, Component]) -> None:
        self.components = components
        vars(self).update(components)

    def __getattr__(self, name: str) -> NoReturn:
        known = ", ".join(self.components)
        raise AttributeError(f"a pipeline's bundle has no {name!r}; its components are {known}")


_SESSION = ("providers", "session", "session_config", "disabled_optimizers")


def open_bundle(
    components: Sequence[ComponentOptions], inputs: Mapping[str, Path], role: str, *, as_given: bool
) -> Bundle:
    """The components' models in the inputs `role.NAME`; `as_given`, they are run as golden sets are recorded."""
    opened = {}
    for options in components:
        given = encode(options)
        settings = REFERENCE if as_given else read_settings({name: given[name] for name in _SESSION})
        session = open_session(inputs[f"{role}.{options.name}"], settings, error=StageError)
        golden = inputs.get(f"golden.{options.name}")
        opened[options.name] = Component(options, session, read_golden(golden) if golden else None)
    return Bundle(opened)
