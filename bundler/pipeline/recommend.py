"""`targets recommend`: which targets suit a model on a device, and why."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bundler.catalogue.listing import Summary, list_targets
from bundler.catalogue.machine import Machine, see_machine
from bundler.catalogue.matching import (
    Candidate,
    Match,
    find_devices,
    find_refusals,
    find_siblings,
    find_stand_ins,
    suggest_devices,
)
from bundler.catalogue.recommending import (
    FAMILIES,
    OPEN_SIZE,
    SuggestedSizes,
    explain_fit,
    family_targets,
    suggest_sizes,
)
from bundler.model.errors import BundlerError, ProfileError, UsageError
from bundler.model.events import Listener
from bundler.model.facts import ModelFacts
from bundler.pipeline.opening import open_model
from bundler.pipeline.requests import BuildRequest
from bundler.pipeline.workspace import Workspace
from bundler.planning.plan import make_plan
from bundler.planning.request import PlanRequest
from bundler.planning.rules import find_obstacles
from bundler.planning.settle import settle_profile
from bundler.profiles.chain import shorten
from bundler.profiles.resolve import resolve_target
from bundler.profiles.schema import Platform, TargetProfile

MODEL_WORD = "MODEL"
"""Placeholder in commands for a model whose name is not safe to print."""

_ALL_TARGETS = "`bundler targets list` shows all; `bundler targets new` writes a profile for your device"

_LAPTOP_ARCHITECTURES = ("x64", "arm64")

_PROVISIONAL = 16
"""The size that a dimension is planned with while only the user knows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """One target. `occasion` says what it is picked for (`this machine`, `a phone`, the device that was asked for) and
    `matched` by which name it was found. `known` is false where no target is of the device itself, and this one is the
    nearest that runs there. `reasons` explain it, `obstacles` say why it does not fit (it `fits` where there are none);
    `command` is what to run next, as arguments, and `shell` the same for a shell.
    """

    target: str
    occasion: str
    matched: str
    fits: bool
    known: bool = True
    title: str = ""
    reasons: tuple[str, ...] = ()
    obstacles: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    shell: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendations:
    """What to build a model for. `device` is the text that was asked for, None for this machine and the families."""

    facts: ModelFacts
    digest: str
    device: str | None
    picks: tuple[Recommendation, ...]


def recommend_targets(path: Path, device: str | None, workspace: Workspace, listener: Listener) -> Recommendations:
    """Inspect a model without running it, and pick targets for it.

    Raises `ModelError`; `UsageError` for a device that no target is known for; `ProfileError` where no target fits.
    """
    # A device that nobody knows is said before a large model is read.
    matches = None if device is None else find_matches(device, list_targets())
    opened = open_model(BuildRequest(model=path, target=""), "", workspace, listener)
    picks = pick_targets(opened.facts, str(path), None if matches is None or device is None else (device, matches))
    if workspace.sandbox is not None:
        picks = tuple(_shut_in(pick) for pick in picks)
    return Recommendations(facts=opened.facts, digest=opened.source.digest, device=device, picks=picks)


def _shut_in(pick: Recommendation) -> Recommendation:
    """Its command, run as it stands, opens the model in a sandbox, too."""
    if not pick.command:
        return pick
    shell = f"{pick.shell} --sandbox"
    return replace(pick, command=(*pick.command, "--sandbox"), shell=shell)


def find_matches(device: str, summaries: Sequence[Summary]) -> tuple[Match, ...]:
    """The targets that `device` means, or else those that run on it although no target is of it.

    Raises `UsageError` with those that are spelt alike when there is none.
    """
    candidates = _candidates(summaries)
    matches = find_devices(device, candidates) or find_stand_ins(device, candidates)
    refusals = () if matches else find_refusals(device, candidates)
    # A target for another number of the line would not run there either.
    matches = matches or (() if refusals else _general(device, candidates))
    if matches:
        return matches
    if refusals:
        raise UsageError(f"no target runs on the device {shorten(device)}", details=refusals, hint=_ALL_TARGETS)
    close = suggest_devices(device, candidates)
    raise UsageError(
        f"no target is known for the device {shorten(device)}",
        details=(f"spelt alike: {', '.join(close)}",) if close else (),
        hint=_ALL_TARGETS,
    )


