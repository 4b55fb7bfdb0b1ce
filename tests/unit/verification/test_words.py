"""What people read of a verification: what ran where, at which level, what did not and why."""

from dataclasses import replace

import pytest

from bundler.cli.printing import LONGEST_LINE, printable
from bundler.emitters.verified import POINTER, README, write_verification
from bundler.model.proof import RanOn, VariantProof
from bundler.verification.proof import LEVELS, combine_proofs
from bundler.verification.words import (
    BUILDING_HOST,
    describe_variants,
    describe_verification,
    name_verification,
    same_levels,
)


def prove(variant, level="executed", *, passed=True, reason="", **where):
    return VariantProof(
        variant=variant, level=level, passed=passed, comparison=None, reason=reason, figures={}, **where
    )


HTP = prove("htp", "emulated", place="in Qualcomm QNN's emulator")
GPU = prove("gpu", passed=None, reason="its context is generated on the device")
CPU = prove("cpu")


def test_each_variant_is_reported_with_the_place_where_it_ran_or_why_it_did_not():
    assert describe_verification(combine_proofs([HTP, GPU, CPU])) == (
        "Verified: htp: emulated in Qualcomm QNN's emulator",
        "Verified: cpu: executed on this host",
        "Not run: gpu: its context is generated on the device",
    )


def test_a_bundle_says_host_of_the_machine_that_built_it_and_not_of_the_readers():
    assert describe_verification(combine_proofs([CPU]), BUILDING_HOST) == (
        "Verified: cpu: executed on the host that built it",
    )


def test_the_host_that_built_it_has_a_system_and_a_processor():
    ran_on = RanOn(device="local", system="Linux", processor="x86_64", runtime="onnxruntime 1.31.1")
    record = combine_proofs([prove("cpu", means="Python 3.12", unrun=("Python 3.11",), ran_on=ran_on)])
    assert describe_verification(record, BUILDING_HOST) == (
        "Verified: cpu: executed on the host that built it, Python 3.12 (Linux on x86_64)",
        "Not run: cpu: with Python 3.11",
    )
    assert "x86_64" not in describe_verification(record)[0], "who verifies knows the own machine"
    assert record.variants[0].ran_on == ran_on


def test_a_variant_that_failed_ran_on_nothing_that_counts():
    ran_on = RanOn(device="local", system="Linux", processor="x86_64", runtime="onnxruntime 1.31.1")
    assert combine_proofs([prove("cpu", passed=False, ran_on=ran_on)]).variants[0].ran_on is None


def test_a_stand_in_is_not_reported_as_the_device():
    (line,) = describe_verification(combine_proofs([prove("cpu", "stand-in")]))
    assert line == "Stand-in: cpu: ran on this host in place of the device"
    assert name_verification(combine_proofs([prove("cpu", "stand-in")])) == "Stand-in"


def test_a_stand_in_that_could_not_be_compared_is_not_reported_as_the_device():
    record = combine_proofs([prove("cpu", "stand-in")], {"model": {"y": "it differs from run to run"}})
    (line,) = describe_verification(record)
    assert line.startswith("Unchecked: cpu: ran-unchecked on this host in place of the device (")
    assert " in place of the device " in describe_variants(record.variants, BUILDING_HOST, record.variants)[0]


def test_what_it_was_not_run_with_is_reported_beside_what_it_was():
    unrun = ("Python 3.11", "Python 3.13")
    cpu = prove("cpu", means="Python 3.12", unrun=unrun)
    wasm = prove("wasm", place="in Chromium", unrun=("Node.js",))
    assert describe_verification(combine_proofs([cpu, wasm])) == (
        "Verified: cpu: executed on this host, Python 3.12",
        "Verified: wasm: executed in Chromium",
        "Not run: cpu: with Python 3.11, Python 3.13",
        "Not run: wasm: with Node.js",
    )
    alone = combine_proofs([prove("cpu", means="Python 3.12")])
    assert describe_verification(alone) == ("Verified: cpu: executed on this host",)


def test_what_ran_and_could_not_be_compared_is_not_called_verified():
    record = combine_proofs([prove("cpu", "ran-unchecked", reason="output 'noise' is random")])
    assert describe_verification(record) == ("Unchecked: cpu: ran-unchecked on this host (output 'noise' is random)",)
    assert name_verification(record) == "Unchecked"


