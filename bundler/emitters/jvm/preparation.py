"""What a bundle in Kotlin has for inputs as people have them: pictures, recordings, texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bundler.model.preprocessing import read_record
from bundler.model.runtime import RuntimeComponent, RuntimeConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A form of a raw input: the parameters of a rendered function, the call that reads it, and what a person reads."""

    parameters: str
    call: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ecosystem:
    """What an ecosystem adds: `parts` are folders of the loader's sources, `classes` what the rendered code uses of
    them, and `sources` its own forms of the input.
    """

    parts: tuple[str, ...]
    classes: tuple[str, ...]
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparationContext:
    """The rendered functions of one model; `kind` is its record's. `inputs` are the properties of prepared inputs by
    their names in the model, in its order, and `constants` the names of those that always have the same value.
    """

    kind: str
    inputs: Mapping[str, str]
    constants: tuple[str, ...]
    sources: tuple[Source, ...]


_UPRIGHT: Final = "Its EXIF orientation is not applied: turn it upright first."
_COMMON: Final[Mapping[str, Ecosystem]] = {
    "image": Ecosystem(
        parts=("preparation", "images"),
        classes=("ArrayPixels", "BufferPixels", "ImagePreparation", "Pixels"),
        sources=(
            Source(
                parameters="pixels: IntArray, width: Int, height: Int",
                call="ArrayPixels(pixels, width, height)",
                words="[pixels] are row after row, each as `0xAARRGGBB`.",
            ),
            Source(
                parameters="pixels: java.nio.IntBuffer, width: Int, height: Int",
                call="BufferPixels(pixels, width, height)",
                words="[pixels] are those from the buffer's position to its limit, as in an array; neither is moved.",
            ),
        ),
    ),
    "audio": Ecosystem(
        parts=("preparation", "audio"),
        classes=("AudioPreparation", "FloatSound", "ShortSound", "Sound"),
        sources=tuple(
            Source(
                parameters=f"samples: {type_}, sampleRate: Int, channels: Int",
                call=f"{reader}(samples, sampleRate, channels)",
                words=f"[samples] are {words}, frame after frame.",
            )
            for type_, reader, words in (
                ("ShortArray", "ShortSound", "whole numbers of 16 bits"),
                (
                    "java.nio.ShortBuffer",
                    "ShortSound",
                    "whole numbers of 16 bits from the buffer's position to its limit",
                ),
                ("FloatArray", "FloatSound", "numbers from -1 to 1"),
                ("java.nio.FloatBuffer", "FloatSound", "numbers from -1 to 1 from the buffer's position to its limit"),
            )
        ),
    ),
    "text": Ecosystem(
        parts=("preparation", "text"),
        classes=("TextPreparation", "TokenRow", "Tokenizer"),
        sources=(
            Source(
                parameters="text: String, tokenizer: Tokenizer",
                call="preparation.encode(text, tokenizer)",
                words="[tokenizer] is the result of [readTokenizer].",
            ),
        ),
    ),
}
_NOTHING: Final = Ecosystem(parts=(), classes=(), sources=())
JVM: Final[Mapping[str, Ecosystem]] = {
    "image": Ecosystem(
        parts=("jvm_images",),
        classes=("BufferedPixels",),
        sources=(
            Source(
                parameters="image: java.awt.image.BufferedImage",
                call="BufferedPixels(image)",
                words=f"[image] may be of any type. {_UPRIGHT}",
            ),
        ),
    ),
}
ANDROID: Final[Mapping[str, Ecosystem]] = {
    "image": Ecosystem(
        parts=("android_images",),
        classes=("BitmapPixels", "readCamera"),
        sources=(
            Source(
                parameters="bitmap: android.graphics.Bitmap",
                call="BitmapPixels(bitmap)",
                words=f"[bitmap] may have any configuration except `HARDWARE`. {_UPRIGHT}",
            ),
            Source(
                parameters="image: android.media.Image, rotation: Int",
                call="readCamera(image, rotation)",
                words="[image] is a camera's, of format `YUV_420_888`; it is turned clockwise by [rotation] degrees.",
            ),
        ),
    ),
}
CLASSES: Final = " ".join(
    name for family in (_COMMON, JVM, ANDROID) for added in family.values() for name in added.classes
)
"""Names that the rendered code may use itself."""


def find_kind(component: RuntimeComponent) -> str | None:
    """The kind of the raw input that the loader prepares for a model; None where it prepares none.

    A stream's inputs are those of a step, which no record describes.
    """
    if component.preprocessing is None or component.state:
        return None
    kind = read_record(component.preprocessing).kind
    return kind if kind in _COMMON else None


def describe_preparation(
    component: RuntimeComponent, properties: Sequence[str], family: Mapping[str, Ecosystem]
) -> PreparationContext | None:
    """What is rendered for a model whose inputs have these `properties`; None where the loader prepares nothing."""
    kind = find_kind(component)
    if kind is None or component.preprocessing is None:
        return None
    record: Any = read_record(component.preprocessing)
    named = dict(zip((port.name for port in component.signature.inputs), properties, strict=True))
    made = _list_inputs(record)
    return PreparationContext(
        kind=kind,
        inputs={name: named[name] for name in named if name in made or name in record.constants},
        constants=tuple(name for name in named if name in record.constants),
        sources=(*_COMMON[kind].sources, *family.get(kind, _NOTHING).sources),
    )


def _list_inputs(record: Any) -> tuple[str | None, ...]:
    """The names of the inputs that are made of the raw one."""
    return (record.ids, record.attention_mask, record.type_ids) if record.kind == "text" else (record.input,)


def list_parts(config: RuntimeConfig, family: Mapping[str, Ecosystem]) -> tuple[str, ...]:
    """The folders of the loader's sources that these models need beside its own."""
    return _gather(config, family, "parts")


def list_classes(config: RuntimeConfig, family: Mapping[str, Ecosystem]) -> tuple[str, ...]:
    """What the rendered code uses of them."""
    return _gather(config, family, "classes")


def _gather(config: RuntimeConfig, family: Mapping[str, Ecosystem], field: str) -> tuple[str, ...]:
    kinds = [kind for component in config.components if (kind := find_kind(component))]
    found = (
        name
        for kind in kinds
        for added in (_COMMON[kind], family.get(kind, _NOTHING))
        for name in getattr(added, field)
    )
    return tuple(dict.fromkeys(found))
