"""A bundle for Intel's processors with OpenVINO, installed without a network and run for real on this one."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uv

from tests.support import digits, models
from tests.support.command_line import HERE, ONE_PYTHON, CommandLine
from tests.support.openvino import require_openvino

pytestmark = [
    pytest.mark.slow,  # The plugin's wheel has 72 MB, and goes into the bundle and an environment.
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        platform.machine() != "x86_64", reason="the plugin onnxruntime-ep-openvino finds devices on Intel hardware only"
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A bundle that was built and installed as its README says."""

    result: dict[str, Any]
    folder: Path

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`python ARGUMENTS` in its environment, away from the bundle, with a cache of its own."""
        python = self.folder / "env" / "bin" / "python"
        env = {**os.environ, "XDG_CACHE_HOME": str(self.folder / "user-cache"), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [str(python), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=env, cwd=self.folder)

    def ask(self, *arguments: str) -> Any:
        done = self.call("-m", "digits", *arguments, "--json")
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"
        return json.loads(done.stdout)


def install(folder: Path, bundle: Path) -> None:
    tool = uv.find_uv_bin()
    env = folder / "env"
    subprocess.run([tool, "venv", "--quiet", "--python", HERE, str(env)], check=True, cwd=folder)
    offline = ("--no-cache", "--offline", "--no-index", "--find-links", str(bundle / "wheels"))
    python = ("--python", str(env / "bin" / "python"))
    locked = ("--require-hashes", "-r", str(bundle / "requirements.lock"))
    subprocess.run([tool, "pip", "install", "--quiet", *python, *offline, *locked], check=True, cwd=folder)
    places = subprocess.run(
        [*python[1:], "-c", "import site; print(site.getsitepackages()[0])"], check=True, capture_output=True, text=True
    )
    (Path(places.stdout.strip()) / "bundle.pth").write_text(f"{bundle}\n")


@pytest.fixture(scope="module")
def installed(bundler: CommandLine, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The handwritten digits, as the real answers of the network judge them."""
    folder = tmp_path_factory.mktemp("intel")
    model = models.save(digits.make_network("convolutional"), folder, "digits.onnx")
    digits.write_samples(digits.load_digits()[1].part(24), folder / "samples", "convolutional")
    options = ("--target=intel-xeon", f"--set={ONE_PYTHON}", f"--samples={folder / 'samples'}")
    result = bundler.build(model, *options, f"--output={folder / 'out'}")
    install(folder, Path(result["bundle"]))
    found = Installed(result=result, folder=folder)
    require_openvino(folder / "env" / "bin" / "python")
    return found


def test_the_build_ran_it_on_what_was_made_for_this_processor(installed: Installed) -> None:
    assert installed.result["proofs"] == {"openvino": "executed", "cpu": "executed"}


def test_until_it_is_prepared_the_next_variant_runs_and_strict_refuses(installed: Installed) -> None:
    chosen = installed.call("-c", "import digits; print(digits.Model().report.variant)")
    assert chosen.stdout.strip() == "cpu", chosen.stderr
    strict = installed.call("-c", "import digits; digits.Model(strict=True)")
    assert strict.returncode != 0
    assert "run `python -m digits prewarm`" in strict.stderr


def test_prewarm_makes_it_and_from_then_on_it_runs(installed: Installed) -> None:
    installed.ask("prewarm")
    answer = installed.ask("self-test", "--variant", "openvino", "--strict")
    (outcome,) = answer["variants"]
    assert (outcome["variant"], outcome["status"]) == ("openvino", "passed")
    chosen = installed.call("-c", "import digits; print(digits.Model(strict=True).report.variant)")
    assert chosen.stdout.strip() == "openvino", chosen.stderr
