"""Users of this machine, by their numbers."""

from __future__ import annotations


def name_user(number: int) -> str:
    """`maria, uid 1001`, or the number alone where nobody has a name for it. POSIX alone has such numbers."""
    import pwd  # noqa: PLC0415 - see above

    try:
        return f"{pwd.getpwuid(number).pw_name}, uid {number}"
    except KeyError:
        return f"uid {number}"
