"""What can go wrong: every error says what happened, why, and what to do next."""

from __future__ import annotations

REBUILD = "install the bundle again from a copy that you trust"


class BundleError(Exception):
    """Base of all errors of this package.

    `what` is one sentence, `why` holds the evidence, `hint` says what to do next.
    """

    exit_code = 3

    def __init__(self, what: str, *, why: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.hint = hint

    def __str__(self) -> str:
        lines = [self.what]
        if self.why:
            lines.append(f"  why:  {self.why}")
        if self.hint:
            lines.append(f"  next: {self.hint}")
        return "\n".join(lines)


class naming:  # noqa: N801 (used like a function)
    """Errors inside say of which component of a bundle of several they are; without a name, they stay as they are."""

    def __init__(self, component: str) -> None:
        self._component = component

    def __enter__(self) -> None:
        return

    def __exit__(self, _: object, error: object, __: object) -> None:
        subject = f"component {self._component}"
        if self._component and isinstance(error, BundleError):
            if not error.what.startswith((f"{subject}: ", f"{subject} ")):
                error.what = f"{subject}: {error.what}"
            error.args = (error.what,)


class IntegrityError(BundleError):
    """A file of the bundle is missing or does not match its checksum."""


class IncompatibleError(BundleError):
    """No variant of the bundle can run here."""


class FallbackError(BundleError):
    """Strict mode: the preferred variant cannot run here, and no other is allowed."""


class InputError(BundleError, ValueError):
    """An input has the wrong name, type or shape."""

    exit_code = 2


class ClosedError(BundleError):
    """The model was closed, or belongs to the process that this one was forked from."""


class SelfTestError(BundleError):
    """The model does not reproduce its golden set here."""

    exit_code = 1


class FallbackWarning(RuntimeWarning):
    """The preferred variant cannot run here; another one does."""
