"""The preprocessing of a picture, a recording or a text.

A user declares it once, leaving out what the model's signature says already; the stage that prepares data fills that
in. The bundle contains the complete record, so that the application does the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from bundler.model.codec import decode, encode

Resize = Literal["stretch", "crop", "pad"]
Filter = Literal["bilinear", "bicubic", "nearest"]
Colour = Literal["RGB", "BGR", "L"]
Layout = Literal["NCHW", "NHWC"]
Resample = Literal["sinc", "linear", "none"]
Normalise = Literal["none", "peak", "standard"]
Padding = Literal["max_length", "longest", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageDeclaration:
    """As `ImageRecord`; None is filled in from the signature."""

    kind: Literal["image"] = "image"
    input: str | None = None
    size: tuple[int, ...] | None = None
    resize: Resize = "stretch"
    filter: Filter = "bilinear"
    antialias: bool = True
    crop_fraction: float = 1.0
    background: tuple[int, ...] = (0, 0, 0)
    colour: Colour | None = None
    layout: Layout | None = None
    scale: float | None = None
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    constants: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioDeclaration:
    """As `AudioRecord`; None is filled in from the signature."""

    kind: Literal["audio"] = "audio"
    input: str | None = None
    sample_rate: int = 16000
    mono: Literal["mean", "first"] = "mean"
    resample: Resample = "sinc"
    length: int | None = None
    normalise: Normalise = "none"
    constants: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDeclaration:
    """As `TextRecord`; None is filled in from the signature or the tokenizer."""

    kind: Literal["text"] = "text"
    tokenizer: str = "tokenizer.json"
    ids: str | None = None
    attention_mask: str | None = None
    type_ids: str | None = None
    max_length: int | None = None
    padding: Padding | None = None
    pad_token: str | None = None
    json_key: str = "text"
    constants: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRecord:
    """One picture becomes `shape` elements of `dtype` for `input`.

    In this order: turned as its EXIF orientation says; transparent parts over `background` (red, green, blue, 0 to
    255); to `colour`; resized to `size` (height, width); channels in the order of `colour`; value * `scale`, minus
    `mean`, divided by `std` (one each for a channel, in that order), in float32; rounded half to even and limited where
    `dtype` is an integer; axes in the order of `layout`.

    `stretch` ignores the aspect ratio. `crop` takes the largest centred part with the output's aspect ratio, its sides
    times `crop_fraction`. `pad` keeps everything: it is resized to fit, centred, and the rest is `background`. With
    `antialias` a filter widens when it makes smaller, as Pillow's `resize` does; without, it reads the nearest pixels.
    """

    kind: Literal["image"] = "image"
    input: str
    dtype: str
    size: tuple[int, ...]
    shape: tuple[int, ...]
    resize: Resize
    filter: Filter
    antialias: bool
    crop_fraction: float
    background: tuple[int, ...]
    colour: Colour
    layout: Layout
    scale: float
    mean: tuple[float, ...]
    std: tuple[float, ...]
    constants: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioRecord:
    """One recording becomes float samples from -1 to 1 for `input`, an array of `rank` axes of which the last is time.

    In this order: one channel (the mean of all, or the first); to `sample_rate` by `resample` (`sinc`: a sinc cut off
    at 0.99 of the lower Nyquist frequency under a Hann window six zero crossings wide, as torchaudio's default;
    `linear`: between neighbours; `none`: another rate is refused); cut to `length` samples (None: as long as it is);
    `normalise` by the greatest magnitude (`peak`), or to mean 0 and deviation 1 (`standard`); zeros at the end, up to
    `length`.
    """

    kind: Literal["audio"] = "audio"
    input: str
    dtype: str
    rank: int
    sample_rate: int
    mono: Literal["mean", "first"]
    resample: Resample
    length: int | None
    normalise: Normalise
    constants: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRecord:
    """One text becomes token ids by a Hugging Face `tokenizer.json`, with its special tokens.

    `tokenizer` is the file's name and `tokenizer_sha256` its digest. Ids go to the input `ids`; `attention_mask` and
    `type_ids` name inputs, or are None where the model takes none. Cut to `max_length` tokens; `padding` adds `pad_id`
    up to `max_length`, up to the `longest` text that goes in at once (nothing for a single one), or never.
    """

    kind: Literal["text"] = "text"
    tokenizer: str
    tokenizer_sha256: str
    ids: str
    attention_mask: str | None
    type_ids: str | None
    max_length: int
    padding: Padding
    pad_id: int | None
    constants: Mapping[str, Any]


Declaration = ImageDeclaration | AudioDeclaration | TextDeclaration
Record = ImageRecord | AudioRecord | TextRecord

_DECLARATIONS: Final[Mapping[str, type[Declaration]]] = {
    "image": ImageDeclaration,
    "audio": AudioDeclaration,
    "text": TextDeclaration,
}
_RECORDS: Final[Mapping[str, type[Record]]] = {"image": ImageRecord, "audio": AudioRecord, "text": TextRecord}


def read_declaration(data: Mapping[str, Any]) -> Declaration:
    """The declaration that `encode` made `data` of. Raises `KeyError` for a kind that there is not."""
    return decode(_DECLARATIONS[data["kind"]], data)


def read_record(data: Mapping[str, Any]) -> Record:
    """The record that `encode` made `data` of (the fact `preprocessing` of `prepare_data`). Raises `KeyError`."""
    return decode(_RECORDS[data["kind"]], data)


def describe_preprocessing(record: Record) -> tuple[str, ...]:
    """What an application must do, step by step, one line each; names from the model are quoted."""
    lines = {"image": _describe_image, "audio": _describe_audio, "text": _describe_text}[record.kind](record)
    constants = (f"input {_quote(name)} is always {_short(value)}" for name, value in record.constants.items())
    return (*lines, *constants)


def _describe_image(record: Any) -> tuple[str, ...]:
    height, width = record.size
    smooth = "antialiased, as Pillow does" if record.antialias else "without antialiasing"
    how = {
        "stretch": f"stretch to {width} x {height}",
        "crop": f"take the largest centred part of aspect ratio {width}:{height}"
        + (f", its sides times {record.crop_fraction:g}" if record.crop_fraction != 1 else "")
        + f", and resize it to {width} x {height}",
        "pad": f"resize to fit into {width} x {height}, centred, the rest filled with {list(record.background)}",
    }[record.resize]
    numbers = f"value * {record.scale:.9g}, minus {_list(record.mean)}, divided by {_list(record.std)}"
    return (
        "turn as the EXIF orientation says",
        f"draw transparent parts over {list(record.background)}",
        f"convert to {'grey (ITU-R 601)' if record.colour == 'L' else 'RGB'}, 8 bits a channel",
        f"{how} ({record.filter}, {smooth})",
        *((f"order the channels {record.colour}",) if record.colour == "BGR" else ()),
        f"{numbers} (for each channel)",
        f"give it as {record.dtype}{list(record.shape)} ({record.layout}) to the input {_quote(record.input)}",
    )


def _describe_audio(record: Any) -> tuple[str, ...]:
    resample = {
        "sinc": "resample with a sinc under a Hann window (six zero crossings, cut off at 0.99 of Nyquist)",
        "linear": "resample linearly",
        "none": "other rates are refused",
    }[record.resample]
    normalise = {
        "none": (),
        "peak": ("divide by the greatest magnitude",),
        "standard": ("subtract the mean and divide by the standard deviation",),
    }[record.normalise]
    cut = (f"cut to {record.length} samples",) if record.length else ()
    fill = (f"fill with zeros at the end to {record.length} samples",) if record.length else ()
    mono = "the mean of all channels" if record.mono == "mean" else "the first channel"
    return (
        f"take {mono}, as numbers from -1 to 1",
        f"bring to {record.sample_rate} Hz: {resample}",
        *cut,
        *normalise,
        *fill,
        f"give it as {record.dtype}, {record.rank} axes with time last, to the input {_quote(record.input)}",
    )


def _describe_text(record: Any) -> tuple[str, ...]:
    padding = {
        "max_length": f"fill with token {record.pad_id} to {record.max_length} tokens",
        "longest": f"fill with token {record.pad_id} to the longest text of a batch",
        "none": "no padding",
    }[record.padding]
    others = ((record.attention_mask, "the attention mask"), (record.type_ids, "the type ids"))
    return (
        f"tokenize with {_quote(record.tokenizer)} (SHA-256 {record.tokenizer_sha256}), special tokens included",
        f"cut to {record.max_length} tokens; {padding}",
        f"give the ids to the input {_quote(record.ids)}",
        *(f"give {what} to the input {_quote(name)}" for name, what in others if name is not None),
    )


def _list(values: tuple[float, ...]) -> str:
    return f"[{', '.join(format(value, '.9g') for value in values)}]"


def _quote(name: str) -> str:
    return f"'{name}'" if name.isprintable() and "'" not in name else ascii(name)


def _short(value: Any) -> str:
    text = ascii(encode(value))
    return text if len(text) <= 80 else text[:79] + "…"  # noqa: PLR2004 - a line for a person
