"""Components of a bill of materials that no file of theirs describes."""

from __future__ import annotations

from bundler import __version__
from bundler.model.proof import Dependency


def describe_loader(place: str) -> Dependency:
    """The loader, which is software of bundler's and not of its user's; `place` is its folder in the bundle."""
    return Dependency(
        name="bundler",
        version=__version__,
        licence="Apache-2.0",
        licence_text="",
        purl=f"pkg:generic/bundler@{__version__}",
        sha256=None,
        file=place,
    )


def describe_required(name: str, version: str, kind: str, provider: str, *, licence: str = "") -> Dependency:
    """A component that the bundle requires and does not contain; `kind` is the type of its package URL. The `name` has
    Maven's group before a colon.
    """
    from packageurl import PackageURL  # noqa: PLC0415 (only a build that writes a bundle needs it)

    group, _, plain = name.rpartition(":")
    return Dependency(
        name=plain,
        version=version,
        licence=licence,
        licence_text="",
        purl=PackageURL(type=kind, namespace=group or None, name=plain, version=version).to_string(),
        sha256=None,
        file=None,
        provided_by=provider,
    )
