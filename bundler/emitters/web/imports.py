"""The imports of a package: all of it, or one variant or one build of the runtime, with only the files that it runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from bundler.emitters.payload import PAYLOAD
from bundler.emitters.web.parts import Asset
from bundler.emitters.web.vendor import VENDOR, choose_builds
from bundler.model.runtime import RuntimeComponent, RuntimeConfig, RuntimeVariant
from bundler.providers.knowledge import RuntimeBuild

SELF_TEST = "self-test"
"""The import with the golden set; a profile may not call a variant so."""

ALL = "variants"
"""The folder of the modules of all imports but the whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """One import. `subpath` follows the package's name; empty for the whole. `config` has only what its files run."""

    subpath: str
    config: RuntimeConfig

    @property
    def stem(self) -> str:
        """What its modules are named after: `webgpu.jspi`."""
        return self.subpath.replace("/", ".")

    @property
    def entry(self) -> str:
        """Its module for browsers."""
        return f"{ALL}/{self.stem}.js" if self.subpath else "index.js"

    @property
    def builds(self) -> Mapping[str, RuntimeBuild]:
        """The builds of the runtime that its variants may run on."""
        return choose_builds(self.config)

    @property
    def paths(self) -> frozenset[str]:
        """The files that its loader may fetch: of the runtime, of the models, and initial values of their state."""
        runtime = [f"{VENDOR}/{name}" for build in self.builds.values() for name in (build.module, build.binary)]
        models = [file.path for _, variant in self.config.pairs for file in variant.files]
        states = [link.file for component in self.config.components for link in component.state if link.file]
        return frozenset((*runtime, *(f"{PAYLOAD}/{path}" for path in (*models, *states))))

    def choose(self, assets: Iterable[Asset]) -> tuple[Asset, ...]:
        """Its files, of all that the bundle has."""
        paths = self.paths
        return tuple(asset for asset in assets if asset.path in paths)


def list_imports(config: RuntimeConfig) -> tuple[Import, ...]:
    """The whole first, then each variant by its name, and after it each of its builds where it has several."""
    found = [Import(subpath="", config=config)]
    for name in dict.fromkeys(variant.name for _, variant in config.pairs):
        narrow = _narrow(config, name)
        found.append(Import(subpath=name, config=narrow))
        builds = tuple(dict.fromkeys(build for one in _find(config, name) for build in one.builds))
        if len(builds) > 1:
            found += [Import(subpath=f"{name}/{build}", config=_narrow(config, name, build)) for build in builds]
    return tuple(found)


def choose_golden(config: RuntimeConfig, assets: Iterable[Asset]) -> tuple[Asset, ...]:
    """The files of the golden sets."""
    folders = tuple(f"{PAYLOAD}/{component.golden}/" for component in config.components)
    return tuple(asset for asset in assets if asset.path.startswith(folders))


def _find(config: RuntimeConfig, name: str) -> list[RuntimeVariant]:
    return [variant for _, variant in config.pairs if variant.name == name]


def _narrow(config: RuntimeConfig, name: str, build: str | None = None) -> RuntimeConfig:
    """`config` with variant `name` alone, on one build. A component without that variant keeps all that it has: the
    import can still open the whole bundle.
    """
    return replace(config, components=tuple(_narrow_component(one, name, build) for one in config.components))


def _narrow_component(component: RuntimeComponent, name: str, build: str | None) -> RuntimeComponent:
    kept = tuple(_keep_build(variant, build) for variant in component.variants if variant.name == name)
    return replace(component, variants=kept) if kept else component


def _keep_build(variant: RuntimeVariant, build: str | None) -> RuntimeVariant:
    return variant if build is None or build not in variant.builds else replace(variant, builds=(build,))
