"""The project file that `bundler init` writes."""

from __future__ import annotations

import platform
from pathlib import Path

from bundler.model.errors import UsageError
from bundler.model.manifest import MANIFEST_NAME
from bundler.profiles.resolve import resolve_target, target_ids
from bundler.project.load import FILE_NAME
from bundler.support.platforms import name_architecture, name_system
from bundler.support.text import toml_string

MAX_MODELS = 20
"""More are hardly one project's: `bundler init` was run in the wrong folder."""

TEXT = """\
# What `bundler build` builds. Paths are relative to this file.
output = "dist"

# `bundler targets list` shows all of them; the path of your profile works too.
targets = [{targets}]
{models}
# Several models in one bundle, with a name for each.
# [[bundles]]
# name = "ocr"
# models.detect.path = "detect.onnx"
# models.read.path = "read.onnx"

# The accuracy gate of every build; remove a line to keep the target's value.
# [accuracy]
# absolute = 1e-4
# relative = 1e-3

# Sizes that no bundle may exceed, in MB.
# [budget]
# bundle_mb = 200

# Parts of profiles to replace, by glob of target id.
# [overrides."raspberry-*".optimization]
# level = "basic"

# Lower precision: the fastest method that meets the accuracy gate.
# [overrides."*".precision]
# method = "auto"
"""

MODEL_TEXT = """
[[models]]
path = {path}
# samples = "samples/"         # inputs for the golden set; default: synthetic
# calibration = "images/"      # data for quantised ranges, with precision.method below
# dimensions = {{ batch = 1 }}   # dynamic dimensions to fix
# shapes = {{ x = [1, 3, 48, 192] }}   # sizes of an input, with or without names
"""


def write_starter(folder: Path, models: tuple[Path, ...], targets: tuple[str, ...], *, force: bool) -> Path:
    """Write `bundler.toml` into `folder`. Raises `UsageError` when it is there, or when no model is found."""
    path = folder / FILE_NAME
    if path.exists() and not force:
        raise UsageError(f"{path} already exists", hint="use --force to overwrite it")
    found = models or _find_models(folder)
    for target in targets:
        resolve_target(target)
    text = TEXT.format(
        targets=", ".join(toml_string(name) for name in targets or (_this_machine(),)),
        models="".join(MODEL_TEXT.format(path=toml_string(_relative(model, folder))) for model in found),
    )
    path.write_text(text, encoding="utf-8")
    return path


def _find_models(folder: Path) -> tuple[Path, ...]:
    """Those that are no part of a bundle, nor in a hidden folder, such as an environment's."""
    found = tuple(sorted(path for path in folder.rglob("*.onnx") if not _is_of_others(path, folder)))
    if not found:
        raise UsageError(f"no .onnx file in {folder}", hint="name one: bundler init MODEL")
    if len(found) > MAX_MODELS:
        raise UsageError(f"{len(found)} .onnx files below {folder}", hint="name the models: bundler init MODEL…")
    return found


def _is_of_others(path: Path, folder: Path) -> bool:
    parents = path.relative_to(folder).parents[:-1]
    return any(parent.name.startswith(".") or (folder / parent / MANIFEST_NAME).is_file() for parent in parents)


def _relative(model: Path, folder: Path) -> str:
    if not model.is_file():
        raise UsageError(f"the file {model} does not exist", hint="give the path of an ONNX model")
    absolute = model.absolute()
    return absolute.relative_to(folder).as_posix() if absolute.is_relative_to(folder) else str(absolute)


def _this_machine() -> str:
    """The general target of this machine's system and processor: never that of a device, which may not be there.

    Raises `UsageError` where there is none.
    """
    name = f"{name_system(platform.system())}-{name_architecture(platform.machine())}"
    if name in target_ids():
        return name
    raise UsageError(
        f"bundler has no generic target for this machine ({platform.system()} {platform.machine()})",
        hint="name one: `bundler init --target NAME`; `bundler targets list` shows all",
    )
