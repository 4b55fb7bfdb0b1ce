"""`python -m <package>`, as a user types it."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.integration.python.packages import Package
from tests.support import models


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "image.npy"
    np.save(path, np.ones((1, 3, 16, 16), np.float32))
    return path


def test_help_names_every_command(package: Package) -> None:
    done = package.call("--help")
    assert done.returncode == 0
    for command in ("info", "self-test", "run", "bench", "exit codes"):
        assert command in done.stdout


def test_no_command_is_wrong_usage(package: Package) -> None:
    assert package.call().returncode == 2


def test_a_reader_that_goes_away_is_no_error(package: Package) -> None:
    """`python -m … self-test | head -1` ends well."""
    command = [sys.executable, "-u", "-m", package.name, "self-test"]
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as stream:
        done = subprocess.run(command, cwd=package.root, stdout=stream, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("file", ["tiny-cnn.pex", "tiny_cnn.pex"])
def test_usage_names_the_file_that_it_is(package: Package, file: str) -> None:
    assert f"usage: /opt/{file}" in package.call(PEX=f"/opt/{file}").stderr
    assert "usage: python -m tiny_cnn" in package.call(PEX="/opt/application.pex").stderr


def test_the_example_of_the_readme_runs_as_it_stands(package: Package) -> None:
    text = (package.root / "README.md").read_text("utf-8")
    example = text[text.index("import numpy") : text.index("print(outputs.scores)")] + "print(outputs.scores.shape)"
    done = subprocess.run(
        [sys.executable, "-c", example], cwd=package.root, capture_output=True, text=True, check=False
    )
    assert done.stdout == "(1, 5)\n", done.stderr


def test_of_a_long_error_the_end_is_reported(module: ModuleType) -> None:
    runtime_errors = importlib.import_module(f"{module.__name__}._loader.runtime_errors")
    text = runtime_errors.first_line(RuntimeError(f"[ONNXRuntimeError] {'x' * 500}. Ensure /proc is mounted"))
    assert text.startswith("[ONNXRuntimeError]")
    assert text.endswith("Ensure /proc is mounted")
    assert len(text) <= runtime_errors.LONGEST + 3


def test_where_a_linked_package_is_installed_is_left_out(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "real" / "linked_plugin").mkdir(parents=True)
    (tmp_path / "real" / "linked_plugin" / "__init__.py").touch()
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "linked_plugin").symlink_to(tmp_path / "real" / "linked_plugin")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    library = Path(str(importlib.import_module("linked_plugin").__file__)).resolve().with_name("lib.so")
    runtime_errors = importlib.import_module(f"{module.__name__}._loader.runtime_errors")
    assert runtime_errors.first_line(RuntimeError(f"cannot load {library}")) == "cannot load linked_plugin/lib.so"


def test_info_shows_the_signature_and_what_runs(package: Package) -> None:
    text = package.call("info").stdout
    assert "image: float32[batch, 3, 16, 16]" in text
    assert "cpu: can run here" in text
    assert package.ask("info", "--json")["variants"] == {"cpu": None}


@pytest.mark.parametrize("choice", [(), ("--variant", "each"), ("--variant", "cpu"), ("--strict",)])
def test_self_test_passes(package: Package, choice: tuple[str, ...]) -> None:
    answer = package.ask("self-test", "--json", *choice)
    assert [outcome["status"] for outcome in answer["variants"]] == ["passed"]
    output = answer["variants"][0]["outputs"][0]
    assert (output["name"], output["mismatch"]) == ("scores", None)
    assert output["max_absolute"] < 1e-5


def test_an_altered_bundle_has_its_exit_code_and_says_so(package: Package) -> None:
    package.model.write_bytes(package.model.read_bytes()[:-1])
    done = package.call("self-test")
    assert done.returncode == 3
    assert "does not match its checksum" in done.stderr
    assert package.ask("self-test", "--json")["error"]["kind"] == "IntegrityError"


def test_run_writes_what_it_read(package: Package, image: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.npz"
    for given in ([str(image)], [f"image={image}"]):
        assert package.call("run", *given, "-o", str(out)).returncode == 0
        assert np.load(out)["scores"].shape == (1, 5)
    bundled = tmp_path / "in.npz"
    np.savez(bundled, image=np.load(image))
    shown = package.call("run", str(bundled))
    assert shown.stdout.startswith("scores: float32[batch, 5]\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing.npy"], "there is no file nothing.npy"),
        (["imgae={image}"], "did you mean 'image'"),
        (["{image}", "--variant", "gpu"], "the variants are cpu"),
        (["{image}", "-o", "/nowhere/out.npz"], "cannot write"),
    ],
)
def test_wrong_use_is_reported(package: Package, image: Path, arguments: list[str], words: str) -> None:
    done = package.call("run", *(argument.format(image=image) for argument in arguments))
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_pickle_is_never_read(package: Package, tmp_path: Path) -> None:
    path = tmp_path / "trap.npy"
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    assert package.call("run", str(path)).returncode == 2


def test_maps_are_shown_as_json(bundle_of: Callable[..., Package], tmp_path: Path) -> None:
    package = bundle_of(models.zipmap(text_labels=True))
    port = package.ask("info", "--json")["signature"]["inputs"][0]
    path = tmp_path / "x.npy"
    np.save(path, np.ones([2 if not isinstance(d, int) else d for d in port["type"]["shape"]], np.float32))
    done = package.call("run", str(path))
    assert done.returncode == 0, done.stderr
    assert "sequence(map(str, float32" in done.stdout


def test_bench_times_the_bundle_beside_a_plain_session(package: Package) -> None:
    answer = package.ask("bench", "--json", "-n", "10", "--warm-up", "1", "--compare", str(package.model))
    for name in ("bundle", "plain"):
        figures = answer[name]
        assert 0 < figures["latency_p10_seconds"] <= figures["latency_median_seconds"] <= figures["latency_p90_seconds"]
        assert 0 < figures["opening_seconds"] < figures["first_answer_seconds"]
        assert len(answer["series"][name]["latency_seconds"]) == 10
        assert len(answer["series"][name]["opening_seconds"]) == len(answer["series"][name]["first_answer_seconds"])
    text = package.call("bench", "-n", "3").stdout
    assert "bundle (3 calls)" in text
    assert "latency median" in text
    assert "ms" in text


def test_bench_ends_when_its_time_is_over(package: Package) -> None:
    answer = package.ask("bench", "--json", "-n", "100000000", "--openings", "1000000", "--seconds", "0.5")
    series = answer["series"]["bundle"]
    assert 1 <= len(series["opening_seconds"]) < 1000000
    assert 1 <= len(series["latency_seconds"]) < 100000000
    assert "plain" not in answer["series"]


def test_bench_counts_what_several_callers_get_done(package: Package) -> None:
    options = ("--seconds", "0.5", "--batch", "4", "--threads", "1", "--spinning", "--callers", "1,3,1")
    answer = package.ask("bench", "--json", *options, "--compare", str(package.model))
    assert answer["batch"] == 4
    assert [found["callers"] for found in answer["throughput"]] == [1, 3]
    assert all(rate > 0 for found in answer["throughput"] for rate in found["calls_per_second"])
    assert answer["series"]["plain"]["latency_seconds"]
    text = package.call("bench", "--seconds", "0.2", "--callers", "1,2").stdout
    assert "1 caller: " in text
    assert "2 callers: " in text


def test_a_batch_that_the_model_does_not_take_is_reported(bundle_of: Callable[..., Package]) -> None:
    done = bundle_of(models.cnn(batch=1)).call("bench", "--batch", "4")
    assert done.returncode == 2
    assert "no batch of 4 can be given to input image" in done.stderr
    assert "its first size is fixed to 1" in done.stderr


def test_a_caller_that_fails_fails_the_count(module: ModuleType) -> None:
    throughput = importlib.import_module(f"{module.__name__}._loader.throughput")

    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        throughput.count_calls(fail, [1, 2], 0.1)


def test_large_models_are_timed_one_at_a_time(module: ModuleType) -> None:
    timing = importlib.import_module(f"{module.__name__}._loader.timing")
    alive: list[str] = []
    most: list[int] = []

    class Session:
        def __init__(self, name: str) -> None:
            alive.append(name)
            most.append(len(alive))

        def __call__(self) -> None:
            return

        def __del__(self) -> None:
            alive.pop()

    limits = timing.Limits(openings=10, runs=5, warm_up=3, seconds=600.0)
    both = timing.time_one_by_one([lambda: Session("bundle"), lambda: Session("plain")], limits)
    assert [len(one.openings) for one in both] == [timing.FEW_OPENINGS] * 2
    assert [len(one.latencies) for one in both] == [5, 5]
    assert max(most) == 1
