"""Which variant runs here, and why the ones before it do not. Nothing falls back in silence."""

from __future__ import annotations

import os
import platform

import onnxruntime as ort

from .config import Variant
from .errors import FallbackError, IncompatibleError
from .integrity import Check, Memory
from .sessions import RUNTIME_ERRORS, open_session


class LoadReport:
    """What the loader did. `variant` runs, `providers` are those that the runtime took, in order of preference, and
    `rejected` says for each earlier variant why it does not run.
    """

    __slots__ = ("providers", "rejected", "variant")

    def __init__(self, variant: str, providers: list[str], rejected: list[tuple[str, str]]) -> None:
        self.variant = variant
        self.providers = providers
        self.rejected = rejected

    @property
    def fell_back(self) -> bool:
        """Whether this is not the preferred variant."""
        return bool(self.rejected)

    def __str__(self) -> str:
        lines = [f"variant {self.variant} runs on {', '.join(self.providers)}"]
        lines += [f"variant {name} does not: {reason}" for name, reason in self.rejected]
        return "\n".join(lines)


class Opened:
    """A variant with its open session."""

    __slots__ = ("report", "session", "variant")

    def __init__(self, variant: Variant, session: ort.InferenceSession, report: LoadReport) -> None:
        self.variant = variant
        self.session = session
        self.report = report


def open_first(variants: list[Variant], memory: Memory, *, strict: bool) -> Opened:
    """Open the first of `variants` that can run here.

    Raises `IntegrityError` when a file is not the one that was built, `FallbackError` when `strict` and the first
    cannot run, `IncompatibleError` when none can.
    """
    rejected: list[tuple[str, str]] = []
    for variant in variants:
        opened = _try(variant, memory)
        if isinstance(opened, ort.InferenceSession):
            return Opened(variant, opened, LoadReport(variant.name, list(opened.get_providers()), rejected))
        rejected.append((variant.name, opened))
        if strict:
            break
    raise _refuse(rejected, strict=strict and len(variants) > 1)


def _refuse(rejected: list[tuple[str, str]], *, strict: bool) -> IncompatibleError | FallbackError:
    why = "; ".join(f"{name}: {reason}" for name, reason in rejected)
    if strict:
        return FallbackError(
            f"variant {rejected[0][0]} cannot run here, and strict mode takes no other",
            why=why,
            hint="mend the cause, or open the model with strict=False",
        )
    return IncompatibleError(
        "no variant of this model can run here",
        why=why,
        hint="build the bundle for this system, or install the runtime that it pins",
    )


def _try(variant: Variant, memory: Memory) -> ort.InferenceSession | str:
    """The open session, or the reason why the variant cannot run."""
    reason = find_obstacle(variant)
    if reason is not None:
        return reason
    check = Check(memory, variant.files)
    try:
        session = open_session(os.path.join(memory.payload, variant.model), variant)
    except RUNTIME_ERRORS as error:
        check.finish()  # An altered file explains the failure better than the runtime does.
        return f"the runtime could not open it ({_first_line(error)})"
    check.finish()
    return _compare_providers(variant, session)


def find_obstacle(variant: Variant) -> str | None:
    """Why the variant cannot run here as far as can be said without opening it; None when nothing stands in the way."""
    requires = variant.requires
    missing = [name for name in variant.provider_names if name not in ort.get_available_providers()]
    if missing:
        return f"the runtime here has no {' and no '.join(missing)}"
    if requires["systems"] and platform.system() not in requires["systems"]:
        return f"it is for {' or '.join(requires['systems'])}, this is {platform.system()}"
    if requires["machines"] and platform.machine().lower() not in [name.lower() for name in requires["machines"]]:
        return f"it is for {' or '.join(requires['machines'])}, this is {platform.machine()}"
    if ort.__version__ != requires["runtime"]:
        return f"it was made for onnxruntime {requires['runtime']}, here is {ort.__version__}"
    return None


def _compare_providers(variant: Variant, session: ort.InferenceSession) -> ort.InferenceSession | str:
    """The runtime drops a provider that it cannot create and goes on; that is no success."""
    wanted, found = variant.provider_names, list(session.get_providers())
    if found[: len(wanted)] == wanted:
        return session
    return f"the runtime took {', '.join(found)} in place of {', '.join(wanted)}"


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:300]
