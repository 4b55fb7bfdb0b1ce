"""Reads `runtime.json` into small values. Without a schema library, to keep the load time low."""

from __future__ import annotations

import json
from typing import Any

from .errors import IncompatibleError
from .integrity import File, Memory, read_pinned
from .tuning import Tuning

SCHEMA = 4


class Port:
    """One input or output: the model's own `name`, the `python_name` in this package, and its type.

    `kind` is `tensor`, `sparse_tensor`, `sequence`, `map` or `optional`; `element_type` is NumPy's name of a tensor's
    type; `shape` holds a number for a fixed dimension, a name for a symbolic one, None for an unknown one, and is
    itself None when the rank is unknown. `optional` inputs may be left out. `fixed` has, by axis, the dimensions that
    the model leaves open and this bundle fixes: their name, size, and what fixed them.
    """

    __slots__ = ("element_type", "fixed", "kind", "name", "optional", "python_name", "shape", "type")

    def __init__(self, data: dict[str, Any], python_name: str) -> None:
        self.name: str = data["name"]
        self.python_name = python_name
        self.optional: bool = data.get("optional", False)
        self.type: dict[str, Any] = data["type"]
        self.kind: str = self.type["kind"]
        self.element_type: str | None = self.type["element_type"]
        shape = self.type["shape"]
        self.shape: tuple[int | str | None, ...] | None = None if shape is None else tuple(shape)
        self.fixed: dict[int, dict[str, Any]] = {}

    def __repr__(self) -> str:
        return f"{self.python_name}: {describe_type(self.type)}"


class Variant:
    """One way to run the model; the fields are those of `runtime.json`. `tuning` is what whoever opens it asks for.
    `component` is the name of its component in a bundle of several, and empty in a bundle of one.
    """

    __slots__ = (
        "component",
        "device_cache",
        "disabled_optimizers",
        "files",
        "gate",
        "least_share",
        "model",
        "name",
        "prepare",
        "providers",
        "requires",
        "session",
        "session_config",
        "tuning",
    )

    def __init__(self, data: dict[str, Any], component: str = "") -> None:
        self.component = component
        self.name: str = data["name"]
        self.model: str = data["model"]
        self.files = [File(item) for item in data["files"]]
        self.providers: list[dict[str, Any]] = data["providers"]
        self.session: dict[str, Any] = data["session"]
        self.session_config: dict[str, str] = data["session_config"]
        self.disabled_optimizers: list[str] = data["disabled_optimizers"]
        self.requires: dict[str, Any] = data["requires"]
        self.gate: dict[str, Any] = data["gate"]
        self.device_cache: bool = data["device_cache"]
        self.least_share: float = data.get("least_share", 0.0)
        self.prepare: dict[str, Any] | None = data.get("prepare")
        self.tuning = Tuning()

    @property
    def label(self) -> str:
        """Its name in the bundle: `cpu`, or `detect/cpu` where there are several components."""
        return f"{self.component}/{self.name}" if self.component else self.name

    @property
    def provider_names(self) -> list[str]:
        """The runtime's names of the provider chain, the preferred one first."""
        return [provider["name"] for provider in self.providers]

    @property
    def uses_plugins(self) -> bool:
        """Whether one of its providers is a plugin."""
        return any(provider.get("library") for provider in self.providers)

    def tolerance(self, output: str) -> dict[str, Any]:
        """The tolerance of an output, by its name in the model."""
        found: dict[str, Any] = self.gate["outputs"].get(output, self.gate["default"])
        return found

    @property
    def device(self) -> str | None:
        """Where the preferred provider keeps its tensors when that is not the CPU's memory."""
        device: str | None = self.providers[0].get("device")
        return device


class Component:
    """One model of the bundle, as in `runtime.json`; `bundle` is the whole of that file, and `payload` its folder."""

    __slots__ = (
        "bundle",
        "data",
        "golden",
        "golden_digest",
        "inputs",
        "name",
        "outputs",
        "payload",
        "strict",
        "unstable_outputs",
        "variants",
    )

    def __init__(
        self,
        payload: str,
        bundle: dict[str, Any],
        data: dict[str, Any],
        inputs: tuple[str, ...],
        outputs: tuple[str, ...],
    ) -> None:
        signature = data["signature"]
        self.payload = payload
        self.bundle = bundle
        self.data = data
        self.name: str = data["name"]
        self.inputs = [Port(*pair) for pair in zip(signature["inputs"], inputs, strict=True)]
        _note_fixed(self.inputs, data.get("fixed_sizes", []))
        self.outputs = [Port(*pair) for pair in zip(signature["outputs"], outputs, strict=True)]
        several = len(bundle["components"]) > 1
        self.variants = [Variant(item, self.name if several else "") for item in data["variants"]]
        self.strict: bool = bundle["fallback"] == "strict"
        self.golden: str = data["golden"]
        self.golden_digest: str = data["golden_digest"]
        self.unstable_outputs = frozenset[str](data["unstable_outputs"])


def _note_fixed(ports: list[Port], fixed_sizes: list[dict[str, Any]]) -> None:
    for size in fixed_sizes:
        for port in ports:
            port.fixed.update(dict.fromkeys(size["axes"].get(port.name, ()), size))


def read_bundle(memory: Memory, sha256: str) -> dict[str, Any]:
    """The payload's `runtime.json`; `sha256` pins its bytes.

    Raises `IntegrityError` when the file is missing, altered or invalid, `IncompatibleError`
    when its schema is unknown.
    """
    known = memory.knows("runtime.json", sha256)
    data: dict[str, Any] = json.loads(read_pinned(memory, "runtime.json", sha256))
    if data["schema"] != SCHEMA:
        writer = "an earlier" if data["schema"] < SCHEMA else "a later"
        raise IncompatibleError(
            f"runtime.json has schema {data['schema']}",
            why=f"{writer} version of bundler wrote it, and this loader reads schema {SCHEMA}",
            hint="build the bundle again",
        )
    if not known:  # These very bytes were held to it before.
        from .permissions import require_permitted

        require_permitted(data)
    return data


def describe_type(data: dict[str, Any]) -> str:
    """`float32[batch, 3]`, `sequence(map(int64, float32[]))`: a type as a person reads it."""
    kind = data["kind"]
    if kind in ("sequence", "optional", "map"):
        inner = describe_type(data["element"]) if data.get("element") else "?"
        return f"map({data['key_type']}, {inner})" if kind == "map" else f"{kind}({inner})"
    prefix = "sparse " if kind == "sparse_tensor" else ""
    return f"{prefix}{data['element_type']}[{_describe_shape(data['shape'])}]"


def _describe_shape(shape: list[int | str | None] | None) -> str:
    if shape is None:
        return "…"
    return ", ".join("?" if size is None else str(size) for size in shape)
