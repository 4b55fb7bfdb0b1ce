"""Bundles install by the lines of their README: with the real installer, on the right system, and on no other."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bundler.emitters.contract import EmitRequest, ProofRequest
from bundler.emitters.python.emitter import EMITTER
from bundler.emitters.python.layout import read_layout
from bundler.emitters.python.wheelhouse import gather_locked
from bundler.environments.interpreters import find_interpreter
from bundler.environments.tools import find_uv
from bundler.model.errors import VerificationError
from bundler.model.events import ignore
from bundler.profiles.resolve import resolve_target
from tests.integration.python.packages import write_package
from tests.support import models
from tests.support.bundles import make_request
from tests.support.command_line import PROGRAM

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
SITE = sysconfig.get_path("purelib")
TOO_OLD = "{} requires Python 3.11 or newer; this is Python 3."
ONE_PYTHON = (f"python.versions=['{HERE}']",)


@pytest.fixture(scope="module")
def request_(tmp_path_factory: pytest.TempPathFactory) -> EmitRequest:
    return make_request(models.cnn(), tmp_path_factory.mktemp("installing"), name="tiny cnn", overrides=ONE_PYTHON)


def emit(request: EmitRequest, folder: Path, format_: str, **changes: object) -> Path:
    bundle = folder / "bundle"
    bundle.mkdir(parents=True)
    EMITTER.emit(dataclasses.replace(request, format=format_, **changes), bundle)  # type: ignore[arg-type]
    return bundle


def run_pip(python: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
    command = [str(python), "-m", "pip", "--isolated", "--disable-pip-version-check", *arguments]
    return subprocess.run(command, env=plain, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    environment = tmp_path_factory.mktemp("fresh") / "environment"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    return environment / "bin" / "python"


def test_pip_installs_a_wheel_of_the_given_name_and_only_where_it_belongs(
    request_: EmitRequest, tmp_path: Path, fresh: Path
) -> None:
    bundle = emit(request_, tmp_path, "wheel", package_name="Acme.Tiny", version="1.0.0-rc1")
    wheel = next(bundle.glob("*.whl"))
    assert wheel.name.startswith("acme_tiny-1.0.0rc1-py3-none-manylinux_2_")
    assert wheel.name.endswith("_x86_64.whl")
    assert wheel.name in (bundle / "README.md").read_text("utf-8")
    tags = (*request_.profile.python.wheel_platforms,)
    with gather_locked(read_layout(bundle).lock, HERE, tags, request_.environments.root) as wheels:
        done = run_pip(fresh, "install", "--no-index", "--find-links", str(wheels), str(wheel))
    assert done.returncode == 0, done.stderr
    ran = subprocess.run([str(fresh), "-m", "acme_tiny", "self-test", "--strict"], cwd=tmp_path, check=False)
    assert ran.returncode == 0
    assert "acme-tiny==1.0.0rc1" in run_pip(fresh, "list", "--format=freeze").stdout
    elsewhere = ("--platform", "win_amd64", "--only-binary", ":all:", "--no-deps", "--dest", str(tmp_path / "none"))
    refused = run_pip(fresh, "download", *elsewhere, str(wheel))
    assert refused.returncode != 0
    assert "not a supported wheel on this platform" in refused.stderr


@pytest.mark.quick
def test_wheels_of_two_targets_have_two_names(request_: EmitRequest, tmp_path: Path) -> None:
    there = emit(request_, tmp_path / "there", "wheel", profile=resolve_target("raspberry-pi-5", ONE_PYTHON))
    here = emit(request_, tmp_path / "here", "wheel")
    assert next(there.glob("*.whl")).name.endswith("_aarch64.whl")
    assert next(here.glob("*.whl")).name.endswith("_x86_64.whl")


def _spoil_version(bundle: Path) -> None:
    project = bundle / "pyproject.toml"
    project.write_text(project.read_text("utf-8").replace('version = "1.2.3"', 'version = "not a version"'), "utf-8")


def _ask_for_more(bundle: Path) -> None:
    project = bundle / "pyproject.toml"
    project.write_text(project.read_text("utf-8").replace('"numpy>=', '"requests",\n    "numpy>='), "utf-8")


@pytest.mark.parametrize("spoil", [_spoil_version, _ask_for_more])
def test_what_does_not_install_is_not_called_executed(
    request_: EmitRequest, tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    bundle = emit(request_, tmp_path, "dir")
    spoil(bundle)
    with pytest.raises(VerificationError, match="does not install as its README says") as caught:
        EMITTER.prove(ProofRequest(bundle=bundle, cache_root=request_.environments.root, listener=ignore))
    assert caught.value.details


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("if os.path.islink(__file__): raise OSError('a link')", "not opened from symbolic links: OSError: a link"),
        ("if os.stat(__file__).st_nlink == 1: raise OSError('one')", "not opened from copies: OSError: one"),
        ("open(__file__ + '.log', 'w').close()", "it writes into its own folder"),
    ],
)
def test_a_bundle_that_one_installation_cannot_open_is_not_verified(
    request_: EmitRequest, tmp_path: Path, code: str, reason: str
) -> None:
    bundle = emit(request_, tmp_path, "dir")
    with (bundle / "tiny_cnn" / "__init__.py").open("a", encoding="utf-8") as module:
        module.write(f"import os\n{code}\n")
    proof, *_ = EMITTER.prove(ProofRequest(bundle=bundle, cache_root=request_.environments.root, listener=ignore))
    assert proof.passed is False, proof.reason
    assert reason in proof.reason


@pytest.mark.parametrize("format_", ["dir", "wheel"])
def test_the_proof_opens_a_bundle_from_each_installation(request_: EmitRequest, tmp_path: Path, format_: str) -> None:
    bundle = emit(request_, tmp_path, format_)
    proof, *_ = EMITTER.prove(ProofRequest(bundle=bundle, cache_root=request_.environments.root, listener=ignore))
    assert proof.passed
    assert "run from hard links; also opened from copies, symbolic links, a read-only folder" in proof.reason


@pytest.fixture(scope="module")
def branches_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle as it is built, of a model with large weights inside and outside of branches."""
    folder = tmp_path_factory.mktemp("branches")
    model = models.save(models.branch_weights(size=1 << 19), folder)
    options = ("--target", "linux-x64", "--format", "wheel", "--python", HERE, "--no-prove", "-o", str(folder / "out"))
    subprocess.run([PROGRAM, "build", str(model), *options], check=True, capture_output=True)
    return next((folder / "out").rglob("*.whl"))


