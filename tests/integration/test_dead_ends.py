"""Usual mistakes, each with the message that says what to do next."""

from __future__ import annotations

import dataclasses
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from bundler.onnxkit.sessions import RUNTIME_ERRORS
from tests.support import models
from tests.support.command_line import Answer, CommandLine, end_group
from tests.support.documents import read_document
from tests.support.recurrent_models import FRAME, UNITS, make_gru, make_voice


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return models.save(models.mlp(), tmp_path / "in", "mlp.onnx")


@pytest.mark.quick
def test_without_any_arguments_there_is_help_and_no_error(warm: CommandLine) -> None:
    answer = warm.run().expect(2)
    assert answer.out.startswith("Usage: bundler [OPTIONS] COMMAND")
    assert "error" not in answer.err


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--target=rpi5",), 2, 'unknown target "rpi5"; did you mean "raspberry-pi-5"?'),
        (("--target=web",), 2, 'did you mean "web-wasm" or "web-webgpu" or "web-webnn"?'),
        (("--target=linux-x46",), 2, 'did you mean "linux-x64"'),
        (("linux-x64",), 2, "linux-x64 is a target: use --target linux-x64"),
        (("--target=linux-x64,web-wasm",), 2, "use --target linux-x64 --target web-wasm"),
        (("--target=linux-x64", "--format", "whl"), 2, "use --format wheel"),
        (("--target=linux-x64", "--golden", "seeded"), 2, "is not one of 'samples', 'synthetic'"),
        (
            ("--target=linux-x64", "--set", "optimisation.level=basic"),
            2,
            "--set optimisation: unknown key; did you mean",
        ),
        (("--target=linux-x64", "--set", "foo"), 2, "it has no ="),
        (("--target=missing.toml",), 4, "cannot read the profile missing.toml"),
        (("--target=linux-x64", "--cache", "/proc/x"), 2, "the cache folder /proc/x cannot be made"),
        (("--target=linux-x64", "--python", "3.9"), 2, "--python 3.9 does not fit: a bundle requires Python 3.11"),
        (("--target=linux-x64", "--dim", "batch=0"), 2, "--dim batch=0: the size must be at least 1"),
        (("--target=linux-x64", "--format", "docker"), 2, "  files: a folder of models"),
        (
            ("--target=linux-x64", "--set", "precision.method=int8"),
            2,
            'did you mean "dynamic-int8" or "static-int8"?',
        ),
    ],
)
def test_what_is_not_there_is_said_with_what_is_near(
    warm: CommandLine, model: Path, options: tuple[str, ...], code: int, said: str
) -> None:
    assert said in warm.run("build", model, *options).expect(code).err


@pytest.mark.parametrize("options", [("--format", "tgz"), ("--set", "bundle.format=tgz")])
def test_a_plan_refuses_the_format_that_a_build_refuses(
    warm: CommandLine, model: Path, options: tuple[str, ...]
) -> None:
    reported = [warm.run(command, model, "--target=linux-x64", *options).expect(2).err for command in ("plan", "build")]
    assert reported[0] == reported[1]
    assert "linux-x64 bundles have no format 'tgz'" in reported[0]


def test_a_hint_on_sizes_has_those_of_the_samples(warm: CommandLine, model: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "real.npz", x=np.zeros((20, 5, 8), np.float32))
    plan = warm.run("plan", model, "--target=web-webnn", "--samples", tmp_path / "real.npz").expect(0)
    assert "fix them, for example with --dim batch=5 (replace the numbers" in plan.out


def test_a_plan_takes_the_format_that_is_asked_for(warm: CommandLine, model: Path) -> None:
    plan = warm.run("plan", model, "--target=linux-x64", "--format=files").expect(0).out
    assert plan.startswith("mlp → linux-x64 (neutral, files)")


def test_other_files_and_folders_are_no_model_and_the_message_says_how_to_get_one(
    warm: CommandLine, model: Path, tmp_path: Path
) -> None:
    (tmp_path / "net.pt").write_bytes(b"PK\3\4")
    (tmp_path / "empty").mkdir()

    def refuse(path: Path) -> str:
        return warm.run("build", path, "--target=linux-x64").expect(3).err

    assert "export it to ONNX first: torch.onnx.export(" in refuse(tmp_path / "net.pt")
    assert "is a folder with no .onnx file in it" in refuse(tmp_path / "empty")
    (tmp_path / "net.gguf").write_bytes(b"GGUF\3")
    assert "`bundler build hf:./FOLDER`" in refuse(tmp_path / "net.gguf")
    assert f"name the model in it: {model}" in refuse(model.parent)
    assert f"did you mean {model}?" in refuse(model.with_name("mpl.onnx"))
    assert "hint: download the model, and give the path" in refuse(Path("https://models.test/net.onnx"))


