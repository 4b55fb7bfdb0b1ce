"""A web bundle takes tensors alone; plain files would be no way around what the runtime in a browser does not pass."""

from __future__ import annotations

import pytest

from bundler.emitters.web.emitter import WebEmitter
from bundler.model.errors import UsageError
from bundler.model.signature import Port, Signature, ValueType

FLOATS = ValueType(kind="tensor", element_type="float32", shape=(1,))
SCORES = ValueType(kind="map", key_type="int64", element=FLOATS)


@pytest.mark.parametrize(
    ("element", "advice"), [(SCORES, "'zipmap': False"), (FLOATS, "inputs and outputs to tensors")]
)
def test_a_sequence_is_refused_with_what_helps(element: ValueType, advice: str) -> None:
    output = Port(name="scores", type=ValueType(kind="sequence", element=element))
    with pytest.raises(UsageError, match="which onnxruntime-web does not pass") as caught:
        WebEmitter().check_signature(Signature(inputs=(), outputs=(output,)))
    assert advice in (caught.value.hint or "")
    assert "--format files" not in (caught.value.hint or "")


def test_no_exporter_changes_a_map_that_is_an_input() -> None:
    """A `DictVectorizer` takes one; the advice for outputs was given."""
    signature = Signature(inputs=(Port(name="row", type=SCORES),), outputs=())
    with pytest.raises(UsageError) as caught:
        WebEmitter().check_signature(signature)
    assert "zipmap" not in (caught.value.hint or "")
