"""Complete the declaration of pictures from the model's signature."""

from __future__ import annotations

from typing import Final

from bundler.model.preprocessing import ImageDeclaration, ImageRecord, Layout
from bundler.model.signature import Dimension, Port, Signature, describe_type
from bundler.stages.prepare_data.resolving import (
    check_filled,
    given_ports,
    is_float_port,
    is_integer_port,
    named_port,
    only_port,
    refuse,
)

_RANK: Final = 4
_CHANNELS: Final = (1, 3)
_BYTE: Final = 255


def resolve_image(declaration: ImageDeclaration, signature: Signature) -> ImageRecord:
    """The complete record. Raises `UsageError` where the declaration does not fit the model's input."""
    port = _find_port(declaration, signature)
    shape = _check_shape(port)
    layout, (channels, height, width) = _order_axes(declaration, shape[-3:])
    colour = declaration.colour or ("L" if channels == 1 else "RGB")
    count = 1 if colour == "L" else 3
    if isinstance(channels, int) and channels != count:
        raise refuse(f"{colour} has {count} channel{'s'[: count - 1]}, and {port.name!r} has {channels} ({layout})")
    size = _size(declaration, port, height, width)
    picture = (count, *size) if layout == "NCHW" else (*size, count)
    check_filled(signature, {port.name, *declaration.constants})
    return ImageRecord(
        input=port.name,
        dtype=port.type.element_type or "float32",
        size=size,
        shape=picture if len(shape) < _RANK else (1, *picture),
        resize=declaration.resize,
        filter=declaration.filter,
        antialias=declaration.antialias,
        crop_fraction=float(declaration.crop_fraction),
        background=tuple(declaration.background),
        colour=colour,
        layout=layout,
        scale=_scale(declaration, port),
        mean=_for_channels(declaration.mean, count, "mean", 0.0),
        std=_for_channels(declaration.std, count, "std", 1.0),
        constants=declaration.constants,
    )


def _check_shape(port: Port) -> tuple[Dimension, ...]:
    """The sizes of an input for one picture."""
    if not (is_float_port(port) or is_integer_port(port)):
        raise refuse(f"{port.name!r} is {describe_type(port.type)}, which is not the shape of an image")
    shape = port.type.shape or (None,) * _RANK
    if len(shape) not in (_RANK - 1, _RANK):
        raise refuse(f"{port.name!r} is {describe_type(port.type)}, and an image has three or four axes")
    if len(shape) == _RANK and isinstance(shape[0], int) and shape[0] != 1:
        raise refuse(
            f"{port.name!r} takes {shape[0]} images at once",
            hint="give all inputs by a Python function or .npz files, which can hold that many in one sample",
        )
    return shape


def _order_axes(
    declaration: ImageDeclaration, axes: tuple[Dimension, ...]
) -> tuple[Layout, tuple[Dimension, Dimension, Dimension]]:
    """The layout, and the sizes of channels, height and width."""
    last = axes[2] in _CHANNELS and axes[0] not in _CHANNELS
    layout: Layout = declaration.layout or ("NHWC" if last else "NCHW")
    return layout, (axes[0], axes[1], axes[2]) if layout == "NCHW" else (axes[2], axes[0], axes[1])


def _find_port(declaration: ImageDeclaration, signature: Signature) -> Port:
    if declaration.input is not None:
        return named_port(signature, declaration.input, "input")
    ports = given_ports(signature, declaration.constants)
    fitting = [port for port in ports if port.type.shape is None or len(port.type.shape) == _RANK]
    floats = [port for port in fitting if is_float_port(port)]
    return only_port(floats or fitting, signature, "input", "an image")


def _size(declaration: ImageDeclaration, port: Port, height: Dimension, width: Dimension) -> tuple[int, ...]:
    fixed = tuple(size if isinstance(size, int) else None for size in (height, width))
    if declaration.size is None:
        if None in fixed:
            raise refuse(
                f"{port.name!r} accepts images of any size, and no size is declared",
                hint="add size = [HEIGHT, WIDTH], or fix the sizes with --dim NAME=SIZE or --shape INPUT=SIZES",
            )
        return tuple(size for size in fixed if size is not None)
    asked = tuple(declaration.size)
    if any(have is not None and have != want for have, want in zip(fixed, asked, strict=True)):
        raise refuse(f"size is {list(asked)}, and {port.name!r} is {describe_type(port.type)}")
    return asked


def _scale(declaration: ImageDeclaration, port: Port) -> float:
    if declaration.scale is not None:
        return float(declaration.scale)
    return 1.0 if is_integer_port(port) else 1 / _BYTE


def _for_channels(values: tuple[float, ...], count: int, key: str, default: float) -> tuple[float, ...]:
    if len(values) in (0, 1):
        return (float(values[0]) if values else default,) * count
    if len(values) != count:
        raise refuse(
            f"{key} has {len(values)} values, and the image has {'one channel' if count == 1 else 'three channels'}"
        )
    return tuple(map(float, values))
