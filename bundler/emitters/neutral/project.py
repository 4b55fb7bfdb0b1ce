"""The folder that every format of this emitter is: models, `runtime.json`, the golden set and a README."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from bundler.emitters.contract import EmitRequest
from bundler.emitters.neutral.context import make_context
from bundler.emitters.neutral.packages import describe_ingredients
from bundler.emitters.payload import CONFIG_NAME, copy_payload, render_config
from bundler.emitters.rendering import load_template, write_project
from bundler.emitters.writing import write_text
from bundler.model.proof import Emitted

TEMPLATE = "neutral"
SILENCING = (
    "the runtime that your application adds may report usage; the application turns that off with "
    "ORT_DISABLE_TELEMETRY=1, set before it is loaded"
)
PROVIDER = "the application"
"""Adds the runtime."""

PAYLOAD = "."
"""The bundle's own folder: nothing else is in it that would want a folder apart."""


def write_files(request: EmitRequest, folder: Path) -> Emitted:
    """Write the folder. Raises `BundlerError`."""
    return write_folder(request, folder, ())


def write_folder(request: EmitRequest, folder: Path, unsaid: Sequence[str]) -> Emitted:
    """Write the folder; `unsaid` are sentences on what a form of it beside `runtime.json` cannot say."""
    copy_payload(request, folder)
    write_text(folder / CONFIG_NAME, render_config(request.config))
    context = make_context(request, tuple(unsaid))
    fields = {field.name: getattr(context, field.name) for field in dataclasses.fields(context)}
    write_project(load_template(TEMPLATE), fields, {}, folder)
    notes = (SILENCING,) if context.silenced else ()
    required = describe_ingredients(request.profile, PROVIDER)
    return Emitted(payload=PAYLOAD, package=context.name, dependencies=required, notes=notes)
