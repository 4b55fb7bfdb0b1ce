"""Encoders are fused into the runtime's operators with the same outputs, and with the same bytes each time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from bundler.model.errors import EnvironmentMissingError, ModelError, StageError
from bundler.model.stage import StageResult
from bundler.onnxkit.sessions import REFERENCE, SessionSettings, open_session
from tests.support import models
from tests.support.command_line import ROOT
from tests.support.encoders import sentences, tiny_encoder
from tests.support.stage_calls import call_stage
from tests.unit.stages.shuffling import shuffle

WHOLE = {
    "com.microsoft.Attention": 2,
    "com.microsoft.BiasGelu": 2,
    "com.microsoft.EmbedLayerNormalization": 1,
    "com.microsoft.SkipLayerNormalization": 4,
}


def fuse(model: ModelProto | Path, folder: Path, **options: object) -> StageResult:
    """Run the stage; the fused model is `folder / "out" / "model.onnx"`."""
    path = model if isinstance(model, Path) else models.save(model, folder / "in")
    return call_stage("fuse_transformers", folder / "out", {"model": path}, **options)


def answer(path: Path, feeds: dict[str, np.ndarray], settings: SessionSettings = REFERENCE) -> np.ndarray:
    result: np.ndarray = open_session(path, settings).run(None, feeds)[0]
    return result


@pytest.mark.parametrize(
    "sizes",
    [{}, {"opset": 17}, {"opset": 12}, {"layers": 1, "width": 48, "heads": 3}],
    ids=["14", "17", "12", "narrow"],
)
@pytest.mark.parametrize("scattered", [False, True], ids=["padded", "holes"])
def test_a_fused_encoder_has_the_same_outputs_for_every_mask(tmp_path: Path, sizes, scattered) -> None:
    result = fuse(tiny_encoder(**sizes), tmp_path)
    layers = sizes.get("layers", 2)
    assert result.facts["fused"] == {
        "com.microsoft.Attention": layers,
        "com.microsoft.BiasGelu": layers,
        "com.microsoft.EmbedLayerNormalization": 1,
        "com.microsoft.SkipLayerNormalization": 2 * layers,
    }
    assert result.notes == ()
    feeds = sentences(3, 12, scattered=scattered)
    before, after = (answer(tmp_path / place / "model.onnx", feeds) for place in ("in", "out"))
    np.testing.assert_allclose(after, before, rtol=0, atol=2e-5)


def test_what_was_found_and_why_is_in_the_facts(tmp_path: Path) -> None:
    facts = fuse(tiny_encoder(), tmp_path).facts
    assert facts["model_type"] == "bert"
    assert facts["detected"]
    assert facts["reasons"] == ["bert: attention over tokens, as in an encoder"]
    assert (facts["heads"], facts["hidden_size"], facts["heads_from"]) == (4, 32, "structure")
    assert (facts["attentions"], facts["attentions_fused"]) == (2, 2)
    assert facts["tried"] == [{"model_type": "bert", "fused": 9, "attentions": 2, "problem": ""}]
    assert facts["nodes_after"] < facts["nodes_before"]


@pytest.mark.parametrize(
    "sizes",
    [{"batch": 2, "sequence": 16}, {"batch": 1, "sequence": 16, "opset": 17}, {"split": "rest"}],
    ids=["fixed", "fixed-17", "heads-as-rest"],
)
def test_attention_is_found_where_the_library_alone_misses_it(tmp_path: Path, sizes) -> None:
    """The runtime makes Gemm of projections with fixed shapes; newer exporters leave the number of heads open."""
    assert fuse(tiny_encoder(**sizes), tmp_path).facts["fused"]["com.microsoft.Attention"] == 2
    feeds = sentences(sizes.get("batch", 2), 16)
    before, after = (answer(tmp_path / place / "model.onnx", feeds) for place in ("in", "out"))
    np.testing.assert_allclose(after, before, rtol=0, atol=2e-5)


def test_lengths_for_masks_are_said_to_be_wrong_for_other_masks(tmp_path: Path) -> None:
    result = fuse(tiny_encoder(), tmp_path, mask="end")
    assert [note.text for note in result.notes] == [
        "the fused model reads each row's mask as a length: it is correct only for padding on the right"
    ]
    padded, holes = sentences(3, 12), sentences(3, 12, scattered=True)
    source, target = tmp_path / "in" / "model.onnx", tmp_path / "out" / "model.onnx"
    np.testing.assert_allclose(answer(target, padded), answer(source, padded), rtol=0, atol=2e-5)
    assert np.abs(answer(target, holes) - answer(source, holes)).max() > 1e-2


def test_fusions_can_be_left_out(tmp_path: Path) -> None:
    result = fuse(tiny_encoder(), tmp_path, disabled=["attention", "embed-layer-norm", "enable_bias_gelu"])
    assert result.facts["disabled"] == ["attention", "bias_gelu", "embed_layer_norm"]
    assert result.facts["fused"] == {
        "LayerNormalization": 1,
        "com.microsoft.Gelu": 2,
        "com.microsoft.SkipLayerNormalization": 4,
    }
    assert result.notes == (), "what was requested is no news"


def test_the_approximation_of_gelu_is_an_option(tmp_path: Path) -> None:
    assert fuse(tiny_encoder(), tmp_path, gelu_approximation=True).facts["fused"]["com.microsoft.FastGelu"] == 2


def test_attention_with_weights_apart_is_an_option(tmp_path: Path) -> None:
    result = fuse(tiny_encoder(), tmp_path, multi_head_attention=True)
    assert result.facts["fused"]["com.microsoft.MultiHeadAttention"] == 2


def test_packed_attention_is_for_cuda(tmp_path: Path) -> None:
    result = fuse(tiny_encoder(), tmp_path, packed=True)
    assert result.facts["fused"]["com.microsoft.PackedAttention"] == 2
    assert result.facts["fused"]["com.microsoft.RemovePadding"] == 1
    assert result.facts["mask"] == "end"
    assert [note.text for note in result.notes][-1] == "packed attention runs on CUDA only"


def test_packing_without_attention_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StageError, match="no attention could be packed"):
        fuse(tiny_encoder(), tmp_path, packed=True, disabled=["attention"])


def test_sizes_can_be_given(tmp_path: Path) -> None:
    facts = fuse(tiny_encoder(), tmp_path, model_type="bert", heads=4, hidden_size=32).facts
    assert facts["heads_from"] == "given"
    assert not facts["detected"]
    assert facts["fused"] == WHOLE


@pytest.mark.parametrize("make", [models.cnn, models.mlp, models.if_model])
def test_other_models_than_transformers_are_rejected(tmp_path: Path, make) -> None:
    with pytest.raises(StageError, match="nothing was fused: the model has no unfused attention") as caught:
        fuse(make(), tmp_path)
    assert "disable fusion" in (caught.value.hint or "")


def test_a_named_type_that_fits_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StageError, match="recognises no pattern in this model") as caught:
        fuse(models.cnn(), tmp_path, model_type="bert")
    assert caught.value.details == ("as bert: no pattern matched",)


def test_fusing_twice_says_that_it_is_done(tmp_path: Path) -> None:
    fuse(tiny_encoder(), tmp_path)
    with pytest.raises(StageError, match="nothing was fused") as caught:
        fuse(tmp_path / "out" / "model.onnx", tmp_path / "again")
    assert caught.value.details == ("it has fused attention already: com.microsoft.Attention (2)",)


def test_attention_in_an_unknown_form_is_reported(tmp_path: Path) -> None:
    """A softmax between products without a projection to merge: normalisations are fused, the attention is not."""
    model = tiny_encoder(layers=1)
    scale = next(tensor for tensor in model.graph.initializer if tensor.name == "scale")
    for node in model.graph.node:
        if node.op_type == "Div" and node.input[1] == scale.name:
            node.op_type = "Max"
    result = fuse(model, tmp_path)
    assert [note.text for note in result.notes] == [
        "0 of 1 attentions were fused: the library has no pattern for the others"
    ]
    assert result.notes[0].level == "warning"


def test_equal_models_give_equal_bytes(tmp_path: Path) -> None:
    model = tiny_encoder()
    for number in range(3):
        fuse(shuffle(model, number) if number else model, tmp_path / str(number))
    assert len({(tmp_path / str(number) / "out" / "model.onnx").read_bytes() for number in range(3)}) == 1


def test_the_seed_of_hashes_does_not_matter(tmp_path: Path) -> None:
    source = models.save(tiny_encoder(), tmp_path / "in")
    code = (
        "import sys; from pathlib import Path; from tests.support.stage_calls import call_stage;"
        "call_stage('fuse_transformers', Path(sys.argv[2]), {'model': Path(sys.argv[1])})"
    )
    for seed in ("1", "2"):
        command = [sys.executable, "-c", code, str(source), str(tmp_path / seed)]
        subprocess.run(command, check=True, cwd=ROOT, env={"PYTHONHASHSEED": seed, "ORT_DISABLE_TELEMETRY": "1"})
    assert (tmp_path / "1" / "model.onnx").read_bytes() == (tmp_path / "2" / "model.onnx").read_bytes()


def test_external_weights_are_read(tmp_path: Path) -> None:
    whole = fuse(tiny_encoder(), tmp_path / "whole")
    path = tmp_path / "apart" / "in" / "model.onnx"
    path.parent.mkdir(parents=True)
    onnx.save(tiny_encoder(), path, save_as_external_data=True, location="weights.bin", size_threshold=1024)
    apart = fuse(path, tmp_path / "apart")
    assert apart.facts == whole.facts
    outputs = [(tmp_path / name / "out" / "model.onnx").read_bytes() for name in ("whole", "apart")]
    assert outputs[0] == outputs[1]


def test_large_weights_leave_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("run", "preparing"):
        monkeypatch.setattr(f"bundler.stages.fuse_transformers.{module}.EMBEDDED_LIMIT", 1 << 14)
    result = fuse(tiny_encoder(), tmp_path)
    assert result.facts["fused"] == WHOLE
    assert (tmp_path / "out" / "model.onnx.data").is_file()
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["model.onnx", "model.onnx.data"]
    feeds = sentences(3, 12)
    before, after = (answer(tmp_path / place / "model.onnx", feeds) for place in ("in", "out"))
    np.testing.assert_allclose(after, before, rtol=0, atol=2e-5)


def test_half_precision_gets_no_casts(tmp_path: Path) -> None:
    model = tiny_encoder(opset=17)
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            values = np.clip(numpy_helper.to_array(tensor), -65504, 65504).astype(np.float16)
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    for node in model.graph.node:
        if node.op_type == "Cast":
            node.attribute[0].CopyFrom(helper.make_attribute("to", TensorProto.FLOAT16))
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT16
    result = fuse(model, tmp_path)
    assert result.facts["level"] == "none"
    assert result.facts["fused"]["com.microsoft.Attention"] == 2
    fused = onnx.load(tmp_path / "out" / "model.onnx")
    casts = [node for node in fused.graph.node if node.op_type == "Cast"]
    assert {attribute.i for node in casts for attribute in node.attribute} <= {TensorProto.INT32}


def test_the_old_backend_says_where_it_lives(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentMissingError, match="onnxruntime-tools is not in this environment"):
        fuse(tiny_encoder(), tmp_path, backend="onnxruntime-tools")


def test_a_broken_file_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"<html>")
    with pytest.raises(ModelError, match="HTML"):
        fuse(path, tmp_path)


def test_hostile_names_go_through(tmp_path: Path) -> None:
    model = tiny_encoder()
    for item in model.graph.input:
        new = f"{item.name}\n../../{{{{ 7 }}}}"
        for node in model.graph.node:
            node.input[:] = [new if name == item.name else name for name in node.input]
        item.name = new
    assert fuse(model, tmp_path).facts["fused"]["com.microsoft.Attention"] == 2
