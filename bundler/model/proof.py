"""Levels of proof, third-party components, and the result of an emitter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from bundler.model.artifacts import FileRecord
from bundler.model.results import Comparison
from bundler.model.runtime import SOLE

Proof = Literal["executed", "emulated", "stand-in", "ran-unchecked", "resolved"]
"""The level of proof; the README says what each level promises."""

PROOF_MEANINGS: Final[Mapping[Proof, str]] = {
    "executed": "the golden set was reproduced in the bundle's own runtime",
    "emulated": "the golden set was reproduced in the bundle's own runtime, under emulation of the device",
    "stand-in": "the golden set was reproduced on another host, with the same version of the runtime",
    "ran-unchecked": "it ran without an error; at least one output could not be compared with the original model's",
    "resolved": "every file was resolved and locked, and nothing was run",
}
"""What each level promises, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """Third-party software of a bundle, for the bill of materials. `licence` is an SPDX expression or a name,
    `licence_text` what NOTICES repeats. `file` is its place in the bundle, which may lie in an archive, with its
    `sha256`; `files` are those of software that is several. `parts` are what it has vendored itself.

    `provided_by` is for software that the bundle requires and does not contain, and names what provides it: `pip`.
    """

    name: str
    version: str
    licence: str
    licence_text: str
    purl: str
    sha256: str | None
    file: str | None
    parts: tuple[Dependency, ...] = ()
    files: tuple[FileRecord, ...] = ()
    provided_by: str = ""


DownloadRole = Literal["runtime", "model", "loader"]
"""The part of the download that a file belongs to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DownloadFile:
    """One file of a first visit, in bytes: uncompressed, with gzip and with brotli."""

    path: str
    size: int
    gzip: int
    brotli: int
    role: DownloadRole = "loader"


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """The first visit's downloads for a variant and a build of the runtime; `browsers` describes the browsers that use
    that build.
    """

    variant: str
    build: str
    browsers: str
    files: tuple[DownloadFile, ...]
    component: str = SOLE

    @property
    def size(self) -> int:
        """Bytes without compression."""
        return sum(file.size for file in self.files)

    @property
    def gzip(self) -> int:
        """Bytes when the host compresses with gzip."""
        return sum(file.gzip for file in self.files)

    @property
    def brotli(self) -> int:
        """Bytes when the host compresses with brotli."""
        return sum(file.brotli for file in self.files)


def sum_first_visit(downloads: Iterable[Download]) -> Download:
    """What the first visit downloads that opens every component on its preferred variant: what they share counts once.
    The build is the one of the first component that has a choice.
    """
    preferred: dict[str, list[Download]] = {}
    for download in downloads:
        of_component = preferred.setdefault(download.component, [])
        if not of_component or of_component[0].variant == download.variant:
            of_component.append(download)
    chosen = [_prefer(rows, next(iter(preferred.values()))) for rows in preferred.values()]
    files = {file.path: file for download in chosen for file in download.files}
    return replace(chosen[0], files=tuple(files.values()))


def _prefer(rows: list[Download], first: list[Download]) -> Download:
    """The row on the build that the first component takes, where this one has it."""
    return next((row for row in rows if row.build == first[0].build), rows[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Emitted:
    """What was written. `payload` is the folder (relative, forward slashes, `.` for the root) holding `runtime.json`,
    `golden/` and the models, or None when a packed format hides it; `package` is the name that users import;
    `dependencies` are what it contains or requires of others. `downloads` are for ecosystems whose users fetch a bundle
    piece by piece. `notes` are what the user of the bundle must do, a sentence each.
    """

    payload: str | None
    package: str
    dependencies: tuple[Dependency, ...]
    downloads: tuple[Download, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RanOn:
    """What a variant ran on: the kind of `device`, as for `--on`; its `system`, such as `Linux`; its `processor`, such
    as `x86_64`, or the emulated core; and the `runtime` with its version. Equal for two machines of one kind.
    """

    device: str
    system: str
    processor: str
    runtime: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantProof:
    """One variant's run of the golden set. `figures` holds seconds and other values that vary (they go to the report,
    never into the bundle). `passed` is None when it did not run; `reason` then says why. `nodes` counts the nodes of
    the graph assigned to each provider, by the runtime's name of the provider; empty where the runtime did not report
    it. `place` says where it ran, such as `in Chromium 143`; empty for the machine itself. `means` is what it was run
    with, such as `Python 3.12`, and `unrun` are others that the bundle supports and that it was not run with. `ran_on`
    is what it ran on, None where it did not run; `host` is that machine's own name, for the report.
    """

    variant: str
    level: Proof
    passed: bool | None
    comparison: Comparison | None
    reason: str
    figures: Mapping[str, float]
    nodes: Mapping[str, int] = field(default_factory=dict)
    place: str = ""
    means: str = ""
    unrun: tuple[str, ...] = ()
    ran_on: RanOn | None = None
    host: str = ""
    component: str = SOLE
