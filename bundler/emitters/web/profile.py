"""The section `web` of a profile, and what it requires of the platform."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from bundler.emitters.web.imports import SELF_TEST
from bundler.profiles.chain import Key
from bundler.profiles.schema import TargetProfile
from bundler.profiles.sections import EcosystemSection

ECOSYSTEM = "web"


class WebSettings(EcosystemSection):
    """For bundles that run in a browser."""

    part_mb: float = Field(default=25.0, ge=0.01, allow_inf_nan=False)
    """Maximum file size in MB (1,000,000 bytes); larger files are stored in parts that the loader joins."""
    precompressed: bool = False
    """Also write every file that a visitor downloads as `.br` and `.gz`, for hosts that serve those."""
    private: bool = True
    """Whether `package.json` keeps `npm publish` from putting the model on a registry, the public one by default."""

    def find_problems(self, profile: TargetProfile) -> Iterator[tuple[Key, str]]:
        """Web bundles run in browsers only, and each variant's name is an import of the package."""
        system = profile.platform.system
        if profile.bundle.ecosystem != ECOSYSTEM:
            return
        if system != "web":
            yield ("bundle", "ecosystem"), f"a web bundle runs in a browser, not on {system}"
        for position, variant in enumerate(profile.variants):
            if variant.name == SELF_TEST:
                text = f'"{SELF_TEST}" is the import with the golden set: rename the variant'
                yield ("variants", position, "name"), text
