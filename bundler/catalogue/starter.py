"""`bundler targets new`: the text of a profile to start from."""

from __future__ import annotations

import os
import re
from pathlib import Path

from bundler.model.errors import ProfileError, UsageError
from bundler.model.paths import real_path
from bundler.profiles.chain import load_chain, merge, shorten
from bundler.profiles.locations import find_catalogue
from bundler.profiles.resolve import check_layers, locate_target
from bundler.support.text import toml_string, visible

_IDENTIFIER = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")

_TEXT = """\
# A target profile. `bundler targets schema` describes every key, `bundler targets show {path}` resolves this file.
extends = {extends}

id = "{id}"
title = {title}
group = "Own targets"
description = ""

# Other values come from the profile that it extends. A table merges key by key; an array is replaced as a whole.

# [platform]
# cpu = "cortex-a76"                     # QEMU's name of the core, to verify under emulation

# [python]
# versions = ["3.12"]                    # fewer versions make a smaller bundle

# [[variants]]
# name = "cpu"
# providers = [{{ name = "cpu" }}]
# [variants.session]
# intra_op_num_threads = 4
# [variants.session_config]
# "session.intra_op.allow_spinning" = false

# [dimensions]
# batch = 1                              # fixes a dynamic dimension

# [budget]
# model_mb = 100

# [sources]                              # sources of values that are not obvious
# "platform.cpu" = "the board's data sheet"
"""


def write_starter(target: str, extends: str, path: Path) -> Path:
    """Write a commented profile for `target` to `path`. It is valid when written.

    Raises `UsageError` for a name that is no identifier, a file that exists or an unknown `extends`, `ProfileError`
    when `extends` lacks values that a target requires.
    """
    if not _IDENTIFIER.fullmatch(target):
        raise UsageError(
            f"{shorten(target)} is not a valid target name",
            hint="use lower-case letters, digits and hyphens, up to 64",
        )
    text = _TEXT.format(
        id=target, title=toml_string(target), path=visible(path.name), extends=toml_string(_extends(extends, path))
    )
    _check(target, extends)
    return _write(path, text)


def _extends(extends: str, path: Path) -> str:
    """The value for the new file: a path is relative to it."""
    if not extends.endswith(".toml"):
        return extends
    return Path(os.path.relpath(real_path(Path(extends)), real_path(path).parent)).as_posix()


def _check(target: str, extends: str) -> None:
    """The new file's values over what it extends must be a valid profile, before anything is written."""
    bases = find_catalogue().bases
    layered = load_chain(bases[extends] if extends in bases else locate_target(extends))
    own = {"id": target, "title": target, "group": "Own targets", "description": ""}
    merge(layered.data, own, layered.origins, "the new file")
    try:
        check_layers(layered)
    except ProfileError as error:
        raise ProfileError(
            f"{shorten(extends)} lacks values that a target requires",
            details=error.details,
            hint="extend a target (`bundler targets list`) or a base that names its platform",
        ) from error


def _write(path: Path, text: str) -> Path:
    try:
        with path.open("x", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
    except FileExistsError as error:
        raise UsageError(f"{path} already exists", hint="choose another path with -o") from error
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}", hint="choose another path with -o") from error
    return path
