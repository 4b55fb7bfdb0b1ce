"""What the templates of a Gradle project see, beside what all bundles in Kotlin have."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from bundler.emitters.android.profile import ABIS, LEAST_SDK, AndroidSettings
from bundler.emitters.contract import EmitRequest
from bundler.emitters.jvm.artifacts import COROUTINES_VERSION, KOTLIN_VERSION
from bundler.emitters.jvm.context import make_context
from bundler.emitters.jvm.names import choose_names
from bundler.emitters.jvm.preparation import ANDROID
from bundler.emitters.neutral.packages import list_ingredients
from bundler.emitters.payload import PAYLOAD
from bundler.model.runtime import RuntimeVariant
from bundler.providers.knowledge import AppNeeds
from bundler.providers.registry import find_by_runtime_name

GRADLE: Final = "8.11.1"
"""What the plugin of `AndroidSettings.gradle_plugin` asks for (its release notes, "Compatibility")."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """One archive that Gradle fetches; `alias` is its name in the version catalogue."""

    alias: str
    group: str
    name: str
    version: str


def make_fields(request: EmitRequest, config_sha256: str) -> dict[str, Any]:
    """All fields, by name. Raises `UsageError` for a model that the loader cannot hold."""
    context = make_context(request, config_sha256, ANDROID)
    settings, platform = AndroidSettings.of(request.profile), request.profile.platform
    libraries = list_libraries(request)
    variants = [variant for _, variant in request.config.pairs]
    return {
        **{field.name: getattr(context, field.name) for field in dataclasses.fields(context)},
        "host_classes": ("AndroidHost", "AssetPayload"),
        "assets": name_assets(request),
        "abi": ABIS[platform.architecture],
        "min_sdk": int(platform.minimum or LEAST_SDK),
        "compile_sdk": settings.compile_sdk,
        "gradle_plugin": settings.gradle_plugin,
        "gradle": GRADLE,
        "kotlin": KOTLIN_VERSION,
        "coroutines": COROUTINES_VERSION,
        "runtime_libraries": libraries,
        "app": find_needs(variants),
        "compiled": any(variant.requires.compiled for variant in variants),
    }


def find_needs(variants: Iterable[RuntimeVariant]) -> AppNeeds:
    """What an app must do for the providers of all variants."""
    names = dict.fromkeys(entry.name for variant in variants for entry in variant.providers)
    known = (find_by_runtime_name(name) for name in names)
    needs = [found.presence.app for found in known if found is not None and found.presence.app is not None]
    return AppNeeds(
        system_libraries=tuple(dict.fromkeys(name for need in needs for name in need.system_libraries)),
        foreign=tuple(dict.fromkeys(pattern for need in needs for pattern in need.foreign)),
        extracted=any(need.extracted for need in needs),
    )


def name_assets(request: EmitRequest) -> str:
    """The folder of the payload among the assets of an app, which may have several bundles."""
    return f"{choose_names(request.config.name, request.package_name).package}/{PAYLOAD}"


def list_libraries(request: EmitRequest) -> tuple[Library, ...]:
    """The runtime's archive first, then its plugins."""
    return tuple(
        Library(
            alias=ingredient.name.rpartition(":")[2].replace("_", "-").replace(".", "-"),
            group=ingredient.name.partition(":")[0],
            name=ingredient.name.rpartition(":")[2],
            version=ingredient.version,
        )
        for ingredient in list_ingredients(request.profile)
    )