def test_an_output_that_cannot_be_written_is_reported_before_anything_runs(warm: CommandLine, model: Path) -> None:
    answer = warm.run("build", model, "--target=linux-x64", "--format=files", "--output", model / "out").expect(2)
    assert f"{model} is a file; the output must be a folder" in answer.err
    assert "Optimise" not in answer.err


def test_a_folder_of_bundles_names_them(warm: CommandLine, model: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    warm.run("build", model, "--target=linux-x64", "--format=files", "--no-prove", "--output", output).expect(0)
    said = warm.run("verify", output).expect(8).err
    assert f"name the bundle in it: {output / 'mlp-linux-x64'}" in said


def test_an_array_without_a_name_is_reported_how_to_get_one(warm: CommandLine, model: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "samples.npy", np.zeros((3, 1, 8), np.float32))
    said = warm.run("build", model, "--target=linux-x64", "--samples", tmp_path / "samples.npy").expect(2).err
    assert "np.savez('samples.npz', NAME=array)" in said


def test_a_model_of_any_name_is_a_model(warm: CommandLine, model: Path) -> None:
    renamed = model.rename(model.with_suffix(".pt"))
    assert "inputs" in warm.run("inspect", renamed).expect(0).out


def test_a_model_is_no_bundle(warm: CommandLine, model: Path) -> None:
    assert warm.run("verify", model).expect(2).err.startswith(f"error: {model} is a file, not a bundle")


def test_the_example_of_help_lists_something(warm: CommandLine) -> None:
    assert "snapdragon-8g3" in warm.run("targets", "list", "--group", "snapdragon").expect(0).out


def test_a_targets_file_runs_no_program_unless_it_is_trusted(warm: CommandLine, model: Path, tmp_path: Path) -> None:
    program, ran = tmp_path / "judge.sh", tmp_path / "it-ran"
    program.write_text(f"#!/bin/sh\ntouch {ran}\necho 1\n")
    program.chmod(0o755)
    profile = tmp_path / "mine.toml"
    profile.write_text(
        f'extends = "linux-x64"\nid = "mine"\ntitle = "Mine"\n[accuracy.metric]\nleast = 0\n'
        f'command = ["{program}", "{{answers}}"]\n'
    )
    asked = ("build", model, "--target", profile, "--format=files", "--no-prove", "--output", tmp_path / "out")
    refused = warm.run(*asked).expect(4).err
    assert 'accuracy.metric.command would run "judge.sh"' in refused
    assert not ran.exists()
    warm.run("plan", model, "--target", profile).expect(4)
    warm.run(*asked, "--trust-target").expect(0)
    assert ran.exists()


def test_a_value_that_does_not_fit_is_reported_by_its_option_and_key(warm: CommandLine, model: Path) -> None:
    said = warm.run("build", model, "--target=linux-x64", "--set=accuracy.absolut=1").expect(2).err
    assert said.startswith("error: --set accuracy.absolut does not fit the target\n")
    assert '  --set accuracy.absolut: unknown key; did you mean "absolute"?\n' in said
    assert "targets validate" not in said


@pytest.mark.quick
def test_a_new_project_is_for_this_machine_and_no_device(warm: CommandLine, model: Path) -> None:
    inside = dataclasses.replace(warm, cwd=model.parent)
    inside.run("init").expect(0)
    (name,) = tomllib.loads((model.parent / "bundler.toml").read_text())["targets"]
    system = {"Linux": "linux", "Darwin": "macos", "Windows": "windows"}[platform.system()]
    assert name == f"{system}-{'x64' if platform.machine().lower() in ('x86_64', 'amd64') else 'arm64'}"
    locked = inside.run("lock").expect(0).out
    assert "bundler.lock is missing" not in locked
    assert "written for the first time" in locked


def test_a_new_project_has_no_models_of_bundles_and_environments(warm: CommandLine, model: Path) -> None:
    inside = dataclasses.replace(warm, cwd=model.parent)
    others = [model.parent / place / "model.onnx" for place in ("dist/m-linux-x64/payload/models/cpu", ".venv/lib")]
    for other in others:
        other.parent.mkdir(parents=True)
        shutil.copy(model, other)
    (model.parent / "dist/m-linux-x64/bundle.json").write_text("{}")
    inside.run("init").expect(0)
    found = tomllib.loads((model.parent / "bundler.toml").read_text())["models"]
    assert found == [{"path": model.name}]


def test_a_working_folder_that_was_removed_is_said(warm: CommandLine, model: Path, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    command = shlex.join(warm.command(("plan", model, "--target", "linux-x64")))
    script = f'rmdir "$PWD"; exec {command}'
    done = subprocess.run(
        ["/bin/sh", "-c", script], cwd=gone, env=warm.environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "error: the folder that the command was started in was removed" in done.stderr


def test_a_seed_that_no_generator_takes_is_refused_before_anything_runs(warm: CommandLine, model: Path) -> None:
    answer = warm.run("build", model, "--target=linux-x64", f"--seed={2**64}").expect(2)
    assert "--seed" in answer.err
    assert "step" not in answer.err


def test_python_given_twice_says_which_one_counts(warm: CommandLine, model: Path) -> None:
    twice = ("--python", "3.12", "--set", 'python.versions=["3.13"]')
    built = warm.run("build", model, "--target=linux-x64", *twice, "--no-prove", "-o", model.parent / "out").expect(0)
    assert "warning: --python replaces --set python.versions" in built.err


def test_an_empty_value_is_seen(warm: CommandLine, model: Path) -> None:
    assert (
        "--python '': expected a Python version"
        in warm.run("build", model, "--target=linux-x64", "--python=").expect(2).err
    )


@pytest.mark.quick
@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C cannot be sent to one process there")
def test_an_interruption_says_what_is_finished(bundler: CommandLine, model: Path, tmp_path: Path) -> None:
    paths = [model, *(shutil.copy(model, model.with_name(f"again{number}.onnx")) for number in range(5))]
    output = tmp_path / "out"
    process = bundler.start(
        *("build", *paths, "--target=linux-x64", "--format=files", "--no-prove", "--jobs=1", "--output", output)
    )
    try:
        while process.poll() is None and not (output / "mlp-linux-x64" / "bundle.json").is_file():
            time.sleep(0.01)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120)
    finally:
        end_group(process)
    finished = sorted(str(path) for path in output.glob("*-linux-x64"))
    assert process.returncode == 130
    assert f"{len(finished)} of 6 bundles w" in said
    assert sorted(line.strip() for line in said.splitlines() if line.startswith("  ")) == finished
    assert "no bundle was changed" not in said


def run_hint(warm: CommandLine, err: str) -> Answer:
    """Run the command that a hint prints, without the remark behind it."""
    command = err.partition("hint: ")[2].partition("for example bundler ")[2].partition(" (")[0]
    return warm.run(*shlex.split(command), "--no-prove")


def test_sizes_at_which_no_input_runs_are_answered_by_a_command_that_works(warm: CommandLine, tmp_path: Path) -> None:
    model = models.save(make_voice(), tmp_path, "voice.onnx")
    output = ("--output", tmp_path / "dist")
    failed = warm.run("build", model, "--target", "linux-x64", "--dim", "samples=5", *output).expect(3)
    assert "the model did not run on any seeded input" in failed.err
    assert "--dim samples=8 (the model ran at these sizes)" in failed.err
    run_hint(warm, failed.err).expect(0)


def test_a_provider_that_needs_fixed_sizes_names_some_at_which_the_model_runs(
    warm: CommandLine, tmp_path: Path
) -> None:
    model = models.save(make_voice(), tmp_path, "voice.onnx")
    failed = warm.run("plan", model, "--target", "snapdragon-8g3").expect(2)
    assert "--dim samples=8 (the model ran at these sizes)" in failed.err
    stated = warm.run("plan", model, "--target", "snapdragon-8g3", "--dim", "samples=8").expect(0)
    assert "dimension samples: 8" in stated.out


def test_what_breaks_the_model_ahead_of_time_is_off_on_the_device(warm: CommandLine, tmp_path: Path) -> None:
    """At this length no call takes the branch of the other rate, and folding its constants makes it invalid."""
    model = models.save(make_voice(), tmp_path, "voice.onnx")
    options = ("--target", "android-arm64", "--dim", "samples=8", "--format", "files", "--no-prove")
    built = warm.build(model, *options, "--output", tmp_path / "dist")
    bundle = Path(built["bundle"])
    variants = read_document(bundle / "runtime.json")["components"][0]["variants"]
    off = {variant["name"]: variant["disabled_optimizers"] for variant in variants}
    assert off == {"xnnpack": ["ConstantFolding"], "nnapi": ["ConstantFolding"], "cpu": []}
    path = next(bundle.rglob(variants[0]["model"]))
    with pytest.raises(RUNTIME_ERRORS):
        onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"], disabled_optimizers=off["xnnpack"])


def test_a_state_of_open_size_is_answered_by_the_dimension_that_is_missing(warm: CommandLine, tmp_path: Path) -> None:
    model = models.save(make_gru(batch="batch"), tmp_path, "gru.onnx")
    output = ("--output", tmp_path / "dist")
    failed = warm.run("build", model, "--target", "linux-x64", "--state", "h0=hn", *output).expect(2)
    assert "--dim batch=1" in failed.err
    run_hint(warm, failed.err).expect(0)


def test_samples_of_another_type_are_answered_by_the_conversion(warm: CommandLine, tmp_path: Path) -> None:
    model = models.save(make_gru(), tmp_path, "gru.onnx")
    np.savez(tmp_path / "wide.npz", x=np.zeros((2, 1, FRAME)), h0=np.zeros((2, 1, UNITS)))
    failed = warm.run("build", model, "--target", "linux-x64", "--samples", tmp_path / "wide.npz").expect(2)
    assert "hint: convert the arrays before they are saved: numpy.savez(file, x=x.astype('float32'), " in failed.err
