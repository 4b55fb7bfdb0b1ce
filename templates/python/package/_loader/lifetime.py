"""Models that may no longer be used: closed ones, and in a forked process those that its parent opened."""

from __future__ import annotations

import os
import weakref
from typing import Any, NoReturn

from .errors import ClosedError

_models: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
"""By identity: a subclass may say what is equal, and then has no hash."""


def refuse_closed(name: str, reopen: str) -> NoReturn:
    """Raises `ClosedError`; `reopen` is how another one is opened."""
    raise ClosedError(f"{name} is closed", hint=f"open another with {reopen}")


def _refuse_forked(name: str, reopen: str) -> NoReturn:
    raise ClosedError(
        f"{name} was opened before the process was forked",
        why="the threads of its session exist only in the parent, and a call would wait for them forever",
        hint=f"call {reopen} in each worker process: with gunicorn, without --preload or in post_fork",
    )


def stop_in_children(model: Any) -> None:
    """A process that is forked from this one cannot use `model`."""
    _models[id(model)] = model


def _stop_all() -> None:
    for model in list(_models.values()):
        _keep_forever(model._stop(_refuse_forked))  # noqa: SLF001 (one package)


def _keep_forever(runner: Any) -> None:
    """Its session would wait for its threads when it is destroyed, so that the process would never end."""
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(runner))


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_stop_all)
