"""docs/targets.md: how to choose a target, and the whole matrix of targets, variants and providers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from bundler.catalogue.outlook import VariantOutlook, foresee_variants
from bundler.catalogue.tables import code, table
from bundler.emitters.python.profile import ECOSYSTEM, PythonSettings
from bundler.profiles.methods import NONE
from bundler.profiles.resolve import resolve_target, target_ids
from bundler.profiles.schema import TargetProfile, Variant
from bundler.providers.availability import describe_row
from bundler.providers.knowledge import ProviderKnowledge
from bundler.providers.registry import find_provider, provider_names

CHOOSING = """\
## How to choose

1. `bundler targets recommend MODEL --device "Galaxy S24 Ultra"` names the target for a device and explains what it
   does with the model.
2. One device, one target: a separate target has the contexts, engines and limits of that chip. A bundle for several
   Snapdragon chips is `snapdragon-8-series`; for any phone take `android-arm64` or `ios-arm64`, for any computer
   `linux-x64`, `windows-x64`, `linux-arm64` or `macos-arm64`, which run on the CPU.
3. A target has variants in order of preference. At its start a bundle selects the first that the device can run and
   reports why it skipped the others. The last one runs everywhere: `cpu`, or `wasm` in browsers.
4. Give `--calibration` where a variant has a method for it: NPUs are fastest in int8, and some support nothing else.
5. Providers of phones and NPUs require fixed sizes. The targets fix dimensions of usual names, as shown; `--dim` fixes
   others, and overrides a target's; `--shape x=1,3,48,192` fixes the sizes of an input, with or without names.
   There `?` leaves a size unchanged, and `64..320` (or `64..192..320`, tuned for 192) is a range, where a provider
   takes ranges.
6. Compilation ahead of time makes the first start fast. Files that only the device can generate are generated there,
   at install or first start (by `prewarm` in a Python bundle, by your application with a bundle of files); until then
   the next variant runs.
7. A variant for a custom build of ONNX Runtime is left out unless `runtime.custom_build` is set, with your
   `runtime.package` and `runtime.version`.
8. Every target can be written with `--format files`: models, contexts, configuration, proofs and report, for your
   programs. Targets of Python bundles that run on the CPU have `--format jar` too, and those of Android
   `--format aar`.
