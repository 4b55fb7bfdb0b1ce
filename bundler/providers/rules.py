"""Short ways to write rows of option tables, and the reasons for which an option is not for a profile."""

from __future__ import annotations

from bundler.providers.knowledge import OptionRule

ADDRESS = "it is an address in a running program, which a profile cannot know"
BUILDING_PATH = "it names a file of one machine, and a bundle is opened on another"
DEBUGGING = "it writes files for debugging into the device's working folder"
LEGACY_CONTEXT = '`session_config."ep.context_…"` took its place, and bundler sets those itself'


def flag(key: str, meaning: str, *, default: str = "0", decided: str = "") -> OptionRule:
    """An option that is on or off."""
    return OptionRule(key=key, kind="flag", default=default, meaning=meaning, decided=decided)


def text(key: str, meaning: str, *, default: str = "", decided: str = "") -> OptionRule:
    """An option of any text."""
    return OptionRule(key=key, default=default, meaning=meaning, decided=decided)


def choice(key: str, values: tuple[str, ...], meaning: str, *, default: str) -> OptionRule:
    """An option with a few values."""
    return OptionRule(key=key, values=values, default=default, meaning=meaning)


def whole(
    key: str, meaning: str, *, default: str = "0", least: float = 0, most: float | None = None, decided: str = ""
) -> OptionRule:
    """An option that is a whole number, of at least 0 where nothing else is said."""
    return OptionRule(
        key=key, kind="integer", least=least, most=most, default=default, meaning=meaning, decided=decided
    )


HERE = flag("here", "Compile on the building machine; otherwise the device does, at install or first start.")
"""The row that every compiler's table begins with. Without it the compiler's own default holds."""

EMBED = flag("embed", "Put the compiled part into the model's file instead of a separate file.")


STREAM = (
    flag("has_user_compute_stream", "The program brings a stream.", decided=ADDRESS),
    text("user_compute_stream", "That stream.", default="0", decided=ADDRESS),
)
"""A stream of the program that opens the session, as all of NVIDIA's providers take it."""


def shape_ranges(least: str, best: str, greatest: str) -> tuple[OptionRule, ...]:
    """The options, by their keys, for ranges of input shapes."""
    return (
        text(least, "Smallest shapes: `input:1x3x224x224`, separated by commas."),
        text(best, "Shapes to tune for, in the same form."),
        text(greatest, "Largest shapes, in the same form."),
    )


def is_set(value: str) -> bool:
    """Whether a flag, as text, is on."""
    return value.lower() in ("1", "true")


def split_items(text: str) -> list[str]:
    """What stands between commas, without the spaces around it; nothing for what is empty."""
    return [item.strip() for item in text.split(",") if item.strip()]
