"""The classes of Android's framework, against which an archive is compiled. Every phone has them, and no bundle."""

from __future__ import annotations

from typing import Final

from bundler.emitters.jvm.maven import MavenArtifacts

FRAMEWORK_LOCK: Final = "maven-android-all-14"
"""It ships with bundler; 137 MB, fetched when an archive is built, and for nothing else."""

FRAMEWORK: Final = MavenArtifacts((("org.robolectric:android-all", "14-robolectric-10818077"),))
