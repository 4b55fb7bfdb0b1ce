"""Each bad input has its exit code, one clear message with a hint, and leaves nothing half-written."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from syrupy.assertion import SnapshotAssertion

from tests.support import models
from tests.support.command_line import Answer, CommandLine, list_all, normalise

USAGE, MODEL, PROFILE, ENVIRONMENT, STAGE, GATE, VERIFICATION = range(2, 9)

Refuse = Callable[..., str]


@pytest.fixture
def refuse(warm: CommandLine, here: tuple[str, ...], tmp_path: Path) -> Refuse:
    """`refuse(code, model, *options)` builds in vain: the error as a person reads it, after the checks that hold for
    every error.
    """
    inside = dataclasses.replace(warm, cwd=tmp_path)

    def build(code: int, model: Path | None, *options: str | Path, target: tuple[str, ...] = here) -> str:
        output = tmp_path / "out"
        given = [] if model is None else [model]
        answer = inside.run("build", *given, *target, "--output", output, "--no-prove", "--json", *options)
        check_refused(answer, code)
        assert list_all(output) == []
        text = answer.err[answer.err.index("error: ") :]
        return normalise(text, {"tmp": tmp_path, "cache": warm.cache, "above": tmp_path.parent})

    return build


def check_refused(answer: Answer, code: int) -> None:
    """One message with a hint, the same for people and for programs, and no traceback."""
    error = answer.expect(code).document["error"]
    assert error["exit_code"] == code
    assert error["hint"], "an error says what to do next"
    assert answer.err.count("error: ") == 1
    assert f"error: {error['message']}\n" in answer.err
    assert "Traceback" not in answer.err


def _write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


NOT_ONNX: dict[str, bytes] = {
    "text": b"This is a letter, not a model.\n" * 9,
    "empty": b"",
    "zeros": bytes(4096),
    "picture": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4,
    "archive": b"PK\x03\x04" + bytes(range(256)) * 4,
    "lfs-pointer": b"version https://git-lfs.example/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 12345\n",
    "noise": np.random.default_rng(0).bytes(5000),
}


@pytest.mark.parametrize("kind", NOT_ONNX)
def test_a_file_that_is_not_onnx(refuse: Refuse, tmp_path: Path, kind: str, snapshot: SnapshotAssertion) -> None:
    assert refuse(MODEL, _write(tmp_path / "model.onnx", NOT_ONNX[kind])) == snapshot


def test_a_file_that_is_not_there(refuse: Refuse, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    assert refuse(MODEL, tmp_path / "nothing.onnx") == snapshot


def test_a_folder_in_place_of_a_file(refuse: Refuse, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    (tmp_path / "folder.onnx").mkdir()
    assert refuse(MODEL, tmp_path / "folder.onnx") == snapshot


@pytest.mark.parametrize("kept", [1, 40, 2000, -1])
def test_a_truncated_file(refuse: Refuse, tmp_path: Path, kept: int, snapshot: SnapshotAssertion) -> None:
    whole = models.cnn().SerializeToString()
    assert refuse(MODEL, _write(tmp_path / "model.onnx", whole[:kept])) == snapshot


EXTERNAL = {
    "missing": "weights.bin",
    "above": "../../etc/passwd",
    "absolute": "/etc/passwd",
    "empty": "",
    "folder": ".",
    "backslash": "..\\..\\etc\\passwd",
    "windows": "C:\\windows\\win.ini",
    "null": "weights\0.bin",
}


@pytest.mark.parametrize("kind", EXTERNAL)
def test_external_data_that_is_missing_or_elsewhere(
    refuse: Refuse, tmp_path: Path, kind: str, snapshot: SnapshotAssertion
) -> None:
    assert refuse(MODEL, models.save(models.external_at(EXTERNAL[kind]), tmp_path / "in")) == snapshot


def test_external_data_that_is_truncated(refuse: Refuse, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    model = models.save(models.external_at("weights.bin"), tmp_path / "in")
    _write(tmp_path / "in" / "weights.bin", b"1234567")
    assert refuse(MODEL, model) == snapshot


def test_external_data_behind_a_link(refuse: Refuse, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    model = models.save(models.external_at("weights.bin"), tmp_path / "in")
    (tmp_path / "in" / "weights.bin").symlink_to(_write(tmp_path / "secret", bytes(12)))
    assert refuse(MODEL, model) == snapshot


INVALID: dict[str, Callable[[], onnx.ModelProto]] = {
    "cyclic": models.cyclic,
    "value-made-twice": models.duplicate_names,
    "unknown-operator": models.unknown_operator,
    "unknown-domain": models.unknown_domain,
    "opset-from-the-future": models.newer_opset,
    "format-from-the-future": models.newer_ir,
    "input-without-a-name": lambda: models.identity("", "y"),
    "output-without-a-name": lambda: models.identity("x", ""),
}


@pytest.mark.parametrize("kind", INVALID)
def test_a_model_that_cannot_run(refuse: Refuse, tmp_path: Path, kind: str, snapshot: SnapshotAssertion) -> None:
    assert refuse(MODEL, models.save(INVALID[kind](), tmp_path / "in")) == snapshot


PROFILES = {
    "unknown-key": "[platfrm]\nsystem = 'linux'\n",
    "several-at-once": "[accuracy]\nabsolut = 1\nrelative = -1\n[platform]\nsystem = 'linus'\n",
    "playbook-session-key": "[[variants]]\nname = 'cpu'\nproviders = [{ name = 'cpu', options.use_arena = true }]\n",
    "unknown-provider": "[[variants]]\nname = 'cpu'\nproviders = [{ name = 'cpuu' }]\n",
    "contradiction": "[optimization]\nlevel = 'none'\nformat = 'ort'\n[python]\nwheel_platforms = ['win_amd64']\n",
    "unknown-parent": None,
    "not-toml": "[platform\n",
}


@pytest.mark.parametrize("kind", PROFILES)
def test_a_profile_that_is_wrong(refuse: Refuse, tmp_path: Path, kind: str, snapshot: SnapshotAssertion) -> None:
    text = PROFILES[kind]
    head = "extends = 'no-such-target'\n" if text is None else "extends = 'linux-x64'\n"
    profile = tmp_path / "mine.toml"
    profile.write_text(f"{head}id = 'mine'\ntitle = 'Mine'\n{text or ''}", encoding="utf-8")
    model = models.save(models.identity(), tmp_path / "in")
    assert refuse(PROFILE, model, target=("--target", str(profile))) == snapshot


@pytest.mark.parametrize("target", ["linux-x46", "raspberry pi 5", "", "../linux-x64", "no/such/file.toml", "x" * 3000])
def test_an_unknown_target(refuse: Refuse, tmp_path: Path, target: str, snapshot: SnapshotAssertion) -> None:
    model = models.save(models.identity(), tmp_path / "in")
    assert refuse(PROFILE if "/" in target else USAGE, model, target=("--target", target)) == snapshot


@pytest.mark.parametrize("override", ["accuracy.absolut=1", "accuracy.absolute=close", "accuracy", "=1", "a..b=1"])
def test_an_override_that_fits_no_key(
    refuse: Refuse, tmp_path: Path, override: str, snapshot: SnapshotAssertion
) -> None:
    assert refuse(USAGE, models.save(models.identity(), tmp_path / "in"), "--set", override) == snapshot


USES: dict[str, tuple[str, ...]] = {
    "unknown-dimension": ("--dim", "bach=1"),
    "dimension-without-size": ("--dim", "batch"),
    "dimension-zero": ("--dim", "batch=0"),
    "unknown-format": ("--format", "exe"),
    "unknown-option": ("--fromat", "dir"),
    "name-with-a-path": ("--name", "../up"),
    "unknown-progress": ("--progress", "loud"),
}


@pytest.mark.parametrize("kind", USES)
def test_a_wrong_use(refuse: Refuse, tmp_path: Path, kind: str, snapshot: SnapshotAssertion) -> None:
    model = models.save(models.mlp(), tmp_path / "in")
    assert refuse(USAGE, model, *USES[kind]) == snapshot


def test_no_target(refuse: Refuse, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    assert refuse(USAGE, models.save(models.mlp(), tmp_path / "in"), target=()) == snapshot


SAMPLES: dict[str, dict[str, np.ndarray]] = {
    "wrong-name": {"y": np.zeros((2, 1, 8), np.float32)},
    "missing-input": {},
    "one-input-too-many": {"x": np.zeros((2, 1, 8), np.float32), "z": np.zeros((2, 1), np.float32)},
    "wrong-shape": {"x": np.zeros((2, 1, 9), np.float32)},
    "wrong-rank": {"x": np.zeros((2,), np.float32)},
    "wrong-type": {"x": np.array([[["a"] * 8]])},
    "wider-type": {"x": np.zeros((2, 1, 8), np.float64)},
    "no-samples": {"x": np.zeros((0, 1, 8), np.float32)},
}


@pytest.mark.parametrize("kind", SAMPLES)
def test_samples_that_do_not_fit(refuse: Refuse, tmp_path: Path, kind: str, snapshot: SnapshotAssertion) -> None:
    np.savez(tmp_path / "samples.npz", **SAMPLES[kind])  # type: ignore[arg-type] # stubs want its own option there
    model = models.save(models.mlp(), tmp_path / "in")
    assert refuse(USAGE, model, "--samples", tmp_path / "samples.npz") == snapshot


def test_samples_that_are_not_there(refuse: Refuse, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    assert refuse(USAGE, models.save(models.mlp(), tmp_path / "in"), "--samples", tmp_path / "none") == snapshot


@pytest.mark.parametrize("kind", ["empty-folder", "text", "object-array", "truncated"])
def test_samples_that_cannot_be_read(refuse: Refuse, tmp_path: Path, kind: str, snapshot: SnapshotAssertion) -> None:
    path = tmp_path / "samples.npz"
    if kind == "empty-folder":
        path.mkdir()
    elif kind == "text":
        path.write_text("not an archive")
    elif kind == "object-array":
        np.savez(path, x=np.array([{"a": 1}], object))
    else:
        np.savez(path, x=np.zeros((2, 1, 8), np.float32))
        path.write_bytes(path.read_bytes()[:100])
    assert refuse(USAGE, models.save(models.mlp(), tmp_path / "in"), "--samples", path) == snapshot


def test_a_size_budget_that_is_not_met(refuse: Refuse, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    model = models.save(models.cnn(), tmp_path / "in")
    text = refuse(GATE, model, "--set", "budget.model_mb=0.001")
    assert text == snapshot


def test_an_accuracy_gate_that_is_not_met_names_the_stage(
    refuse: Refuse, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    model = models.save(models.mlp(width=64, hidden=256, out=32), tmp_path / "in")
    exact = ("--set", "accuracy.absolute=0", "--set", "accuracy.relative=0")
    text = refuse(GATE, model, *exact)
    assert "stage cpu/optimize breaks the accuracy gate" in text
    assert text.splitlines()[0] == snapshot


def test_a_gate_that_seeded_inputs_break_asks_for_real_ones_first(refuse: Refuse, tmp_path: Path) -> None:
    model = models.save(models.mlp(width=64, hidden=256, out=32), tmp_path / "in")
    exact = ("--set", "accuracy.absolute=0", "--set", "accuracy.relative=0")
    widen = "widen the gate with --set accuracy.absolute=…"
    seeded = "the gate ran on synthetic inputs: retry with real samples first, --samples FOLDER; otherwise "
    assert refuse(GATE, model, *exact).splitlines()[-1] == f"hint: {seeded}{widen}"
    np.savez(tmp_path / "real.npz", x=np.random.default_rng(0).normal(size=(20, 1, 64)).astype(np.float32))
    assert refuse(GATE, model, *exact, "--samples", tmp_path / "real.npz").splitlines()[-1] == f"hint: {widen}"


def test_a_folder_that_is_no_bundle_is_never_overwritten(
    warm: CommandLine, here: tuple[str, ...], tmp_path: Path
) -> None:
    model = models.save(models.mlp(), tmp_path / "in", "tiny.onnx")
    precious = tmp_path / "out" / "tiny-linux-x64" / "thesis.txt"
    precious.parent.mkdir(parents=True)
    precious.write_text("years of work")
    answer = warm.run("build", model, *here, "--output", tmp_path / "out", "--no-prove", "--json")
    check_refused(answer, USAGE)
    assert precious.read_text() == "years of work"


def test_an_output_that_cannot_be_written(
    warm: CommandLine, here: tuple[str, ...], tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    model = models.save(models.mlp(), tmp_path / "in", "tiny.onnx")
    output = _write(tmp_path / "file", b"in the way") / "out"
    answer = warm.run("build", model, *here, "--output", output, "--no-prove", "--json")
    check_refused(answer, USAGE)
    assert normalise(answer.err[answer.err.index("error: ") :], {"tmp": tmp_path}) == snapshot


def test_a_cache_that_cannot_be_written(here: tuple[str, ...], tmp_path: Path) -> None:
    model = models.save(models.mlp(), tmp_path / "in", "tiny.onnx")
    broken = CommandLine(cache=_write(tmp_path / "file", b"in the way") / "cache")
    answer = broken.run("build", model, *here, "--output", tmp_path / "out", "--no-prove", "--json")
    check_refused(answer, USAGE)
    assert list_all(tmp_path / "out") == []


def test_one_bad_model_among_several_stops_no_other(warm: CommandLine, here: tuple[str, ...], tmp_path: Path) -> None:
    good = models.save(models.mlp(), tmp_path / "in", "good.onnx")
    bad = _write(tmp_path / "in" / "bad.onnx", b"no model at all\n" * 9)
    answer = warm.run("build", bad, good, *here, "--output", tmp_path / "out", "--no-prove", "--json")
    document = answer.expect(MODEL).document
    assert [bundle["name"] for bundle in document["bundles"]] == ["good"]
    assert [failure["error"]["kind"] for failure in document["failures"]] == ["model"]
    built = {path.name for path in (tmp_path / "out").iterdir()}
    assert built == {"good-linux-x64", "good-linux-x64.report"}


@pytest.mark.parametrize("command", ["inspect", "plan"])
def test_other_commands_refuse_a_bad_model_alike(warm: CommandLine, tmp_path: Path, command: str) -> None:
    model = _write(tmp_path / "model.onnx", b"no model at all\n" * 9)
    options = ("--target", "linux-x64") if command == "plan" else ()
    check_refused(warm.run(command, model, *options, "--json"), MODEL)


def test_what_is_no_bundle_is_not_verified(warm: CommandLine, tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nothing"):
        check_refused(warm.run("verify", folder, "--json"), VERIFICATION)
    _write(tmp_path / "bundle.json", json.dumps({"schema": 1}).encode())
    check_refused(warm.run("verify", tmp_path, "--json"), VERIFICATION)


def _give_usage(tmp_path: Path) -> tuple[str | Path, ...]:
    return ("build", models.save(models.mlp(), tmp_path / "in"), "--target", "linux-x64", "--dim", "batch=0")


def _give_no_model(tmp_path: Path) -> tuple[str | Path, ...]:
    return ("build", _write(tmp_path / "model.onnx", NOT_ONNX["text"]), "--target", "linux-x64")


def _give_no_profile(tmp_path: Path) -> tuple[str | Path, ...]:
    return ("build", models.save(models.mlp(), tmp_path / "in"), "--target", "missing.toml")


def _give_no_tool(tmp_path: Path) -> tuple[str | Path, ...]:
    return ("build", models.save(models.mlp(), tmp_path / "in"), "--target", "linux-x64", "--sandbox")


def _give_broken_metric(tmp_path: Path) -> tuple[str | Path, ...]:
    model = models.save(models.mlp(), tmp_path / "in")
    metric = ("--set", 'accuracy.metric.command=["/bin/false", "{answers}"]', "--set", "accuracy.metric.least=0")
    return ("build", model, "--target", "linux-x64", "--format", "files", *metric)


def _give_little_room(tmp_path: Path) -> tuple[str | Path, ...]:
    model = models.save(models.cnn(), tmp_path / "in")
    return ("build", model, "--target", "linux-x64", "--format", "files", "--set", "budget.model_mb=0.001")


def _give_no_bundle(tmp_path: Path) -> tuple[str | Path, ...]:
    return ("verify", tmp_path / "nothing")


EACH_CODE = {
    USAGE: _give_usage,
    MODEL: _give_no_model,
    PROFILE: _give_no_profile,
    ENVIRONMENT: _give_no_tool,
    STAGE: _give_broken_metric,
    GATE: _give_little_room,
    VERIFICATION: _give_no_bundle,
}


@pytest.mark.quick
@pytest.mark.parametrize("code", EACH_CODE)
def test_a_process_of_its_own_ends_with_the_code_and_the_words(
    bundler: CommandLine, warm: CommandLine, tmp_path: Path, code: int
) -> None:
    """The other tests of refusals run the command line in their own process: it says there what it says here."""
    arguments = (*EACH_CODE[code](tmp_path), "--json")
    no_tools = {"PATH": str(tmp_path)}  # nor a sandbox
    own, inside = (
        dataclasses.replace(program, cwd=tmp_path, env=no_tools).run(*arguments) for program in (bundler, warm)
    )
    check_refused(own, code)
    assert (own.code, own.out) == (inside.code, inside.out)
    assert own.err[own.err.index("error: ") :] == inside.err[inside.err.index("error: ") :]
