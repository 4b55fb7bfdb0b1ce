"""Check a model's folder before any library reads it: complete, and without code that would run.

Requires the standard library only. Everything in the folder is untrusted: names and texts are checked before they
are used, and weights are read from safetensors only, because a pickle runs code when it is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bundler.model.codec import parse_json
from bundler.model.errors import ModelError
from bundler.stages.export_huggingface.weights import SINGLE, check_weights, find_weights

CONFIG: Final = "config.json"
_MAX_CONFIG_BYTES: Final = 1 << 24
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_TYPE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

PREPROCESSING: Final = (
    "added_tokens.json", "feature_extractor_config.json", "image_processor_config.json", "merges.txt",
    "preprocessor_config.json", "processor_config.json", "sentencepiece.bpe.model", "special_tokens_map.json",
    "spiece.model", "tokenizer.json", "tokenizer.model", "tokenizer_config.json", "video_preprocessor_config.json",
    "vocab.json", "vocab.txt",
)  # fmt: skip
"""Files beside the model that an application needs to prepare its inputs."""
_OTHERS: Final = (
    (
        "model_index.json",
        "a pipeline of several models",
        "give the folder of one of them, for example its text encoder",
    ),
    ("adapter_config.json", "an adapter without its model", "merge it into its model first (`merge_and_unload`)"),
    ("model.onnx", "an ONNX model already", "give the .onnx file itself, without `hf:`"),
)
_SAVE_AGAIN: Final = "save the model with `model.save_pretrained(FOLDER)`, which writes config.json and safetensors"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFolder:
    """The contents of a folder. `weights` are names of safetensors files; `pooled` says that it is a pipeline of the
    sentence-transformers library, whose later parts are not exported; `brings_code` says that it names Python code of
    its own.
    """

    path: Path
    config: Mapping[str, Any]
    architecture: str
    model_type: str
    weights: tuple[str, ...]
    preprocessing: tuple[str, ...]
    pooled: bool
    brings_code: bool

    @property
    def files(self) -> tuple[Path, ...]:
        """All files that determine the export or belong to the model; `config.json` first."""
        extra = (f"{SINGLE}.index.json",) if self.weights != (SINGLE,) else ()
        return tuple(self.path / name for name in (CONFIG, *extra, *self.weights, *self.preprocessing))


def read_folder(path: Path) -> ModelFolder:
    """Read the folder `path`. Raises `ModelError`, with a hint, for what cannot be exported."""
    config = _read_config(path)
    weights = find_weights(path)
    check_weights(path, weights)
    return ModelFolder(
        path=path,
        config=config,
        architecture=_architecture(config),
        model_type=_model_type(config),
        weights=weights,
        preprocessing=tuple(name for name in PREPROCESSING if (path / name).is_file()),
        pooled=(path / "modules.json").is_file(),
        brings_code="auto_map" in config,
    )


def _read_config(path: Path) -> dict[str, Any]:
    if not path.is_dir():
        raise ModelError(f"there is no folder {path}", hint="give a folder with config.json and model.safetensors")
    file = path / CONFIG
    if not file.is_file():
        raise _no_config(path)
    if file.stat().st_size > _MAX_CONFIG_BYTES:
        raise ModelError(f"{CONFIG} has {file.stat().st_size} bytes, too many for a configuration", hint=_SAVE_AGAIN)
    try:
        config = parse_json(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ModelError(f"{CONFIG} is not JSON", details=(str(error)[:200],), hint=_SAVE_AGAIN) from error
    except OSError as error:
        raise ModelError(f"cannot read {CONFIG}: {error.strerror}", hint="check its permissions") from error
    if not isinstance(config, dict):
        raise ModelError(f"{CONFIG} is a {type(config).__name__}, not a configuration", hint=_SAVE_AGAIN)
    _refuse_quantized(config)
    return config


def _no_config(path: Path) -> ModelError:
    for name, what, hint in _OTHERS:
        if (path / name).is_file():
            return ModelError(f"the folder {path.name} has no {CONFIG}: it contains {what} ({name})", hint=hint)
    return ModelError(f"the folder {path.name} has no {CONFIG}, so it contains no model", hint=_SAVE_AGAIN)


def _architecture(config: Mapping[str, Any]) -> str:
    """The name of the model's class, or empty when the configuration names none."""
    names = config.get("architectures") or [""]
    name = names[0] if isinstance(names, list) else None
    if not isinstance(name, str) or (name and not _IDENTIFIER.fullmatch(name)):
        raise ModelError(f"{CONFIG} does not name an architecture but {shorten(names)}", hint=_SAVE_AGAIN)
    return name


def _model_type(config: Mapping[str, Any]) -> str:
    name = config.get("model_type")
    if not isinstance(name, str) or not _TYPE.fullmatch(name):
        what = "has no model_type" if name is None else f"has the model_type {shorten(name)}"
        raise ModelError(f"{CONFIG} {what}, so the kind of model is unknown", hint=_SAVE_AGAIN)
    return name


def _refuse_quantized(config: Mapping[str, Any]) -> None:
    found = config.get("quantization_config")
    if found is not None:
        method = found.get("quant_method") if isinstance(found, dict) else found
        hint = "give the original weights; `--set precision.method=…` quantises them with an accuracy gate"
        raise ModelError(f"the weights are quantised already ({shorten(method)})", hint=hint)


def shorten(value: Any) -> str:
    """A value from the folder for a message: on one line, escaped, shortened."""
    return ascii(value)[:120]
