"""What a bundle tells of its outputs is read, and what it does not claim is not made up."""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

from bundler.devices import programs
from bundler.devices.local import LocalDevice, see_facts
from bundler.emitters.payload import render_config
from bundler.emitters.python.launching import Launch
from bundler.emitters.python.layout import Layout, read_layout
from bundler.emitters.python.proving import run_self_test
from bundler.model.errors import VerificationError
from bundler.model.results import restore_output
from tests.support import models
from tests.support.bundles import make_request
from tests.support.reports import recorded_of, report_of

FIGURES = ("equal", "max_absolute", "mean_absolute", "max_relative", "cosine", "sqnr_db", "top1_agreement", "mismatch")


def test_an_output_that_could_not_be_judged_is_equal_to_nothing() -> None:
    output = restore_output({"name": "y", **dict.fromkeys(FIGURES)}, "it is empty in every sample")
    assert (output.equal, output.sqnr_db) == (False, None)
    assert output.reference is not None
    assert output.reference.unjudged == "it is empty in every sample"


def test_a_figure_of_another_bundler_is_refused() -> None:
    with pytest.raises(TypeError):
        restore_output({"name": "y", "more": 1}, "")


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    root = tmp_path_factory.mktemp("bundle")
    request = make_request(models.cnn(), root / "made")
    return Layout(
        root=root,
        package="t",
        format="dir",
        config=request.config,
        artifact=None,
        python_versions=("3.12",),
        recorded=recorded_of(request),
    )


def say(code: str) -> Launch:
    return Launch(device=LocalDevice(facts=see_facts()), command=(sys.executable, "-c", code), environment={})


@pytest.mark.parametrize(
    "answer",
    [
        [],
        {"variants": 1},
        {"variants": [1]},
        {"variants": [{}]},
        {"variants": [{"variant": "cpu"}]},
        {"variants": [{"variant": ["cpu"]}]},
        {"variants": [{"variant": "cpu", "status": "passed", "reason": "", "figures": {}, "outputs": [{"name": []}]}]},
        {"variants": [{"variant": "cpu", "status": "passed", "reason": "", "figures": [], "outputs": []}]},
    ],
)
def test_an_answer_of_another_shape_is_a_failure_and_no_traceback(layout: Layout, answer: object) -> None:
    (proof,) = run_self_test(layout, say(f"print({json.dumps(answer)!r})"))
    assert proof.passed is False
    assert proof.reason


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (f"print({'[' * 100_000!r})", "it exited with code 0: no output"),
        ("""print('{"error": 5}')""", "it exited with code 0: no output"),
        ("""print('{"error": {"message": ["no"], "why": null}}')""", "['no']"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGRTMIN + 3)", "it was terminated by signal 37: no output"),
    ],
    ids=["nested", "an error that is a number", "an error that is a list", "a real-time signal"],
)
def test_a_program_that_answers_nothing_is_a_failure_with_its_end(layout: Layout, code: str, reason: str) -> None:
    (proof,) = run_self_test(layout, say(code))
    assert proof.passed is False
    assert proof.reason.startswith(reason)


def test_of_a_program_that_talks_on_the_end_alone_is_read(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "OUTPUT_BYTES", 1000)
    code = "import sys; print('x' * 5000); print('y' * 5000 + ' and why', file=sys.stderr); sys.exit(3)"
    (proof,) = run_self_test(layout, say(code))
    assert proof.reason.startswith("it exited with code 3: yyy")
    assert proof.reason.endswith("and why")
    assert len(proof.reason) < 1100


@pytest.mark.parametrize("text", ["null", "[" * 100_000, '{"variants": []}', '{"variants": [null]}', "\x00"])
def test_a_configuration_that_is_none_is_a_damaged_bundle(tmp_path: Path, text: str) -> None:
    (tmp_path / "net" / "payload").mkdir(parents=True)
    (tmp_path / "net" / "payload" / "runtime.json").write_text(text)
    with pytest.raises(VerificationError, match="not a complete Python bundle"):
        read_layout(tmp_path)


def test_a_bundle_of_an_earlier_bundler_is_read_as_one_component(layout: Layout, tmp_path: Path) -> None:
    data = json.loads(render_config(layout.config))
    (component,) = data.pop("components")
    (tmp_path / "net" / "payload").mkdir(parents=True)
    shutil.copytree(layout.root / "made" / "golden", tmp_path / "net" / "payload" / component["golden"])
    (tmp_path / "net" / "payload" / "runtime.json").write_text(json.dumps({**data, **component, "schema": 3}))
    assert read_layout(tmp_path).config.sole == layout.config.sole


def test_what_is_reported_is_read_by_component(layout: Layout) -> None:
    (component,) = layout.config.components
    names = ("detect", "classify")
    components = tuple(dataclasses.replace(component, name=name) for name in names)
    recorded = layout.recorded[component.name]
    several = dataclasses.replace(
        layout,
        config=dataclasses.replace(layout.config, components=components),
        recorded=dict.fromkeys(names, recorded),
    )
    answer = {"variants": [report_of(component, recorded, component=name) for name in ("classify", "model")]}
    proofs = run_self_test(several, say(f"print({json.dumps(answer)!r})"))
    assert [(proof.component, proof.passed) for proof in proofs] == [("detect", False), ("classify", True)]
    assert proofs[0].reason == "the bundle did not report it"


def test_a_configuration_that_was_packed_to_fill_the_memory_is_not_unpacked(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "net-1.0-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr("net/payload/runtime.json", " " * 70_000_000)
    with pytest.raises(VerificationError) as caught:
        read_layout(tmp_path)
    assert "has 70000000 bytes" in caught.value.details[0]


def test_a_lock_that_is_no_text_is_a_damaged_bundle(layout: Layout) -> None:
    (layout.root / "requirements.lock").write_bytes(b"\xff\xfe")
    with pytest.raises(VerificationError, match="not a complete Python bundle"):
        _ = layout.lock
