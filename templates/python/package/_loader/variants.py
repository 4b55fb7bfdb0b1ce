"""Selects the variant that runs here, and reports why earlier ones do not: there is no silent fallback."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

import onnxruntime as ort

from .config import Variant
from .errors import FallbackError, IncompatibleError
from .integrity import Check, Memory
from .opening import Opened, open_plainly, open_with_copy
from .runtime_errors import RUNTIME_ERRORS, first_line
from .sessions import list_assigned

if TYPE_CHECKING:
    from .device_copy import DeviceCopy

_COMPILED = "EPContext"
"""The operator that represents what a provider compiled."""

_UNCOUNTED = frozenset(("QuantizeLinear", "DequantizeLinear", "Constant"))
"""Operators that providers fold into their neighbours, so that their assignment says nothing."""


class LoadReport:
    """What the loader did. `variant` runs, `providers` are those that the runtime uses, in order of preference, and
    `rejected` says for each earlier variant why it does not run. `device_copy`: the device's own copy of the model runs
    instead of the shipped file; `prepared`: the variant runs on what `prewarm` generated on this device; `remark` is
    further information for the user. `nodes` counts the nodes assigned to each provider, where the variant requires a
    share of them.
    """

    __slots__ = ("device_copy", "nodes", "prepared", "providers", "rejected", "remark", "variant")

    def __init__(self, opened: Opened, rejected: list[tuple[str, str]]) -> None:
        self.variant = opened.variant.name
        self.providers = list(opened.session.get_providers())
        self.rejected = rejected
        self.device_copy = opened.from_copy
        self.prepared = opened.prepared
        self.remark = ""
        self.add_remarks(opened.remark, _describe_compiled(opened.variant))
        self.nodes = _count_assigned(opened)

    def add_remarks(self, *remarks: str) -> None:
        """Say what else the user should know; empty ones say nothing."""
        self.remark = " ".join(filter(None, (self.remark, *remarks)))

    @property
    def fell_back(self) -> bool:
        """Whether this is not the preferred variant."""
        return bool(self.rejected)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {str(self).replace(chr(10), '; ')}>"

    def __str__(self) -> str:
        origin = ", from the device's own copy" if self.device_copy else ""
        origin = ", on what was generated on this device" if self.prepared else origin
        lines = [f"variant {self.variant} runs on {', '.join(self.providers)}{origin}"]
        lines += [self.remark] if self.remark else []
        lines += [f"variant {name} does not: {reason}" for name, reason in self.rejected]
        return "\n".join(lines)


def open_first(variants: list[Variant], memory: Memory, *, strict: bool, copies: bool) -> tuple[Opened, LoadReport]:
    """Open the first of `variants` that can run here; with `copies`, from the device's own copy where there is one.

    Raises `IntegrityError` when a file does not match its checksum, `FallbackError` when `strict` and the first
    cannot run, `IncompatibleError` when none can.
    """
    rejected: list[tuple[str, str]] = []
    for variant in variants:
        opened = open_variant(variant, memory, copies=copies)
        if isinstance(opened, Opened):
            return opened, LoadReport(opened, rejected)
        rejected.append((variant.name, add_missing(opened, variant)))
        if strict:
            break
    raise refuse_all(rejected, strict=strict and len(variants) > 1)


def add_missing(reason: str, variant: Variant) -> str:
    """The reason, and which required software is missing on this device."""
    if not variant.requires.get("needs"):
        return reason
    from .needs import explain_missing

    return "; ".join(filter(None, (reason, explain_missing(variant))))


def refuse_all(rejected: list[tuple[str, str]], *, strict: bool) -> IncompatibleError | FallbackError:
    """The error for variants that cannot run here, each with the reason."""
    why = "; ".join(f"{name}: {reason}" for name, reason in rejected)
    if strict:
        return FallbackError(
            f"variant {rejected[0][0]} cannot run here, and strict mode allows no other",
            why=why,
            hint="fix the cause, or open the model with strict=False",
        )
    return IncompatibleError(
        "no variant of this model can run here",
        why=why,
        hint="build the bundle for this system, or install the runtime that it pins",
    )


def open_variant(variant: Variant, memory: Memory, *, copies: bool) -> Opened | str:
    """The variant with an open session, or the reason why it cannot run."""
    reason = find_obstacle(variant)
    if reason is not None:
        return reason
    if variant.prepare is not None:
        return _try_prepared(variant, memory)
    check = Check(memory, variant.files)
    copy = _find_copy(variant, memory) if copies and variant.device_cache else None
    try:
        opened = open_plainly(variant, memory) if copy is None else open_with_copy(variant, memory, copy)
    except RUNTIME_ERRORS as error:
        check.finish()  # An altered file explains the failure better than the runtime does.
        return f"the runtime could not open it ({first_line(error)})"
    try:
        check.finish()
        return find_flaw(opened) or opened.keep_copy()
    finally:
        opened.forget_draft()


def _find_copy(variant: Variant, memory: Memory) -> DeviceCopy | None:
    from .device_copy import find_device_copy

    return find_device_copy(variant, memory, ort.__version__)


def _try_prepared(variant: Variant, memory: Memory) -> Opened | str:
    """The same for a variant that runs on what was generated on this device."""
    from .prepared import find_prepared

    prepared = find_prepared(variant, memory)
    reason = prepared if isinstance(prepared, str) else prepared.explain()
    if isinstance(prepared, str) or reason is not None:
        return reason or ""
    check = Check(memory, variant.files)
    try:
        opened = Opened(variant, prepared.open(prepared.folder, memory.payload), prepared=True)
    except RUNTIME_ERRORS as error:
        check.finish()
        return f"the runtime could not open what was generated on this device ({first_line(error)})"
    check.finish()
    return find_flaw(opened) or opened


def find_reason(variant: Variant, memory: Memory) -> str | None:
    """As `find_obstacle`; also why what must be generated on the device is not there yet."""
    reason = find_obstacle(variant)
    if reason is not None or variant.prepare is None:
        return reason
    from .prepared import find_prepared

    prepared = find_prepared(variant, memory)
    return prepared if isinstance(prepared, str) else prepared.explain()


def find_obstacle(variant: Variant) -> str | None:
    """Why the variant cannot run here, as far as known without opening it; None when no obstacle is known."""
    requires = variant.requires
    built_in = [provider["name"] for provider in variant.providers if not provider.get("library")]
    missing = [name for name in built_in if name not in ort.get_available_providers()]
    if missing:
        return f"the runtime here has no {' and no '.join(missing)}"
    if requires["systems"] and platform.system() not in requires["systems"]:
        return f"it is for {' or '.join(requires['systems'])}, this is {platform.system()}"
    if requires["machines"] and platform.machine().lower() not in [name.lower() for name in requires["machines"]]:
        return f"it is for {' or '.join(requires['machines'])}, this is {platform.machine()}"
    if ort.__version__ != requires["runtime"]:
        return f"it was built for onnxruntime {requires['runtime']}; found {ort.__version__}"
    if variant.uses_plugins:
        from .plugins import find_plugin_obstacle

        return find_plugin_obstacle(variant)
    return None


def _describe_compiled(variant: Variant) -> str:
    if not variant.uses_plugins or not variant.requires.get("compiled"):
        return ""
    from .plugins import describe_compiled, judge_compiled

    if judge_compiled(variant) != "outdated":
        return ""
    return f"{describe_compiled(variant.requires['compiled'])}; compiled for exactly this device it would be faster"


def find_flaw(opened: Opened) -> str | None:
    """Why a variant must not be used although it could be opened; None if it may."""
    return compare_providers(opened.session, opened.variant) or _find_shortfall(opened)


def _count_assigned(opened: Opened) -> dict[str, int]:
    counts: dict[str, int] = {}
    for provider, _ in list_assigned(opened.session) if opened.variant.least_share else ():
        counts[provider] = counts.get(provider, 0) + 1
    return counts


def _find_shortfall(opened: Opened) -> str | None:
    """Whether too few nodes are assigned to the first provider. Of a graph compiled ahead of time all compiled nodes
    must be: their share of the graph was checked when it was compiled.
    """
    variant = opened.variant
    assigned = list_assigned(opened.session) if variant.least_share else []
    if not assigned:
        return None  # No share is asked for, or this runtime cannot tell.
    prepare = variant.prepare or {}
    compiled = bool(variant.requires.get("compiled")) or (opened.prepared and prepare["kind"] == "context")
    return judge_share(assigned, variant.provider_names[0], 1.0 if compiled else variant.least_share, compiled=compiled)


def judge_share(assigned: list[tuple[str, str]], first: str, least: float, *, compiled: bool) -> str | None:
    """Why too few nodes are assigned to provider `first`; None when there are enough. With `compiled`, only the nodes
    that represent what was compiled count.
    """
    counted = [(name, kind) for name, kind in assigned if (kind == _COMPILED if compiled else kind not in _UNCOUNTED)]
    taken = sum(name == first for name, _ in counted)
    if counted and taken >= least * len(counted):
        return None
    what = "compiled parts" if compiled else "nodes"
    return f"{taken} of {len(counted)} {what} are assigned to {first} (min {least:.0%})"


def compare_providers(session: ort.InferenceSession, variant: Variant) -> str | None:
    """The runtime continues without a provider that it cannot create; here that is a failure."""
    wanted, found = variant.provider_names, list(session.get_providers())
    if found[: len(wanted)] == wanted:
        return None
    return f"the runtime uses {', '.join(found)} instead of {', '.join(wanted)}"
