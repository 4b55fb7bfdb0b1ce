"""What belongs to a user's Python file and is shipped with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bundler.model.errors import UsageError
from bundler.pipeline.companions import find_user_modules, list_companions


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / f"{name.replace('__in__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "run.py"


def test_modules_beside_it_are_found_through_others(tmp_path: Path) -> None:
    file = write(tmp_path, run="import one\nfrom two.deep import x", one="import three", three="", unused="")
    write(tmp_path, two__in____init__="", two__in__deep="from . import other", two__in__other="import four", four="")
    assert list(find_user_modules(file)) == [
        *("four.py", "one.py", "three.py", "two/__init__.py", "two/deep.py", "two/other.py")
    ]


def test_what_the_environment_has_is_imported_from_there(tmp_path: Path) -> None:
    file = write(tmp_path, run="import json, numpy, os.path", json="", numpy="", os="")
    assert find_user_modules(file) == {}


def test_the_working_folder_is_no_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`python -m bundler` searches it."""
    file = write(tmp_path, run="import one, two", one="", two__in____init__="")
    monkeypatch.syspath_prepend(tmp_path)
    assert list(find_user_modules(file)) == ["one.py", "two/__init__.py"]


@pytest.mark.parametrize("text", ["def run(:", "\0", "import " + ".".join("a" * 5000)])
def test_what_is_no_python_has_none(tmp_path: Path, text: str) -> None:
    assert find_user_modules(write(tmp_path, run=text)) == {}


def test_modules_that_import_each_other_end(tmp_path: Path) -> None:
    assert list(find_user_modules(write(tmp_path, run="import one", one="import two", two="import one, run"))) == [
        *("one.py", "two.py")
    ]


def test_files_are_named_as_the_function_finds_them(tmp_path: Path) -> None:
    file = write(tmp_path, run="")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "labels.txt").write_text("a")
    assert list(list_companions(file, [tmp_path / "data" / ".." / "data" / "labels.txt"])) == ["data/labels.txt"]
    with pytest.raises(UsageError, match="is not in the folder of the pipeline"):
        list_companions(tmp_path / "data" / "run.py", [file])
