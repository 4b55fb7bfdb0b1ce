"""A bundle for Java or Android takes tensors alone; a forest's scores as maps are refused with the way to tensors."""

from __future__ import annotations

import pytest

from bundler.emitters.jvm.context import check_signature
from bundler.model.errors import UsageError
from bundler.model.signature import Port, Signature, ValueType

FLOATS = ValueType(kind="tensor", element_type="float32", shape=(1,))
MAP = ValueType(kind="map", key_type="int64", element=FLOATS)
SCORES = Port(name="scores", type=ValueType(kind="sequence", element=MAP))


def test_scores_as_maps_are_refused_with_what_helps() -> None:
    with pytest.raises(UsageError, match="Java or Android cannot hold") as caught:
        check_signature(Signature(inputs=(), outputs=(SCORES,)))
    assert "'zipmap': False" in (caught.value.hint or "")
    assert (caught.value.hint or "").endswith("or write plain files with --format files")


def test_an_input_has_no_such_way() -> None:
    with pytest.raises(UsageError) as caught:
        check_signature(Signature(inputs=(Port(name="row", type=MAP),), outputs=()))
    assert "zipmap" not in (caught.value.hint or "")
