"""A bundle is the one that was built: the digest that a build prints, and what is checked before anything runs."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from tests.support import models
from tests.support.command_line import ONE_PYTHON, CommandLine


@pytest.fixture(scope="module")
def built(warm: CommandLine, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("digests")
    model = models.save(models.mlp(), folder / "in", "mlp.onnx")
    options = ("--target=linux-x64", "--format=files", "--no-prove", f"--output={folder / 'out'}")
    result = warm.build(model, *options)
    return Path(result["bundle"]), result["digest"]


@pytest.mark.quick
def test_a_build_prints_the_digest_that_verify_asks_for(warm: CommandLine, built: tuple[Path, str]) -> None:
    bundle, digest = built
    assert digest == hashlib.sha256((bundle / "bundle.json").read_bytes()).hexdigest()
    said = warm.run("verify", bundle, "--digests-only", "--digest", digest.upper()).expect(0).out
    files = len(json.loads((bundle / "bundle.json").read_text("utf-8"))["files"])
    assert said.splitlines() == [
        f"{bundle}: {files} files match their checksums",
        f"  Digest    {digest} (SHA-256 of bundle.json, matches --digest)",
        "  Not run   --digests-only checks the checksums only",
    ]


@pytest.mark.parametrize("only", [(), ("--digests-only",)], ids=["whole", "digests-only"])
def test_another_bundle_is_refused_before_anything_of_it_runs(
    warm: CommandLine, built: tuple[Path, str], only: tuple[str, ...]
) -> None:
    refused = warm.run("verify", built[0], "--digest", "0" * 64, *only).expect(8)
    assert "does not match --digest" in refused.err
    for text in ("12ab", ""):  # the second is that of a variable that nobody set
        assert warm.run("verify", built[0], "--digest", text, *only).expect(2).err.startswith("error: --digest takes")


@pytest.mark.quick
def test_options_that_say_nothing_together_are_refused(warm: CommandLine, built: tuple[Path, str]) -> None:
    refused = warm.run("verify", built[0], "--digests-only", "--on", "local").expect(2)
    assert refused.err.startswith("error: --digests-only cannot be used with --on")
    assert "--digest requires a bundle" in warm.run("verify", "--digest", "").expect(2).err
    assert warm.run("bench", built[0], "--seconds", "nan").expect(2).err.startswith("error: --seconds nan")


def test_an_altered_bundle_is_not_timed(warm: CommandLine, tmp_path: Path) -> None:
    """Its own code would run."""
    model = models.save(models.mlp(), tmp_path / "in", "mlp.onnx")
    options = ("--target=linux-x64", f"--set={ONE_PYTHON}", "--no-prove", f"--output={tmp_path}")
    bundle = Path(warm.build(model, *options)["bundle"])
    package = next(path for path in bundle.rglob("__init__.py") if path.parent.name == "mlp")
    package.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n" + package.read_text("utf-8"), "utf-8")
    assert "is not the bundle that was built" in warm.run("bench", bundle).expect(8).err
    assert not (tmp_path / "ran").exists()
