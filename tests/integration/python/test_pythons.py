"""For which Pythons a bundle is: those of the target's systems, or those that are asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bundler.emitters.python.emitter import EMITTER
from bundler.emitters.python.profile import PythonSettings
from bundler.emitters.python.wheelhouse import list_minor_versions
from bundler.model.errors import UsageError
from bundler.model.options import parse_pythons
from bundler.pipeline.requests import BuildRequest, repeat_command
from bundler.profiles.resolve import resolve_target, target_ids
from tests.support import models
from tests.support.bundles import make_request
from tests.support.command_line import HERE, CommandLine

OTHER = "3.12" if HERE != "3.12" else "3.13"
EXISTING = ("3.11", "3.12", "3.13", "3.14")


def wheels_of(bundle: Path) -> tuple[str, ...]:
    return list_minor_versions([path.name for path in (bundle / "wheels").iterdir()])


@pytest.mark.parametrize(
    ("target", "versions"),
    [
        ("linux-x64", ("3.11", "3.12", "3.13")),
        ("linux-arm64", ("3.11", "3.12", "3.13")),
        ("raspberry-pi-5", ("3.11", "3.13")),
        ("jetson-thor", ("3.11", "3.12")),
        ("macos-arm64", ("3.13", "3.14")),
        ("windows-x64", ("3.13", "3.14")),
        ("windows-arm64", ("3.13", "3.14")),
        ("snapdragon-x-elite", ("3.13", "3.14")),
    ],
)
def test_a_target_is_for_the_pythons_of_its_systems(target: str, versions: tuple[str, ...]) -> None:
    assert PythonSettings.of(resolve_target(target)).versions == versions


def test_no_target_is_for_every_python_and_each_says_why() -> None:
    profiles = [resolve_target(name) for name in target_ids()]
    of_python = [profile for profile in profiles if profile.bundle.ecosystem == "python"]
    assert len(of_python) > 30
    for profile in of_python:
        versions = PythonSettings.of(profile).versions
        assert set(versions) < set(EXISTING), profile.id
        assert profile.sources["python.versions"], profile.id


def test_a_hint_repeats_the_pythons() -> None:
    request = BuildRequest(model=Path("m.onnx"), target="linux-x64", python=("3.12", "3.13"))
    assert repeat_command(request)[-4:] == ("--python", "3.12", "--python", "3.13")


@pytest.mark.parametrize("version", ["3", "3.12.1", "cp312", "2.7", "3.x", "", "py3.12", "3.1234"])
def test_what_is_no_version_is_refused(version: str) -> None:
    with pytest.raises(UsageError, match="expected a Python version"):
        parse_pythons(["3.12", version])


def test_versions_are_in_order_and_each_once() -> None:
    assert parse_pythons(["3.13", "3.9", "3.13", "3.12"]) == ("3.9", "3.12", "3.13")


def test_the_command_line_chooses_one_or_several(bundler: CommandLine, tmp_path: Path) -> None:
    model = models.save(models.mlp(), tmp_path / "in", "mlp.onnx")
    given = ("build", model, "--target", "linux-x64", "--no-prove", "--output")
    answer = bundler.run(*given, tmp_path / "one", "--python", OTHER).expect(0)
    bundle = tmp_path / "one" / "mlp-linux-x64"
    assert wheels_of(bundle) == (OTHER,)
    assert f"the bundle is for Python {OTHER}\n" in answer.err
    assert "--python VERSION" not in answer.err
    assert f"Python, one of {OTHER}. No other can install this bundle" in (bundle / "README.md").read_text("utf-8")
    bundler.run(*given, tmp_path / "two", "--python", OTHER, "--python", HERE).expect(0)
    assert wheels_of(tmp_path / "two" / "mlp-linux-x64") == parse_pythons([HERE, OTHER])
    error = bundler.run(*given, tmp_path / "none", "--python", "3.99").expect(5).err
    assert "for Python 3.99 on manylinux_2_28_x86_64 are not available" in error
    assert "choose another with --python" in error


def test_a_python_that_no_bundle_runs_on_is_refused_before_anything_is_fetched(
    warm: CommandLine, tmp_path: Path
) -> None:
    model = models.save(models.cnn(), tmp_path)
    error = warm.run("plan", model, "-t", "linux-x64", "--python", "3.9").expect(2).err
    assert "a bundle requires Python 3.11 or newer" in error


def test_a_bundle_that_is_no_python_package_says_that_nothing_changes(warm: CommandLine, tmp_path: Path) -> None:
    model = models.save(models.mlp(), tmp_path / "in", "mlp.onnx")
    plain = ("build", model, "--target", "linux-x64", "--format", "files", "--no-prove", "--json", "--output")
    first = warm.run(*plain, tmp_path / "plain").expect(0)
    second = warm.run(*plain, tmp_path / "chosen", "--python", "3.12").expect(0)
    assert "--python has no effect" in second.err
    assert "--python" not in first.err
    assert first.document["bundles"][0]["digest"] == second.document["bundles"][0]["digest"]


def test_a_project_file_chooses_and_the_command_line_comes_over_it(bundler: CommandLine, tmp_path: Path) -> None:
    models.save(models.mlp(), tmp_path, "mlp.onnx")
    project = CommandLine(cache=bundler.cache, cwd=tmp_path)
    text = f'targets = ["linux-x64"]\n[[models]]\npath = "mlp.onnx"\npython = ["{HERE}"]\n'
    (tmp_path / "bundler.toml").write_text(text, "utf-8")
    project.run("build", "--no-prove").expect(0)
    assert wheels_of(tmp_path / "dist" / "mlp-linux-x64") == (HERE,)
    project.run("build", "--no-prove", "--python", OTHER).expect(0)
    assert wheels_of(tmp_path / "dist" / "mlp-linux-x64") == (OTHER,)
    (tmp_path / "bundler.toml").write_text(text.replace(HERE, "3.x"), "utf-8")
    assert "bundler.toml:4:" in project.run("build", "--no-prove").expect(2).err


def test_an_installation_on_another_python_says_what_to_do(tmp_path: Path) -> None:
    request = make_request(models.mlp(), tmp_path, overrides=(f'python.versions=["{OTHER}"]',))
    bundle = tmp_path / "dist" / "bundle"
    bundle.mkdir(parents=True)
    EMITTER.emit(request, bundle)
    environment = tmp_path / "fresh"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
    install = [str(environment / "bin" / "python"), "-m", "pip", "install", "--no-index", "--find-links", "wheels", "."]
    done = subprocess.run(install, cwd=bundle, env=plain, check=False, capture_output=True, text=True)
    assert done.returncode
    assert f"this bundle is for Python {OTHER}, and this is Python {HERE}" in done.stdout + done.stderr
    assert f"build the bundle again with --python {HERE}" in done.stdout + done.stderr
