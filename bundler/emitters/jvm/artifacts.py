"""Which artifacts a bundle for the JVM contains, and which compile it."""

from __future__ import annotations

from typing import Final

from bundler.emitters.jvm.maven import MavenArtifacts

RUNTIME: Final = "com.microsoft.onnxruntime:onnxruntime"
STDLIB: Final = "org.jetbrains.kotlin:kotlin-stdlib"
COROUTINES: Final = "org.jetbrains.kotlinx:kotlinx-coroutines-core-jvm"
KOTLIN_VERSION: Final = "2.2.0"
COROUTINES_VERSION: Final = "1.10.2"
ANNOTATIONS: Final = "org.jetbrains:annotations"
ANNOTATIONS_VERSION: Final = "23.0.0"
"""What this version of the coroutines requires, as its POM says: Gradle takes it and not the older one that Kotlin's
library requires. Nothing of it is needed to run.
"""
COMPILER_LOCK: Final = f"maven-kotlin-{KOTLIN_VERSION}"
"""The Kotlin compiler with what it needs to run; it ships with bundler."""

COMPILER: Final = MavenArtifacts(
    (
        ("org.jetbrains.kotlin:kotlin-compiler-embeddable", KOTLIN_VERSION),
        ("org.jetbrains.kotlin:kotlin-daemon-embeddable", KOTLIN_VERSION),
        ("org.jetbrains.kotlin:kotlin-script-runtime", KOTLIN_VERSION),
        (STDLIB, KOTLIN_VERSION),
        # As the compiler's own POM names them.
        ("org.jetbrains.kotlin:kotlin-reflect", "1.6.10"),
        (COROUTINES, "1.8.0"),
        ("org.jetbrains:annotations", "13.0"),
    )
)


def name_runtime_lock(version: str) -> str:
    """The lock of ONNX Runtime for the JVM and of all else that a bundle brings."""
    return f"maven-onnxruntime-{version}"


def list_runtime(version: str) -> MavenArtifacts:
    """What a bundle brings beside its own classes: it needs no registry to run."""
    return MavenArtifacts(((RUNTIME, version), (STDLIB, KOTLIN_VERSION), (COROUTINES, COROUTINES_VERSION)))
