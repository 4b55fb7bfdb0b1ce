"""Whether a bundle is the same, byte for byte, when it is built again from nothing elsewhere."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from document import Section, Table
from models import Ready, measure_each
from workplace import KEPT, Workplace, build_bundle

MODELS = (
    "rapidocr_cls",
    "rapidocr_det",
    "rapidocr_rec",
    "magika",
    "resnet50",
    "encoder_90mb",
    "skl_forest",
    "loop_and_if",
)


def measure(workplace: Workplace) -> Section:
    rows, failures = measure_each(workplace, MODELS, _compare)
    return Section(
        name="repeatability",
        title="the same bytes twice",
        method=(
            "Two builds of the same model file from two folders, with two cold step caches and different seeds of "
            "Python's hashes; every file of the bundle counts."
        ),
        tables=(
            Table(columns=("model", "files", "digest of the bundle", "files that differ"), rows=tuple(rows.values())),
        ),
        notes=failures,
    )


def _compare(workplace: Workplace, model: Ready) -> tuple[str, ...]:
    first, second = (_build_elsewhere(workplace, model, seed) for seed in ("1", "2"))
    paths = sorted({*first, *second})
    differing = [path for path in paths if first.get(path) != second.get(path)]
    whole = hashlib.sha256("".join(f"{path} {first.get(path)}\n" for path in paths).encode()).hexdigest()
    return (model.name, str(len(paths)), f"`{whole[:16]}`", ", ".join(differing) or "none")


def _build_elsewhere(workplace: Workplace, model: Ready, seed: str) -> dict[str, str]:
    """Digests by path of a bundle that was built in a folder, and with a cache, of its own."""
    folder = workplace.empty(f"elsewhere-{seed}")
    shutil.copytree(model.path.parent, folder / "source")
    (folder / "cache").mkdir()
    for name in KEPT:
        kept, place = workplace.cache / name, folder / "cache" / name
        if kept.is_dir():
            shutil.copytree(kept, place, symlinks=True)
        elif kept.exists():
            shutil.copyfile(kept, place)
    samples = folder / "source" / "samples" if model.samples else None
    built = build_bundle(
        workplace,
        folder / "source" / model.path.name,
        folder / "out",
        samples,
        cache=folder / "cache",
        environment={"PYTHONHASHSEED": seed},
    )
    digests = {str(path.relative_to(built.folder)): _digest(path) for path in built.folder.rglob("*") if path.is_file()}
    shutil.rmtree(folder)
    return digests


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
