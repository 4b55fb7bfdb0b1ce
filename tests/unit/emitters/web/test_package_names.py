"""Names and versions as npm takes them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given

from bundler.emitters.web.names import choose_package_name, make_package_name, make_version
from bundler.model.errors import UsageError
from tests.unit.support.test_text import texts

NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
VERSION = re.compile(r"\d+\.\d+\.\d+(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?", re.ASCII)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("mobilenet", "mobilenet"),
        ("MobileNet V2 (int8)", "mobilenet-v2-int8"),
        ("größe_42", "groe-42"),
        ("图像", "model"),
        ("../../etc/passwd", "etc-passwd"),
        ("@scope/name", "scope-name"),
        ("fs", "fs-model"),
        ("node_modules", "node-modules-model"),
        ("onnxruntime-web", "onnxruntime-web-model"),
        ("__proto__", "proto"),
        ("", "model"),
        ("x" * 10_000, "x" * 80),
    ],
)
def test_a_package_is_named_after_its_model(model: str, name: str) -> None:
    assert make_package_name(model) == name


@given(texts)
def test_every_name_is_valid(text: str) -> None:
    name = make_package_name(text)
    assert NAME.fullmatch(name)
    assert len(name) <= 214


@pytest.mark.parametrize(
    ("given_", "made"),
    [
        ("1.2.3", "1.2.3"),
        ("1.0.0-beta.2+build.7", "1.0.0-beta.2+build.7"),
        ("1", "1.0.0"),
        ("1.2", "1.2.0"),
        ("1.2rc1", "1.2.0-rc.1"),
        ("2.0.0b3", "2.0.0-beta.3"),
        ("1.0.0.dev4", "1.0.0-dev.4"),
        ("1.0.0a1.dev4", "1.0.0-alpha.1.dev.4"),
        ("2024.01.05", "2024.1.5"),
        ("1.2.3.4", "1.2.3+4"),
        ("1.2.post1", "1.2.0+post.1"),
        ("1.2+cpu.1", "1.2.0+cpu.1"),
    ],
)
def test_a_version_is_as_npm_orders_them(given_: str, made: str) -> None:
    assert make_version(given_) == made
    assert VERSION.fullmatch(made)


@pytest.mark.parametrize("version", ["", "latest", "1.0.0-beta..2", "x" * 10_000])
def test_what_is_no_version_is_refused(version: str) -> None:
    with pytest.raises(UsageError, match="is not a version") as error:
        make_version(version)
    assert error.value.hint == "use three numbers: --version 1.2.3"


@pytest.mark.parametrize(
    "name", ["node_modules", "favicon.ico", "child_process", "worker_threads", "fs", "node.modules"]
)
def test_no_name_is_taken_that_npm_or_node_has_itself(name: str) -> None:
    """In whichever way it is written: a package of that name cannot be installed, or Node.js gives its own instead."""
    with pytest.raises(UsageError, match="cannot be the name of an npm package"):
        choose_package_name("model", name)
