"""Model facts and profiles for tests of pure code."""

from __future__ import annotations

import dataclasses
from typing import Any

from bundler.model.facts import ModelFacts
from bundler.model.signature import Port, Signature, ValueType

SIGNATURE = Signature(
    inputs=(Port(name="image", type=ValueType(element_type="float32", shape=("batch", 3, 8, 8))),),
    outputs=(Port(name="scores", type=ValueType(element_type="float32", shape=("batch", 10))),),
)


def make_facts(**changes: Any) -> ModelFacts:
    """Facts of a small convolutional network with a dynamic batch, with `changes`."""
    facts = ModelFacts(
        name="cnn",
        ir_version=10,
        opsets={"": 21},
        producer="test",
        signature=SIGNATURE,
        operators={"Conv": 2, "Relu": 2, "Gemm": 1},
        node_count=100,
        parameter_count=500_000,
        file_bytes=2_000_000,
        weight_bytes=2_000_000,
        external_bytes=0,
        external_files=(),
        custom_domains=(),
        random_operators=(),
        control_flow=False,
        quantized=False,
        peak_memory_bytes=None,
    )
    return dataclasses.replace(facts, **changes)