def _general(device: str, candidates: Sequence[Candidate]) -> tuple[Match, ...]:
    """The general targets of the machines whose names differ in a number alone."""
    plain = {candidate.id for candidate in candidates}
    found: dict[str, Match] = {}
    for sibling in find_siblings(device, candidates):
        for general in _generals(sibling):
            if general in plain:
                why = _explain_general(sibling, general)
                found.setdefault(general, Match(target=general, name="", score=0.0, stands_in=why))
    return tuple(found.values())


def _generals(sibling: Match) -> tuple[str, ...]:
    platform = resolve_target(sibling.target).platform
    return tuple(f"{platform.system}-{architecture}" for architecture in _architectures(sibling, platform))


def _architectures(sibling: Match, platform: Platform) -> tuple[str, ...]:
    """Laptops for Windows of one line have this processor or that one, where their name comes with a caution."""
    is_mixed = bool(sibling.caution) and platform.system == "windows"
    return _LAPTOP_ARCHITECTURES if is_mixed else (platform.architecture,)


def _explain_general(sibling: Match, general: str) -> str:
    variants = ", ".join(variant.name for variant in resolve_target(general).variants)
    which = "ask which processor it has; " if len(_generals(sibling)) > 1 else ""
    named = f"{_quote(sibling.name)} ({sibling.target})"
    return (
        f"{which}no target names it, and it is not known whether models compiled for {named} run there; "
        f"this is the generic target (variants: {variants})"
    )


def pick_targets(
    facts: ModelFacts, model: str, asked: tuple[str, Sequence[Match]] | None, machine: Machine | None = None
) -> tuple[Recommendation, ...]:
    """The targets for the device `asked` for (its text, and what it means), else for this machine and each family.

    Where no device's target fits, those that do fit follow it. Raises `ProfileError` when none fits at all.
    """
    judge = _Judge(facts=facts, model=model)
    if asked is not None:
        device, matches = asked
        picks = tuple(judge.judge_match(match, device) for match in matches)
        if not any(pick.fits for pick in picks):
            picks += tuple(pick for pick in _pick_families(judge) if pick.fits)
    else:
        picks = (*_pick_machine(judge, machine or see_machine()), *_pick_families(judge))
    if not any(pick.fits for pick in picks):
        raise _nothing_fits(facts, picks)
    return picks


def _candidates(summaries: Sequence[Summary]) -> tuple[Candidate, ...]:
    return tuple(
        Candidate(
            id=summary.id,
            names=(*summary.aliases, summary.title, summary.id),
            serves=summary.serves,
            refuses=summary.refuses,
            cautions=summary.cautions,
        )
        for summary in summaries
        if not summary.problem
    )


def _pick_machine(judge: _Judge, machine: Machine) -> Iterator[Recommendation]:
    """The most particular target of this machine's kind: by what its parts call themselves, else the general one."""
    alike = [
        summary
        for summary in list_targets()
        if (summary.system, summary.architecture) == (machine.system, machine.architecture)
    ]
    candidates = _candidates(alike)
    for clue in machine.clues:
        matches = find_devices(clue, candidates) or find_stand_ins(clue, candidates)
        if matches:
            yield judge.judge(matches[0].target, occasion="this machine", matched=f"it calls itself {_quote(clue)}")
            break
    general = f"{machine.system}-{machine.architecture}"
    if general in {summary.id for summary in alike}:
        yield judge.judge(general, occasion="this machine", matched="the generic target")


