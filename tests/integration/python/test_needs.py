"""A loader names what of the device's own software is missing, and tells whose the sizes are."""

from __future__ import annotations

import dataclasses
import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bundler.emitters.contract import EmitRequest
from bundler.model.requirements import FixedSize, Need
from bundler.model.runtime import ProviderEntry
from bundler.support.data import data_root
from tests.integration.python.packages import Package, imported, write_package
from tests.support.bundles import sole_component, with_component, with_variants

CUDNN = Need(what="cuDNN", version="9", check="ldconfig", libraries=("libcudnn.so.9",))
DRIVER = Need(what="driver", libraries=("libdriver.so.1", "libtool.so.2"))
NPU = Need(what="NPU driver", check="Device Manager")


@pytest.fixture
def explain(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """`explain_missing` for needs, on a system that has `present`."""
    monkeypatch.syspath_prepend(str(data_root("templates") / "python" / "package"))
    needs = importlib.import_module("_loader.needs")

    def ask(*wanted: Need, present: tuple[str, ...] = (), systems: tuple[str, ...] = ()) -> str:
        def load(name: str) -> None:
            if name not in present:
                raise OSError(name)

        requires = {"needs": [dataclasses.asdict(need) for need in wanted], "systems": list(systems)}
        return needs.explain_missing(SimpleNamespace(requires=requires), load)

    yield ask
    for module in [module for module in sys.modules if module.startswith("_loader")]:
        del sys.modules[module]


def test_only_what_is_missing_is_named(explain: Any) -> None:
    assert (
        explain(CUDNN, DRIVER, present=("libcudnn.so.9", "libdriver.so.1")) == "not found here: driver (libtool.so.2)"
    )
    assert explain(CUDNN, DRIVER) == "not found here: cuDNN 9 (libcudnn.so.9), driver (libdriver.so.1 libtool.so.2)"


def test_where_all_is_there_nothing_is_said(explain: Any) -> None:
    assert explain(CUDNN, present=("libcudnn.so.9",)) == ""
    assert explain() == ""


def test_what_no_library_stands_for_is_reported_with_how_to_check_it(explain: Any) -> None:
    assert explain(NPU) == "it requires NPU driver (check: Device Manager)"


def test_on_another_system_nothing_is_looked_for(explain: Any) -> None:
    assert explain(CUDNN, systems=("Plan 9",)) == ""


def test_no_library_outside_of_the_systems_own_is_loaded(explain: Any) -> None:
    """A name with a folder in it would load a file of the bundle's choice."""
    stray = Need(what="trap", libraries=("/somewhere/evil.so",))
    assert explain(stray, present=("evil.so",)) == ""


def _with_needs(request: EmitRequest) -> EmitRequest:
    """A first variant on a provider that this runtime has not, with a library that no system has; then the CPU."""
    (plain,) = sole_component(request).variants
    requires = dataclasses.replace(
        plain.requires,
        needs=(Need(what="Fancy driver", version="3", check="fancy --version", libraries=("libno-such-thing.so.3",)),),
    )
    first = dataclasses.replace(
        plain,
        name="fancy",
        providers=(ProviderEntry(name="CUDAExecutionProvider", options={}), *plain.providers),
        requires=requires,
    )
    return with_variants(request, first, plain)


@pytest.fixture
def needy(cnn_request: EmitRequest, tmp_path: Path) -> Iterator[ModuleType]:
    with imported(write_package(_with_needs(cnn_request), tmp_path)) as module:
        yield module


def test_the_report_says_what_the_variant_that_does_not_run_lacks(needy: ModuleType) -> None:
    with pytest.warns(needy.FallbackWarning, match=r"not found here: Fancy driver 3 \(libno-such-thing\.so\.3\)"):
        model = needy.Model()
    assert model.report.variant != "fancy"


def test_what_pip_installed_is_loaded_from_its_folder(cnn_request: EmitRequest, tmp_path: Path) -> None:
    """As `pip install onnxruntime-gpu[cuda,cudnn]` does it: the system's linker does not look there."""
    package = write_package(_with_needs(cnn_request), tmp_path)
    installed = tmp_path / "site [1]" / "nvidia" / "cu13" / "lib"
    installed.mkdir(parents=True)
    shutil.copyfile(_find_loaded("libm"), installed / "libno-such-thing.so.3")
    found = package.call("self-test", PYTHONPATH=str(tmp_path / "site [1]"))
    assert found.returncode == 0, found.stderr
    assert "not found here" not in found.stdout + found.stderr
    missing = package.call("self-test")
    assert "not found here: Fancy driver 3 (libno-such-thing.so.3)" in missing.stdout + missing.stderr


def _find_loaded(name: str) -> Path:
    """A library of this process, whose name begins with `name`."""
    lines = Path("/proc/self/maps").read_text("utf-8").splitlines()
    return next(Path(line.split()[-1]) for line in lines if f"/{name}." in line)


def test_a_runtime_that_cannot_be_loaded_is_explained_by_what_the_device_lacks(
    cnn_request: EmitRequest, tmp_path: Path
) -> None:
    """On Windows without the Visual C++ runtime, `import onnxruntime` fails so, before any variant is opened."""
    package = write_package(_with_needs(cnn_request), tmp_path)
    broken = tmp_path / "broken" / "onnxruntime"
    broken.mkdir(parents=True)
    broken.joinpath("__init__.py").write_text("raise ImportError('DLL load failed: module not found')", "utf-8")
    done = package.call("info", PYTHONPATH=str(broken.parent))
    assert done.returncode == 1
    assert done.stderr.endswith(
        "ImportError: the library of onnxruntime cannot be loaded\n"
        "  why:  DLL load failed: module not found; not found here: Fancy driver 3 (libno-such-thing.so.3)\n"
        "  next: install what this bundle requires on this device: Fancy driver 3 (check: fancy --version)\n"
    )


def test_a_runtime_that_is_not_installed_is_not_explained_by_the_device(
    cnn_request: EmitRequest, tmp_path: Path
) -> None:
    package = write_package(_with_needs(cnn_request), tmp_path)
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import {package.name}"],
        cwd=package.root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.endswith("ModuleNotFoundError: No module named 'onnxruntime'\n")


def _with_fixed(request: EmitRequest, by: Any, name: str = "height") -> EmitRequest:
    fixed = (FixedSize(name=name, size=16, by=by, axes={"image": (2,)}),)
    return with_component(request, fixed_sizes=fixed)


@pytest.mark.parametrize(
    ("by", "words", "again"),
    [
        ("target", "by the target that it was built for", ", or build the bundle again with --dim height=N"),
        ("user", "when it was built", ", or build the bundle again with --dim height=N"),
        ("model", "because the original model ran only at this size, among those tried", ""),
    ],
)
def test_another_size_is_reported_with_who_fixed_it(
    cnn_request: EmitRequest, tmp_path: Path, by: str, words: str, again: str
) -> None:
    package = write_package(_with_fixed(cnn_request, by), tmp_path)
    assert ("For another size" in (package.root / "README.md").read_text("utf-8")) == bool(again)
    with imported(package) as module:
        model = module.Model()
        with pytest.raises(module.InputError) as caught:
            model.run(image=np.zeros((1, 3, 8, 16), np.float32))
        assert f"axis 2 is 8, not 16; this bundle was fixed to 'height' = 16 {words}" in caught.value.why
        assert caught.value.hint == f"give that size{again}"
        with pytest.raises(module.InputError) as caught:
            model.run(image=np.zeros((1, 3, 16, 8), np.float32))
        assert "fixed to" not in str(caught.value), "this size is the model's own"


def test_a_size_without_a_name_is_reached_by_the_shape_of_its_input(cnn_request: EmitRequest, tmp_path: Path) -> None:
    request = _with_fixed(cnn_request, "user", "image[2]")
    with imported(write_package(request, tmp_path)) as module, pytest.raises(module.InputError) as caught:
        module.Model().run(image=np.zeros((1, 3, 8, 16), np.float32))
    assert "this bundle was fixed to 'image[2]' = 16 when it was built" in caught.value.why
    assert caught.value.hint == "give that size, or build the bundle again with --shape image=SIZES"


def test_telemetry_is_off_before_the_runtimes_library_is_loaded(package: Package) -> None:
    """The library reads the variable when it is loaded, and not later."""
    watch = (
        "import os, sys\n"
        "class Watch:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'onnxruntime':\n"
        "            print(os.environ.get('ORT_DISABLE_TELEMETRY'))\n"
        "sys.meta_path.insert(0, Watch())\n"
        f"import {package.name}\n"
    )
    plain = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    done = subprocess.run([sys.executable, "-c", watch], cwd=package.root, env=plain, capture_output=True, check=True)
    assert done.stdout.decode().split() == ["1"]
