"""The models that benchmarks run on: real trained ones out of packages, published networks, and some made in code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

import networks
import numpy as np
from content_type.fetch_model import REQUIREMENT as MAGIKA
from content_type.fetch_model import list_files as list_magika
from package_files import PackageFile, fetch_files
from processes import CommandError
from text_orientation.fetch_model import REQUIREMENT as RAPIDOCR
from workplace import Workplace

Shape = tuple[int, ...]
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """`images` are the shapes of float inputs for models that leave sizes open; the others get seeded inputs."""

    name: str
    make: Callable[[Path], object]
    images: Mapping[str, Shape] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A model on disk, with the samples to build it with."""

    name: str
    path: Path
    samples: Path | None


def _take_rapidocr(file: str, sha256: str, path: Path) -> None:
    wanted = PackageFile(source=f"rapidocr_onnxruntime/models/{file}.onnx", destination=path, sha256=sha256)
    fetch_files(RAPIDOCR, [wanted], python_version="3.12")


def _take_magika(path: Path) -> None:
    fetch_files(MAGIKA, list_magika(path))


REAL = (
    Model(
        name="rapidocr_cls",
        make=partial(
            _take_rapidocr,
            "ch_ppocr_mobile_v2.0_cls_infer",
            "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c",
        ),
        images={"x": (1, 3, 48, 192)},
    ),
    Model(
        name="rapidocr_det",
        make=partial(
            _take_rapidocr,
            "ch_PP-OCRv4_det_infer",
            "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9",
        ),
        images={"x": (1, 3, 320, 320)},
    ),
    Model(
        name="rapidocr_rec",
        make=partial(
            _take_rapidocr,
            "ch_PP-OCRv4_rec_infer",
            "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b",
        ),
        images={"x": (1, 3, 48, 320)},
    ),
    Model(name="magika", make=_take_magika),
)
WEIGHED = tuple(
    Model(name=name, make=partial(networks.weigh_light, name))
    for name in ("squeezenet", "shufflenet", "densenet121", "inception_v2", "resnet50")
)
MADE = (
    Model(name="encoder_90mb", make=networks.make_encoder),
    Model(name="encoder_5mb", make=networks.make_small_encoder),
    Model(name="skl_regression", make=networks.make_regression),
    Model(name="skl_forest", make=networks.make_forest),
    Model(name="loop_and_if", make=networks.make_control),
)
PUBLISHED = tuple(
    Model(name=f"light_{name}", make=partial(networks.publish_light, name))
    for name in (
        "bvlc_alexnet",
        "densenet121",
        "inception_v1",
        "inception_v2",
        "resnet50",
        "shufflenet",
        "squeezenet",
        "vgg19",
        "zfnet512",
    )
)
"""As in the onnx wheel: kilobytes of generators of constants that fold to up to 550 MB of weights."""
EVERY = (*REAL, *WEIGHED, *MADE, *PUBLISHED)
QUICK = ("rapidocr_cls", "magika", "skl_regression")


def choose(names: Sequence[str]) -> tuple[Model, ...]:
    """The models of these names, in the order of `EVERY`."""
    return tuple(model for model in EVERY if model.name in names)


def make_ready(model: Model, folder: Path) -> Ready:
    """The model with its samples in `folder`, made when it is not there."""
    path = folder / model.name / f"{model.name}.onnx"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        model.make(path)
    return Ready(name=model.name, path=path, samples=_write_samples(model, path.with_name("samples")))


def measure_each(
    workplace: Workplace, names: Sequence[str], measure: Callable[[Workplace, Ready], Result]
) -> tuple[dict[str, Result], tuple[str, ...]]:
    """The results by model, and a note for each model that could not be measured: one failure ends no benchmark."""
    found, failures = {}, []
    chosen = [name for name in names if name in workplace.models or not workplace.models]
    for model in choose(QUICK if workplace.quick and not workplace.models else chosen):
        print(f"  {model.name}", file=sys.stderr, flush=True)
        try:
            found[model.name] = measure(workplace, make_ready(model, workplace.folder / "models"))
        except CommandError as error:
            failures.append(f"**{model.name} could not be measured**: {error.reason}")
    return found, tuple(failures)


def _draw_page(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """A light page [1, 3, height, width] with dark strokes, from -1 to 1: on noise a text detector answers zeros."""
    page = np.full(shape, 0.9, np.float32) + rng.normal(0, 0.02, shape).astype(np.float32)
    *_, height, width = shape
    for _ in range(height * width // 250):
        top, left = rng.integers(height - 8) // 24 * 24, rng.integers(width - 4)
        page[..., top + 4 : top + rng.integers(8, 16), left : left + rng.integers(1, 4)] = -0.8
    return page


def _write_samples(model: Model, folder: Path) -> Path | None:
    if not model.images:
        return None
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    for index in range(3):
        values = {name: _draw_page(rng, shape) for name, shape in model.images.items()}
        np.savez(folder / f"{index}.npz", **values)
    return folder
