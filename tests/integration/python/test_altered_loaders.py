"""A loader that says more than it did is not believed."""

from __future__ import annotations

import sys

import pytest

from bundler.devices.local import LocalDevice, see_facts
from bundler.emitters.python import launching
from bundler.emitters.python.launching import Launch
from bundler.emitters.python.layout import read_layout
from bundler.emitters.python.proving import run_self_test
from bundler.model.proof import VariantProof
from tests.integration.python.packages import Package

OUTCOMES, RESULT, CODE = "proving.py", "golden.py", "cli.py"

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
    "one sample of many": (RESULT, "    for sample in golden:\n", "    for sample in [next(iter(golden))]:\n", ""),
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


def verify(package: Package) -> VariantProof:
    layout = read_layout(package.root)
    launch = Launch(
        device=LocalDevice(facts=see_facts()),
        command=(sys.executable, "-m", package.name),
        environment={"PYTHONPATH": str(package.root), "XDG_CACHE_HOME": str(package.cache)},
    )
    (proof,) = run_self_test(layout, launch)
    return proof


def test_an_honest_loader_is_believed(package: Package) -> None:
    assert verify(package).passed is True


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_found(package: Package, lie: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file, old, new, reason = LIES[lie]
    monkeypatch.setattr(launching, "TIME_LIMIT", 5.0 if lie == "never ends" else 60.0)
    loader = package.root / package.name / "_loader" / file
    text = loader.read_text("utf-8")
    assert text.count(old) == 1
    loader.write_text(text.replace(old, new), "utf-8")
    proof = verify(package)
    assert proof.passed is False, lie
    assert reason in proof.reason
