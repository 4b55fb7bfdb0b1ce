"""Names of this machine's users."""

from __future__ import annotations


def name_user(number: int) -> str:
    """`maria, uid 1001`, or `uid 1001` for one without a name. POSIX only."""
    import pwd  # noqa: PLC0415 - see above

    try:
        return f"{pwd.getpwuid(number).pw_name}, uid {number}"
    except KeyError:
        return f"uid {number}"
