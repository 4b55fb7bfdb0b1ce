"""What a bundle asks of the device, and the sizes that it was fixed to: told to people, and to loaders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Something that must be on the device and is in no bundle.

    `what` names it and `version` says which (`cuDNN`, `9`; empty where any will do); `check` is what a person does to
    see whether it is there. `libraries` are files that it brings, as the system's dynamic linker finds them: a loader
    can look for these, and for nothing where there are none.
    """

    what: str
    version: str = ""
    check: str = ""
    libraries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedSize:
    """A dynamic dimension of the model that has one size in this bundle: its name, the size, and by whom it was fixed.

    `axes` are the places that it has in the inputs: the axes by the name of the input.
    """

    name: str
    size: int
    by: Literal["target", "user", "model"]
    axes: Mapping[str, tuple[int, ...]]


FIXED_BY: Mapping[str, str] = {
    "target": "fixed by the target",
    "user": "given for this build",
    "model": "the only size that the original model ran at, of those that were tried",
}
"""By whom a size was fixed, in words."""


def describe_need(need: Need) -> str:
    """`cuDNN 9 (check: ldconfig -p | grep libcudnn)`."""
    name = f"{need.what} {need.version}".strip()
    return f"{name} (check: {need.check})" if need.check else name
