"""An accelerator that only tests know, and targets for it: real providers change with their makers' wishes."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint
from typing import Any
from unittest import mock

from bundler.model.registered import find_registered
from bundler.profiles.schema import Budget, Platform, Provider, Runtime, TargetProfile, Variant
from bundler.providers import registry
from bundler.providers.knowledge import Compiler, Deferral, GraphRules, Numerics, Presence, ProviderKnowledge, SizeRule

NPU = ProviderKnowledge(
    name="npu",
    runtime_name="ExampleNpu",
    title="Example NPU",
    package="example",
    compiler=Compiler(stage="compile_context", environment="example"),
    deferral=Deferral(kind="context", thing="NPU context"),
    graph=GraphRules(
        free_sizes=(SizeRule(sizes="fixed"),),
    ),
    numerics=Numerics(
        rounds=lambda options: "half" if options.get("half") == "1" else "none",
    ),
)
ENGINE = ProviderKnowledge(
    name="engine",
    runtime_name="ExampleEngine",
    title="Example Engine",
    package="example",
    deferral=Deferral(kind="cache", thing="Example engine"),
)
RANGES = ProviderKnowledge(
    name="ranges",
    runtime_name="ExampleRanges",
    title="Example Ranges",
    package="example",
    compiler=Compiler(stage="build_engine", environment="example", ranges=("least", "most")),
    deferral=Deferral(kind="cache", thing="Example engine"),
)
MUSEUM = ProviderKnowledge(
    name="museum",
    runtime_name="ExampleMuseum",
    title="Example Museum",
    package="example",
    presence=Presence(
        gone="runtimes have it no more since 1.20.",
        instead="the provider cpu",
    ),
)
KNOWN = {known.name: known for known in (NPU, ENGINE, RANGES, MUSEUM)}


@contextmanager
def register_known() -> Iterator[None]:
    """These providers are registered beside the real ones, for as long as the context lasts."""
    known = {name: EntryPoint(name=name, group=registry.GROUP, value=f"{__name__}:{name.upper()}") for name in KNOWN}

    def find(group: str, name: str) -> EntryPoint | None:
        return known.get(name) or find_registered(group, name)

    names = tuple(sorted({*registry.registered_names(registry.GROUP), *known}))
    with (
        mock.patch.object(
            registry, "find_registered", lambda group, name: known.get(name) or find_registered(group, name)
        ),
        mock.patch.object(registry, "registered_names", return_value=names),
    ):
        yield
    registry.find_provider.cache_clear()
    registry.find_by_runtime_name.cache_clear()


def make_variant(name: str, provider: str, **changes: Any) -> Variant:
    """A variant of one provider; `options` are that provider's."""
    options = changes.pop("options", {})
    return Variant(name=name, providers=(Provider(name=provider, options=options),), **changes)


CPU = make_variant("cpu", "cpu")


def make_target(*variants: Variant, **changes: Any) -> TargetProfile:
    """A phone with these variants."""
    settings = {
        "id": "example-phone",
        "title": "Example phone",
        "group": "Phones",
        "platform": Platform(system="android", architecture="arm64"),
        "runtime": Runtime(version="1.31.1"),
        "budget": Budget(model_mb=200),
        **changes,
    }
    return TargetProfile(variants=variants or (CPU,), **settings)
