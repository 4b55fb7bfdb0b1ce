"""Data for calibration through the program's own executor: real workers, the locked environment, the cache."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from bundler.execution.sources import digest_source
from bundler.model.errors import UsageError
from bundler.model.events import Event, Reporter, StepProgress
from bundler.model.plan import Step
from bundler.model.preprocessing import describe_preprocessing, read_record
from bundler.model.results import StepOutcome
from bundler.onnxkit.golden import GoldenSet, read_golden
from bundler.pipeline.data import DataArgument, read_argument
from bundler.pipeline.workspace import Workspace, open_workspace
from bundler.stages.prepare_data.spec import Options
from bundler.stages.prepare_data.splitting import belongs
from tests.support import models
from tests.support.data_folders import write_wave

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "dog", "sat", "ran", "##s", "up"]


@pytest.fixture(scope="module")
def workspace(shared: Path) -> Iterator[Workspace]:
    with open_workspace(str(shared / "cache")) as found:
        yield found


class Events:
    """What a listener hears."""

    def __init__(self) -> None:
        self.heard: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.heard.append(event)

    @property
    def progress(self) -> list[str]:
        return [event.text for event in self.heard if isinstance(event, StepProgress)]


def execute(
    workspace: Workspace, model: Path, argument: DataArgument, listener: Any = None, **options: Any
) -> tuple[StepOutcome, GoldenSet]:
    """Prepare what an argument names, as a build does."""
    sources = {"model": digest_source(model, (), workspace.cache), **argument.sources("calibration", workspace.cache)}
    step = Step(
        id="prepare",
        stage="prepare_data",
        inputs={"model": "model", **argument.inputs("calibration")},
        options={**argument.options, **options},
        environment=argument.environment,
    )
    outcome = workspace.executor.execute((step,), sources, Reporter(listener or Events(), "test"))["prepare"]
    assert outcome.folder is not None
    return outcome, read_golden(outcome.folder / "index.json")


def refuse(workspace: Workspace, model: Path, argument: DataArgument, **options: Any) -> UsageError:
    with pytest.raises(UsageError) as caught:
        execute(workspace, model, argument, **options)
    return caught.value


def digits_folder(folder: Path, count: int = 60) -> np.ndarray:
    """Handwritten digits as PNG files, one folder a class; answers them in the order of their names."""
    found = load_digits()
    pictures = (found.images[:count] * 255 / 16).round().astype(np.uint8)
    names = []
    for index in range(count):
        path = folder / str(found.target[index]) / f"{index}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pictures[index]).save(path)
        names.append((int(found.target[index]), index))
    (folder / "preprocessing.toml").write_text('kind = "image"\nmean = [0.5]\nstd = [0.25]\n')
    return pictures[[index for _, index in sorted(names)]]


def test_real_pictures_reach_the_model_as_the_record_says(tmp_path: Path, workspace: Workspace) -> None:
    pictures = digits_folder(tmp_path / "digits")
    model = models.save(models.passing(models.FLOAT, ["n", 1, 8, 8]), tmp_path)
    argument = read_argument(str(tmp_path / "digits"), None, "--calibration")
    events = Events()
    outcome, found = execute(workspace, model, argument, events, part="calibration", every=5)
    part = Options(kind="images", part="calibration", every=5)
    expected = [index for index in range(60) if belongs(index, part)]
    assert len(found.entries) == len(expected) == outcome.facts["samples"]
    for position, index in enumerate(expected):
        values = (pictures[index].astype(np.float32) / 255 - 0.5) / 0.25
        np.testing.assert_allclose(found.sample(position).inputs["x"][0, 0], values, atol=1e-5)
    assert "sample 48 of 48" in events.progress
    record = read_record(outcome.facts["preprocessing"])
    assert "convert to grey (ITU-R 601), 8 bits a channel" in describe_preprocessing(record)


def test_prepared_data_are_recalled_until_a_file_or_the_declaration_changes(
    tmp_path: Path, workspace: Workspace
) -> None:
    folder = tmp_path / "digits"
    digits_folder(folder, 10)
    model = models.save(models.passing(models.FLOAT, ["n", 1, 8, 8]), tmp_path, name=f"{tmp_path.name}.onnx")
    first, _ = execute(workspace, model, read_argument(str(folder)))
    again, _ = execute(workspace, model, read_argument(str(folder)))
    assert again.cached
    assert again.artifact == first.artifact
    (folder / "preprocessing.toml").write_text('kind = "image"\nscale = 1\n')
    changed, found = execute(workspace, model, read_argument(str(folder)))
    assert changed.artifact != first.artifact
    assert float(found.sample(0).inputs["x"].max()) > 200


def tokenizer(folder: Path, **changes: Any) -> None:
    """A WordPiece tokenizer as Hugging Face writes them, with the special tokens of an encoder."""
    special = {"type_id": 0}
    data = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [
                {"SpecialToken": {"id": "[CLS]", **special}},
                {"Sequence": {"id": "A", **special}},
                {"SpecialToken": {"id": "[SEP]", **special}},
            ],
            "pair": [{"Sequence": {"id": "A", **special}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {
                name: {"id": name, "ids": [WORDS.index(name)], "tokens": [name]} for name in ("[CLS]", "[SEP]")
            },
        },
        "decoder": None,
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {word: index for index, word in enumerate(WORDS)},
        },
    }
    (folder / "tokenizer.json").write_text(json.dumps({**data, **changes}))


def text_folder(folder: Path, content: bytes = b"The cats sat\n\nA dog ran up\n") -> Path:
    folder.mkdir()
    (folder / "a.txt").write_bytes(content)
    (folder / "preprocessing.toml").write_text('kind = "text"\n')
    tokenizer(folder)
    return folder


def test_texts_are_tokenized(tmp_path: Path, workspace: Workspace) -> None:
    folder = text_folder(tmp_path / "texts")
    (folder / "b.jsonl").write_text('{"text": "up"}\n')
    model = models.save(models.token_encoder(vocabulary=len(WORDS)), tmp_path)
    outcome, found = execute(workspace, model, read_argument(str(folder)))
    assert [entry["name"] for entry in found.entries] == ["a.txt:1", "a.txt:3", "b.jsonl:1"]
    assert found.sample(0).inputs["input_ids"].tolist() == [[2, 4, 5, 9, 7, 3]]
    assert found.sample(1).inputs["input_ids"].tolist() == [[2, 1, 6, 8, 10, 3]]
    assert found.sample(0).inputs["attention_mask"].tolist() == [[1] * 6]
    assert outcome.facts["preprocessing"]["padding"] == "none"
    assert len(outcome.facts["preprocessing"]["tokenizer_sha256"]) == 64


def test_texts_are_cut_and_filled_for_a_fixed_length(tmp_path: Path, workspace: Workspace) -> None:
    folder = text_folder(tmp_path / "texts")
    model = models.save(models.token_encoder(vocabulary=len(WORDS)), tmp_path)
    _, found = execute(workspace, model, read_argument(str(folder)), dimensions={"sequence": 8})
    assert found.sample(0).inputs["input_ids"].tolist() == [[2, 4, 5, 9, 7, 3, 0, 0]]
    assert found.sample(0).inputs["attention_mask"].tolist() == [[1] * 6 + [0] * 2]
    _, short = execute(workspace, model, read_argument(str(folder)), dimensions={"sequence": 4})
    assert short.sample(0).inputs["input_ids"].tolist() == [[2, 4, 5, 3]]


def test_texts_that_cannot_be_taken_are_named(tmp_path: Path, workspace: Workspace) -> None:
    model = models.save(models.token_encoder(vocabulary=len(WORDS)), tmp_path)
    error = refuse(workspace, model, read_argument(str(text_folder(tmp_path / "bytes", b"fine\ncaf\xe9\n"))))
    assert error.details == ("a.txt:2: it is not UTF-8 (byte 4 of the line)",)
    small = models.save(models.token_encoder(vocabulary=7), tmp_path / "small")
    error = refuse(workspace, small, read_argument(str(text_folder(tmp_path / "other"))))
    assert error.details[0] == "a.txt:1: it has the token 9, and the model has 7 tokens: is it the model's tokenizer?"
    (tmp_path / "other" / "tokenizer.json").write_text('{"model": {}}')
    error = refuse(workspace, model, read_argument(str(tmp_path / "other")))
    assert error.message == "the tokenizer tokenizer.json cannot be read"


def test_recordings_and_functions(tmp_path: Path, workspace: Workspace) -> None:
    model = models.save(models.passing(models.FLOAT, [1, 400]), tmp_path)
    for index in range(3):
        tone = np.sin(np.arange(900) * (index + 1) / 10).astype(np.float32)
        write_wave(tmp_path / "sounds" / f"{index}.wav", tone, 16000)
    (tmp_path / "sounds" / "preprocessing.toml").write_text('kind = "audio"\nsample_rate = 8000\n')
    outcome, found = execute(workspace, model, read_argument(str(tmp_path / "sounds")))
    assert found.sample(0).inputs["x"].shape == (1, 400)
    assert outcome.facts["preprocessing"]["length"] == 400
    (tmp_path / "data.py").write_text("def samples():\n    print('chatter')\n    yield {'x': [list(range(400))]}\n")
    argument = read_argument(f"{tmp_path / 'data.py'}:samples")
    assert argument.volatile
    _, made = execute(workspace, model, argument)
    assert made.sample(0).inputs["x"][0, 399] == 399
    (tmp_path / "data.py").write_text("def samples():\n    return [][3]\n")
    error = refuse(workspace, model, argument)
    assert error.message == "data.py failed with IndexError: list index out of range"
    assert "return [][3]" in "\n".join(error.details)
