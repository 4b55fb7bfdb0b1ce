"""Every target is reported of, those too that a build would refuse for this model."""

import dataclasses

import pytest

from bundler.cli.commands.inspect import inspection_lines
from bundler.model.signature import ValueType
from bundler.pipeline.inspect import Inspection, _fit
from tests.support.facts import SIGNATURE, make_facts


def with_shape(*shape):
    port = dataclasses.replace(SIGNATURE.inputs[0], type=dataclasses.replace(SIGNATURE.inputs[0].type, shape=shape))
    return make_facts(signature=dataclasses.replace(SIGNATURE, inputs=(port,)))


def test_sizes_that_an_npu_wants_fixed_stand_in_the_way():
    fit = _fit(with_shape(1, 3, "height", "width"), "snapdragon-8g3")
    assert not fit.fits
    assert "requires fixed sizes" in fit.obstacles[0]
    assert "--dim height=64" in fit.obstacles[0]


def test_what_a_build_decides_is_reported_of_a_target_that_fits():
    fit = _fit(make_facts(), "linux-x64")
    assert fit.fits
    assert any(remark.startswith("level: extended") for remark in fit.remarks)


def test_names_of_dimensions_reach_no_terminal_as_they_are():
    facts = with_shape(1, 3, "a\x1b[2J", 8)
    fits = tuple(_fit(facts, target) for target in ("snapdragon-8g3", "linux-x64"))
    lines = list(inspection_lines(Inspection(facts=facts, digest="0" * 64, notes=(), targets=fits)))
    assert not [line for line in lines if "\x1b" in line]


def lines_of(facts):
    return [
        " ".join(line.split()) for line in inspection_lines(Inspection(facts=facts, digest="", notes=(), targets=()))
    ]


FIX = "(unnamed) (fix them with, for example, --shape image"


@pytest.mark.parametrize(
    ("shape", "reported"),
    [
        ((None, 3, None, None), f"dynamic image[0], image[2], image[3] {FIX}=1,3,64,64)"),
        (("n", None), f"dynamic n (fix one with --dim name=n); image[1] {FIX}=1,16)"),
        ((1, 3), "dynamic none"),
    ],
)
def test_sizes_without_a_name_are_no_fixed_ones(shape, reported):
    assert reported in lines_of(with_shape(*shape))


def test_memory_is_reported_with_the_batch_that_it_is_for():
    free, fixed = (dataclasses.replace(with_shape(*shape), peak_memory_bytes=328) for shape in (("n", 3), (1, 3)))
    assert "memory about 328 B at batch size one" in lines_of(free)
    assert "memory about 328 B" in lines_of(fixed)


@pytest.mark.parametrize("target", ["web-wasm", "android-arm64"])
def test_values_that_a_loader_cannot_hold_stand_in_the_way(target):
    labels = dataclasses.replace(SIGNATURE.outputs[0], type=ValueType(kind="sequence", element=ValueType()))
    facts = make_facts(signature=dataclasses.replace(SIGNATURE, outputs=(labels,)))
    fit = _fit(facts, target)
    assert not fit.fits
    assert "scores is sequence(" in fit.obstacles[0]
    assert "to tensors" in fit.obstacles[0] or "to such tensors" in fit.obstacles[0]
    assert _fit(facts, "linux-x64").fits
