"""The runtime's packages for phones, with the providers that all of them have."""

from __future__ import annotations

from bundler.providers.knowledge import Availability

ANDROID_RUNTIME = Availability(
    package="onnxruntime-android",
    platforms=("android/arm64", "android/armv7", "android/x64"),
    source="Maven (com.microsoft.onnxruntime), by the runtime's documentation (library not looked into)",
)

IOS_RUNTIMES = tuple(
    Availability(
        package=package,
        platforms=("ios/arm64",),
        source="CocoaPods, by the runtime's documentation (library not looked into)",
    )
    for package in ("onnxruntime-objc", "onnxruntime-c")
)
