"""Which variant runs here, and why the ones before it do not. Nothing falls back in silence."""

from __future__ import annotations

import platform

import onnxruntime as ort

from .config import Variant
from .device_copy import find_device_copy
from .errors import FallbackError, IncompatibleError
from .integrity import Check, Memory
from .opening import Opened, first_line, open_plainly, open_with_copy
from .sessions import RUNTIME_ERRORS


class LoadReport:
    """What the loader did. `variant` runs, `providers` are those that the runtime took, in order of preference, and
    `rejected` says for each earlier variant why it does not run. `device_copy` says that the device's own copy of the
    model runs, in place of the shipped file that it was made from; `remark` why a copy that was there does not.
    """

    __slots__ = ("device_copy", "providers", "rejected", "remark", "variant")

    def __init__(self, opened: Opened, rejected: list[tuple[str, str]]) -> None:
        self.variant = opened.variant.name
        self.providers = list(opened.session.get_providers())
        self.rejected = rejected
        self.device_copy = opened.from_copy
        self.remark = opened.remark

    @property
    def fell_back(self) -> bool:
        """Whether this is not the preferred variant."""
        return bool(self.rejected)

    def __str__(self) -> str:
        origin = ", from the device's own copy" if self.device_copy else ""
        lines = [f"variant {self.variant} runs on {', '.join(self.providers)}{origin}"]
        lines += [self.remark] if self.remark else []
        lines += [f"variant {name} does not: {reason}" for name, reason in self.rejected]
        return "\n".join(lines)


def open_first(variants: list[Variant], memory: Memory, *, strict: bool, copies: bool) -> tuple[Opened, LoadReport]:
    """Open the first of `variants` that can run here; with `copies`, from the device's own copy where there is one.

    Raises `IntegrityError` when a file is not the one that was built, `FallbackError` when `strict` and the first
    cannot run, `IncompatibleError` when none can.
    """
    rejected: list[tuple[str, str]] = []
    for variant in variants:
        opened = _try(variant, memory, copies=copies)
        if isinstance(opened, Opened):
            return opened, LoadReport(opened, rejected)
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


def _try(variant: Variant, memory: Memory, *, copies: bool) -> Opened | str:
    """The variant with an open session, or the reason why it cannot run."""
    reason = find_obstacle(variant)
    if reason is not None:
        return reason
    check = Check(memory, variant.files)
    copy = find_device_copy(variant, memory, ort.__version__) if copies else None
    try:
        opened = open_plainly(variant, memory) if copy is None else open_with_copy(variant, memory, copy)
    except RUNTIME_ERRORS as error:
        check.finish()  # An altered file explains the failure better than the runtime does.
        return f"the runtime could not open it ({first_line(error)})"
    try:
        check.finish()
        return _compare_providers(opened) or opened.keep_copy()
    finally:
        opened.forget_draft()


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


def _compare_providers(opened: Opened) -> str | None:
    """The runtime drops a provider that it cannot create and goes on; that is no success."""
    wanted, found = opened.variant.provider_names, list(opened.session.get_providers())
    if found[: len(wanted)] == wanted:
        return None
    return f"the runtime took {', '.join(found)} in place of {', '.join(wanted)}"
