"""How far a proof went, what was vendored and what an emitter wrote: known to emitters, verification and reporting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from bundler.model.results import Comparison

Proof = Literal["executed", "emulated", "stand-in", "ran-unchecked", "resolved"]
"""How far a proof went; see the README for what each level promises."""

PROOF_MEANINGS: Final[Mapping[Proof, str]] = {
    "executed": "the golden set was reproduced in the bundle's own runtime",
    "emulated": "the golden set was reproduced in the bundle's own runtime, under emulation of the device",
    "stand-in": "the golden set was reproduced on another host, with the same version of the runtime",
    "ran-unchecked": "it ran without an error; at least one output could not be compared with the original model's",
    "resolved": "every file was resolved and locked, and nothing was run",
}
"""What each level promises, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A third-party file set inside the bundle, for the bill of materials. `licence` is an SPDX expression or a name,
    `licence_text` what NOTICES repeats; `sha256` is that of the vendored file.
    """

    name: str
    version: str
    licence: str
    licence_text: str
    purl: str
    sha256: str | None
    file: str | None


DownloadRole = Literal["runtime", "model", "loader"]
"""What a file that a visitor fetches is part of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DownloadFile:
    """One file that a first visit fetches, in bytes: as it is, by gzip and by brotli."""

    path: str
    size: int
    gzip: int
    brotli: int
    role: DownloadRole = "loader"


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """What the first visit fetches for a variant, where it runs on this build of the runtime; `browsers` says in words
    which take that build.
    """

    variant: str
    build: str
    browsers: str
    files: tuple[DownloadFile, ...]

    @property
    def size(self) -> int:
        """Bytes with no compression."""
        return sum(file.size for file in self.files)

    @property
    def gzip(self) -> int:
        """Bytes when the host compresses by gzip."""
        return sum(file.gzip for file in self.files)

    @property
    def brotli(self) -> int:
        """Bytes when the host compresses by brotli."""
        return sum(file.brotli for file in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class Emitted:
    """What was written. `payload` is the folder (relative, forward slashes, `.` for the root) holding `runtime.json`,
    `golden/` and the models, or None when a packed format hides it; `package` is the name that users import;
    `components` are what was vendored. `downloads` are for ecosystems whose users fetch a bundle piece by piece.
    `notes` are what the user of the bundle must do, a sentence each.
    """

    payload: str | None
    package: str
    components: tuple[Component, ...]
    downloads: tuple[Download, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RanOn:
    """On what a variant ran: the kind of `device`, as `--on` takes it; its `system`, as `Linux`; its `processor`, as
    `x86_64`, or the core that was emulated; and the `runtime` with its version. Two machines of one kind have the same.
    """

    device: str
    system: str
    processor: str
    runtime: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantProof:
    """One variant's run of the golden set. `figures` holds seconds and other values that vary (they go to the report,
    never into the bundle). `passed` is None when it did not run; `reason` then says why. `nodes` counts the nodes of
    the graph that each provider took, by the runtime's name of the provider; empty where the runtime did not tell.
    `place` says where it ran, as `in Chromium 143`; empty for the machine that ran it, as it is.
    `means` is what it was run with and `unrun` are those that the bundle is for, too, and that it was not run with, as
    `Python 3.12`. `ran_on` is on what it ran, None where it did not; `host` is what that calls itself, for the report.
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
