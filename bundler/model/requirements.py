"""A bundle's requirements on the device, and the sizes that it was fixed to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A requirement on the device that no bundle contains.

    `what` names it and `version` says which (`cuDNN`, `9`; empty for any); `check` is a command or step that shows
    whether it is there. `libraries` are its files by their names for the system's dynamic linker, for which a loader
    can look.
    """

    what: str
    version: str = ""
    check: str = ""
    libraries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedSize:
    """A dynamic dimension of the model that has one size in this bundle: its name, the size, and what fixed it.

    `axes` are its axes in the inputs, by the name of the input.
    """

    name: str
    size: int
    by: Literal["target", "user", "model"]
    axes: Mapping[str, tuple[int, ...]]


FIXED_BY: Mapping[str, str] = {
    "target": "fixed by the target",
    "user": "given for this build",
    "model": "the only tried size at which the original model ran",
}
"""What fixed a size, as text."""


def describe_need(need: Need) -> str:
    """`cuDNN 9 (check: ldconfig -p | grep libcudnn)`."""
    name = f"{need.what} {need.version}".strip()
    return f"{name} (check: {need.check})" if need.check else name
