"""What bundles for Java and Android need of this machine: a JDK, and Maven, which fetches with the user's settings."""

from __future__ import annotations

from bundler.toolchains.registry import Toolchain

JAVA = Toolchain(
    name="java",
    program="java",
    hint="install a JDK, 17 or newer (Debian, Ubuntu: apt-get install openjdk-17-jdk-headless; macOS: brew install "
    "openjdk@17; Windows: winget install EclipseAdoptium.Temurin.17.JDK)",
)
"""It runs the Kotlin compiler, and bundles for the JVM."""

MAVEN = Toolchain(
    name="maven",
    program="mvn",
    hint="install Apache Maven 3.6.3 or newer (Debian, Ubuntu: apt-get install maven; macOS: brew install maven; "
    "Windows: winget install Apache.Maven)",
)
"""It fetches with the repositories, mirrors and credentials of the user's own settings."""
