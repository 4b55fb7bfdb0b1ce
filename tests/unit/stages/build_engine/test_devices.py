"""Compute capabilities as people write them."""

from __future__ import annotations

import pytest

from bundler.model.errors import StageError
from bundler.stages.build_engine.devices import choose_devices, mask_of, note_unopened

MEMBERS = ("NONE", "CURRENT", "SM75", "SM80", "SM86", "SM89", "SM120", "SM121")


def test_several_are_one_set_in_ascending_order() -> None:
    assert choose_devices(("12.0", " 8.9", "8.6", "8.9"), MEMBERS) == {"8.6": "SM86", "8.9": "SM89", "12.0": "SM120"}


@pytest.mark.parametrize("asked", ["9.0", "sm89", "8.9.1", "-1", "NONE", "8"])
def test_one_that_the_library_lacks_is_refused_with_those_that_it_has(asked: str) -> None:
    with pytest.raises(StageError, match="cannot build an engine for the compute capability") as caught:
        choose_devices((asked, "8.9"), MEMBERS)
    assert caught.value.details == ("supported: 7.5, 8.0, 8.6, 8.9, 12.0, 12.1",)
    assert repr(asked) in caught.value.message


def test_none_is_refused() -> None:
    with pytest.raises(StageError, match="no compute capability") as caught:
        choose_devices((" ",), MEMBERS)
    assert "8.9" in str(caught.value.hint)


def test_a_gpu_that_the_provider_does_not_take_is_warned_of() -> None:
    (note,) = note_unopened(("7.5", "8.0", "8.9", "12.1"))
    assert note.level == "warning"
    assert "on 7.5, 8.0 it will not load" in note.text
    assert note_unopened(("8.6", "8.9", "12.0")) == ()


def test_every_device_has_a_bit_of_its_own() -> None:
    assert mask_of(("SM89", "SM86", "SM86"), MEMBERS) == 0b1100
    assert mask_of(("SM75",), MEMBERS) == 1