"""

_RUNS = ("Target", "System", "CPU", "Runtime", "Plugins", "Bundle", "Python")
_VARIANTS = ("Target", "Variant", "Providers", "Precision", "With calibration data", "Prepared", "Minimum share")


def describe_matrix(heading: Sequence[str]) -> str:
    """The page under `heading`, a list of lines."""
    profiles = sorted((resolve_target(name) for name in target_ids()), key=lambda profile: (profile.group, profile.id))
    lines = [*heading, *CHOOSING.splitlines()]
    for group, members in groupby(profiles, key=lambda profile: profile.group):
        lines += _describe_group(group, list(members))
    lines += [
        "",
        "## Providers",
        "",
        *table(("Provider", "Title", "Packages", "Targets"), _provider_rows(profiles)),
    ]
    for profile in profiles:
        lines += ["", *_describe_target(profile)]
    return "\n".join(lines) + "\n"


def _describe_group(group: str, members: Sequence[TargetProfile]) -> list[str]:
    rows = [row for profile in members for row in _variant_rows(profile)]
    return ["", f"## {group}", "", *table(_RUNS, map(_runtime_row, members)), "", *table(_VARIANTS, rows)]


def _runtime_row(profile: TargetProfile) -> tuple[str, ...]:
    platform, runtime, bundle = profile.platform, profile.runtime, profile.bundle
    python = ", ".join(PythonSettings.of(profile).versions) if bundle.ecosystem == ECOSYSTEM else ""
    return (
        f"[`{profile.id}`](#{profile.id})",
        f"{platform.system} {platform.minimum or ''}".strip(),
        f"{platform.architecture} {platform.cpu or ''}".strip(),
        f"{runtime.package} {runtime.version}",
        ", ".join(f"{name} {version}" for name, version in runtime.plugins.items()),
        f"{bundle.ecosystem}, {code(bundle.format)}",
        python,
    )


def _variant_rows(profile: TargetProfile) -> Iterator[tuple[str, ...]]:
    for variant, outlook in zip(profile.variants, foresee_variants(profile), strict=True):
        yield (
            code(profile.id),
            code(variant.name),
            " → ".join(code(entry.name) for entry in variant.providers),
            _method(variant.precision or profile.precision.method),
            _method(variant.calibrated or profile.precision.calibrated),
            _describe_preparation(variant, outlook),
            _describe_share(variant),
        )


def _method(name: str) -> str:
    return "as it is" if name == NONE else code(name)


def _describe_preparation(variant: Variant, outlook: VariantOutlook) -> str:
    known = find_provider(variant.providers[0].name)
    thing = known.deferral.thing if known.deferral else ""
    return {
        "here": "compiled before shipping",
        "on the device": f"{thing} generated on the device",
        "as it is": "loaded as shipped",
        "left out": "requires a custom build of ONNX Runtime",
    }[outlook.fate]


def _describe_share(variant: Variant) -> str:
    if not variant.least_share:
        return ""
    then = "otherwise an error" if variant.shortfall == "fail" else "otherwise a warning"
    return f"{variant.least_share:.0%}, {then}"


def _provider_rows(profiles: Sequence[TargetProfile]) -> Iterator[tuple[str, ...]]:
    for name in provider_names():
        known = find_provider(name)
        users = [profile.id for profile in profiles if _uses(profile, name)]
        # The CPU is in all of them, and nobody reads a row of fifty names.
        shown = "all except those for browsers" if name == "cpu" else ", ".join(map(code, users))
        yield code(name), known.title, _describe_where(known), shown or "none"


def _uses(profile: TargetProfile, name: str) -> bool:
    return any(entry.name == name for variant in profile.variants for entry in variant.providers)


def _describe_where(known: ProviderKnowledge) -> str:
    parts = [describe_row(row) for row in known.presence.availability]
    parts += [known.presence.gone.rstrip(".")] if known.presence.gone else []
    parts += [f"use instead: {known.presence.instead.rstrip('.')}"] if known.presence.instead else []
    return "; ".join(parts) or f"in every {known.package}"


def _describe_target(profile: TargetProfile) -> Iterator[str]:
    yield from (f"## {profile.id}", "", f"{profile.title}. {profile.description}".strip())
    facts = list(_facts(profile))
    if facts:
        yield ""
        yield from (f"- {fact}" for fact in facts)
    if profile.sources:
        rows = ((code(key), text) for key, text in sorted(profile.sources.items()))
        yield ""
        yield from table(("Value", "Source"), rows)


def _by_text(sentences: Mapping[str, str]) -> dict[str, str]:
    """The names that have each sentence, joined."""
    found: dict[str, list[str]] = {}
    for name, text in sentences.items():
        found.setdefault(text, []).append(name)
    return {text: ", ".join(names) for text, names in found.items()}


def _facts(profile: TargetProfile) -> Iterator[str]:
    if profile.aliases:
        yield f"Also: {', '.join(profile.aliases)}."
    for text, names in _by_text(profile.cautions).items():
        yield f"Check first for {names}: {text}."
    for text, names in _by_text(profile.serves).items():
        yield f"Serves devices without a separate target ({names}): {text}."
    for text, names in _by_text(profile.refuses).items():
        yield f"Does not serve {names}: {text}."
    if profile.dimensions:
        sizes = ", ".join(f"{code(name)} = {size}" for name, size in profile.dimensions.items())
        yield f"Fixes the dimensions {sizes}."
    if profile.budget.model_mb:
        yield f"Largest model: {profile.budget.model_mb:,.0f} MB."
    if "language_model" in profile.model_fields_set:
        hints = profile.language_model
        yield (
            f"Language models: {hints.batch_size} at once, prompts in steps of {hints.prompt_tokens} tokens, "
            f"context of {hints.context_tokens} tokens."
        )
