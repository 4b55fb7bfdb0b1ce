"""The runtime's threads: what an argument or the environment asks for instead of what `runtime.json` says."""

from __future__ import annotations

import os

from .errors import InputError

THREADS, SPINNING = "BUNDLER_THREADS", "BUNDLER_SPINNING"

MOST_THREADS = 1024
"""As in `runtime.json`."""

_SPIN = ("session.intra_op.allow_spinning", "session.inter_op.allow_spinning")
_AFFINITIES = "session.intra_op_thread_affinities"

_OF_PROVIDERS = ("intra_op_num_threads", "num_of_threads")
"""The options for the number of threads of providers with threads of their own."""

_COUNTS = f"a whole number from 0 (one a physical core) to {MOST_THREADS}"


class Tuning:
    """Threads inside one call (0: one a physical core), and whether idle ones spin; None keeps what the bundle says.

    No key of what is kept on the device has them: they change how a session runs, not what it is made from.
    """

    __slots__ = ("spinning", "threads")

    def __init__(self, threads: int | None = None, *, spinning: bool | None = None) -> None:
        self.threads = threads
        self.spinning = spinning

    @property
    def is_empty(self) -> bool:
        """Whether nothing was asked for."""
        return self.threads is None and self.spinning is None

    def adjust_entries(self, entries: dict[str, str]) -> dict[str, str]:
        """The configuration entries of a session; without affinities where these are for another number of threads."""
        adjusted = dict(entries)
        if self.spinning is not None:
            adjusted.update(dict.fromkeys(_SPIN, str(int(self.spinning))))
        if self.drops_affinities(entries):
            del adjusted[_AFFINITIES]
        return adjusted

    def drops_affinities(self, entries: dict[str, str]) -> bool:
        """Whether the entries bind threads to processors, for a number of threads that is not used."""
        return self.threads is not None and _AFFINITIES in entries

    def adjust_provider(self, options: dict[str, str]) -> dict[str, str]:
        """The options of a provider, with the number of threads where they name one."""
        if self.threads is None:
            return options
        return {**options, **{name: str(self.threads) for name in _OF_PROVIDERS if name in options}}


def names_threads(options: dict[str, str]) -> bool:
    """Whether the options of a provider give it threads of its own."""
    return any(name in options for name in _OF_PROVIDERS)


def resolve_tuning(threads: int | None, spinning: bool | None) -> Tuning:  # noqa: FBT001 (as the constructor got them)
    """An argument comes before the environment. Raises `InputError` for a value that is neither."""
    return Tuning(_read_threads() if threads is None else _check_threads(threads), spinning=_resolve_spinning(spinning))


def _check_threads(threads: object) -> int:
    if type(threads) is not int or not 0 <= threads <= MOST_THREADS:
        hint = f"give {_COUNTS}, or None for the bundle's own number"
        raise InputError(f"threads={_show(threads)} is not a number of threads", hint=hint)
    return threads


def _show(value: object) -> str:
    """The start of its `repr`; Python writes no number of more than 4300 digits."""
    try:
        return repr(value)[:40]
    except ValueError:
        return "a number of thousands of digits"


def _read_threads() -> int | None:
    text = os.environ.get(THREADS, "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MOST_THREADS)) and int(text) <= MOST_THREADS):
        hint = f"set it to {_COUNTS}, or unset it for the bundle's own number"
        raise InputError(f"{THREADS}={text[:40]!r} is not a number of threads", hint=hint)
    return int(text)


def _resolve_spinning(spinning: object) -> bool | None:
    if spinning is None:
        return _read_spinning()
    if not isinstance(spinning, bool):
        hint = "give True or False, or None for the bundle's own choice"
        raise InputError(f"spinning={_show(spinning)} is neither True nor False", hint=hint)
    return spinning


def _read_spinning() -> bool | None:
    text = os.environ.get(SPINNING, "")
    if text not in ("", "0", "1"):
        hint = "set it to 1 (idle threads spin) or 0 (they sleep), or unset it for the bundle's own choice"
        raise InputError(f"{SPINNING}={text[:40]!r} is neither 0 nor 1", hint=hint)
    return text == "1" if text else None
