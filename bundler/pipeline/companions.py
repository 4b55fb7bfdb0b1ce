"""What belongs to a user's Python file and is shipped with it: modules that it imports from beside it, and data."""

from __future__ import annotations

import ast
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from bundler.model.errors import UsageError
from bundler.model.paths import real_path


def list_companions(file: Path, files: Sequence[Path]) -> dict[str, Path]:
    """The modules that `file` needs, and `files`, by their paths relative to its folder. Raises `UsageError` for one
    that is not there, or in another folder.
    """
    found = find_user_modules(file)
    for path in files:
        place = Path(os.path.normpath(path.absolute()))
        folder = Path(os.path.normpath(file.parent.absolute()))
        if not place.is_file():
            raise UsageError(
                f"there is no file {path} for the pipeline", hint="pipeline.files names files, not folders"
            )
        if not place.is_relative_to(folder):
            raise UsageError(
                f"{path} is not in the folder of the pipeline, {file.parent}", hint="move it beside the function's file"
            )
        found[place.relative_to(folder).as_posix()] = path
    return found


def find_user_modules(file: Path) -> dict[str, Path]:
    """Files that `file` needs of its own folder, by their paths relative to it: modules, whole packages, and what these
    import in turn. What the environment has under the same name is imported from there, and is none of them.
    """
    found: dict[str, Path] = {}
    open_files = [file]
    while open_files:
        for name in _list_imports(open_files.pop()):
            files = [] if _is_installed(name, file.parent) else list(_list_files(file.parent, name))
            new = {path.relative_to(file.parent).as_posix(): path for path in files if path != file}
            open_files += [path for name, path in new.items() if name not in found]
            found |= new
    return dict(sorted(found.items()))


def _list_imports(file: Path) -> Iterator[str]:
    """Topmost names. A file that is no Python is reported by what runs it."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def _is_installed(name: str, folder: Path) -> bool:
    """Whether it is imported from elsewhere than `folder`, which `python -m` searches too."""
    if name in sys.stdlib_module_names:
        return True
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return False
    if found is None:
        return False
    places = found.submodule_search_locations
    place = next(iter(places), None) if places else found.origin
    return place is not None and real_path(Path(place)).parent != real_path(folder)


def _list_files(folder: Path, name: str) -> Iterator[Path]:
    if (folder / name / "__init__.py").is_file():
        yield from (folder / name).rglob("*.py")
    elif (folder / f"{name}.py").is_file():
        yield folder / f"{name}.py"
