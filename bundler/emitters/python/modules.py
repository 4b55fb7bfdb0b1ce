"""Which modules of the loader a bundle has no use for, and leaves out."""

from __future__ import annotations

from collections.abc import Iterator

from bundler.model.runtime import RuntimeConfig
from bundler.model.signature import Port, Signature

LOADER = "_loader"
_PLUGINS = ("plugins",)
_PREPARED = ("prepared", "prewarming", "locking", "drivers")
_COPIES = ("device_copy", "keeping", "device")
_NEEDS = ("needs",)
_BATCHES = ("batches",)
_STREAMS = ("streams",)
_SEVERAL = ("bundle", "together")


def list_unneeded(config: RuntimeConfig) -> frozenset[str]:
    """Paths in the package, of modules that nothing of `config` asks for."""
    return frozenset(f"{LOADER}/{module}.py" for modules in _find_unneeded(config) for module in modules)


def _find_unneeded(config: RuntimeConfig) -> Iterator[tuple[str, ...]]:
    """By group: what is generated on a device may be of a plugin, and is kept as the device's own copies are."""
    variants = [variant for _, variant in config.pairs]
    prepared = any(variant.prepare for variant in variants)
    if not prepared:
        yield _PREPARED
    if not prepared and not any(entry.library for variant in variants for entry in variant.providers):
        yield _PLUGINS
    if not prepared and not any(variant.device_cache for variant in variants):
        yield _COPIES
    if not any(variant.requires.needs for variant in variants):
        yield _NEEDS
    if not any(component.state for component in config.components):
        yield _STREAMS
    if config.sole:
        yield _SEVERAL
    if all(find_batch(component.signature) is None for component in config.components):
        yield _BATCHES


def find_batch(signature: Signature) -> int | None:
    """The number of rows that every input has and every output may have; None where it is open or there is none."""
    sizes = {_count_rows(port) for port in signature.inputs}
    (size,) = sizes if len(sizes) == 1 else (None,)
    if not isinstance(size, int) or size < 1 or any(port.optional for port in signature.inputs):
        return None
    rows = [_count_rows(port) for port in signature.outputs]
    return size if all(isinstance(count, str) or count in (None, size) for count in rows) else None


def _count_rows(port: Port) -> int | str | None:
    """The first dimension of a tensor, 0 of anything else; None where it is not known."""
    if port.type.kind != "tensor":
        return 0
    shape = port.type.shape
    if shape is None:
        return None
    return shape[0] if shape else 0
