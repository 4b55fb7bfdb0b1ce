"""Export models of ten architectures by Optimum and by PyTorch's own exporter, and compare both with PyTorch.

`python export_pytorch.py FOLDER MINILM [NAME…]`, in an environment with torch, transformers, optimum-onnx, onnxscript
and onnxruntime, prints a line of JSON for each. Weights are random, except MiniLM's, which are read from its folder.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "CUDA_VISIBLE_DEVICES": ""}

import numpy as np
import onnx
import onnxruntime
import torch
import transformers
from optimum.exporters.onnx import export
from optimum.exporters.tasks import TasksManager

BODY = {"hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 512}
IMAGE = {"image_size": 64, "patch_size": 8}
SPEECH = {"conv_dim": [32, 32], "conv_stride": [5, 2], "conv_kernel": [10, 3], "num_conv_pos_embeddings": 16}
AUDIO = {"d_model": 128, "encoder_attention_heads": 4, "decoder_attention_heads": 4}
OTHERS = {"batch_size": 3, "sequence_length": 11, "audio_sequence_length": 12000}
"""Sizes that neither exporter traced with."""
ROUNDS = 15
RUNS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """`cached` says that past keys and values are inputs; `behavior` is Optimum's word for the exported part."""

    name: str
    model: str
    config: str
    settings: Mapping[str, Any]
    task: str
    behavior: str = ""
    cached: bool = False


CASES = (
    Case(name="BERT", model="BertModel", config="BertConfig", settings=BODY, task="feature-extraction"),
    Case(
        name="DistilBERT",
        model="DistilBertModel",
        config="DistilBertConfig",
        settings={"dim": 128, "n_layers": 4, "n_heads": 4, "hidden_dim": 512},
        task="feature-extraction",
    ),
    Case(name="MiniLM (trained)", model="BertModel", config="", settings={}, task="feature-extraction"),
    Case(
        name="ViT",
        model="ViTForImageClassification",
        config="ViTConfig",
        settings={**BODY, **IMAGE},
        task="image-classification",
    ),
    Case(
        name="ConvNeXt",
        model="ConvNextForImageClassification",
        config="ConvNextConfig",
        settings={"hidden_sizes": [32, 64, 128, 256], "depths": [1, 1, 3, 1]},
        task="image-classification",
    ),
    Case(
        name="Whisper's encoder",
        model="WhisperForConditionalGeneration",
        config="WhisperConfig",
        settings=AUDIO,
        task="automatic-speech-recognition",
        behavior="encoder",
    ),
    Case(
        name="Wav2Vec2",
        model="Wav2Vec2ForCTC",
        config="Wav2Vec2Config",
        settings={**BODY, **SPEECH, "num_conv_pos_embedding_groups": 4},
        task="automatic-speech-recognition",
    ),
    Case(
        name="CLIP",
        model="CLIPModel",
        config="CLIPConfig",
        settings={"text_config": BODY, "vision_config": {**BODY, **IMAGE}, "projection_dim": 64},
        task="zero-shot-image-classification",
    ),
    Case(
        name="Llama with its cache",
        model="LlamaForCausalLM",
        config="LlamaConfig",
        settings={**BODY, "num_key_value_heads": 2, "vocab_size": 1000},
        task="text-generation",
        cached=True,
    ),
    Case(
        name="T5",
        model="T5ForConditionalGeneration",
        config="T5Config",
        settings={"d_model": 128, "d_kv": 32, "d_ff": 512, "num_layers": 3, "num_heads": 4, "vocab_size": 1000},
        task="text2text-generation",
        behavior="monolith",
    ),
)

Arrays = dict[str, np.ndarray]


