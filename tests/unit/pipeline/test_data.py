"""What a user names with --samples and --calibration, and what comes of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bundler.execution.cache import open_cache
from bundler.model.errors import UsageError
from bundler.pipeline.data import check_used, read_argument


def touch(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def refuse(text: str | Path, preprocessing: Path | None = None) -> UsageError:
    with pytest.raises(UsageError) as caught:
        read_argument(str(text), preprocessing, "--calibration")
    return caught.value


def test_the_word_synthetic() -> None:
    found = read_argument("synthetic")
    assert (found.kind, found.path, found.environment, found.volatile) == ("synthetic", None, "host", False)
    assert found.inputs("calibration") == {}


def test_ready_samples_are_taken_as_they_are(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.zeros(1))
    (tmp_path / "sets" / "test_data_set_0").mkdir(parents=True)
    for path in (tmp_path / "a.npz", tmp_path, tmp_path / "sets", tmp_path / "sets" / "test_data_set_0"):
        found = read_argument(str(path))
        assert (found.kind, found.path, found.is_plain) == ("samples", path, True)
    assert read_argument(str(tmp_path / "a.npz")).options == {"kind": "samples"}


def test_a_folder_of_pictures_with_its_declaration(tmp_path: Path) -> None:
    touch(tmp_path / "a.png")
    touch(tmp_path / "preprocessing.toml", 'kind = "image"\nmean = [0.5]')
    found = read_argument(str(tmp_path))
    assert (found.kind, found.environment, found.is_plain) == ("images", "media", False)
    assert found.options["preprocessing"]["mean"] == [0.5]
    assert found.inputs("calibration") == {"data": "calibration"}
    other = touch(tmp_path / "other.toml", 'kind = "audio"\nsample_rate = 8000')
    assert (read_argument(str(tmp_path), other).kind, read_argument(str(tmp_path), other).environment) == (
        "audio",
        "media",
    )


def test_texts_bring_their_tokenizer_as_a_source(tmp_path: Path) -> None:
    data = touch(tmp_path / "data" / "a.txt", "one\n")
    touch(tmp_path / "words" / "tokenizer.json", "{}")
    declared = touch(tmp_path / "words" / "text.toml", 'kind = "text"')
    found = read_argument(str(data), declared)
    assert found.inputs("samples") == {"data": "samples", "tokenizer": "samples/tokenizer"}
    sources = found.sources("samples", open_cache(str(tmp_path / "cache")))
    assert set(sources) == {"samples", "samples/tokenizer"}
    assert sources["samples"].path == data


def test_functions_are_found_in_files_and_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = touch(tmp_path / "data.py", "def samples(): ...")
    found = read_argument(f"{file}:samples")
    assert (found.kind, found.path, found.options["entry"]) == ("python", file, "samples")
    assert found.volatile
    monkeypatch.chdir(tmp_path)
    touch(tmp_path / "pack" / "inner.py")
    assert read_argument("pack.inner:samples").path == tmp_path / "pack" / "inner.py"
    assert read_argument("pack.inner:samples").options["entry"] == "pack.inner:samples"
    assert read_argument("installed.module:samples").path is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nowhere", "there is no file or folder nowhere"),
        ("nowhere.py:samples", "there is no file nowhere.py"),
        ("a b:c", "there is no file or folder a b:c"),
        ("bad\nname", "there is no file or folder bad\\nname"),
        ("nul\0", "there is no file or folder nul\\x00"),
        ("x" * 5000, "there is no file or folder"),
        ("Synthetic", "there is no file or folder Synthetic"),
        ("", "holds no supported data"),
    ],
)
def test_what_is_not_there(text: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    touch(tmp_path / "thing.bin")
    error = refuse(text)
    assert words in error.message
    assert "--calibration takes" in str(error.hint)


def test_what_is_there_and_cannot_be_taken(tmp_path: Path) -> None:
    assert "no function" in refuse(touch(tmp_path / "data.py")).message
    (tmp_path / "empty").mkdir()
    assert refuse(tmp_path / "empty").message == "empty is empty"
    error = refuse(touch(tmp_path / "pictures" / "a.jpg").parent)
    assert "no preprocessing for the model is declared" in error.message
    assert error.details[1] == 'kind = "image"'
    mixed = touch(tmp_path / "mixed" / "preprocessing.toml", 'kind = "image"').parent
    np.savez(mixed / "a.npz", x=np.zeros(1))
    assert "holds samples and a preprocessing.toml" in refuse(mixed).message


def test_a_declaration_that_nothing_needs_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.zeros(1))
    declared = touch(tmp_path / "p.toml", 'kind = "image"')
    samples = read_argument(str(tmp_path / "a.npz"), declared)
    with pytest.raises(UsageError, match="would have no effect"):
        check_used(declared, [samples])
    pictures = read_argument(str(touch(tmp_path / "pictures" / "a.jpg").parent), declared)
    check_used(declared, [samples, pictures])
    check_used(None, [samples])
