"""Run PyTorch and the export on the same seeded inputs."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime
import torch  # type: ignore[import-not-found, unused-ignore]

from bundler.onnxkit.fitting import shape_fits
from bundler.onnxkit.running import run_session
from bundler.stages.export_huggingface.differences import Arrays
from bundler.stages.export_huggingface.exporting import quiet
from bundler.stages.export_huggingface.loading import LIBRARY_ERRORS, Loaded


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A model with Optimum's description of it, and a session on its export."""

    loaded: Loaded
    config: Any
    session: onnxruntime.InferenceSession

    @property
    def outputs(self) -> list[str]:
        """The export's outputs in its order."""
        return [port.name for port in self.session.get_outputs()]

    def make_inputs(self, sizes: Mapping[str, int], seed: int) -> dict[str, Any] | None:
        """Seeded tensors by PyTorch's names, in Optimum's sizes except `sizes`; None where it has none of these."""
        torch.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002 - Optimum draws from the old generator
        try:
            return dict(self.config.generate_dummy_inputs(framework="pt", **sizes))
        except LIBRARY_ERRORS:
            if not sizes:
                raise
            return None

    def feeds(self, inputs: Mapping[str, Any]) -> Arrays:
        """The same inputs by the export's names."""
        wanted = [port.name for port in self.session.get_inputs()]
        ordered = self.config.generate_dummy_inputs_for_validation(dict(inputs), wanted)
        return {name: value.numpy() for name, value in ordered.items() if name in wanted}

    def fits(self, feeds: Arrays) -> bool:
        """Whether inputs have the sizes that the export fixes."""
        return all(
            port.name in feeds and shape_fits(feeds[port.name].shape, port.shape) for port in self.session.get_inputs()
        )

    def ask_model(self, inputs: Mapping[str, Any]) -> Arrays | None:
        """PyTorch's outputs under the export's names; None when it rejects these inputs.

        The model is called as users call it; only for outputs that Optimum itself adds, as it was patched for the
        export.
        """
        own = self._run_model(inputs)
        if own is None or set(self.outputs) <= set(own):
            return own
        with self.config.patch_model_for_export(self.loaded.model):
            return self._run_model(inputs)

    def ask_export(self, feeds: Arrays) -> Arrays:
        """The export's outputs. Raises `RunError`."""
        return {name: np.asarray(value) for name, value in run_session(self.session, feeds).items()}

    def _run_model(self, inputs: Mapping[str, Any]) -> Arrays | None:
        copies = {name: value.clone() if hasattr(value, "clone") else value for name, value in inputs.items()}
        try:
            with quiet(), torch.inference_mode():
                result = self.loaded.model(**self.config.rename_ambiguous_inputs(copies))
        except LIBRARY_ERRORS:
            return None
        flat: Arrays = {}
        for key, value in result.items():
            flat |= self._flatten(self.config.torch_to_onnx_output_map.get(key, key), value)
        return flat

    def _flatten(self, name: str, value: Any) -> Arrays:
        parts = {name: value}
        if isinstance(value, (list, tuple)):
            parts = self.config.flatten_output_collection_property(name, value)
        return {item: tensor.numpy() for item, tensor in parts.items() if hasattr(tensor, "numpy")}
