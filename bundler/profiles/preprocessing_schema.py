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
    """A folder of images (JPEG, PNG, WebP, BMP, GIF, TIFF, PNM)."""

    kind: Literal["image"]
    """Kind of data in the folder."""
    input: Input | None = None
    """The model's input. Default: the only input with four axes."""
    size: Annotated[tuple[Side, ...], Field(min_length=2, max_length=2)] | None = None
    """Height and width. Default: the fixed sizes of the model's input."""
    resize: Literal["stretch", "crop", "pad"] = "stretch"
    """`stretch` ignores the aspect ratio; `crop` takes the largest centred part that has it; `pad` keeps everything and
    fills the rest with `background`."""
    filter: Literal["bilinear", "bicubic", "nearest"] = "bilinear"
    """How pixels are interpolated."""
    antialias: StrictBool = True
    """Whether the filter widens when it shrinks (like Pillow), or reads only the nearest pixels (like OpenCV)."""
    crop_fraction: Annotated[float, Field(strict=True, gt=0, le=1)] = 1.0
    """With `crop`: the share of each side that is kept. Resizing to 256 and cropping to 224 is 0.875."""
    background: Annotated[tuple[Byte, ...], Field(min_length=3, max_length=3)] = (0, 0, 0)
    """Red, green and blue (0 to 255) behind transparent parts and of the padding."""
    colour: Literal["RGB", "BGR", "L"] | None = None
    """Order of the channels; `L` is grey. Default: `RGB` for three channels, `L` for one."""
    layout: Literal["NCHW", "NHWC"] | None = None
    """Order of the axes. Default: from the axis of the model's input that has one or three channels."""
    scale: Finite | None = None
    """Factor for values from 0 to 255, applied first. Default: 1/255, or 1 where the input takes integers."""
    mean: Annotated[tuple[Finite, ...], Field(max_length=3)] = ()
    """Subtracted after `scale`: one value for all channels or one each, in the order of `colour`. Default: 0."""
    std: Annotated[tuple[Positive, ...], Field(max_length=3)] = ()
    """Divisor after `mean`: one value for all channels or one each. Default: 1."""
    constants: dict[str, Any] = {}
    """Further inputs of the model that always have the same value: a number or nested arrays by the input's name."""


class AudioFile(Declared):
    """A folder of audio files (WAV, FLAC, Ogg, MP3)."""

    kind: Literal["audio"]
    """Kind of data in the folder."""
    input: Input | None = None
    """The model's input. Default: the only input of floating-point numbers."""
    sample_rate: Annotated[int, Field(strict=True, ge=100, le=1_000_000)]
    """Samples per second that the model requires."""
    mono: Literal["mean", "first"] = "mean"
    """How several channels become one."""
    resample: Literal["sinc", "linear", "none"] = "sinc"
    """How bundler converts another rate to `sample_rate`: windowed sinc like torchaudio, linear between neighbours, or
    `none`: such a file is refused."""
    length: Annotated[int, Field(strict=True, gt=0, le=1 << 28)] | None = None
    """Length in samples that the model requires: longer audio is cut, shorter audio is followed by zeros. Default: the
    fixed length of the model's input, else the length of each file."""
    normalise: Literal["none", "peak", "standard"] = "none"
    """Divide by the greatest magnitude (`peak`), or bring to mean 0 and deviation 1 (`standard`)."""
    constants: dict[str, Any] = {}
    """Further inputs of the model that always have the same value: a number or nested arrays by the input's name."""


class TextFile(Declared):
    """A folder of texts (.txt with one a line, .jsonl with one object a line)."""

    kind: Literal["text"]
    """Kind of data in the folder."""
    tokenizer: Annotated[str, Field(min_length=1, max_length=1000)] = "tokenizer.json"
    """A Hugging Face `tokenizer.json`, relative to this file, in its folder or below."""
    ids: Input | None = None
    """The input for the token ids. Default: the input whose name says so."""
    attention_mask: Input | None = None
    """The input for the attention mask. Default: the input whose name contains `mask`."""
    type_ids: Input | None = None
    """The input for the type ids. Default: the input whose name contains `type` or `segment`."""
    max_length: Annotated[int, Field(strict=True, gt=0, le=1 << 20)] | None = None
    """Maximum number of tokens. Default: the length of the model's input, else the tokenizer's maximum, else 512."""
    padding: Literal["max_length", "longest", "none"] | None = None
    """Fill up to `max_length`, up to the longest text of a batch, or never. Default: `max_length` where the model's
    input has a fixed length, else `none`."""
    pad_token: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """The token for padding. Default: the tokenizer's."""
    json_key: Annotated[str, Field(min_length=1, max_length=200)] = "text"
    """The key of the text in each object of a .jsonl file."""
    constants: dict[str, Any] = {}
    """Further inputs of the model that always have the same value: a number or nested arrays by the input's name."""


KINDS: Final[Mapping[str, type[Declared]]] = {"image": ImageFile, "audio": AudioFile, "text": TextFile}
