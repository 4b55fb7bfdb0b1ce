"""The reference's own rules for quantising for one provider: a configuration and a pre-process."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from bundler.model.errors import StageError

_PACKAGE: Final = "onnxruntime.quantization.execution_providers"
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,30}")


@dataclass(frozen=True, slots=True)
class ProviderRules:
    """`configure` returns the quantiser's settings for a model, and `preprocess` writes a model for the quantiser."""

    configure: Callable[..., Any]
    preprocess: Callable[..., bool]


def find_rules(name: str) -> ProviderRules:
    """The rules in the reference's module `name`. Raises `StageError` when it has none."""
    try:
        module = importlib.import_module(f"{_PACKAGE}.{name}" if _NAME.fullmatch(name) else "")
        return ProviderRules(getattr(module, f"get_{name}_qdq_config"), getattr(module, f"{name}_preprocess_model"))
    except (ImportError, AttributeError, ValueError) as error:
        hint = "remove `rules`, or name a module of onnxruntime.quantization.execution_providers"
        raise StageError(f"ONNX Runtime has no own quantisation rules for {name[:40]!r}", hint=hint) from error
