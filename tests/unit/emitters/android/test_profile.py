"""What a module for Android asks of a target, and the runtime that stands in for it."""

from __future__ import annotations

import pytest

from bundler.emitters.android.loader_classes import choose_runtime
from bundler.model.errors import UsageError
from bundler.profiles.resolve import resolve_target

GRADLE = ("bundle.ecosystem=android", "bundle.format=gradle")


def test_every_android_target_can_be_a_module() -> None:
    for target in ("android-arm64", "android-x64", "snapdragon-8g3", "pixel-8-pro", "samsung-exynos"):
        assert resolve_target(target, GRADLE).bundle.ecosystem == "android"


@pytest.mark.parametrize(
    ("target", "more", "says"),
    [
        ("linux-x64", (), "runs on Android, not on linux"),
        ("android-arm64", ("platform.minimum=23",), "needs API level 24"),
        ("android-arm64", ("platform.minimum=7.0",), "needs API level 24"),
        ("android-arm64", ("android.gradle_plugin=8.x",), "gradle_plugin"),
        ("android-arm64", ("android.compile_sdk=7",), "compile_sdk"),
        ("android-arm64", ("variants.cpu.session.enable_mem_reuse=false",), "enable_mem_reuse"),
    ],
)
def test_what_does_not_fit_says_so(target: str, more: tuple[str, ...], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve_target(target, (*GRADLE, *more))
    assert says in "\n".join(caught.value.details)


@pytest.mark.parametrize(
    ("wanted", "nearest"), [("1.27.0", "1.28.0"), ("1.28.0", "1.28.0"), ("1.29.0", "1.29.0"), ("1.40.0", "1.29.0")]
)
def test_the_runtime_that_stands_in_is_the_nearest(wanted: str, nearest: str) -> None:
    assert choose_runtime(wanted) == nearest
