"""Create sessions of ONNX Runtime, and explain failures."""

from __future__ import annotations

import errno
import os
import re
import shutil
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as state

from bundler.model.errors import BundlerError, EnvironmentMissingError, ModelError, StageError
from bundler.onnxkit.plugins import Plugin, add_plugin, read_plugins

LEVELS: Final = {
    **onnxruntime.GraphOptimizationLevel.__members__,
    "none": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    # Runtimes before 1.23 have no level of this name; their ALL includes it.
    "layout": getattr(
        onnxruntime.GraphOptimizationLevel, "ORT_ENABLE_LAYOUT", onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    ),
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
MODES: Final = {
    **onnxruntime.ExecutionMode.__members__,
    "sequential": onnxruntime.ExecutionMode.ORT_SEQUENTIAL,
    "parallel": onnxruntime.ExecutionMode.ORT_PARALLEL,
}
_ENUMERATIONS: Final[Mapping[str, Mapping[str, Any]]] = {"graph_optimization_level": LEVELS, "execution_mode": MODES}

_SEVERITY_FATAL: Final = 4
_RECORD_PLACEMENT: Final = "session.record_ep_graph_assignment_info"
_NOISE: Final = re.compile(
    r"\[ONNXRuntimeError\] : \d+ : \w+ : "  # codes
    r"|\S+\.(?:cc|h|cpp):\d+ [^()]*\((?:[^()]|\([^()]*\))*\)\s*(?:const )?"  # source position and function
    r"|Load model from \S* failed:\s*"
)
_MAX_LENGTH: Final = 600
_FULL_DISK_BYTES: Final = 1 << 20
"""Free bytes of a disk below which a failed write is explained by a full disk."""
RUNTIME_ERRORS: Final[tuple[type[Exception], ...]] = (
    *(item for item in vars(state).values() if isinstance(item, type) and issubclass(item, Exception)),
    RuntimeError,
    ValueError,
    TypeError,
    UserWarning,
)
"""Errors of the binding: its own classes, which share no base but `Exception`, and those of Python that pybind11
creates from C++ exceptions. The runtime only warns about a missing provider; here that is an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """How to create a session: `providers` by the runtime's names, with options, in order (none: its CPU), `session`
    attributes of its options, `session_config` its configuration entries. `plugins` are the providers that are not part
    of the runtime, by its names. With `check_providers` some node must be assigned to the session's first provider; a
    first provider from a plugin is always checked.
    """

    providers: tuple[tuple[str, Mapping[str, str]], ...] = ()
    session: Mapping[str, Any] = field(default_factory=dict)
    session_config: Mapping[str, str] = field(default_factory=dict)
    disabled_optimizers: tuple[str, ...] = ()
    plugins: Mapping[str, Plugin] = field(default_factory=dict)
    check_providers: bool = False

    @property
    def checked(self) -> str:
        """The provider to which nodes must be assigned, or an empty text."""
        first = self.providers[0][0] if self.providers else ""
        return first if self.check_providers or first in self.plugins else ""


REFERENCE: Final = SessionSettings(
    session={
        "graph_optimization_level": "none",
        "execution_mode": "sequential",
        "intra_op_num_threads": 1,
        "inter_op_num_threads": 1,
        "enable_cpu_mem_arena": False,
        "use_deterministic_compute": True,
    },
    session_config={"session.disable_prepacking": "1"},
)
"""The model as written: no optimisation, one thread (so that sums are always computed in the same order), and
no copy of the weights in the kernels' own layout.
"""


def read_settings(given: Mapping[str, Any]) -> SessionSettings:
    """The settings in a stage's options (`providers`, `session`, `session_config`, `disabled_optimizers`,
    `plugins`, `check_providers`); the reference's without options.
    """
    if not any(given.values()):
        return REFERENCE
    return SessionSettings(
        providers=tuple((name, dict(values)) for name, values in given.get("providers", ())),
        session=given.get("session", {}),
        session_config=given.get("session_config", {}),
        disabled_optimizers=tuple(given.get("disabled_optimizers", ())),
        plugins=read_plugins(given.get("plugins", {})),
        check_providers=bool(given.get("check_providers", False)),
    )


def session_options(settings: SessionSettings) -> onnxruntime.SessionOptions:
    """The runtime's options for `settings`, with logging disabled. If plugins are among the providers, these are
    part of the options. Raises `StageError` for a plugin that is missing or does not work.
    """
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _SEVERITY_FATAL
    for name, value in settings.session.items():
        setattr(options, name, _ENUMERATIONS.get(name, {}).get(value, value))
    for name, value in settings.session_config.items():
        options.add_session_config_entry(name, str(value))
    if settings.checked:
        options.add_session_config_entry(_RECORD_PLACEMENT, "1")
    if _uses_plugins(settings):
        _add_providers(options, settings)
    return options


def _uses_plugins(settings: SessionSettings) -> bool:
    return any(name in settings.plugins for name, _ in settings.providers)


def _add_providers(options: onnxruntime.SessionOptions, settings: SessionSettings) -> None:
    """Either all providers are in the options or all in the session: the runtime does not combine both."""
    for name, values in settings.providers:
        try:
            if name in settings.plugins:
                add_plugin(options, name, values, settings.plugins[name])
            else:
                options.add_provider(name, dict(values))
        except RUNTIME_ERRORS as cause:
            hint = "an incompatible version of the plugin, or a missing library that it requires"
            raise StageError(f"{name} cannot be used here", details=(clean_message(cause),), hint=hint) from cause


def open_session(
    path: Path, settings: SessionSettings, *, error: type[BundlerError] = ModelError, hint: str | None = None
) -> onnxruntime.InferenceSession:
    """A session on the model at `path`. Raises `error` with the runtime's own message."""
    session = _start(path, session_options(settings), settings, error, hint)
    if settings.checked:
        _check_placement(session, settings.checked)
    return session


