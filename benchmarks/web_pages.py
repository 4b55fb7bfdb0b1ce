"""What stands on the host: a bundle, and the runtime's package with the raw model, each with its smallest page."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from models import Ready
from web_host import File
from workplace import Built, Workplace

from bundler.emitters.web.compression import WELL_COMPRESSED, compress_brotli
from bundler.emitters.web.npm import NpmPackage, fetch_files, name_lock
from bundler.environments.registry import Environments

PAGES = Path(__file__).parent / "pages"
TEXT_QUALITY, CODE_QUALITY, WEIGHTS_QUALITY = 11, 9, 5
"""Levels of brotli for small files, for WebAssembly and for models. The best one for all would take minutes a file."""

GLUE = ("ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")
JSEP = ("ort-wasm-simd-threaded.jsep.mjs", "ort-wasm-simd-threaded.jsep.wasm")
ASYNCIFY = ("ort-wasm-simd-threaded.asyncify.mjs", "ort-wasm-simd-threaded.asyncify.wasm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A module of the runtime's package that its documentation tells to import, and the options it tells to give."""

    module: str
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """A target and what a hand-written page for the same would import."""

    target: str
    title: str
    entries: tuple[Entry, ...]


CONTESTS = (
    Contest(
        target="web-wasm",
        title="WASM",
        entries=(Entry(module="ort.min.mjs", options={}), Entry(module="ort.wasm.min.mjs", options={})),
    ),
    Contest(
        target="web-webgpu",
        title="WebGPU",
        entries=(Entry(module="ort.webgpu.min.mjs", options={"executionProviders": ["webgpu"]}),),
    ),
)


def gather_files(workplace: Workplace, contest: Contest, model: Ready, built: Built) -> dict[str, File]:
    """Everything that the host of one contest has, by address."""
    press = Press(folder=workplace.folder / "compressed", quick=workplace.quick)
    sources = {f"/bundle/{path.relative_to(built.folder).as_posix()}": path for path in list_files(built.folder)}
    names = dict.fromkeys([*GLUE, *JSEP, *ASYNCIFY, *(entry.module for entry in contest.entries)])
    sources |= {f"/runtime/{path.name}": path for path in fetch_runtime(workplace, built, list(names))}
    sources["/model.onnx"] = model.path
    files = {address: press.load(source) for address, source in sources.items()}
    recipe = describe_inputs(built.folder)
    pages = {"/bundle.html": write_page("bundle.html", recipe, {})}
    for entry in contest.entries:
        words = {"ENTRY": entry.module, "OPTIONS": json.dumps(dict(entry.options))}
        pages[f"/{entry.module}.html"] = write_page("by_hand.html", recipe, words)
    return files | {address: File(plain=text.encode()) for address, text in pages.items()}


def list_files(folder: Path) -> Iterator[Path]:
    """All files below `folder`."""
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


def fetch_runtime(workplace: Workplace, built: Built, names: list[str]) -> list[Path]:
    """Files of the runtime's package, of the version that the bundle ships."""
    runtime = json.loads((built.folder / "bundle.json").read_text(encoding="utf-8"))["runtime"]
    package, version = runtime["package"], runtime["version"]
    environments = Environments(workplace.cache)
    lock = environments.lock_for(name_lock(package, version), NpmPackage(name=package, version=version))
    return [file.source for file in fetch_files(lock, [f"dist/{name}" for name in names], environments)]


def describe_inputs(bundle: Path) -> dict[str, str]:
    """The inputs as the pages make them (types and shapes of the first golden sample), and which output they read."""
    index = json.loads((bundle / "payload" / "golden" / "index.json").read_text(encoding="utf-8"))
    sample = index["samples"][0]
    inputs = [{"name": name, "type": v["type"], "shape": v["shape"]} for name, v in sample["inputs"].items()]
    return {"INPUTS": json.dumps(inputs), "OUTPUT": json.dumps(next(iter(sample["outputs"])))}


def write_page(name: str, recipe: Mapping[str, str], words: Mapping[str, str]) -> str:
    """A page with its words filled in."""
    text = (PAGES / name).read_text(encoding="utf-8")
    for word, value in {**words, **recipe}.items():
        text = text.replace(word, value)
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Press:
    """Compresses files, the same way for both sides, and keeps what became of them."""

    folder: Path
    quick: bool

    def load(self, source: Path) -> File:
        """A file in both forms."""
        plain = source.read_bytes()
        squeezed = self._recall(source, plain)
        return File(plain=plain, brotli=squeezed if len(squeezed) < len(plain) else None)

    def _recall(self, source: Path, plain: bytes) -> bytes:
        quality = self._choose(source, len(plain))
        kept = self.folder / f"{hashlib.sha256(plain).hexdigest()}.{quality}.br"
        if not kept.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            kept.write_bytes(compress_brotli(plain, quality))
        return kept.read_bytes()

    def _choose(self, source: Path, size: int) -> int:
        if size <= WELL_COMPRESSED:
            return TEXT_QUALITY
        return CODE_QUALITY if ".wasm" in source.name and not self.quick else WEIGHTS_QUALITY
