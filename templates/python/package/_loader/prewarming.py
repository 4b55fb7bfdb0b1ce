"""Prewarm: generates what variants require on this device, verifies it with the golden set, keeps it for later starts.

One process at a time generates it in a draft folder, which is renamed into place after it has reproduced the golden
set. An interruption leaves no incomplete result; a second process waits for the first and uses its result.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from .config import Component, Variant
from .device_copy import EXTERNAL
from .golden import test_model
from .integrity import Check, Memory
from .keeping import list_files
from .locking import hold
from .opening import Opened
from .prepared import MODEL, Prepared, find_prepared
from .runtime_errors import RUNTIME_ERRORS, first_line
from .sessions import Runner, list_assigned, open_session, record_assignment
from .variants import add_missing, compare_providers, find_flaw, find_obstacle, judge_share

Progress = Callable[[float, str], None]
"""Receives the share that is done (from 0 to 1), and what comes next."""

READY = ("made", "ready")
"""Statuses of success: generated now, or there already."""

_WEIGHTS = "weights.bin"

_children: list[subprocess.Popen[bytes]] = []
"""Kept, because Python warns of processes that nobody waits for."""


class _PrewarmError(Exception):
    """It could not be generated, or failed verification. `lasting`: another attempt would fail, too. `status` is that
    of the outcome: where the runtime or its provider does not start, the variant cannot run here at all.
    """

    def __init__(self, why: str, *, lasting: bool, status: str = "failed") -> None:
        super().__init__(why)
        self.lasting = lasting
        self.status = status


def prewarm_all(
    component: Component, variants: list[Variant], memory: Memory, progress: Progress, *, force: bool
) -> list[dict[str, Any]]:
    """The outcome for each of `variants`, which require something generated: its name, `status` (`made`, `ready`,
    `unavailable` where it cannot run here at all, `failed` where the result failed verification or cannot be stored),
    the reason, and seconds.

    Raises `IntegrityError` when the bundle was altered.
    """
    return [prewarm_variant(component, variant, memory, progress, force=force) for variant in variants]


def prewarm_first(component: Component, variants: list[Variant], memory: Memory, progress: Progress) -> None:
    """Generate what the first variant that could run requires. Failures are reported when the variant is opened."""
    for variant in _before_first_runnable(variants):
        if prewarm_variant(component, variant, memory, progress, force=False)["status"] in READY:
            return


def prewarm_in_background(variants: list[Variant], memory: Memory) -> str:
    """Start a process that generates what is missing, for a later start; returns a message for the user, or nothing.

    It is a separate process: a crash of the compiler does not end this one, and it continues when this one ends.
    """
    for variant in _before_first_runnable(variants):
        prepared = find_prepared(variant, memory)
        if isinstance(prepared, str):
            continue
        if prepared.explain() is None:
            return ""
        if not prepared.refused:
            return _start_process(variant, prepared.thing)
    return ""


def _before_first_runnable(variants: list[Variant]) -> list[Variant]:
    """Variants that require something generated, before the first that requires nothing."""
    found = []
    for variant in variants:
        if find_obstacle(variant) is None:
            if variant.prepare is None:
                break
            found.append(variant)
    return found


def _start_process(variant: Variant, thing: str) -> str:
    if getattr(sys, "frozen", False) or not sys.executable:
        return f"the {thing} of variant {variant.label} cannot be generated in the background: no interpreter was found"
    package = (__package__ or "").rpartition(".")[0]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
    chosen = ["--component", variant.component] if variant.component else []
    command = [sys.executable, "-m", package, "prewarm", *chosen, "--variant", variant.name]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        _children.append(subprocess.Popen(command, env=environment, start_new_session=True, **quiet))  # type: ignore[call-overload]
    except OSError as error:
        return f"the {thing} of variant {variant.label} cannot be generated in the background ({error})"
    return f"the {thing} of variant {variant.label} is being generated in the background"


def prewarm_variant(
    component: Component, variant: Variant, memory: Memory, progress: Progress, *, force: bool
) -> dict[str, Any]:
    """The outcome for one variant. Raises `IntegrityError`."""
    start = time.perf_counter()
    prepared = find_obstacle(variant) or find_prepared(variant, memory)
    if isinstance(prepared, str):
        return _make_outcome(component, variant, "unavailable", prepared, start)
    try:
        with hold(prepared.lock, lambda: progress(0.0, f"another process is generating its {prepared.thing}; waiting")):
            status, reason = _make_unless_ready(component, prepared, memory, progress, force=force)
    except OSError as error:
        where = os.path.dirname(prepared.folder)
        status, reason = "failed", f"its {prepared.thing} cannot be kept at {where} ({error})"
    return {**_make_outcome(component, variant, status, reason, start), "thing": prepared.thing, **prepared.facts}


def _make_outcome(component: Component, variant: Variant, status: str, reason: str, start: float) -> dict[str, Any]:
    reason = add_missing(reason, variant) if status == "unavailable" else reason
    about = {"component": component.name, "variant": variant.name, "status": status, "reason": reason}
    return {**about, "seconds": time.perf_counter() - start}


def _make_unless_ready(
    component: Component, prepared: Prepared, memory: Memory, progress: Progress, *, force: bool
) -> tuple[str, str]:
    if not force:
        if prepared.explain() is None and _opens(prepared, memory):
            return "ready", ""
        if prepared.refused:
            return "failed", prepared.remark
    prepared.clear_drafts()
    try:
        _make(component, prepared, memory, progress)
    except _PrewarmError as failure:
        if failure.lasting:
            prepared.note_refusal(str(failure))
        return failure.status, str(failure)
    finally:
        prepared.discard_draft()
    return "made", ""


def _opens(prepared: Prepared, memory: Memory) -> bool:
    """Whether the runtime still opens it: after an undetected change of the driver it may not."""
    try:
        prepared.open(prepared.folder, memory.payload)
    except RUNTIME_ERRORS:
        return False
    return True


def _make(component: Component, prepared: Prepared, memory: Memory, progress: Progress) -> None:
    """Generate it in a draft, verify the draft, and put it into place. Raises `_PrewarmError`."""
    Check(memory, prepared.variant.files).finish()
    draft = prepared.start_draft()
    if draft is None:
        where = os.path.dirname(prepared.folder)
        raise _PrewarmError(f"no space or no permission to keep its {prepared.thing} at {where}", lasting=False)
    try:
        progress(0.05, f"generating its {prepared.thing}")
        prepared.facts = {"nodes": _fill(component, prepared, draft, memory)}
        progress(0.75, "reproducing the golden set with it")
        _prove(component, prepared, draft, memory)
    except RUNTIME_ERRORS as error:
        why = f"the runtime could not generate its {prepared.thing} ({first_line(error)})"
        raise _PrewarmError(why, lasting=False, status="unavailable") from error
    progress(0.95, "keeping it")
    if not prepared.publish_anew():
        raise _PrewarmError(f"its {prepared.thing} cannot be kept at {prepared.folder}", lasting=False)
    progress(1.0, "ready")


def _fill(component: Component, prepared: Prepared, draft: str, memory: Memory) -> dict[str, int]:
    """Let the runtime fill the folder `draft`; returns how many nodes are assigned to each provider."""
    variant = prepared.placed(draft)
    path = os.path.join(memory.payload, variant.model)

    def adapt(options: Any) -> None:
        record_assignment(options)
        if prepared.is_context:
            _write_context(options, os.path.join(draft, MODEL), variant)

    session = open_session(path, variant, adapt)
    dropped = compare_providers(session, variant)
    if dropped:
        raise _PrewarmError(dropped, lasting=False, status="unavailable")
    assigned = list_assigned(session)
    first, least = variant.provider_names[0], max(variant.least_share, 1e-9)
    shortfall = judge_share(assigned, first, least, compiled=False) if assigned else None
    if shortfall:
        raise _PrewarmError(shortfall, lasting=True)
    if not prepared.is_context:
        _run_golden_set(component, prepared, session)  # Some caches are filled by the first inference.
    del session
    if not any(True for _ in list_files(draft)):
        raise _PrewarmError(f"the runtime wrote no {prepared.thing} to its folder", lasting=True)
    return {name: sum(name == provider for provider, _ in assigned) for name in dict(assigned)}


def _write_context(options: Any, path: str, variant: Variant) -> None:
    """Compile and write the context with a session, which also reports the assignment of nodes; the runtime's
    `ModelCompiler` does not report it.
    """
    options.add_session_config_entry("ep.context_enable", "1")
    options.add_session_config_entry("ep.context_file_path", path)
    options.add_session_config_entry("ep.context_embed_mode", "0")
    if len(variant.files) > 1 or sum(file.size for file in variant.files) >= EXTERNAL:
        options.add_session_config_entry("ep.context_model_external_initializers_file_name", _WEIGHTS)


def _prove(component: Component, prepared: Prepared, draft: str, memory: Memory) -> None:
    """Open the draft as a start would, and reproduce the golden set. Raises `_PrewarmError`."""
    session = prepared.open(draft, memory.payload)
    flaw = find_flaw(Opened(prepared.variant, session, prepared=True))
    if flaw:
        raise _PrewarmError(flaw, lasting=True)
    _run_golden_set(component, prepared, session)


def _run_golden_set(component: Component, prepared: Prepared, session: Any) -> None:
    variant = prepared.variant
    result = test_model(component, variant, Runner(session, component.inputs, component.outputs, variant.device).run)
    if not result.passed:
        raise _PrewarmError(f"it does not reproduce the golden set: {'; '.join(result.faults)}", lasting=True)
