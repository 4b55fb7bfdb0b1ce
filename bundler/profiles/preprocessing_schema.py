"""The keys of a declared preprocessing.

The docstring under each field becomes its description in the docs table and in error texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool

Input = Annotated[str, Field(min_length=1, max_length=1000)]
Side = Annotated[int, Field(strict=True, gt=0, le=1 << 16)]
Byte = Annotated[int, Field(strict=True, ge=0, le=255)]
Finite = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Positive = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]


class Declared(BaseModel):
    """Frozen, and unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class ImageFile(Declared):
    """A folder of pictures (JPEG, PNG, WebP, BMP, GIF, TIFF, PNM)."""

    kind: Literal["image"]
    """What the folder holds."""
    input: Input | None = None
    """The model's input. Left out: the only one with four axes."""
    size: Annotated[tuple[Side, ...], Field(min_length=2, max_length=2)] | None = None
    """Height and width. Left out: those of the model's input, where it has fixed ones."""
    resize: Literal["stretch", "crop", "pad"] = "stretch"
    """`stretch` ignores the aspect ratio; `crop` takes the largest centred part that has it; `pad` keeps everything and
    fills the rest with `background`."""
    filter: Literal["bilinear", "bicubic", "nearest"] = "bilinear"
    """How pixels are interpolated."""
    antialias: StrictBool = True
    """Whether the filter widens when it makes smaller (as Pillow's), or reads the nearest pixels only (as OpenCV's)."""
    crop_fraction: Annotated[float, Field(strict=True, gt=0, le=1)] = 1.0
    """With `crop`: the share of each side that is kept. Resizing to 256 and cutting 224 out is 0.875."""
    background: Annotated[tuple[Byte, ...], Field(min_length=3, max_length=3)] = (0, 0, 0)
    """Red, green and blue (0 to 255) behind transparent parts and of the padding."""
    colour: Literal["RGB", "BGR", "L"] | None = None
    """Order of the channels; `L` is grey. Left out: `RGB` for three channels, `L` for one."""
    layout: Literal["NCHW", "NHWC"] | None = None
    """Order of the axes. Left out: by where the model's input has one or three channels."""
    scale: Finite | None = None
    """What a value from 0 to 255 is multiplied with at first. Left out: 1/255, or 1 where the input takes integers."""
    mean: Annotated[tuple[Finite, ...], Field(max_length=3)] = ()
    """What is subtracted then, one for all channels or one each, in the order of `colour`. Left out: 0."""
    std: Annotated[tuple[Positive, ...], Field(max_length=3)] = ()
    """What it is divided by then, one for all channels or one each. Left out: 1."""
    constants: dict[str, Any] = {}
    """Further inputs of the model that always have the same value: a number or nested arrays by the input's name."""


class AudioFile(Declared):
    """A folder of recordings (WAV, FLAC, Ogg, MP3)."""

    kind: Literal["audio"]
    """What the folder holds."""
    input: Input | None = None
    """The model's input. Left out: the only one of floating-point numbers."""
    sample_rate: Annotated[int, Field(strict=True, ge=100, le=1_000_000)]
    """Samples a second that the model wants."""
    mono: Literal["mean", "first"] = "mean"
    """How several channels become one."""
    resample: Literal["sinc", "linear", "none"] = "sinc"
    """How another rate becomes `sample_rate`: a windowed sinc as torchaudio's, between neighbours, or not at all: such
    a file is refused."""
    length: Annotated[int, Field(strict=True, gt=0, le=1 << 28)] | None = None
    """Samples that the model wants: longer ones are cut, shorter ones followed by zeros. Left out: that of the model's
    input, where it has a fixed one, else as long as each is."""
    normalise: Literal["none", "peak", "standard"] = "none"
    """Divide by the greatest magnitude (`peak`), or bring to mean 0 and deviation 1 (`standard`)."""
    constants: dict[str, Any] = {}
    """Further inputs of the model that always have the same value: a number or nested arrays by the input's name."""


class TextFile(Declared):
    """A folder of texts (.txt with one a line, .jsonl with one object a line)."""

    kind: Literal["text"]
    """What the folder holds."""
    tokenizer: Annotated[str, Field(min_length=1, max_length=1000)] = "tokenizer.json"
    """A Hugging Face `tokenizer.json`, relative to this file, in its folder or below."""
    ids: Input | None = None
    """The input that takes the token ids. Left out: the one whose name says so."""
    attention_mask: Input | None = None
    """The input that takes the attention mask. Left out: the one whose name has `mask` in it."""
    type_ids: Input | None = None
    """The input that takes the type ids. Left out: the one whose name has `type` or `segment` in it."""
    max_length: Annotated[int, Field(strict=True, gt=0, le=1 << 20)] | None = None
    """Tokens at most. Left out: what the model's input has, else what the tokenizer says, else 512."""
    padding: Literal["max_length", "longest", "none"] | None = None
    """Fill up to `max_length`, up to the longest text of a batch, or never. Left out: `max_length` where the model's
    input has a fixed length, else `none`."""
    pad_token: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """The token that fills up. Left out: the tokenizer's."""
    json_key: Annotated[str, Field(min_length=1, max_length=200)] = "text"
    """The key of the text in each object of a .jsonl file."""
    constants: dict[str, Any] = {}
    """Further inputs of the model that always have the same value: a number or nested arrays by the input's name."""


KINDS: Final[Mapping[str, type[Declared]]] = {"image": ImageFile, "audio": AudioFile, "text": TextFile}
