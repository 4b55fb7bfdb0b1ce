"""What a user learns of a model, and of a file that is none, before anything runs."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from bundler.model.codec import decode
from bundler.model.errors import ModelError
from bundler.model.facts import ModelFacts
from bundler.model.signature import describe_type
from bundler.model.stage import StageRequest
from bundler.onnxkit.slim import read_without_weights
from bundler.stages.inspect.run import run
from tests.support import hostile_models, models


def inspect(path: Path, name: str = "tiny") -> ModelFacts:
    request = StageRequest(inputs={"model": path}, options={"name": name}, output=path.parent)
    return decode(ModelFacts, dict(run(request, lambda _share, _text: None).facts))


def refuse(path: Path) -> ModelError:
    with pytest.raises(ModelError) as caught:
        inspect(path)
    assert caught.value.hint
    return caught.value


def test_masks_are_known_by_their_use(tmp_path: Path) -> None:
    nodes = [helper.make_node("Cast", ["flags"], ["truths"], to=TensorProto.BOOL)]
    model = models.make_model(
        nodes, [models.value("flags", [2], TensorProto.INT64)], [models.value("truths", [2], TensorProto.BOOL)]
    )
    assert inspect(models.save(model, tmp_path), "masked").masks == ("flags",)
    assert inspect(models.save(models.mlp(), tmp_path / "plain"), "plain").masks == ()


def test_the_coefficients_of_a_classical_model_are_parameters(tmp_path: Path) -> None:
    facts = inspect(models.save(models.zipmap(), tmp_path), "linear")
    assert facts.parameter_count == 3 * 4 + 3
    assert facts.weight_bytes == 0


def test_facts_of_a_network(tmp_path: Path) -> None:
    path = models.save(models.cnn(), tmp_path)
    facts = inspect(path, "orientation")
    assert facts.name == "orientation"
    assert facts.opsets == {"ai.onnx": 17}
    assert facts.operators == {"Conv": 2, "Flatten": 1, "Gemm": 1, "GlobalAveragePool": 1, "Relu": 2, "Softmax": 1}
    assert facts.node_count == 8
    assert facts.parameter_count == 8 * 27 + 8 + 16 * 72 + 16 + 5 * 16 + 5
    assert facts.weight_bytes == facts.parameter_count * 4
    assert facts.file_bytes == path.stat().st_size
    assert facts.signature.symbols == ("batch",)
    assert not facts.control_flow
    assert not facts.quantized
    # Weights, and while the first Relu runs its input and output of 8 channels of 16 by 16.
    assert facts.peak_memory_bytes == facts.weight_bytes + 2 * 8 * 16 * 16 * 4


@pytest.mark.parametrize(
    ("make", "inputs", "outputs"),
    [
        (models.sequence_output, ["float32[4, 3]"], ["sequence(float32[1, 3])"]),
        (models.sequence_input, ["sequence(float32[n, 3])"], ["float32[total, 3]"]),
        (models.optional_input, ["optional(float32[2])"], ["bool[]"]),
        (models.optional_output, ["float32[2]"], ["optional(float32[2])"]),
        (models.zipmap, ["float32[n, 4]"], ["int64[n]", "sequence(map(int64, float32[]))"]),
        (models.strings, ["str[n]"], ["str[n]"]),
        (models.bfloat16_model, ["float32[2, 3]"], ["bfloat16[2, 3]"]),
        (models.unnamed_dimensions, ["float32[?, 3, ?, ?]"], ["float32[?, 2, ?, ?]"]),
    ],
)
def test_signature_of_every_kind(tmp_path: Path, make, inputs: list[str], outputs: list[str]) -> None:
    signature = inspect(models.save(make(), tmp_path)).signature
    assert [describe_type(port.type) for port in signature.inputs] == inputs
    assert [describe_type(port.type) for port in signature.outputs] == outputs


def test_weights_listed_as_inputs_are_no_inputs(tmp_path: Path) -> None:
    assert [port.name for port in inspect(models.save(models.old_ir(), tmp_path)).signature.inputs] == ["x"]


def test_an_input_with_a_default_is_optional(tmp_path: Path) -> None:
    ports = inspect(models.save(models.overridable(), tmp_path)).signature.inputs
    assert [(port.name, port.optional) for port in ports] == [("x", False), ("scale", True)]


def test_what_needs_care_is_found(tmp_path: Path) -> None:
    assert inspect(models.save(models.if_model(), tmp_path / "if")).control_flow
    assert inspect(models.save(models.loop_model(), tmp_path / "loop")).control_flow
    assert inspect(models.save(models.contrib(), tmp_path / "contrib")).custom_domains == ("com.microsoft",)
    assert inspect(models.save(models.local_function(), tmp_path / "function")).custom_domains == ()
    assert inspect(models.save(models.random_model(), tmp_path / "random")).random_operators == ("RandomNormalLike",)


@pytest.mark.parametrize("name", models.HOSTILE_NAMES)
def test_hostile_names_come_through_unchanged(tmp_path: Path, name: str) -> None:
    signature = inspect(models.save(models.hostile(name), tmp_path)).signature
    assert signature.inputs[0].name == name
    assert signature.outputs[0].name == f"{name} out"


def test_an_empty_name_is_not_valid(tmp_path: Path) -> None:
    assert refuse(models.save(models.hostile(""), tmp_path)).message == "the model is not valid ONNX"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "model.onnx is empty"),
        (b"<!DOCTYPE html><html>not found</html>", "an HTML or XML page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "a Git LFS pointer"),
        (b"PK\x03\x04rest of an archive", "a ZIP archive"),
        (b"\x20\x00\x00\x00ORTM and more", "already in ORT format"),
        (b"hello, world", "it is text"),
        (b"\xff\xfe\x00\x01\x80binary", "not an ONNX file"),
    ],
)
def test_a_file_that_is_no_model_is_named(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    assert said in refuse(path).message


def test_a_missing_file(tmp_path: Path) -> None:
    assert refuse(tmp_path / "model.onnx").message == "model.onnx is not a file"


@pytest.mark.parametrize("kept", [10, 500, -1])
def test_a_truncated_file_is_called_truncated(tmp_path: Path, kept: int) -> None:
    path = models.save(models.cnn(), tmp_path)
    path.write_bytes(path.read_bytes()[:kept])
    assert refuse(path).message == "model.onnx is truncated"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (models.cyclic, "cycle"),
        (models.duplicate_names, "not valid ONNX"),
        (models.unknown_operator, "does not support all operators"),
        (models.unknown_domain, "does not support all operators"),
        (models.newer_opset, "cannot read this model's format"),
        (models.newer_ir, "cannot read this model's format"),
    ],
)
def test_an_unusable_graph_is_refused(tmp_path: Path, make, said: str) -> None:
    assert said in refuse(models.save(make(), tmp_path)).message


def test_a_misspelled_operator_gets_a_suggestion(tmp_path: Path) -> None:
    details = refuse(models.save(models.unknown_operator(), tmp_path)).details
    assert details == ("Relux: no such operator (did you mean Relu?)",)


def test_an_operator_newer_than_the_declared_opset(tmp_path: Path) -> None:
    model = models.contrib()
    model.graph.node[0].domain = ""
    assert refuse(models.save(model, tmp_path)).details == ("Gelu: requires opset 20, and the model declares 17",)


def test_nodes_out_of_order_are_only_untidy(tmp_path: Path) -> None:
    model = models.mlp()
    reordered = list(reversed(model.graph.node))
    copies = [type(node).FromString(node.SerializeToString()) for node in reordered]
    del model.graph.node[:]
    model.graph.node.extend(copies)
    assert inspect(models.save(model, tmp_path)).node_count == 9


@pytest.mark.parametrize("location", ["../../etc/passwd", "/etc/passwd", "C:\\weights", "a\\..\\..\\b", "a/../../b"])
def test_external_data_outside_the_folder(tmp_path: Path, location: str) -> None:
    error = refuse(models.save(models.external_at(location), tmp_path))
    assert error.details == (f"{location!r} lies outside the model's folder",)


def test_external_data_that_is_missing(tmp_path: Path) -> None:
    assert refuse(models.save(models.external_at("weights.bin"), tmp_path)).details == ("'weights.bin' is missing",)


def test_external_data_behind_links(tmp_path: Path) -> None:
    real = tmp_path / "real.bin"
    real.write_bytes(bytes(12))
    model = models.save(models.external_at("weights.bin"), tmp_path / "model")
    link = model.parent / "weights.bin"
    link.symlink_to(real)
    error = refuse(model)
    assert "symbolic link" in error.details[0]
    assert "cp -rL" in str(error.hint)
    link.unlink()
    os.link(real, link)
    assert "hard link" in refuse(model).details[0]


def test_truncated_external_data(tmp_path: Path) -> None:
    model = models.save_external(models.cnn(), tmp_path)
    data = tmp_path / "weights.bin"
    data.write_bytes(data.read_bytes()[:-8])
    assert any("truncated" in line for line in refuse(model).details)


def test_external_data_is_counted_but_not_read(tmp_path: Path) -> None:
    facts = inspect(models.save_external(models.cnn(), tmp_path))
    assert facts.external_files == ("weights.bin",)
    assert facts.external_bytes == (tmp_path / "weights.bin").stat().st_size
    assert facts.total_bytes == facts.file_bytes + facts.external_bytes


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(position=st.integers(0, 6000), patch=st.binary(min_size=1, max_size=12))
def test_a_damaged_file_never_ends_in_anything_but_an_answer(tmp_path: Path, position: int, patch: bytes) -> None:
    whole = models.cnn().SerializeToString()
    start = position % len(whole)
    path = tmp_path / "damaged.onnx"
    path.write_bytes(whole[:start] + patch + whole[start + len(patch) :])
    with contextlib.suppress(ModelError):
        inspect(path)


def test_weights_are_not_part_of_what_is_read(tmp_path: Path) -> None:
    weights = models.weights(512, 512)
    model = models.mlp(width=512, hidden=512)
    path = models.save(model, tmp_path)
    slim = read_without_weights(path)
    assert len(slim) < path.stat().st_size - weights.nbytes // 2
    assert np.frombuffer(model.graph.initializer[2].raw_data, np.float32) == pytest.approx(np.sqrt(2))


def test_weights_that_are_generated_and_not_held_are_counted(tmp_path: Path) -> None:
    published = Path(onnx.__file__).parent / "backend/test/data/light/light_squeezenet.onnx"
    facts = inspect(published)
    assert facts.file_bytes < 20_000
    assert 4_900_000 < facts.generated_bytes < 5_100_000
    assert inspect(models.save(models.cnn(), tmp_path)).generated_bytes == 0


def test_functions_that_come_to_too_many_nodes_are_refused_unexpanded(tmp_path: Path) -> None:
    path = models.save(hostile_models.nested_functions(depth=30, calls=2), tmp_path)
    assert path.stat().st_size < 3000
    error = refuse(path)
    assert "30 functions call each other and expand to 536,870,912 nodes" in error.message


def test_the_count_of_nodes_may_have_any_number_of_digits(tmp_path: Path) -> None:
    error = refuse(models.save(hostile_models.nested_functions(depth=90, calls=50), tmp_path))
    assert "more than a billion nodes" in error.message


def test_functions_that_call_each_other_too_deep_are_refused(tmp_path: Path) -> None:
    error = refuse(models.save(hostile_models.nested_functions(depth=900, calls=1), tmp_path))
    assert "more than 100 levels deep" in error.message


def test_functions_that_call_functions_are_taken(tmp_path: Path) -> None:
    facts = inspect(models.save(hostile_models.nested_functions(depth=8, calls=3), tmp_path))
    assert facts.operators == {"Relu": 1, **{f"nested.level{level}": 3 if level > 1 else 1 for level in range(1, 9)}}


def test_a_function_that_calls_itself_is_refused(tmp_path: Path) -> None:
    assert refuse(models.save(hostile_models.calling_itself(), tmp_path)).message == "the model is not valid ONNX"
