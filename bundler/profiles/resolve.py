"""From a target's name or path to one checked profile. Reads files; reports all errors at once."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bundler.model.errors import BundlerError, ProfileError, UsageError
from bundler.profiles.chain import Layered, load_chain, shorten
from bundler.profiles.locations import find_catalogue
from bundler.profiles.overrides import ORIGIN, apply_overrides
from bundler.support.platforms import ARCHITECTURES, spell_platforms

if TYPE_CHECKING:
    from bundler.profiles.problems import Problem
    from bundler.profiles.schema import TargetProfile

# The schema costs more to import than all else here together, so what only reads names does not import it.


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A profile and where each of its values came from."""

    profile: TargetProfile
    layered: Layered


def target_ids() -> tuple[str, ...]:
    """Names of all registered targets, sorted."""
    return tuple(sorted(find_catalogue().targets))


def resolve_target(name_or_path: str, overrides: Sequence[str] = ()) -> TargetProfile:
    """The profile of a target, by its name or by the path of a TOML file, with `dotted.key=value` overrides.

    Raises `ProfileError` with one line of `details` for each thing that is wrong; `UsageError` for an unknown name and
    where the overrides alone are wrong.
    """
    return resolve_layers(name_or_path, overrides).profile


def resolve_layers(name_or_path: str, overrides: Sequence[str] = ()) -> Resolved:
    """As `resolve_target`, with the origin of each value."""
    layered = apply_overrides(load_chain(locate_target(name_or_path)), overrides)
    return Resolved(profile=check_layers(layered), layered=layered)


def read_ecosystem(name_or_path: str) -> str:
    """The ecosystem that a target's files name, unchecked. Raises `ProfileError` and `UsageError`."""
    bundle = load_chain(locate_target(name_or_path)).data.get("bundle", {})
    found = bundle.get("ecosystem") if isinstance(bundle, Mapping) else None
    return found if isinstance(found, str) else "python"


def locate_target(name_or_path: str) -> Path:
    """The file of a target. What ends in `.toml` or has a separator is a path. Raises `UsageError`."""
    if name_or_path.endswith(".toml") or "/" in name_or_path or "\\" in name_or_path:
        if "\0" in name_or_path:
            raise UsageError(f"{shorten(name_or_path)} is not a path", hint="`bundler targets list` shows all targets")
        return Path(name_or_path)
    found = find_catalogue().targets.get(name_or_path)
    if found is None:
        raise _unknown_target(name_or_path)
    return found


def check_layers(layered: Layered) -> TargetProfile:
    """The checked profile of merged data, its options in the runtime's own spelling. Raises `ProfileError`."""
    from pydantic import ValidationError  # noqa: PLC0415 - see above

    from bundler.profiles.compatibility import find_incompatible_values  # noqa: PLC0415
    from bundler.profiles.options import normalize_variant, session_rules  # noqa: PLC0415
    from bundler.profiles.problems import explain_errors  # noqa: PLC0415
    from bundler.profiles.sections import profile_model  # noqa: PLC0415

    layered = _spell_texts(layered)
    try:
        # Strict, because `simplify = "yes"` or `model_mb = "12"` in a file is a mistake, not a spelling.
        profile = profile_model().model_validate(freeze_arrays(layered.data), strict=True)
    except ValidationError as error:
        raise _invalid(layered, explain_errors(error, layered.data, profile_model())) from error
    problems = find_incompatible_values(profile)
    if problems:
        raise _invalid(layered, problems)
    rules = session_rules(profile.platform.system, profile.bundle.ecosystem)
    variants = tuple(normalize_variant(variant, rules) for variant in profile.variants)
    return profile.model_copy(update={"variants": variants})


def freeze_arrays(value: Any) -> Any:
    """What a TOML file says, its arrays as the tuples that a schema asks for."""
    if isinstance(value, Mapping):
        return {key: freeze_arrays(item) for key, item in value.items()}
    return tuple(freeze_arrays(item) for item in value) if isinstance(value, list) else value


def _spell_texts(layered: Layered) -> Layered:
    """Overrides of keys that take text only, as they were typed: `runtime.version=1.30` is no number."""
    from bundler.profiles.problems import takes_text  # noqa: PLC0415 - see above

    data = copy.deepcopy(layered.data)
    for key, text in layered.spellings.items():
        holder: Any = data
        for part in key[:-1]:
            holder = holder[part]
        # What was quoted, and so is text already, stays.
        if takes_text(key) and isinstance(holder[key[-1]], int | float):
            holder[key[-1]] = text
    return replace(layered, data=data)


def _invalid(layered: Layered, problems: Sequence[Problem]) -> ProfileError | UsageError:
    from bundler.profiles.problems import show_problem  # noqa: PLC0415 - see above

    count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    given = [layered.origin(problem.key) == ORIGIN for problem in problems]
    if all(given):
        return _unfit_overrides(problems)
    changed = " with what --set changes" if any(given) else ""
    return ProfileError(
        f"the profile {layered.files[0]}{changed} is not valid: {count}",
        details=tuple(show_problem(problem, layered) for problem in problems),
        hint="`bundler targets schema` describes every key; `bundler targets validate PATH` checks again",
    )


def _unfit_overrides(problems: Sequence[Problem]) -> UsageError:
    """The user gave these on the command line, and has no file to look into."""
    from bundler.profiles.problems import show_key  # noqa: PLC0415 - see above

    what = f"--set {show_key(problems[0].key)} does" if len(problems) == 1 else f"{len(problems)} values of --set do"
    return UsageError(
        f"{what} not fit the target",
        details=tuple(f"--set {show_key(problem.key)}: {problem.text}" for problem in problems),
        hint="`bundler targets methods` lists every method"
        if all(problem.key[-1] == "method" for problem in problems)
        else "`bundler targets schema` describes every key",
    )


MOST_MEANT = 4
"""Targets that a message suggests."""


def _unknown_target(name: str) -> UsageError:
    known = [part for part in name.split(",") if part in target_ids()] if "," in name else []
    if known:
        flags = " ".join(f"--target {part}" for part in name.split(","))
        return UsageError(
            f"{shorten(name)} is not a target: each target requires a separate option", hint=f"use {flags}"
        )
    close = _find_meant(name)[:MOST_MEANT]
    meant = "; did you mean " + " or ".join(f'"{target}"' for target in close) + "?" if close else ""
    return UsageError(
        f"unknown target {shorten(name)}{meant}",
        hint="`bundler targets list` shows all targets; `bundler targets recommend MODEL --device NAME` finds one by "
        "any name of the device; for your profile, use its path, ending in .toml",
    )


def _find_meant(name: str) -> list[str]:
    """Targets of that platform or architecture, or that have it for an alias, begin with it, or are spelt nearly so."""
    ids = target_ids()
    spelt = spell_platforms(name)
    exact = [target for target in ids if target == spelt or (spelt in ARCHITECTURES and target.endswith(f"-{spelt}"))]
    plain = _plain(name)
    aliased = [target for target in ids if plain in map(_plain, _aliases_of(target))]
    begun = [target for target in ids if target.startswith(f"{spelt}-")]
    return exact or aliased or begun or difflib.get_close_matches(spelt, ids, n=2, cutoff=0.7)


def _aliases_of(target: str) -> tuple[str, ...]:
    try:
        return resolve_target(target).aliases
    except BundlerError:  # of a user's file that is not valid: reported when that profile is asked for
        return ()


def _plain(name: str) -> str:
    return "".join(character for character in name.casefold() if character.isalnum())
