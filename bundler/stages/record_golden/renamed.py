"""The original model under its new names: what it computes is what the renamed model must reproduce."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnxruntime

from bundler.model.errors import UsageError
from bundler.onnxkit.value_files import Value


@dataclass(frozen=True, slots=True)
class _Argument:
    """What callers read of an input or output."""

    name: str
    type: str
    shape: Sequence[Any]


class RenamedSession:
    """A session whose inputs and outputs have the new names of `renamed`, by the model's own."""

    def __init__(self, session: onnxruntime.InferenceSession, renamed: Mapping[str, str]) -> None:
        self._session = session
        self._renamed = renamed
        ports = (*session.get_inputs(), *session.get_outputs())
        self._own = {renamed.get(port.name, port.name): port.name for port in ports}

    def get_inputs(self) -> list[_Argument]:
        """The inputs, by their new names."""
        return self._rename(self._session.get_inputs())

    def get_outputs(self) -> list[_Argument]:
        """The outputs, by their new names."""
        return self._rename(self._session.get_outputs())

    def run(self, names: Sequence[str], feeds: Mapping[str, Any], options: Any = None) -> Any:
        """As the session's method, by the new names."""
        return self._session.run(*self._own_names(names, feeds), options)

    def run_with_ort_values(self, names: Sequence[str], feeds: Mapping[str, Any], options: Any = None) -> Any:
        """As the session's method, by the new names."""
        return self._session.run_with_ort_values(*self._own_names(names, feeds), options)

    def _own_names(self, names: Sequence[str], feeds: Mapping[str, Any]) -> tuple[list[str], dict[str, Any]]:
        return [self._own[name] for name in names], {self._own.get(name, name): value for name, value in feeds.items()}

    def _rename(self, ports: Sequence[Any]) -> list[_Argument]:
        return [_Argument(self._renamed.get(port.name, port.name), port.type, port.shape) for port in ports]


def refuse_old_names(samples: Sequence[tuple[str, Mapping[str, Value]]], renamed: Mapping[str, str]) -> None:
    """Raise `UsageError` for samples whose arrays have names that were renamed, and that nothing has now."""
    old = [name for _, values in samples[:1] for name in values if name in renamed and name not in renamed.values()]
    if old:
        raise UsageError(
            "the samples do not fit the model",
            details=tuple(f"{name!r} was renamed to {renamed[name]!r}" for name in old),
            hint="name the arrays by the new names",
        )
