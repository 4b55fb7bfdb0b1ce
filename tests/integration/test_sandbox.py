"""`--sandbox`: the same bundles, with nothing of the user's in reach of what makes and runs them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from tests.support import models
from tests.support.command_line import CommandLine, digest_folder
from tests.support.sandboxes import needs_sandbox

MISSING = 5


@needs_sandbox
def test_a_bundle_is_the_same_with_it(bundler: CommandLine, here: tuple[str, ...], tmp_path: Path) -> None:
    """Its steps run inside, as does its proof; then it is verified inside."""
    model = models.save_external(models.mlp(hidden=37), tmp_path / "in", "mlp.onnx")
    shut = Path(bundler.build(model, *here, "--sandbox", "--output", tmp_path / "shut")["bundle"])
    assert '"executed"' in (shut / "bundle.json").read_text()
    assert "Verified  cpu: executed on this host" in bundler.run("verify", shut, "--sandbox").expect(0).out
    plain = bundler.build(model, *here, "--output", tmp_path / "plain")["bundle"]
    assert digest_folder(Path(plain)) == digest_folder(shut)


@needs_sandbox
@pytest.mark.parametrize("form", ["wheel", "pex"])
def test_a_packed_bundle_is_proven_inside(
    bundler: CommandLine, here: tuple[str, ...], tmp_path: Path, form: str
) -> None:
    model = models.save(models.mlp(), tmp_path / "in", "mlp.onnx")
    options = ("--format", form, "--sandbox", "--output", tmp_path / "out")
    bundle = Path(bundler.build(model, *here, *options)["bundle"])
    assert '"executed"' in (bundle / "bundle.json").read_text()


@pytest.mark.quick
@needs_sandbox
def test_a_bundle_of_files_is_compared_inside(bundler: CommandLine, here: tuple[str, ...], tmp_path: Path) -> None:
    model = models.save(models.mlp(), tmp_path / "in", "mlp.onnx")
    bundle = bundler.build(model, *here, "--format", "files", "--sandbox", "--output", tmp_path / "out")["bundle"]
    assert "Stand-in  cpu: ran" in bundler.run("verify", bundle, "--sandbox").expect(0).out


@needs_sandbox
def test_a_bench_runs_inside_with_the_model_beside(bundler: CommandLine, here: tuple[str, ...], tmp_path: Path) -> None:
    model = models.save_external(models.mlp(), tmp_path / "in", "mlp.onnx")
    bundle = bundler.build(model, *here, "--output", tmp_path / "out", "--no-prove")["bundle"]
    answer = bundler.run("bench", bundle, "--baseline", model, "--sandbox", "--seconds", "0.2", "--json").expect(0)
    assert answer.document["variants"][0]["baseline_latency"] is not None


@needs_sandbox
def test_a_web_bundle_is_not_run_and_says_so(bundler: CommandLine, tmp_path: Path) -> None:
    model = models.save(models.mlp(), tmp_path / "in", "mlp.onnx")
    answer = bundler.run("build", model, "--target", "web-wasm", "--sandbox", "--output", tmp_path / "out").expect(0)
    assert "--sandbox cannot be used with a browser" in answer.out + answer.err


def test_where_it_cannot_be_had_nothing_runs(
    cold: CommandLine, here: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = models.save(models.mlp(), tmp_path / "in", "mlp.onnx")
    (tmp_path / "empty").mkdir()
    without = dataclasses.replace(cold, env={**cold.env, "PATH": str(tmp_path / "empty")})
    runs = (
        ("inspect", model),
        ("build", model, *here),
        ("plan", model, *here),
        ("verify", tmp_path),
        ("bench", tmp_path),
    )
    for command in (*runs, ("targets", "recommend", model)):
        answer = without.run(*command, "--sandbox").expect(MISSING)
        assert "--sandbox is not available on this machine" in answer.err
        assert "hint: install bubblewrap" in answer.err
    monkeypatch.setenv("BUNDLER_SANDBOX", "1")
    without.run("inspect", model).expect(MISSING)


@needs_sandbox
def test_what_is_printed_to_be_run_next_keeps_it(bundler: CommandLine, tmp_path: Path) -> None:
    """The next command opens the same model, and ships the same samples or none."""
    model = models.save(models.mlp(), tmp_path / "in", "mlp.onnx")
    answer = bundler.run("targets", "recommend", model, "--sandbox", "--json").expect(0)
    picks = [pick for pick in json.loads(answer.out)["picks"] if pick["command"]]
    assert picks
    assert all(pick["command"][-1] == "--sandbox" for pick in picks)
    assert all(pick["shell"].endswith(" --sandbox") for pick in picks)
