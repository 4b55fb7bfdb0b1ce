"""Whether a path can be that of an ONNX model, and what to do about one that cannot."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path

from bundler.model.errors import ModelError
from bundler.model.paths import check_path_text


def check_model_path(path: Path) -> None:
    """Raise `ModelError` when there is no file at `path`, and `UsageError` for a path that tools do not take."""
    check_path_text(path, "the model")
    if path.is_dir():
        raise _folder_error(path)
    if not path.is_file():
        raise ModelError(f"there is no file {path}", hint=_near(path) or _download(path))
    how = _EXPORTS.get(path.suffix.lower())
    if how is not None and not _begins_as_onnx(path):
        raise ModelError(f"{path} does not have the file extension .onnx", hint=f"export it to ONNX first: {how}")


def _near(path: Path) -> str:
    """The model beside it whose name is nearly the same; empty for none."""
    try:
        names = [entry.name for entry in path.parent.glob("*.onnx") if entry.is_file()]
    except (OSError, ValueError):
        return ""
    close = difflib.get_close_matches(path.name, names, n=1, cutoff=0.7)
    return f"did you mean {path.with_name(close[0])}?" if close else ""


def _download(path: Path) -> str:
    """What to do about an address of the web, and else about any path."""
    is_address = path.parts[:1] in {("https:",), ("http:",), ("s3:",)}
    return "download the model, and give the path of its file" if is_address else "give the path of an ONNX model"


_PYTORCH = "torch.onnx.export(model, inputs, 'model.onnx', dynamo=True) in Python"
_EXPORTS: Mapping[str, str] = {
    ".pt": _PYTORCH,
    ".pth": _PYTORCH,
    ".safetensors": "`bundler build hf:./FOLDER` takes the folder of a Transformers model; or export it from PyTorch",
    ".h5": "`python -m tf2onnx.convert --keras FILE --output model.onnx`",
    ".keras": "`python -m tf2onnx.convert --keras FILE --output model.onnx`",
    ".pb": "`python -m tf2onnx.convert --saved-model FOLDER --output model.onnx`",
    ".gguf": "`bundler build hf:./FOLDER` takes the Transformers model that it was made from",
    ".tflite": "`python -m tf2onnx.convert --tflite FILE --output model.onnx`",
}
"""How files of other kinds become ONNX models, by the end of their name."""

MAX_LISTED_FILES = 3
"""Files of a folder that an error names."""


def _begins_as_onnx(path: Path) -> bool:
    """Whether its first field is the version of ONNX's format, whatever the file is called."""
    with path.open("rb") as file:
        return file.read(1) == b"\x08"


def _folder_error(path: Path) -> ModelError:
    models = sorted(entry.name for entry in path.glob("*.onnx"))
    if not models:
        return ModelError(
            f"{path} is a folder with no .onnx file in it", hint="give the path of an ONNX model, or hf:FOLDER"
        )
    names = " or ".join(str(path / name) for name in models[:MAX_LISTED_FILES])
    return ModelError(f"{path} is a folder, not an ONNX file", hint=f"name the model in it: {names}")
