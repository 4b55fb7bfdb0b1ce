"""Loads what writing a bundle needs while the workers run its steps.

Templates and the bill of materials take a quarter of a second to import and compile. A rebuild with nothing changed
needs none of it, and a build that runs steps waits for its workers meanwhile.
"""

from __future__ import annotations

import importlib
import threading

from bundler.emitters.registry import find_emitter
from bundler.model.events import Event, Listener, StepStarted

MODULES = ("bundler.pipeline.finish",)


def preload_on_start(listener: Listener, emitter: str) -> Listener:
    """A listener like `listener` that begins to load when the first step starts to run."""
    begun = threading.Event()

    def listen(event: Event) -> None:
        if isinstance(event, StepStarted) and not begun.is_set():
            begun.set()
            threading.Thread(target=_preload, args=(emitter,), daemon=True).start()
        listener(event)

    return listen


def _preload(emitter: str) -> None:
    for module in MODULES:
        importlib.import_module(module)
    find_emitter(emitter).preload()
    from bundler.reporting.report import page_template  # noqa: PLC0415 - as late as the rest
    from bundler.reporting.sbom import preload as preload_sbom  # noqa: PLC0415

    preload_sbom()
    page_template()