def test_what_failed_is_not_called_verified():
    assert describe_verification(combine_proofs([prove("cpu", passed=False, reason="off by 2")])) == (
        "Failed: cpu: off by 2",
    )


def test_a_reason_that_several_share_is_reported_once():
    left = [prove(name, passed=None, reason="no browser") for name in ("webgpu", "wasm")]
    other = prove("webnn", passed=None, reason="no WebNN")
    assert describe_verification(combine_proofs([*left, other])) == (
        "Not run: webgpu, wasm: no browser",
        "Not run: webnn: no WebNN",
    )


def of(component, proof):
    return replace(proof, component=component)


def test_variants_of_several_components_bear_their_names_and_share_what_is_said_of_them():
    proofs = [of("detect", CPU), of("recognise", CPU)]
    assert describe_verification(combine_proofs(proofs)) == (
        "Verified: detect/cpu, recognise/cpu: executed on this host",
    )
    more = [of("detect", HTP), of("detect", CPU), of("recognise", GPU), of("recognise", CPU)]
    assert describe_verification(combine_proofs(more)) == (
        "Verified: detect/htp: emulated in Qualcomm QNN's emulator",
        "Verified: detect/cpu, recognise/cpu: executed on this host",
        "Not run: recognise/gpu: its context is generated on the device",
    )


def test_the_only_component_is_not_named():
    assert describe_verification(combine_proofs([of("detect", CPU)])) == ("Verified: cpu: executed on this host",)


def test_what_one_component_cannot_judge_is_no_doubt_of_another():
    record = combine_proofs([of("detect", CPU), of("recognise", CPU)], {"recognise": {"y": "it is random"}})
    assert [variant.level for variant in record.variants] == ["executed", "ran-unchecked"]
    assert record.level == "ran-unchecked"
    failed = combine_proofs([of("detect", CPU), of("recognise", prove("cpu", passed=False, reason="off by 2"))])
    assert failed.reason == "variant recognise/cpu failed its golden set: off by 2"


def test_without_a_proof_nothing_is_claimed():
    assert describe_verification(combine_proofs([])) == (
        "Not run: the bundle was built without verification (--no-prove)",
    )
    assert name_verification(combine_proofs([])) == "Not run"


@pytest.mark.parametrize(
    ("proofs", "name"),
    [([CPU], "Verified"), ([CPU, GPU], "Verified in part"), ([GPU], "Not run"), ([CPU, HTP], "Verified")],
)
def test_a_bundle_of_which_a_part_was_not_run_is_verified_in_part(proofs, name):
    assert name_verification(combine_proofs(proofs)) == name


@pytest.mark.parametrize("level", [level for level in LEVELS if level != "resolved"])
def test_a_level_is_shown_by_its_name(level):
    record = combine_proofs([prove("first", level, reason="as it says", place="in a box")])
    (line,) = describe_verification(record)
    assert level in line.lower()


def test_two_verifications_are_the_same_when_each_variant_reached_the_same():
    first, second = combine_proofs([HTP, CPU]).variants, combine_proofs([CPU, HTP]).variants
    assert same_levels(first, second)
    assert not same_levels(first, combine_proofs([CPU, GPU]).variants)


EVIL = "x\x1b[2J\x1b]0;t\x07<script>alert(1)</script>\n- Verified: **all**\u202e"


def test_what_a_device_calls_itself_is_text_on_a_terminal_and_in_a_readme(tmp_path):
    """A board far away says what it is; so does the manifest of a stranger's bundle."""
    ran_on = RanOn(device=EVIL, system=EVIL, processor=EVIL, runtime=EVIL)
    reported = prove("cpu", place=EVIL, means=EVIL, unrun=(EVIL,), ran_on=ran_on)
    lines = describe_verification(combine_proofs([reported]), BUILDING_HOST)
    (tmp_path / README).write_text(POINTER, "utf-8")
    write_verification(tmp_path, lines)
    shown = (tmp_path / README).read_text("utf-8").splitlines()
    assert len(shown) == len(lines)
    assert all("<script>" not in line and "**" not in line and line.isprintable() for line in shown)
    assert all(printable(reported, LONGEST_LINE).isprintable() for reported in lines), (
        "what verify prints of another's bundle"
    )
