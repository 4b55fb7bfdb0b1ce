"""What a person can do about an output that is a map: most loaders hold tensors alone."""

from __future__ import annotations

from bundler.model.signature import Port, Signature, describe_type

_WITHOUT_MAPS = (
    " (export it without ZipMap: options={'zipmap': False} for skl2onnx, zipmap=False for onnxmltools; or make the "
    "input of its ZipMap node an output)"
)


def advise_on_maps(signature: Signature, port: Port) -> str:
    """What to add to the advice to use tensors; nothing for an input, which no exporter's option changes."""
    return _WITHOUT_MAPS if port in signature.outputs and "map(" in describe_type(port.type) else ""
