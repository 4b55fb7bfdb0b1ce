"""The downloads of a first visit, for each variant and each build of the runtime that it may run on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from bundler.emitters.contract import EmitRequest
from bundler.emitters.payload import PAYLOAD
from bundler.emitters.web.compression import Compressor
from bundler.emitters.web.imports import SELF_TEST, Import, choose_golden
from bundler.emitters.web.modules import ENTRY, find_modules
from bundler.emitters.web.parts import Asset
from bundler.emitters.web.profile import WebSettings
from bundler.emitters.web.vendor import VENDOR, list_builds
from bundler.model.artifacts import FileRecord
from bundler.model.digests import digest_file
from bundler.model.proof import Download, DownloadFile, DownloadRole
from bundler.model.runtime import RuntimeVariant


def list_downloads(request: EmitRequest, assets: tuple[Asset, ...], folder: Path) -> tuple[Download, ...]:
    """The downloads of every variant of the bundle in `folder`, the golden set (for a self-test) and pages left out."""
    survey = _survey(request, assets, folder)
    return tuple(
        Download(
            component=component.name,
            variant=variant.name,
            build=build,
            browsers=list_builds()[build].browsers,
            files=survey.weigh(variant, build),
        )
        for component, variant in request.config.pairs
        for build in variant.builds
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What an application ships that imports `subpath`: the files, and the loader's modules, of `code` bytes before a
    build tool has minified them.
    """

    subpath: str
    files: tuple[DownloadFile, ...]
    code: int

    @property
    def size(self) -> int:
        """Bytes of the files without compression."""
        return sum(file.size for file in self.files)

    @property
    def gzip(self) -> int:
        """Bytes of the files when the host compresses with gzip."""
        return sum(file.gzip for file in self.files)

    @property
    def brotli(self) -> int:
        """Bytes of the files when the host compresses with brotli."""
        return sum(file.brotli for file in self.files)


def list_shares(
    request: EmitRequest, assets: tuple[Asset, ...], imports: Sequence[Import], folder: Path
) -> tuple[Share, ...]:
    """What each of the `imports` adds to an application; the golden sets, which are an import too, come last."""
    survey = _survey(request, assets, folder)
    found = [(one.subpath, one.choose(assets), one.entry) for one in imports]
    found.append((SELF_TEST, choose_golden(request.config, assets), f"{SELF_TEST}.js"))
    return tuple(survey.share(*each) for each in found)


def _survey(request: EmitRequest, assets: tuple[Asset, ...], folder: Path) -> _Survey:
    return _Survey(
        folder=folder,
        assets={asset.path: asset for asset in assets},
        compressor=Compressor(cache_root=request.environments.root),
        best=WebSettings.of(request.profile).precompressed,
    )


@dataclass(frozen=True, kw_only=True)
class _Survey:
    """Weighs the files of one bundle."""

    folder: Path
    assets: Mapping[str, Asset]
    compressor: Compressor
    best: bool

    def weigh(self, variant: RuntimeVariant, build: str) -> tuple[DownloadFile, ...]:
        vendored = list_builds()[build]
        runtime = [f"{VENDOR}/{vendored.module}", f"{VENDOR}/{vendored.binary}"]
        models = [str(PurePosixPath(PAYLOAD) / file.path) for file in variant.files]
        return (
            *(self._weigh(record, "loader") for record in self._modules()),
            *(self._weigh(part, "runtime") for name in runtime for part in self.assets[name].parts),
            *(self._weigh(part, "model") for name in models for part in self.assets[name].parts),
        )

    def share(self, subpath: str, assets: tuple[Asset, ...], entry: str) -> Share:
        return Share(
            subpath=subpath,
            files=tuple(self._weigh(part, "model") for asset in assets for part in asset.parts),
            code=sum((self.folder / path).stat().st_size for path in find_modules(self.folder, entry)),
        )

    def _modules(self) -> Iterator[FileRecord]:
        for path in find_modules(self.folder, ENTRY):
            source = self.folder / path
            yield FileRecord(path=path, size=source.stat().st_size, sha256=digest_file(source))

    def _weigh(self, record: FileRecord, role: DownloadRole) -> DownloadFile:
        sizes = self.compressor.measure(self.folder / record.path, record, best=self.best)
        return DownloadFile(
            path=record.path,
            size=record.size,
            gzip=min(sizes.gzip, record.size),
            brotli=min(sizes.brotli, record.size),
            role=role,
        )
