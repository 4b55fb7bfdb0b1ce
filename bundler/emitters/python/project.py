"""The Python project of a bundle: package, payload, `pyproject.toml` and README in one folder."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path

from bundler.emitters.contract import EmitRequest
from bundler.emitters.payload import PAYLOAD, copy_payload, render_config
from bundler.emitters.python.context import Context, make_context
from bundler.emitters.python.modules import LOADER, list_unneeded
from bundler.emitters.python.permitting import PERMITTED, render_permitted
from bundler.emitters.python.wheelhouse import ANYWHERE
from bundler.emitters.rendering import load_template, write_project
from bundler.emitters.writing import write_text


def write_python_project(request: EmitRequest, folder: Path, platform: str = ANYWHERE) -> Context:
    """Write the whole project into `folder`; returns what it was rendered from. `platform` is the tag of its wheel.

    Raises `StageError`.
    """
    config = render_config(request.config)
    context = make_context(request, hashlib.sha256(config.encode("utf-8")).hexdigest(), platform)
    fields = {field.name: getattr(context, field.name) for field in dataclasses.fields(context)}
    write_project(load_template("python"), fields, {"package": context.package}, folder, list_unneeded(request.config))
    payload = folder / context.package / PAYLOAD
    write_text(payload / "runtime.json", config)
    copy_payload(request, payload)
    write_text(folder / context.package / LOADER / PERMITTED, render_permitted(request.config))
    return context
