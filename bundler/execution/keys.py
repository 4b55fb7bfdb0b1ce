"""Computes the key of a step, and explains why a step is stale."""

from __future__ import annotations

import functools
import platform
import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from bundler.environments.registry import Environment
from bundler.execution.stage_sources import digest_stage_sources
from bundler.model.digests import digest_json
from bundler.model.plan import Step
from bundler.model.stage import StageSpec
from bundler.toolchains.registry import FoundToolchain

KEY_SCHEMA = 1


def ingredients_of(
    step: Step,
    spec: StageSpec,
    environment: Environment,
    inputs: Mapping[str, str],
    toolchain: FoundToolchain | None = None,
) -> dict[str, Any]:
    """Everything that determines the result of a step. `inputs` maps roles to digests.

    In bundler's own interpreter, the packages that the stage names; in a locked environment, which may have a compiler,
    all packages and the lock with the digests of their files. Of a toolchain, its version and configuration, not its
    path. The machine only for stages that call native tools: pure code gives the same result everywhere.
    """
    named = {name: environment.versions.get(name, "missing") for name in spec.packages}
    packages = named if environment.is_host else dict(environment.versions)
    compiler = {key: value for key, value in asdict(toolchain).items() if key != "program"} if toolchain else None
    return {
        "schema": KEY_SCHEMA,
        "stage": step.stage,
        "sources": digest_stage_sources(step.stage),
        "python": environment.python_version,
        "packages": packages,
        "tools": environment.digest,
        **({"compiler": compiler} if compiler else {}),
        "machine": _machine() if packages or compiler else "any",
        "options": dict(step.options),
        "inputs": dict(inputs),
    }


def key_of(ingredients: Mapping[str, Any]) -> str:
    """The key: SHA-256 of the ingredients' canonical JSON."""
    return digest_json(ingredients)


def describe_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[str, ...]:
    """Why a step with `new` ingredients is not the one that ran with `old`: one short text for each that changed."""
    texts = [f"input {name} changed" for name, *_ in _differences(old, new, "inputs")]
    texts += [_describe_option(*item) for item in _differences(old, new, "options")]
    texts += [
        f"{name} {was or 'missing'} -> {now or 'missing'}" for name, was, now in _differences(old, new, "packages")
    ]
    if old.get("tools") != new.get("tools") and old.get("packages") == new.get("packages"):
        texts.append("the files of its locked environment changed")
    if old.get("compiler") != new.get("compiler"):
        texts.append(_describe_compilers(old.get("compiler") or {}, new.get("compiler") or {}))
    if old.get("sources") != new.get("sources"):
        texts.append(f"the code of stage {new.get('stage')} changed")
    for name, label in (("python", "Python"), ("machine", "machine"), ("stage", "stage"), ("schema", "cache format")):
        if old.get(name) != new.get(name):
            texts.append(f"{label} {old.get(name)} -> {new.get(name)}")
    return tuple(texts)


def _differences(old: Mapping[str, Any], new: Mapping[str, Any], part: str) -> list[tuple[str, Any, Any]]:
    was, now = old.get(part) or {}, new.get(part) or {}
    return [(name, was.get(name), now.get(name)) for name in sorted({*was, *now}) if was.get(name) != now.get(name)]


def _describe_compilers(was: Mapping[str, str], now: Mapping[str, str]) -> str:
    if was.get("version") == now.get("version"):
        return f"the toolchain {now['name']} has a different configuration of the same version"
    return f"toolchain {was.get('version', 'none')} -> {now.get('version', 'none')}"


def _describe_option(name: str, was: Any, now: Any) -> str:
    if was is None:
        return f"option {name} is new: {_short(now)}"
    if now is None:
        return f"option {name} was removed (was {_short(was)})"
    return f"option {name} changed from {_short(was)} to {_short(now)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"  # noqa: PLR2004 - a line for a person


@functools.cache
def _machine() -> str:
    return f"{sys.platform}-{platform.machine().lower()}"