def _check_placement(session: onnxruntime.InferenceSession, provider: str) -> None:
    """Check that the provider has nodes: without any, the runtime silently uses its CPU."""
    placement: list[Any] = getattr(session, "get_provider_graph_assignment_info", list)()
    if provider not in session.get_providers():
        reason = f"it is not among the session's providers: {', '.join(session.get_providers())}"
    elif not any(part.ep_name == provider and part.get_nodes() for part in placement):
        reason = "no node is assigned to it: the CPU would run all of them"
    else:
        return
    raise StageError(
        f"{provider} does not run this model",
        details=(reason,),
        hint="check the provider's options (an unknown device, an unsupported precision) and that every "
        "dimension is fixed (`--dim NAME=SIZE`, `--shape INPUT=SIZES`)",
    )


def save_through_session(model: Path | bytes, saved: Path, settings: SessionSettings) -> None:
    """Create a session only for the model that it writes to `saved`. Raises `StageError`."""
    options = session_options(settings)
    options.optimized_model_filepath = str(saved)
    _start(model, options, settings, StageError, None)


def save_as_ort(model: Path | bytes, saved: Path) -> None:
    """Write the model to `saved` in ORT format, without optimisation. Raises `StageError`."""
    entries = {"session.save_model_format": "ORT", "session.disable_prepacking": "1"}
    session = {"graph_optimization_level": "none", "enable_cpu_mem_arena": False}
    save_through_session(model, saved, SessionSettings(session=session, session_config=entries))


def _start(
    model: Path | bytes,
    options: onnxruntime.SessionOptions,
    settings: SessionSettings,
    error: type[BundlerError],
    hint: str | None,
) -> onnxruntime.InferenceSession:
    providers = [(name, dict(values)) for name, values in settings.providers] or None
    if _uses_plugins(settings):
        providers = None  # they are in the options
    given = str(model) if isinstance(model, Path) else model
    disabled = list(settings.disabled_optimizers) or None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            return onnxruntime.InferenceSession(
                given, sess_options=options, providers=providers, disabled_optimizers=disabled, enable_fallback=0
            )
    except RUNTIME_ERRORS as cause:
        _check_disk(options.optimized_model_filepath, cause)
        _check_locale(cause)
        raise error(
            "ONNX Runtime cannot load the model",
            details=(clean_message(cause, model if isinstance(model, Path) else None),),
            hint=_NO_MEMORY_HINT if "bad_alloc" in str(cause) else hint or "`bundler inspect MODEL` shows the problems",
        ) from cause


_NO_MEMORY_HINT: Final = (
    "to load the model requires more memory than a step may use, unlike any model of its size: export it again, or set "
    "BUNDLER_MEMORY_LIMIT=SIZE (for example 32G) on a machine that has it"
)


def _check_disk(target: str, cause: Exception) -> None:
    """Explain a failed write, which the runtime does not. Raises `OSError` where the disk of its `target` is full."""
    folder = Path(target).parent
    if target and shutil.disk_usage(folder).free < _FULL_DISK_BYTES:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder)) from cause


def _check_locale(cause: Exception) -> None:
    """Explain a text operator whose language this machine lacks. Raises `EnvironmentMissingError`."""
    found = _LOCALE.search(str(cause))
    if not found:
        return
    name, language = found["name"], found["language"].replace("-", "_")
    command = f"apt-get install --yes locales && localedef -i {language} -f UTF-8 {name}"
    where = f" (Debian, Ubuntu, as root: `{command}`)" if sys.platform == "linux" else ""
    raise EnvironmentMissingError(
        f"the model's StringNormalizer requires the locale {name}, which this machine does not have",
        details=(clean_message(cause),),
        hint=f"install the locale {name}{where}",
    ) from cause


_LOCALE: Final = re.compile(
    r"Failed to construct locale with name: ?(?P<name>(?P<language>[a-z]{2,3}[_-][A-Z]{2})(?:\.[A-Za-z0-9-]{1,16})?):"
)
"""A name that is not a language's is an error of the model."""


def clean_message(error: BaseException, path: Path | None = None) -> str:
    """The runtime's message without what differs by machine (source positions, the model's folder), shortened."""
    message = str(error)
    if path is not None:
        message = message.replace(str(path), path.name).replace(str(path.parent), "…")
    text = " ".join(_NOISE.sub("", message).split())
    return text if len(text) <= _MAX_LENGTH else text[:_MAX_LENGTH].rstrip() + " …"
