"""A project file: planned, narrowed, built and locked."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.support import models
from tests.support.command_line import HERE, CommandLine

PROJECT = f"""\
targets = ["linux-x64"]

[[models]]
path = "mlp.onnx"
format = "files"

[[models]]
path = "cnn.onnx"
name = "eyes"

[overrides."*".python]
versions = ["{HERE}"]
"""


@pytest.fixture
def project(warm: CommandLine, tmp_path: Path) -> CommandLine:
    """The program in the folder of a project with two bundles: one of files, one of Python."""
    models.save(models.mlp(), tmp_path, "mlp.onnx")
    models.save(models.cnn(), tmp_path, "cnn.onnx")
    (tmp_path / "bundler.toml").write_text(PROJECT)
    return dataclasses.replace(warm, cwd=tmp_path)


@pytest.mark.quick
def test_a_project_is_planned(project: CommandLine) -> None:
    text = project.run("plan").expect(0).out
    assert "mlp → linux-x64 (neutral, files)" in text
    assert "eyes → linux-x64 (python, dir)" in text
    assert "2 bundles: steps " in text
    document = project.run("plan", "--json").expect(0).document
    assert [plan["plan"]["name"] for plan in document["plans"]] == ["mlp", "eyes"]
    assert document["failures"] == []
    assert project.run("plan", "--only", "eyes").expect(0).out.splitlines()[0] == "eyes → linux-x64 (python, dir)"


def test_what_cannot_be_planned_does_not_hide_the_rest(project: CommandLine) -> None:
    assert project.cwd is not None
    (project.cwd / "mlp.onnx").write_bytes(b"no model")
    answer = project.run("plan").expect(3)
    assert "eyes → linux-x64" in answer.out
    assert "mlp.onnx → linux-x64: error:" in answer.err


def test_what_is_missing_is_reported_by_its_line(project: CommandLine) -> None:
    assert project.cwd is not None
    (project.cwd / "mlp.onnx").unlink()
    with (project.cwd / "bundler.toml").open("a") as file:
        file.write('\n[[models]]\npath = "cnn.onnx"\nname = "ears"\nsamples = "nowhere"\n')
    no_model = f"bundler.toml:3: {project.cwd}/mlp.onnx → linux-x64: error: there is no file"
    no_data = f"there is no file or folder {project.cwd}/nowhere"
    planned = project.run("plan").expect(3)
    assert no_model in planned.err
    assert f"bundler.toml:14: {project.cwd}/cnn.onnx → linux-x64: error: {no_data}" in planned.err
    assert "eyes → linux-x64" in planned.out
    assert f"error: bundler.toml:14: {no_data}" in project.run("build").expect(2).err, "no lock can be written"
    (project.cwd / "bundler.toml").write_text(PROJECT)
    for command in ("build", "plan"):
        alone = project.run(command, "--only", "mlp").expect(3).err
        assert f"error: bundler.toml:3: there is no file {project.cwd}/mlp.onnx" in alone


@pytest.mark.parametrize(("name", "says"), [(".", "bundler.toml:11: '.' cannot be"), ("eyes", "and bundler.toml:11: ")])
def test_a_name_that_cannot_be_is_reported_by_its_line(project: CommandLine, name: str, says: str) -> None:
    assert project.cwd is not None
    text = PROJECT.replace("[overrides", f'[[models]]\npath = "mlp.onnx"\nname = "{name}"\n\n[overrides')
    (project.cwd / "bundler.toml").write_text(text)
    assert says in project.run("build").expect(2).err


@pytest.mark.quick
def test_a_part_is_built_and_the_lock_stays_whole(project: CommandLine) -> None:
    assert project.cwd is not None
    built = project.build_all("--only", "mlp-*", "--no-prove")
    assert [bundle["name"] for bundle in built] == ["mlp"]
    lock = json.loads((project.cwd / "bundler.lock").read_text("utf-8"))
    assert any(name.startswith("python-runtime") for name in lock["environments"]), "what the other bundle needs"
    project.run("lock", "--check").expect(0)
    project.run("build", "--only", "mlp", "--no-prove", "--locked").expect(0)


def test_options_of_one_model_are_refused_where_the_file_says_them(project: CommandLine) -> None:
    for options in (("--samples", "x"), ("--dim", "batch=1")):
        for command in ("build", "plan"):
            assert f"{options[0]} requires a model on the command line" in project.run(command, *options).expect(2).err


def test_only_needs_a_project(project: CommandLine) -> None:
    for command in ("build", "plan"):
        answer = project.run(command, "mlp.onnx", "--target", "linux-x64", "--only", "mlp").expect(2)
        assert "--only cannot be used with a model: it selects from the project file" in answer.err


@pytest.mark.parametrize(
    ("command", "instead"),
    [
        (("lock",), ""),
        (("build",), "; without one: bundler build MODEL --target TARGET"),
        (("plan", "--only", "eyes"), "; without one: bundler plan MODEL --target TARGET"),
        (("verify",), "; without one: bundler verify BUNDLE"),
    ],
)
def test_without_a_project_file_a_command_says_that_it_needs_one(
    warm: CommandLine, tmp_path: Path, command: tuple[str, ...], instead: str
) -> None:
    err = dataclasses.replace(warm, cwd=tmp_path).run(*command).expect(2).err
    assert f"error: no bundler.toml in {tmp_path} or a folder above it" in err
    assert f"hint: `bundler init` writes one{instead}\n" in err


def test_mistakes_in_the_file_are_reported_by_their_lines(project: CommandLine) -> None:
    assert project.cwd is not None
    (project.cwd / "bundler.toml").write_text('[[models]]\npath = "mlp.onnx"\nnmae = "x"\n')
    for command in ("build", "plan", "lock"):
        err = project.run(command).expect(2).err
        assert 'bundler.toml:3: models[0].nmae: unknown key; did you mean "name"?' in err
    assert json.loads(project.run("init", "--schema").expect(0).out)["title"] == "bundler project file"


def test_a_log_tells_each_step_of_each_bundle_once_and_how_many_are_done(
    cold: CommandLine, project: CommandLine
) -> None:
    fresh = dataclasses.replace(cold, cwd=project.cwd)
    log = fresh.run("build", "--format", "files", "--output", "other", "--jobs", "1").expect(0).err.splitlines()
    for build, done in (("mlp → linux-x64", 1), ("eyes → linux-x64", 2)):
        for title in ("Inspect the model", "Optimise", "Verify the bundle"):
            assert sum(line.startswith(f"{build}: {title}") for line in log) == 1, title
        assert any(line.startswith(f"{build}: done after") and f"({done} of 2 bundles" in line for line in log)
    warnings = [line.partition("warning: ")[2] for line in log if "warning: " in line]
    assert len(warnings) == len(set(warnings)) > 0


@pytest.mark.quick
def test_the_bundles_of_a_project_are_verified_side_by_side(project: CommandLine) -> None:
    project.run("build", "--only", "mlp", "--no-prove").expect(0)
    text = project.run("verify", "--only", "mlp-linux-x64").expect(0).out
    assert "mlp-linux-x64: " in text
    assert "files match their checksums" in text
    answer = project.run("verify", "--digests-only", "--json").expect(8)
    assert [Path(found["bundle"]).name for found in answer.document["bundles"]] == ["mlp-linux-x64"]
    (missing,) = answer.document["failures"]
    assert Path(missing["bundle"]).name == "eyes-linux-x64"
    reported = project.run("verify", "--digests-only").expect(8)
    assert "mlp-linux-x64: " in reported.out
    assert "eyes-linux-x64 is not a bundle" in reported.err
    assert "--digest requires a bundle" in project.run("verify", "--digest", "0" * 64).expect(2).err
    assert "it selects from" in project.run("verify", "dist/mlp-linux-x64", "--only", "mlp").expect(2).err


RENAMED = f"""\
targets = ["linux-x64"]

