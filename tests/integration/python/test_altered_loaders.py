"""A loader that says more than it did is not believed."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from onnx import ModelProto

from bundler.devices.contract import Command, Device, Outcome
from bundler.devices.local import LocalDevice, see_facts
from bundler.devices.programs import run_program
from bundler.emitters.brought import BY_LOADER
from bundler.emitters.python import launching
from bundler.emitters.python.launching import Launch
from bundler.emitters.python.layout import read_layout
from bundler.emitters.python.proving import run_self_test
from bundler.model.proof import VariantProof
from bundler.model.state import StateLink
from tests.integration.python.packages import Package, write_package
from tests.support import models
from tests.support.brought import compare
from tests.support.bundles import combine_requests, make_request
from tests.support.recurrent_models import make_gru

OUTCOMES, CODE = "_loader/proving.py", "_loader/cli.py"

_PRINT = '        _print_json({**_describe_host(models[0]), "variants": outcomes})\n'
_REPORTED = "outputs=[figures.to_json(judged=figures.name not in result.unjudged) for figures in result.outputs],"
_EXIT = "    return 1 if failed else 0 if ran else 3\n"

LIES = {
    "no outputs": (OUTCOMES, _REPORTED, "outputs=[],", "compared the outputs (none)"),
    "an output of another name": (
        OUTCOMES,
        _REPORTED,
        'outputs=[{**figures.to_json(), "name": "other"} for figures in result.outputs],',
        "compared the outputs 'other'",
    ),
    "minus 50 dB": (
        OUTCOMES,
        _REPORTED,
        (
            'outputs=[{**figures.to_json(), "equal": False, "max_absolute": 1e-5, "sqnr_db": -50.0}'
            " for figures in result.outputs],"
        ),
        "SQNR -50 dB",
    ),
    "a mismatch": (
        OUTCOMES,
        _REPORTED,
        'outputs=[{**figures.to_json(), "equal": False, "mismatch": "NaN"} for figures in result.outputs],',
        "NaN",
    ),
    "one sample of many, and says so": (OUTCOMES, "samples=result.samples", "samples=1", "compared 1 of"),
    "a crash after its report": (CODE, _EXIT, f"    sys.stdout.flush(); os.kill(os.getpid(), 11)\n{_EXIT}", "SIGSEGV"),
    "exit code 139": (CODE, _EXIT, f"    sys.stdout.flush(); os._exit(139)\n{_EXIT}", "exited with code 139"),
    "passed, and exit code 1": (CODE, _EXIT, "    return 1\n", "exited with code 1"),
    "a failure that is called passed": (
        OUTCOMES,
        'status, report = "passed" if result.passed else "failed", opened.report',
        'status, report = "passed", opened.report\n    result.outputs[0].mismatch = "shape [1] instead of [2]"',
        "shape [1] instead of [2]",
    ),
    "two reports": (CODE, _PRINT, _PRINT * 2, "exited with code 0"),
    "megabytes": (CODE, _PRINT, f'        print("x" * 50_000_000)\n{_PRINT}', "exited with code 0"),
    "nothing": (CODE, _PRINT, "        return 0\n", "exited with code 0"),
    "unavailable": (
        OUTCOMES,
        "    obstacle = find_obstacle(variant)\n",
        '    obstacle = "it is not here"\n',
        "where it must: it is not here",
    ),
    "never ends": (CODE, _EXIT, f"    import time; time.sleep(600)\n{_EXIT}", "did not finish within 5 s"),
}


_STREAMS = "_loader/streams.py"
_FILL = "        self._fill(self._initial)\n"
_STORE = '            return wrap(value.copy(), port.element_type or "")\n'
FAULTS = {
    "a negated output": (
        "__init__.py",
        "StreamOutputs._make(self._run((x,)))",
        "StreamOutputs._make(-value for value in self._run((x,)))",
        "step 1 of a stream gives another scores than the model",
    ),
    "begun again at each step": (_STREAMS, "            self._current ^= 1\n", "", "step 2 of a stream"),
    "other initial values": (_STREAMS, _FILL, "        self._fill([one + 1 for one in self._initial])\n", "step 1 of"),
    "a reset that does nothing": (
        _STREAMS,
        "        self._write(self._initial)\n",
        "        return\n",
        "the first step after a reset",
    ),
    "a restore that does nothing": (
        _STREAMS,
        "        ports = [port for _, port in self._links]\n        values",
        "        return\n        ports = [port for _, port in self._links]\n        values",
        "a step after its state was restored",
    ),
    "a leak into another stream": (
        _STREAMS,
        "        self._bindings = [self._bind(0), self._bind(1)]\n",
        (
            '        self._buffers = globals().setdefault("_KEPT", self._buffers)\n'
            "        self._bindings = [self._bind(0), self._bind(1)]\n"
        ),
        "a second stream's first step",
    ),
}


_CALLED = "            return self._call(self._output_names, dict(zip(self._names, values)), None)"
_WRONG = "return [value + 0.001 for value in self._call(self._output_names, dict(zip(self._names, values)), None)]"
_COMPARED = "_compare(component, port, tolerance, figures[port.name], actual=actual, sample=sample)"
_GOLDEN, _SESSIONS = "_loader/golden.py", "_loader/sessions.py"
BROKEN = {
    "outputs are wrong, and compared with themselves": (
        (
            (_SESSIONS, _CALLED, f"            {_WRONG}"),
            (_GOLDEN, _COMPARED, _COMPARED.replace("actual=actual", "actual=sample.outputs[port.name]")),
        ),
        "and its loader reports 0",
    ),
    "one sample is run, and all are reported": (
        ((_GOLDEN, "    for sample in golden:\n", "    for sample in [next(iter(golden))]:\n"),),
        "those of 1 samples, and 8 were asked for",
    ),
    "the golden set is reported without running the model": (
        ((_GOLDEN, "        results = run(", "        results = (lambda _: list(sample.outputs.values()))("),),
        "its outputs could not be compared",
    ),
    "errors are reported a thousand times smaller": (
        (
            (_SESSIONS, _CALLED, f"            {_WRONG.replace('0.001', '0.000005')}"),
            (
                OUTCOMES,
                _REPORTED,
                (
                    'outputs=[{**one, "max_absolute": one["max_absolute"] / 1000, "mean_absolute": 0.0}'
                    " for one in (figures.to_json() for figures in result.outputs)],"
                ),
            ),
        ),
        "and its loader reports",
    ),
}


def verify(package: Package) -> VariantProof:
    (proof,) = verify_all(package)
    return proof


def verify_all(package: Package, device: Device | None = None) -> tuple[VariantProof, ...]:
    layout = read_layout(package.root)
    launch = Launch(
        device=device or LocalDevice(facts=see_facts()),
        command=(sys.executable, "-m", package.name),
        environment={"PYTHONPATH": str(package.root), "XDG_CACHE_HOME": str(package.cache)},
    )
    return run_self_test(layout, launch, compare)


class Board:
    """A device with files of its own, which it does not give back."""

    def __init__(self, folder: Path) -> None:
        self.facts = see_facts()
        self.folder = folder

    def put(self, source: Path, name: str = "") -> str:
        target = self.folder / (name or source.name)
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
        return str(target)

    def run(self, command: Command) -> Outcome:
        return run_program(command)


class FetchingBoard(Board):
    """One that does."""

    def fetch(self, place: str, target: Path) -> None:
        shutil.copytree(place, target, symlinks=True, dirs_exist_ok=True)


@pytest.mark.parametrize("kind", [Board, FetchingBoard])
def test_a_device_with_files_of_its_own_gives_outputs_back_or_the_proof_says_so(
    package: Package, tmp_path: Path, kind: type[Board]
) -> None:
    (tmp_path / "board").mkdir()
    (proof,) = verify_all(package, kind(tmp_path / "board"))
    assert proof.passed is True
    assert proof.reason.endswith(BY_LOADER) is (kind is Board)


def test_an_honest_loader_is_believed(package: Package) -> None:
    assert verify(package).passed is True


@pytest.mark.parametrize(
    "make",
    [
        *(models.sequence_output, models.optional_output, models.zipmap, models.strings, models.random_model),
        *(models.choosing, models.nan_output, models.overridable, models.bfloat16_model),
    ],
)
def test_values_of_any_type_are_called_for(bundle_of: Callable[..., Package], make: Callable[[], ModelProto]) -> None:
    assert verify(bundle_of(make())).passed is True


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_found(package: Package, lie: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file, old, new, reason = LIES[lie]
    monkeypatch.setattr(launching, "TIME_LIMIT", 5.0 if lie == "never ends" else 60.0)
    alter(package, file, old, new)
    proof = verify(package)
    assert proof.passed is False
    assert reason in proof.reason


@pytest.mark.parametrize("broken", BROKEN)
def test_a_comparison_that_is_broken_is_found(package: Package, broken: str) -> None:
    alterations, reason = BROKEN[broken]
    for alteration in alterations:
        alter(package, *alteration)
    proof = verify(package)
    assert proof.passed is False
    assert reason in proof.reason


def alter(package: Package, file: str, old: str, new: str) -> None:
    path = package.root / package.name / file
    text = path.read_text("utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), "utf-8")


@pytest.fixture
def stream(bundle_of: Callable[..., Package]) -> Package:
    return bundle_of(make_gru(), state=(StateLink(input="h0", output="hn"),))


def test_honest_streams_are_believed(stream: Package) -> None:
    assert verify(stream).passed is True


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_streams_is_found(stream: Package, fault: str) -> None:
    file, old, new, reason = FAULTS[fault]
    alter(stream, file, old, new)
    proof = verify(stream)
    assert proof.passed is False
    assert reason in proof.reason


_RUN = "return Outputs._make(self._run(values))"


@pytest.mark.parametrize("other", ["(b, a))", "(a, a))", "values)[::-1]"], ids=["exchanged", "one twice", "outputs"])
def test_a_class_that_takes_or_gives_values_by_other_names_is_found(
    bundle_of: Callable[..., Package], other: str
) -> None:
    package = bundle_of(models.difference())
    alter(package, "__init__.py", _RUN, _RUN.replace("values)", other))
    proof = verify(package)
    assert (proof.passed, proof.reason) == (False, "Model: run gives another y than the model")


def test_a_class_of_another_component_is_found(tmp_path: Path) -> None:
    made = {"first": models.mlp(hidden=16), "second": models.mlp(hidden=9)}
    parts = {name: make_request(model, tmp_path / name) for name, model in made.items()}
    package = write_package(combine_requests(parts), tmp_path)
    assert [proof.passed for proof in verify_all(package)] == [True, True]
    alter(package, "__init__.py", "models = (First, Second)", "models = (First, First)")
    assert "twice" in verify_all(package)[0].reason
    alter(
        package,
        "__init__.py",
        "models = (First, First)",
        "models = (First, Second)\n    first = property(lambda _: Second())",
    )
    first, second = verify_all(package)
    assert (first.reason, second.passed) == ("Bundle.first is another component", True)
