"""Run the self-test of an installed package, then open the package as other installers would have laid its files.

self_test_installed.py PACKAGE COPY [ARGUMENT…]

pip copies files, uv makes hard or symbolic links, and an image or an administrator leaves a folder that its user may
not write to. The runtime refuses some files that are links. COPY is a folder with a copy of the package, or empty: then
the package is copied. Prints the report of `self-test ARGUMENT…`; each variant that passed gets `installations`: how
its files lay, and why it did not open (nothing: it did).
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import json
import os
import runpy
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

READ_ONLY = 0o555


def main(package: str, copy: str, *arguments: str) -> int:
    """Print the report; returns the exit code of the self-test."""
    sys.path[:] = [place for place in sys.path if place != str(Path(__file__).parent)]
    text, code = run_self_test(package, arguments)
    with contextlib.suppress(ValueError):
        report = json.loads(text)
        with contextlib.redirect_stdout(sys.stderr):
            open_elsewhere(package, copy, [item for item in report.get("variants", ()) if is_openable(item)])
        text = json.dumps(report) + "\n"
    sys.stdout.write(text)
    return code


def run_self_test(package: str, arguments: tuple[str, ...]) -> tuple[str, int]:
    """As `python -m PACKAGE self-test` does: its output and its exit code."""
    sys.argv[:] = [package, "self-test", *arguments]
    with contextlib.redirect_stdout(io.StringIO()) as output:
        try:
            runpy.run_module(package, run_name="__main__", alter_sys=True)
        except SystemExit as ending:
            return output.getvalue(), ending.code if isinstance(ending.code, int) else 1
    return output.getvalue(), 0


def is_openable(outcome: dict[str, Any]) -> bool:
    """Whether it ran on the shipped files: what was generated for it here is gone."""
    return outcome["status"] == "passed" and "prewarm_seconds" not in outcome["figures"]


def open_elsewhere(package: str, copy: str, outcomes: list[dict[str, Any]]) -> None:
    """Open each variant from each installation that can be made here, and note the result in `outcomes`."""
    found = importlib.util.find_spec(package)
    if not outcomes or found is None or not found.submodule_search_locations:
        return
    source = Path(found.submodule_search_locations[0])
    own = "hard links" if any(path.stat().st_nlink > 1 for path in list_files(source)) else "copies"
    for outcome in outcomes:
        outcome["installations"] = {own: ""}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        for how, folder in lay_files(source, own, copy, Path(scratch)):
            for outcome in outcomes:
                outcome["installations"][how] = open_variant(package, folder, outcome)


def lay_files(source: Path, own: str, copy: str, scratch: Path) -> Iterator[tuple[str, Path]]:
    """How the files lie, and the folder to import the package from. What this system cannot make is left out."""
    if own != "copies":
        yield "copies", Path(copy) if copy else lay(source, scratch / "copies", shutil.copyfile)
    with contextlib.suppress(OSError):
        if own != "hard links":
            yield "hard links", lay(source, scratch / "hard", os.link)
    with contextlib.suppress(OSError):
        place = lay(source, scratch / "symbolic", os.symlink)
        yield "symbolic links", place
        folders = [place, *(path for path in place.rglob("*") if path.is_dir() and not path.is_symlink())]
        for folder in folders:
            folder.chmod(READ_ONLY)
        try:
            yield "a read-only folder", place
        finally:
            for folder in folders:
                folder.chmod(0o700)


def lay(source: Path, target: Path, place: Callable[[Path, Path], object]) -> Path:
    """The package below `target`, each of its files by `place`."""
    for path in list_files(source):
        there = target / source.name / path.relative_to(source)
        there.parent.mkdir(parents=True, exist_ok=True)
        place(path, there)
    return target


def list_files(folder: Path) -> list[Path]:
    """The files of the package; byte code is not one of them."""
    return [path for path in folder.rglob("*") if path.is_file() and path.parent.name != "__pycache__"]


def open_variant(package: str, folder: Path, outcome: dict[str, Any]) -> str:
    """Why the variant does not open from `folder`; nothing where it does."""
    sys.modules.pop(package, None)  # its loader stays: it reads what lies beside the module that is imported again
    before = list_files(folder / package)  # the mode of a folder does not keep an administrator out
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        module = importlib.import_module(package)
        models = module.Bundle.models if hasattr(module, "Bundle") else (module.Model,)
        named = {model.pins.component: model for model in models}
        named.get(outcome.get("component", ""), models[0])(outcome["variant"], device_copy=False)
    except Exception as error:  # noqa: BLE001 - the bundle's own code may raise anything
        return f"{error} ({why})" if (why := getattr(error, "why", "")) else f"{type(error).__name__}: {error}"
    finally:
        sys.path.remove(str(folder))
    return "" if list_files(folder / package) == before else "it writes into its own folder"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