[[models]]
path = "mlp.onnx"
rename = {{ x = "features", y = "answer", batch = "rows" }}
dimensions = {{ rows = 2 }}
samples = "samples.npz"

[overrides."*".python]
versions = ["{HERE}"]
"""


def test_new_names_are_those_of_the_bundle_and_the_model_is_still_the_users(project: CommandLine) -> None:
    folder = project.cwd
    assert folder is not None
    (folder / "bundler.toml").write_text(RENAMED)
    np.savez(folder / "samples.npz", features=np.random.default_rng(0).normal(size=(3, 2, 8)).astype(np.float32))
    (built,) = project.run("build", "--json").expect(0).document["bundles"]
    bundle = Path(built["bundle"])
    manifest = json.loads((bundle / "bundle.json").read_text())
    (component,) = manifest["components"]
    digest = project.run("inspect", "mlp.onnx", "--json").expect(0).document["digest"]
    size = (folder / "mlp.onnx").stat().st_size
    assert component["model"] == {"name": "mlp", "digest": digest, "size": size}
    notes = [note["text"] for stage in component["stages"] for note in stage["notes"]]
    assert "renamed: 'x' → 'features', 'y' → 'answer', 'batch' → 'rows'" in notes
    script = "import mlp, numpy as np; print(mlp.Model().run(features=np.ones((2, 8), np.float32)).answer.shape)"
    done = subprocess.run([sys.executable, "-c", script], cwd=bundle, capture_output=True, text=True, check=False)
    assert done.stdout == "(2, 4)\n", done.stderr


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("x =", "z =", "error: bundler.toml:3: rename: the model has no input, output or dynamic dimension 'z'"),
        ('"features"', '"answer"', "error: bundler.toml:3: rename: two inputs or outputs would have the name 'answer'"),
        ('"features"', '"my features"', "rename.x"),
    ],
)
def test_new_names_that_cannot_be_are_reported_by_their_line(
    project: CommandLine, old: str, new: str, says: str
) -> None:
    assert project.cwd is not None
    (project.cwd / "bundler.toml").write_text(RENAMED.replace(old, new).replace('samples = "samples.npz"\n', ""))
    assert says in project.run("plan").expect(2).err
