"""Packages that an index would take for one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bundler.pipeline.package_names import identify_package, warn_of_no_name, warn_of_same_packages
from bundler.pipeline.requests import BuildRequest, bundle_name, profile_overrides
from bundler.profiles.resolve import resolve_target


def warn(*targets: str, package_format: str | None = "wheel", name: str | None = None, project: str = "") -> list[str]:
    requests = [
        BuildRequest(model=Path("net.onnx"), target=target, format=package_format, package_name=name, project=project)
        for target in targets
    ]
    return [note.text for note in warn_of_same_packages(requests)]


def test_wheels_of_one_platform_are_one_package() -> None:
    (reported,) = warn("linux-x64", "intel-xeon", "linux-arm64", "no-target")
    assert reported == (
        "net-linux-x64 and net-intel-xeon are each the wheel net 1.0.0 for linux x64, and an index accepts only one; "
        "give them different names with --package-name '{model}-{target}'"
    )


def test_a_project_is_reported_the_line_for_its_file() -> None:
    (reported,) = warn("web-wasm", "web-webgpu", package_format="tgz", project="bundler.toml")
    assert reported.endswith('write package_name = "{model}-{target}" in bundler.toml, in the table of the model')


def test_packages_that_are_distinguished_or_that_no_index_takes_are_none() -> None:
    assert warn("linux-x64", "intel-xeon", name="{model}-{target}") == []
    assert warn("linux-x64", "linux-arm64", "windows-x64") == []
    assert warn("linux-x64", "intel-xeon", package_format=None) == []
    assert warn("linux-x64", "intel-xeon", package_format="files") == []
    assert warn("linux-x64") == []


@pytest.mark.parametrize(
    ("model", "changes", "named"),
    [
        ("model.onnx", {}, "--name NAME renames bundle and package, --package-name NAME only the package"),
        ("Model.onnx", {"project": "bundler.toml"}, 'name = "NAME" in bundler.toml renames bundle and package'),
        ("model.onnx", {"name": "model"}, ""),
        ("model.onnx", {"package_name": "acme"}, ""),
        ("resnet.onnx", {}, ""),
        ("model.onnx", {"format": "files"}, ""),
    ],
)
def test_a_package_that_is_called_model_is_warned_of(model: str, changes: dict[str, Any], named: str) -> None:
    request = BuildRequest(model=Path(model), target="linux-x64", **changes)
    profile = resolve_target(request.target, profile_overrides(request))
    identity = identify_package(request, bundle_name(request), profile)[1]
    warnings = warn_of_no_name(request, bundle_name(request), identity)
    assert [named in text for text in warnings] == [True] * bool(named)
