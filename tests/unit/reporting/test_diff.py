"""`bundler diff A B` tells what differs and nothing else."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bundler.model.artifacts import FileRecord
from bundler.model.codec import encode
from bundler.model.errors import VerificationError
from bundler.model.manifest import GoldenOutput, GoldenRecord
from bundler.model.plan import Decision
from bundler.reporting.diff import diff_bundles, diff_manifests, render_diff
from bundler.reporting.manifest import write_manifest
from tests.unit.reporting.builds import change_manifest, make_manifest_of, make_request_of_several, sha


@pytest.fixture
def other(manifest):
    """The same model one runtime later, spinning threads allowed, and a little worse."""
    variant = dataclasses.replace(
        manifest.sole.variants[0],
        session={"intra_op_num_threads": 2},
        session_config={},
        disabled_optimizers=("Nchwc",),
    )
    provider = dataclasses.replace(variant.providers[0], options={"use_arena": "0"})
    last = manifest.sole.checks[-1]
    worse = dataclasses.replace(last.outputs[0], max_absolute=3e-5, sqnr_db=88.0)
    first, *middle, _ = manifest.files
    stages = [
        dataclasses.replace(stage, facts={"operators": {"Conv": 63}}) if stage.step == "cpu/convert_ort" else stage
        for stage in manifest.sole.stages
    ]
    return change_manifest(
        manifest,
        runtime=dataclasses.replace(manifest.runtime, version="1.32.0"),
        variants=(dataclasses.replace(variant, providers=(provider,)),),
        checks=(*manifest.sole.checks[:-1], dataclasses.replace(last, outputs=(worse,))),
        decisions=(
            *manifest.sole.decisions[:-1],
            Decision(subject="model format", choice="onnx", reason="it is large"),
        ),
        proof=dataclasses.replace(manifest.proof, level="resolved", variants=()),
        stages=tuple(stages),
        files=(
            dataclasses.replace(first, size=700, sha256=sha("new")),
            *middle,
            FileRecord(path="golden/\x1b[31mred.bin", size=12, sha256=sha("g")),
        ),
    )


def test_the_difference_as_people_read_it(manifest, other, snapshot):
    assert render_diff(diff_manifests(manifest, other, names=("a", "b"))) == snapshot


@pytest.fixture
def several(tmp_path):
    def make(*names):
        return make_manifest_of(tmp_path / "-".join(names), make_request_of_several(*names))

    return make


def test_several_components_are_compared_by_name(several, snapshot):
    """One is there on one side alone, one is called otherwise, and one has another option."""
    before, after = several("detect", "classify", "recognise"), several("detect", "recognise", "orient")
    detect, recognise, orient = after.components
    variant = dataclasses.replace(detect.variants[0], session={"intra_op_num_threads": 2})
    renamed = dataclasses.replace(recognise, name="read")
    proofs = (
        dataclasses.replace(record, component="read") if record.component == "recognise" else record
        for record in after.proof.variants
    )
    changed = dataclasses.replace(
        after,
        components=(dataclasses.replace(detect, variants=(variant,)), renamed, orient),
        proof=dataclasses.replace(after.proof, variants=tuple(proofs)),
    )
    assert render_diff(diff_manifests(before, changed, names=("a", "b"))) == snapshot


def test_a_change_of_a_components_digest_alone_is_named(several):
    manifest = several("detect", "recognise")
    first, second = manifest.components
    step = dataclasses.replace(second.stages[0], key=sha("other"))
    other = dataclasses.replace(
        manifest, components=(first, dataclasses.replace(second, stages=(step, *second.stages[1:])))
    )
    text = render_diff(diff_manifests(manifest, other, names=("a", "b")))
    assert "bundle.json differs in: recognise: stages." in text


def test_two_copies_of_one_model_are_not_taken_for_a_renamed_one(several):
    before = several("detect", "classify")
    first, second = before.components
    twins = (
        dataclasses.replace(first, name="one"),
        dataclasses.replace(first, name="two"),
        dataclasses.replace(second),
    )
    text = render_diff(diff_manifests(before, dataclasses.replace(before, components=twins), names=("a", "b")))
    assert "component detect: detect.onnx → absent" in text
    assert "component one: absent → detect.onnx" in text


def test_a_bundle_of_one_model_beside_one_of_several_finds_its_model(several, manifest):
    other = several("detect", "recognise")
    sole = dataclasses.replace(manifest, components=(dataclasses.replace(other.components[0], name="model"),))
    text = render_diff(diff_manifests(sole, other, names=("a", "b")))
    assert "has component recognise in addition" in text
    assert "calls model detect" in text


NAMES = st.lists(
    st.sampled_from(["detect", "classify", "recognise", "\x1b[2J", "", "model", "detect → read"]), max_size=3
)


@settings(max_examples=60)
@given(before=NAMES, after=NAMES)
def test_components_of_any_names_can_be_compared(tmp_path_factory, before, after):
    """A manifest of somebody else may give a name twice, none, or none that is a name."""
    manifest = make_manifest_of(tmp_path_factory.mktemp("bundle"), make_request_of_several("detect", "recognise"))

    def name(names):
        parts = (manifest.components[len(own) % 2] for own in names)
        return dataclasses.replace(
            manifest,
            components=tuple(dataclasses.replace(part, name=own) for part, own in zip(parts, names, strict=True)),
        )

    one, other = name(before), name(after)
    diff = diff_manifests(one, other, names=("a", "b"))
    assert diff.same is (before == after)
    assert "\x1b" not in render_diff(diff)


def test_equal_bundles_are_called_the_same(bundle, manifest):
    write_manifest(bundle, manifest)
    diff = diff_bundles(bundle, bundle)
    assert diff.same
    assert "The manifests are the same." in render_diff(diff)


@pytest.fixture
def change(manifest):
    """What a person reads of `manifest` and the same with some of its fields replaced."""

    def change(**changes):
        diff = diff_manifests(manifest, change_manifest(manifest, **changes), names=("a", "b"))
        assert not diff.same
        return render_diff(diff)

    return change


def test_a_change_of_a_reason_a_place_the_golden_set_or_a_reservation_is_shown(manifest, change):
    first, *others = manifest.sole.decisions
    decisions = (dataclasses.replace(first, reason="new"), *others)
    assert f"{first.subject}, reason: {first.reason} → new" in change(decisions=decisions)
    variant, *rest = manifest.proof.variants
    proof = dataclasses.replace(manifest.proof, variants=(dataclasses.replace(variant, place="QEMU", means="m"), *rest))
    text = change(proof=proof)
    assert "variant cpu place: absent → QEMU" in text
    assert "variant cpu means: absent → m" in text
    assert "not for shipping: absent → made up ranges" in change(reservations=("made up ranges",))
    golden = GoldenRecord(
        samples=3, inputs="samples", outputs=(GoldenOutput(name="y", elements=7, unjudged="constant"),)
    )
    text = change(golden=golden)
    assert "Golden set" in text
    assert "y not judged: absent → constant" in text


def test_a_change_in_no_section_is_named_by_its_key(manifest, change):
    assert "bundle.json differs in: payload." in change(payload="elsewhere")
    step, *rest = manifest.sole.stages
    assert "bundle.json differs in: stages." in change(stages=(dataclasses.replace(step, key=sha("other")), *rest))


def test_bundles_that_were_run_on_other_devices_are_not_the_same(manifest):
    variant, *rest = manifest.proof.variants
    elsewhere = dataclasses.replace(variant, ran_on=dataclasses.replace(variant.ran_on, processor="\x1b[2Jaarch64"))
    proof = dataclasses.replace(manifest.proof, variants=(elsewhere, *rest))
    diff = diff_manifests(manifest, change_manifest(manifest, proof=proof), names=("a", "b"))
    assert not diff.same
    assert "Linux on \\x1b[2Jaarch64" in render_diff(diff)


def test_programs_get_the_same_as_json(manifest, other):
    data = encode(diff_manifests(manifest, other, names=("a", "b")))
    assert {"subject": "runtime", "before": "onnxruntime 1.31.1", "after": "onnxruntime 1.32.0"} in data["identity"]
    assert {"path": "README.md", "before": 900, "after": 700} in data["files"]


def test_a_diff_turned_round_tells_the_opposite(manifest, other):
    forth = diff_manifests(manifest, other, names=("a", "b"))
    back = diff_manifests(other, manifest, names=("b", "a"))
    assert {(c.subject, c.before, c.after) for c in forth.session} == {
        (c.subject, c.after, c.before) for c in back.session
    }
    assert {(f.path, f.before, f.after) for f in forth.files} == {(f.path, f.after, f.before) for f in back.files}


def test_terminal_codes_in_names_are_not_obeyed(manifest, other):
    text = render_diff(diff_manifests(manifest, other, names=("a\x1b[2J", "b")))
    assert "\x1b" not in text
    assert "\\x1b[31mred.bin" in text


def test_what_is_no_bundle_cannot_be_compared(bundle, manifest, tmp_path):
    write_manifest(bundle, manifest)
    with pytest.raises(VerificationError, match="is not a bundle"):
        diff_bundles(bundle, tmp_path / "nothing")


def test_an_output_that_cannot_be_judged_is_equal_to_nothing(manifest):
    last = manifest.sole.checks[-1]
    output = dataclasses.replace(last.outputs[0], equal=True, unjudged="it is empty in every sample")
    other = change_manifest(manifest, checks=(*manifest.sole.checks[:-1], dataclasses.replace(last, outputs=(output,))))
    reported = render_diff(diff_manifests(manifest, other, names=("a", "b")))
    assert "not judged: it is empty in every sample" in reported
    assert "absent → bit-identical" not in reported
