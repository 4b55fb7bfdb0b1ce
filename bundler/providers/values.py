"""Checks an option's value against its rule and converts it to the runtime's spelling."""

from __future__ import annotations

import math

from bundler.providers.knowledge import OptionRule

TRUE = ("1", "true")
FALSE = ("0", "false")
LONGEST = 1024
"""Characters of a session configuration value: the limit that the runtime's header of configuration keys states."""


def normalize_value(rule: OptionRule, value: object) -> bool | int | float | str:
    """`value` as its rule requires: a flag as a boolean, a number as a number, a choice as the runtime spells it.

    Raises `ValueError` that says what is expected.
    """
    if rule.kind == "flag":
        return _flag(value)
    if rule.kind == "integer":
        return int(_bounded(rule, _integer(value)))
    if rule.kind == "number":
        return _bounded(rule, _number(value))
    return _text(rule, value)


def as_entry(value: float | str) -> str:
    """A checked value as the text of a configuration entry or provider option."""
    return str(int(value)) if isinstance(value, bool) else str(value)


def expected(rule: OptionRule) -> str:
    """The values of a rule, in words."""
    if rule.values is not None:
        return "one of " + ", ".join(rule.values)
    if rule.kind == "flag":
        return "true or false"
    return {"integer": "a whole number", "number": "a number", "text": "text"}[rule.kind] + _bounds(rule)


def _bounds(rule: OptionRule) -> str:
    if rule.least is not None and rule.most is not None:
        return f" from {rule.least:g} to {rule.most:g}"
    if rule.least is not None:
        return f" of at least {rule.least:g}"
    return ""


def _flag(value: object) -> bool:
    text = str(value).lower()
    if text in TRUE:
        return True
    if text in FALSE:
        return False
    raise ValueError("true or false")


def _integer(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    # No option has sixty digits, and Python refuses to read numbers of several thousand.
    if isinstance(value, str) and len(value) < 60 and value.isascii() and value.removeprefix("-").isdigit():  # noqa: PLR2004
        return int(value)
    raise ValueError("a whole number")


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("a number")  # noqa: TRY004 - a wrong type is one more wrong value to the reader
    try:
        number = float(value)
    except (ValueError, OverflowError) as error:
        raise ValueError("a number") from error
    if not math.isfinite(number):
        raise ValueError("a finite number")
    return number


def _bounded(rule: OptionRule, number: float) -> float:
    below = rule.least is not None and number < rule.least
    above = rule.most is not None and number > rule.most
    if below or above:
        raise ValueError(expected(rule))
    return number


def _text(rule: OptionRule, value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(expected(rule))  # noqa: TRY004 - a wrong type is one more wrong value to the reader
    if rule.values is not None and value not in rule.values:
        raise ValueError(expected(rule))
    if "\0" in value or len(value) > LONGEST:
        raise ValueError(f"text of at most {LONGEST} characters without NUL")
    return value