def _pick_families(judge: _Judge) -> Iterator[Recommendation]:
    """For each family the first of its targets that fits; where none does, the first, with its obstacles."""
    known = {summary.id for summary in list_targets() if not summary.problem}
    for family in FAMILIES:
        ids = [name for name in family_targets(family, judge.facts) if name in known]
        picks = [judge.judge(name, occasion=family.title, matched="") for name in ids]
        chosen = next((pick for pick in picks if pick.fits), picks[0] if picks else None)
        if chosen is not None:
            yield chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judge:
    """Judges targets for one model; `model` is what the user called it."""

    facts: ModelFacts
    model: str

    def judge_match(self, match: Match, device: str) -> Recommendation:
        """What there is to say of a target that was found for `device`."""
        found = self.judge(match.target, occasion=device, matched=_describe_match(match))
        return replace(found, known=not match.stands_in)

    def judge(self, target: str, *, occasion: str, matched: str) -> Recommendation:
        """What there is to say of one target; a profile that is not valid is an obstacle as any other."""
        try:
            profile = resolve_target(target)
        except ProfileError as error:
            text = "; ".join((error.message, *error.details))
            return Recommendation(target=target, occasion=occasion, matched=matched, fits=False, obstacles=(text,))
        return self._judge_profile(profile, occasion=occasion, matched=matched)

    def _judge_profile(self, profile: TargetProfile, *, occasion: str, matched: str) -> Recommendation:
        obstacles = self._find_obstacles(profile)
        command = _command(self.model, profile, suggest_sizes(self.facts, profile))
        return Recommendation(
            target=profile.id,
            title=profile.title,
            occasion=occasion,
            matched=matched,
            fits=not obstacles,
            reasons=() if obstacles else tuple(explain_fit(self.facts, profile)),
            obstacles=obstacles,
            command=command,
            shell=_shell(command),
        )

    def _find_obstacles(self, profile: TargetProfile) -> tuple[str, ...]:
        """What the facts say, and what planning the suggested command would refuse."""
        found = find_obstacles(self.facts, profile)
        sizes = suggest_sizes(self.facts, profile)
        request = PlanRequest(
            dimensions={name: _provisional(size) for name, size in sizes.dimensions.items()},
            shapes={
                name: tuple(None if size == "?" else _provisional(size) for size in shape)
                for name, shape in sizes.shapes.items()
            },
        )
        try:
            make_plan(settle_profile(profile, self.facts, request), request)
        except BundlerError as error:
            return (*found, "; ".join((error.message, *error.details)))
        return found


def _provisional(size: str) -> int:
    return _PROVISIONAL if size == OPEN_SIZE else int(size)


def _command(model: str, profile: TargetProfile, sizes: SuggestedSizes) -> tuple[str, ...]:
    # A path that starts with a hyphen would be read as an option.
    named = f"./{model}" if model.startswith("-") else model
    return ("bundler", "build", named, "--target", profile.id, *sizes.options())


def _shell(command: tuple[str, ...]) -> str:
    """The command for a shell; words that are not safe to print are left for the user to fill in."""
    program, verb, model, *rest = command
    safe = [word if word.isprintable() else "NAME=N" for word in rest]
    return shlex.join((program, verb, model if model.isprintable() else MODEL_WORD, *safe))


def _describe_match(match: Match) -> str:
    if match.stands_in:
        family = f", as for {_quote(match.name)}" if match.name else ""
        return f"not in the catalogue; the nearest usable target{family}: {match.stands_in}"
    read = f", reading it as {_quote(match.read_as)}" if match.read_as else ""
    how = "by its name" if match.score >= 1 else "whose nearest name is"
    caution = f"; caution: {match.caution}" if match.caution else ""
    return f"{how} {_quote(match.name)}{read}{caution}"


def _quote(text: str) -> str:
    return f'"{text}"'


def _nothing_fits(facts: ModelFacts, picks: Sequence[Recommendation]) -> ProfileError:
    details = [f"{pick.target}: {obstacle}" for pick in picks for obstacle in pick.obstacles]
    return ProfileError(
        f"no target fits {facts.name}",
        details=tuple(dict.fromkeys(details)),
        hint="a smaller model, fixed sizes (--dim, --shape) or a larger budget (--set budget.model_mb=N) may help; "
        "`bundler inspect MODEL` describes every target",
    )
