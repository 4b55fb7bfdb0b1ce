"""Every error that a user can see, with its exit code.

An error says what went wrong and where (`message`), why (`details`, and the chained cause), and what to do
next (`hint`). Only `bundler.cli` turns one into an exit code.
"""

from __future__ import annotations

from typing import ClassVar

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


class BundlerError(Exception):
    """Base class of all errors.

    `message` is one sentence without a trailing stop; `details` are lines of evidence; `hint` says what to do next.
    """

    exit_code: ClassVar[int] = 1
    kind: ClassVar[str] = "error"

    def __init__(self, message: str, *, hint: str | None = None, details: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details = details

    def to_json(self) -> dict[str, Json]:
        """The error as `--json` prints it and as a worker sends it."""
        return {
            "kind": self.kind,
            "exit_code": self.exit_code,
            "message": self.message,
            "hint": self.hint,
            "details": list(self.details),
        }


class DefectError(BundlerError):
    """A defect of bundler itself (exit code 1)."""

    kind = "defect"


class UsageError(BundlerError):
    """The command line, the project file or the samples are invalid, or name something unknown (exit code 2)."""

    exit_code = 2
    kind = "usage"


class OpenSizesError(UsageError):
    """A provider requires fixed sizes, and the model leaves some open (exit code 2)."""


class ModelError(BundlerError):
    """The model cannot be read, is not valid, or cannot run at all (exit code 3)."""

    exit_code = 3
    kind = "model"


class ProfileError(BundlerError):
    """A target profile cannot be read, is not valid, or does not suit (exit code 4)."""

    exit_code = 4
    kind = "profile"


class EnvironmentMissingError(BundlerError):
    """A tool or an environment is missing and could not be made (exit code 5)."""

    exit_code = 5
    kind = "environment"


class IndexUnreachableError(EnvironmentMissingError):
    """A package index does not answer (exit code 5): whether it has a package is not known."""


class DeviceMissingError(EnvironmentMissingError):
    """A device is not here, or cannot be had (exit code 5). `message` names no place and no moment of this machine: it
    may go into a manifest, as the reason why nothing was run; `details` may not.
    """


class OutputError(BundlerError):
    """What was to be printed cannot be written (exit code 6)."""

    exit_code = 6
    kind = "output"


class StageError(BundlerError):
    """A stage, its worker or its storage failed (exit code 6)."""

    exit_code = 6
    kind = "stage"


class GateError(BundlerError):
    """An accuracy gate or a size budget is not met (exit code 7)."""

    exit_code = 7
    kind = "gate"


class VerificationError(BundlerError):
    """A bundle is altered, or did not reproduce its golden set (exit code 8)."""

    exit_code = 8
    kind = "verification"


KINDS: dict[str, type[BundlerError]] = {
    cls.kind: cls
    for cls in (
        DefectError,
        UsageError,
        ModelError,
        ProfileError,
        EnvironmentMissingError,
        StageError,
        GateError,
        VerificationError,
    )
}


def error_from_json(data: dict[str, Json]) -> BundlerError:
    """The error that a worker sent, as an instance of its class."""
    cls = KINDS.get(str(data.get("kind")), DefectError)
    details = data.get("details")
    hint = data.get("hint")
    return cls(
        str(data.get("message", "unknown error")),
        hint=None if hint is None else str(hint),
        details=tuple(str(line) for line in details) if isinstance(details, list) else (),
    )