@pytest.mark.parametrize("mode", ["copy", "hardlink", "symlink"])
def test_weights_in_branches_open_from_each_installation_of_uv(branches_wheel: Path, tmp_path: Path, mode: str) -> None:
    rules = ("--no-deps", "--offline", "--no-config", "--cache-dir", str(tmp_path / "cache"), "--link-mode", mode)
    command = [
        str(find_uv()),
        "pip",
        "install",
        "--quiet",
        *rules,
        "--target",
        str(tmp_path / "site"),
        str(branches_wheel),
    ]
    subprocess.run(command, check=True)
    data = next((tmp_path / "site").rglob("*.onnx.data"))
    assert {"copy": data.stat().st_nlink == 1, "hardlink": data.stat().st_nlink > 1, "symlink": data.is_symlink()}[mode]
    _run_self_test(tmp_path / "site", {})


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only an administrator can be another user")
def test_another_user_opens_a_wheel_that_was_unzipped(branches_wheel: Path) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o755)
        with zipfile.ZipFile(branches_wheel) as archive:
            archive.extractall(Path(name))
        nobody = {"user": 65534, "group": 65534, "extra_groups": ()}
        _run_self_test(Path(name), nobody, _find_python_of_others(nobody))


def _find_python_of_others(rights: dict[str, Any]) -> str:
    for python in (sys.executable, f"/usr/bin/python{HERE}"):
        with contextlib.suppress(OSError):
            command = [python, "-c", "import onnxruntime"]
            if subprocess.run(command, cwd="/", env={"PYTHONPATH": SITE}, check=False, **rights).returncode == 0:
                return python
    pytest.skip("another user cannot start a Python of this version with the runtime")


def _run_self_test(site: Path, rights: dict[str, Any], python: str = sys.executable) -> None:
    package = next(path.name for path in site.iterdir() if (path / "payload").is_dir())
    environment = {"PATH": os.defpath, "PYTHONPATH": f"{site}:{SITE}", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [python, "-m", package, "self-test"]
    done = subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True, check=False, **rights)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_older_python_is_refused_by_the_metadata_alone(request_: EmitRequest, tmp_path: Path, fresh: Path) -> None:
    bundle = emit(request_, tmp_path, "wheel")
    where = ("--only-binary", ":all:", "--platform", "manylinux_2_28_x86_64", "--no-index", "--no-deps")
    there = ("--find-links", str(bundle), "--dest", str(tmp_path / "none"))
    done = run_pip(fresh, "download", *where, *there, "--python-version", "3.9", "tiny-cnn")
    assert done.returncode != 0
    assert "requires a different Python" in done.stderr
    assert run_pip(fresh, "download", *where, *there, "--python-version", HERE, "tiny-cnn").returncode == 0


@pytest.fixture(scope="module")
def older() -> Path:
    found = next(filter(None, (find_interpreter(f"3.{minor}") for minor in (10, 9, 8))), None)
    if found is None:
        pytest.skip("no Python 3.8, 3.9 or 3.10 is installed here")
    return found


def test_a_folder_on_the_path_of_an_older_python_says_so_in_one_line(
    request_: EmitRequest, tmp_path: Path, older: Path
) -> None:
    package = write_package(request_, tmp_path)
    command = [str(older), "-B", "-c", f"import {package.name}"]
    done = subprocess.run(command, cwd=package.root, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].startswith(f"ImportError: {TOO_OLD.format('this bundle')}")


def test_an_older_installer_is_reported_before_it_looks_for_a_runtime(
    request_: EmitRequest, tmp_path: Path, older: Path
) -> None:
    bundle = emit(request_, tmp_path, "dir")
    subprocess.run([str(older), "-m", "venv", str(tmp_path / "older")], check=True)
    done = run_pip(
        tmp_path / "older" / "bin" / "python", "install", "--no-index", "--find-links", f"{bundle}/wheels", str(bundle)
    )
    assert done.returncode != 0
    assert TOO_OLD.format("this bundle") in done.stderr


def test_so_is_one_that_installs_bundler(older: Path) -> None:
    folder = Path(__file__).parents[3] / "build_backend"
    command = [str(older), "-B", "-c", "import checked"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(TOO_OLD.format("bundler"))
