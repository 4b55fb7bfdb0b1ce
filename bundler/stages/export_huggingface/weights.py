"""Check that the weights are present, complete, and in safetensors, which holds only numbers. Reads headers only.

The format: 8 bytes with the length of the header, the header in JSON (type, shape and place of each tensor), and
the numbers. https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from bundler.model.codec import parse_json
from bundler.model.errors import ModelError

SINGLE: Final = "model.safetensors"
_MAX_HEADER_BYTES: Final = 100_000_000
"""The limit of the library itself."""
_LENGTH_BYTES: Final = 8
_POINTER: Final = b"version https://git-lfs"
_PICKLES: Final = ("pytorch_model.bin", "pytorch_model.bin.index.json", "model.bin", "model.pt", "model.pth")
_FOREIGN: Final = ("tf_model.h5", "flax_model.msgpack", "model.ckpt.index")
_DOWNLOAD_AGAIN: Final = "download or save the weights again"


def find_weights(folder: Path) -> tuple[str, ...]:
    """Names of the safetensors files, the parts of a large model in order. Raises `ModelError`."""
    index = folder / f"{SINGLE}.index.json"
    if (folder / SINGLE).is_file():
        return (SINGLE,)
    if not index.is_file():
        raise _none_found(folder)
    try:
        named = parse_json(index.read_text(encoding="utf-8"))["weight_map"].values()
        parts = sorted({str(name) for name in named})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"{index.name} is not a list of weights", hint=_DOWNLOAD_AGAIN) from error
    for name in parts:
        if Path(name).name != name or not name.endswith(".safetensors"):
            raise ModelError(f"{index.name} names {ascii(name)[:120]}, which is not a safetensors file next to it")
    missing = [name for name in parts if not (folder / name).is_file()]
    if missing or not parts:
        raise ModelError(f"{len(missing)} of {len(parts)} weight files are missing", details=tuple(missing[:10]))
    return tuple(parts)


def check_weights(folder: Path, names: tuple[str, ...]) -> None:
    """Raise `ModelError` for a file that is truncated, has a changed header, or is not safetensors."""
    for name in names:
        try:
            problem = _problem(folder / name)
        except OSError as error:
            raise ModelError(f"cannot read {name}: {error.strerror}", hint="check its permissions") from error
        if problem:
            what, hint = problem
            raise ModelError(f"{name} {what}", hint=hint)


def _none_found(folder: Path) -> ModelError:
    pickles = [name for name in _PICKLES if (folder / name).is_file()]
    if pickles:
        return ModelError(
            f"the weights are a pickle ({pickles[0]}), which can run code when it is loaded",
            hint="if you trust it, load the model with Transformers and save it again "
            "(`save_pretrained` writes safetensors), or look for a revision that has safetensors",
        )
    foreign = [name for name in _FOREIGN if (folder / name).is_file()]
    if foreign:
        hint = "load it into PyTorch (`from_tf=True` or `from_flax=True`) and save it again"
        return ModelError(f"the weights are not for PyTorch ({foreign[0]})", hint=hint)
    hint = f"{_DOWNLOAD_AGAIN}; if there are only pickles, save the model again with `save_pretrained`"
    return ModelError(f"there are no weights: {SINGLE} is missing", hint=hint)


def _problem(path: Path) -> tuple[str, str] | None:
    size = path.stat().st_size
    with path.open("rb") as stream:
        head = stream.read(len(_POINTER))
        if head == _POINTER:
            return "is a Git LFS pointer, not the weights themselves", "fetch the real file: `git lfs pull`"
        length = int.from_bytes(head[:_LENGTH_BYTES], "little")
        if size < _LENGTH_BYTES or length > min(size - _LENGTH_BYTES, _MAX_HEADER_BYTES):
            return "is truncated, or not a safetensors file", _DOWNLOAD_AGAIN
        stream.seek(_LENGTH_BYTES)
        header = stream.read(length)
    try:
        end = _end_of_data(parse_json(header))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        return "has a header that cannot be read", _DOWNLOAD_AGAIN
    present = size - _LENGTH_BYTES - length
    if present != end:
        return f"has {present} bytes of weights, but its header declares {end}", _DOWNLOAD_AGAIN
    return None


def _end_of_data(header: dict[str, Any]) -> int:
    """The end of the last tensor, in bytes after the header. Raises for an invalid position."""
    places = [entry["data_offsets"] for name, entry in header.items() if name != "__metadata__"]
    if any(not 0 <= int(start) <= int(end) for start, end in places):
        raise ValueError("a tensor ends before it begins")
    return max((int(end) for _, end in places), default=0)
