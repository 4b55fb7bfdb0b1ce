"""A user's own function gives the samples, and his mistakes are shown to him as his own."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from tests.support import models
from tests.support.data_folders import prepare, refuse

HEAD = "import numpy as np\n"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return models.save(models.identity(), tmp_path / "model")  # x[2, 3]


def write(tmp_path: Path, body: str, name: str = "data.py") -> Path:
    path = tmp_path / "user" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEAD + body)
    return path


GENERATOR = (
    "def samples():\n    for i in range(12):\n        yield {'x': np.arange(6, dtype=np.float32).reshape(2, 3) + i}\n"
)


def test_a_generator_gives_samples_one_by_one(tmp_path: Path, model: Path) -> None:
    file = write(tmp_path, GENERATOR)
    result, found = prepare(tmp_path / "out", model, file, kind="python", entry="samples")
    assert len(found.entries) == 12
    assert found.entries[3]["name"] == "samples-003"
    assert found.sample(3).inputs["x"][0, 0] == 3
    assert result.facts["total"] is None
    options = {"kind": "python", "entry": "samples", "every": 5}
    _, held = prepare(tmp_path / "held", model, file, part="held-out", **options)
    _, rest = prepare(tmp_path / "rest", model, file, part="calibration", limit=4, **options)
    kept = [entry["name"][-3:] for entry in held.entries]
    assert kept[0] == "000"
    assert [entry["name"][-3:] for entry in rest.entries] == ["001", "002", "003", "004"]
    assert not {"001", "002", "003", "004"} & set(kept)


def test_an_endless_generator_is_read_as_far_as_the_limit(tmp_path: Path, model: Path) -> None:
    body = "def samples():\n    while True:\n        yield {'x': np.random.rand(2, 3).astype(np.float32)}\n"
    _, found = prepare(tmp_path / "out", model, write(tmp_path, body), kind="python", entry="samples", limit=5)
    assert len(found.entries) == 5


def test_what_stands_beside_the_file_can_be_imported_and_is_read_anew(tmp_path: Path, model: Path) -> None:
    file = write(
        tmp_path, "from beside_this import START\ndef samples():\n    return [{'x': [[START, 1, 2], [3, 4, 5]]}]\n"
    )
    for start in (7, 80):
        write(tmp_path, f"START = {start}\n", "beside_this.py")
        sys.dont_write_bytecode = True
        _, found = prepare(tmp_path / str(start), model, file, kind="python", entry="samples")
        assert found.sample(0).inputs["x"][0, 0] == start
        assert found.sample(0).inputs["x"].dtype == np.float32  # Python's own numbers take the input's type
    assert "beside_this" not in sys.modules
    assert str(file.parent) not in sys.path


def test_a_module_of_a_package_in_the_folder(tmp_path: Path, model: Path) -> None:
    write(tmp_path, "", "pack/__init__.py")
    write(tmp_path, GENERATOR, "pack/inner.py")
    file = write(tmp_path, "from pack.inner import samples\n", "pack/data.py")
    _, found = prepare(tmp_path / "out", model, file, kind="python", entry="pack.data:samples", limit=2)
    assert len(found.entries) == 2
    assert "pack" not in sys.modules


def test_the_users_own_lines_are_shown(tmp_path: Path, model: Path) -> None:
    body = "def load(name):\n    return open(name)\n\ndef samples():\n    yield {'x': load('nowhere.bin')}\n"
    error = refuse(tmp_path / "out", model, write(tmp_path, body), kind="python", entry="samples")
    assert error.message.startswith("data.py failed with FileNotFoundError: [Errno 2] No such file or directory: 'now")
    assert "return open(name)" in "\n".join(error.details)
    assert "yield {'x': load('nowhere.bin')}" in "\n".join(error.details)
    assert "prepare_data" not in "\n".join(error.details)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("def samples(:\n", "data.py failed with SyntaxError"),
        ("import no_such_module_here\n", "data.py failed with ModuleNotFoundError"),
        ("def samples(count):\n    return []\n", "data.py failed with TypeError: samples() missing 1"),
        ("def samples():\n    raise SystemExit('enough')\n", "data.py failed with SystemExit: enough"),
        ("def smaples():\n    return []\n", "there is no function 'samples' in data.py"),
        ("samples = 3\n", "there is no function 'samples' in data.py"),
        (
            "def samples():\n    return {'x': np.zeros((2, 3))}\n",
            "samples returned a value of type dict, not an iterable",
        ),
        ("def samples():\n    pass\n", "samples returned nothing, not an iterable"),
        ("async def samples():\n    yield {}\n", "samples returned a value of type async_generator"),
        ("def samples():\n    return []\n", "there are no samples"),
    ],
)
def test_what_is_no_source_of_samples(tmp_path: Path, model: Path, body: str, words: str) -> None:
    error = refuse(tmp_path / "out", model, write(tmp_path, body), kind="python", entry="samples")
    assert words in error.message
    assert error.hint


def test_samples_that_do_not_fit_are_all_named(tmp_path: Path, model: Path) -> None:
    items = ["3", "{'y': np.zeros((2, 3), np.float32)}", "{'x': np.zeros((2, 3))}", "{'x': [[1, 2], [3]]}", "{'x': {}}"]
    body = f"def samples():\n    return [{', '.join(items)}]\n"
    error = refuse(tmp_path / "out", model, write(tmp_path, body), kind="python", entry="samples")
    assert error.details[0] == "samples-000: it is a value of type int, not a mapping from input name to array"
    assert "the model has no input 'y'" in error.details[1]
    assert "samples-002: 'x': expected float32[2, 3], got float64[2, 3]" in error.details
    assert any(
        line.startswith("samples-003: 'x' cannot be converted to an array: ValueError") for line in error.details
    )
    assert any(line.startswith("samples-004: 'x': expected float32[2, 3]") for line in error.details)


def test_an_installed_module_needs_no_file(tmp_path: Path, model: Path) -> None:
    error = refuse(tmp_path / "out", model, None, kind="python", entry="json.no_such:samples")
    assert "failed with ModuleNotFoundError" in error.message
    error = refuse(tmp_path / "out2", model, None, kind="python", entry="json:JSONDecoder")
    assert "returned a value of type JSONDecoder" in error.message