class Plain(torch.nn.Module):
    """A model as a function from tensors to tensors: what both exports are compared with. `names` are those of the
    first inputs; past keys and values follow them flat, layer by layer.
    """

    def __init__(self, model: Any, names: list[str], outputs: list[str]) -> None:
        super().__init__()
        self.model, self.names = model, names
        self.outputs = [name for name in outputs if "." not in name]

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The outputs that Optimum names, present keys and values flat behind the others."""
        inputs: dict[str, Any] = dict(zip(self.names, tensors, strict=False))
        past = tensors[len(self.names) :]
        if past:
            layers = tuple(zip(past[::2], past[1::2], strict=True))
            inputs["past_key_values"] = transformers.DynamicCache.from_legacy_cache(layers)
        found = self.model(**inputs, return_dict=True)
        present = found.past_key_values.to_legacy_cache() if past else ()
        return (*(getattr(found, name) for name in self.outputs), *(tensor for layer in present for tensor in layer))


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A loaded case: PyTorch's model, Optimum's description, and the function that both exports must reproduce."""

    model: Any
    config: Any
    plain: Plain

    @property
    def names(self) -> list[str]:
        """All inputs in the order of `plain`; Optimum names past keys and values among the others."""
        return [*self.plain.names, *(name for name in self.config.inputs if name not in self.plain.names)]

    def make_inputs(self, sizes: Mapping[str, int]) -> tuple[torch.Tensor, ...]:
        """Seeded inputs in the order of `plain`."""
        torch.manual_seed(len(sizes))
        np.random.seed(0)  # noqa: NPY002 - Optimum draws from the old generator
        made = dict(self.config.rename_ambiguous_inputs(self.config.generate_dummy_inputs(framework="pt", **sizes)))
        past = made.pop("past_key_values", ())
        return (*(made[name] for name in self.plain.names), *(tensor for layer in past for tensor in layer))


def load(case: Case, minilm: Path) -> Subject:
    """The case with seeded random weights, or the trained ones."""
    torch.manual_seed(0)
    owner = getattr(transformers, case.model)
    if case.config:
        whole = owner(getattr(transformers, case.config)(**case.settings)).eval()
    else:
        whole = owner.from_pretrained(str(minilm), use_safetensors=True).eval()
    whole.config.use_cache = case.cached
    constructor = TasksManager.get_exporter_config_constructor(
        model=whole, exporter="onnx", task=case.task, library_name="transformers"
    )
    config = constructor(whole.config, int_dtype="int64", float_dtype="fp32", **_past(case))
    if case.behavior:
        config = config.with_behavior(case.behavior)
    model = whole.get_encoder() if case.behavior == "encoder" else whole
    names = [name for name in config.inputs if "." not in name]
    return Subject(model=model, config=config, plain=Plain(model, names, list(config.outputs)).eval())


def _past(case: Case) -> dict[str, bool]:
    return {"use_past": True, "use_past_in_inputs": True} if case.cached else {}


def export_by_optimum(subject: Subject, target: Path) -> None:
    """As bundler's stage exports."""
    export(subject.model, subject.config, target, device="cpu", do_constant_folding=True)


def export_by_pytorch(subject: Subject, target: Path) -> None:
    """Through `torch.export`; the dimensions that Optimum names may be dynamic, where PyTorch finds that they are."""
    names = subject.names
    axes = tuple(dict.fromkeys(subject.config.inputs[name], torch.export.Dim.AUTO) for name in names)
    program = torch.onnx.export(
        subject.plain,
        subject.make_inputs({}),
        dynamic_shapes=(axes,),
        input_names=names,
        output_names=list(subject.config.outputs),
        dynamo=True,
        verbose=False,
    )
    program.save(target, external_data=False)


EXPORTERS: Mapping[str, Callable[[Subject, Path], None]] = {"optimum": export_by_optimum, "pytorch": export_by_pytorch}


def measure(case: Case, folder: Path, minilm: Path) -> dict[str, Any]:
    """Figures of one case, by exporter; `error` where it made no model that runs."""
    rows: dict[str, Any] = {"name": case.name}
    sessions: dict[str, tuple[onnxruntime.InferenceSession, Arrays]] = {}
    for name, exporter in EXPORTERS.items():
        target = folder / name / "model.onnx"
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            subject = load(case, minilm)  # anew: Optimum patches a model while it exports
            started = time.perf_counter()
            exporter(subject, target)
            seconds = time.perf_counter() - started
            rows[name] = {"seconds": seconds, **describe(target)}
            session = onnxruntime.InferenceSession(target, providers=["CPUExecutionProvider"])
            rows[name] |= compare(subject, session)
            if isinstance(rows[name]["traced"], float):
                sessions[name] = (session, feeds(session, subject.names, subject.make_inputs({})))
        except Exception as error:  # noqa: BLE001 - the libraries raise anything; the table says it
            cause = error.__cause__ or error
            text = f"{type(cause).__name__}: {str(cause).strip()}".replace("\n", " ")
            rows.setdefault(name, {})["error"] = text[:300]
    for name, values in time_in_turns(sessions).items():
        rows[name]["milliseconds"] = values
    return rows


def describe(path: Path) -> dict[str, Any]:
    """Opset, size, nodes, and what is dynamic."""
    model = onnx.load(path)
    axes = {
        port.name: [index for index, dim in enumerate(port.type.tensor_type.shape.dim) if not dim.HasField("dim_value")]
        for port in model.graph.input
    }
    return {
        "opset": next(item.version for item in model.opset_import if not item.domain),
        "bytes": path.stat().st_size,
        "nodes": len(model.graph.node) + sum(len(function.node) for function in model.functions),
        "operators": len({node.op_type for node in model.graph.node}),
        "dynamic": sum(map(len, axes.values())),
        "inputs": list(axes),
    }


def feeds(session: onnxruntime.InferenceSession, names: list[str], tensors: tuple[torch.Tensor, ...]) -> Arrays:
    """The inputs that an export kept, by name."""
    given = dict(zip(names, tensors, strict=True))
    return {port.name: given[port.name].numpy() for port in session.get_inputs()}


def compare(subject: Subject, session: onnxruntime.InferenceSession) -> dict[str, Any]:
    """The largest difference from PyTorch as a share of an output's range, at the traced sizes and at others."""
    found = {}
    for label, sizes in (("traced", {}), ("others", OTHERS)):
        inputs = subject.make_inputs(sizes)
        with torch.inference_mode():
            expected = [tensor.numpy() for tensor in subject.plain(*inputs)]
        try:
            found[label] = _difference(session.run(None, feeds(session, subject.names, inputs)), expected)
        except Exception as error:  # noqa: BLE001 - the runtime's own errors
            found[label] = f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"
    return found


def _difference(found: list[np.ndarray], expected: list[np.ndarray]) -> float | str:
    if [array.shape for array in found] != [array.shape for array in expected]:
        return f"other outputs: {[array.shape for array in found]}, not {[array.shape for array in expected]}"[:200]
    scales = [max(float(np.abs(array).max(initial=0)), 1e-6) for array in expected]
    return max(float(np.abs(a - b).max(initial=0)) / c for a, b, c in zip(found, expected, scales, strict=True))


def time_in_turns(sessions: Mapping[str, tuple[onnxruntime.InferenceSession, Arrays]]) -> dict[str, float]:
    """The median time of one run, in rounds that alternate, so that a busy moment meets both."""
    seen: dict[str, list[float]] = {name: [] for name in sessions}
    for _ in range(ROUNDS):
        for name, (session, given) in sessions.items():
            started = time.perf_counter()
            for _ in range(RUNS):
                session.run(None, given)
            seen[name].append((time.perf_counter() - started) / RUNS * 1000)
    return {name: statistics.median(values) for name, values in seen.items()}


def main(folder: Path, minilm: Path, names: list[str]) -> None:
    """One line of JSON for each case (or those named), after one that warms both exporters up."""
    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
    transformers.utils.logging.set_verbosity_error()
    screen = sys.stdout
    for number, case in enumerate((CASES[0], *(case for case in CASES if not names or case.name in names))):
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            figures = measure(case, folder / str(number), minilm)
        if number:
            print(json.dumps(figures), file=screen, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
