"""bundle.json: what people and programs read there, and what a damaged one leads to."""

import dataclasses
import json
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bundler.model.codec import encode
from bundler.model.errors import VerificationError
from bundler.model.manifest import GoldenRecord
from bundler.model.runtime import SOLE
from bundler.reporting.checks import check_output, make_checks
from bundler.reporting.drift import merge_steps
from bundler.reporting.figures import word_figures
from bundler.reporting.manifest import make_manifest, read_manifest, render_manifest, write_manifest
from bundler.verification.integrity import require_integrity
from bundler.verification.words import describe_samples
from tests.unit.reporting.builds import change_manifest, make_output, make_request, write_bundle


def test_the_manifest_as_people_read_it(manifest, snapshot):
    text = render_manifest(change_manifest(manifest, bundler="0.0.0"))
    assert text.endswith("}\n")
    assert text == snapshot


def test_reading_gives_what_was_written(bundle, manifest):
    write_manifest(bundle, manifest)
    assert encode(read_manifest(bundle)) == encode(manifest)


def test_a_written_bundle_is_sound(bundle, manifest):
    write_manifest(bundle, manifest)
    assert require_integrity(bundle).checked == len(manifest.files) == 3


def test_time_machine_and_order_of_arrival_leave_no_trace(bundle, manifest, request_of_build):
    later = [
        dataclasses.replace(
            outcome, seconds=99.0, cached=True, ingredients={**outcome.ingredients, "machine": "aarch64"}
        )
        for outcome in reversed(request_of_build.components[SOLE].outcomes)
    ]
    changed = dataclasses.replace(request_of_build.components[SOLE], outcomes=later)
    again = make_manifest(bundle, dataclasses.replace(request_of_build, components={SOLE: changed}))
    assert render_manifest(again) == render_manifest(manifest)


def test_the_manifest_does_not_list_itself(bundle, manifest, request_of_build):
    write_manifest(bundle, manifest)
    assert make_manifest(bundle, request_of_build).files == manifest.files


@pytest.mark.parametrize(("value", "word"), [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")])
def test_a_figure_that_is_not_finite_is_null_with_a_word(value, word):
    check = check_output(dataclasses.replace(make_output("y", 0.1), max_absolute=value))
    assert check.max_absolute is None
    assert check.remark == f"max_absolute is {word}"
    assert check.mean_absolute == pytest.approx(0.1 / 7)


def test_why_outputs_could_not_be_compared_is_reported():
    check = check_output(dataclasses.replace(make_output("y", math.nan), mismatch="shape (1, 3) instead of (1, 4)"))
    assert check.remark == "shape (1, 3) instead of (1, 4)"


def test_equal_outputs_are_called_equal(manifest):
    assert manifest.sole.checks[0].equal
    assert manifest.sole.checks[0].outputs[0].remark == "bit-identical"


def test_comparisons_know_which_step_they_check(manifest):
    assert [check.after for check in manifest.sole.checks] == ["simplify", "cpu/optimize", "cpu/convert_ort"]


def test_facts_that_are_not_finite_become_words():
    assert word_figures({"a": [math.nan, (math.inf, 1.5)]}) == {"a": ["NaN", ["Infinity", 1.5]]}


@settings(max_examples=30, deadline=None)
@given(name=st.text(), output=st.text())
def test_any_name_survives_the_way_to_disk_and_back(tmp_path_factory, name, output):
    bundle = write_bundle(tmp_path_factory.mktemp("bundle"))
    manifest = make_manifest(bundle, make_request(name, output))
    write_manifest(bundle, manifest)
    again = read_manifest(bundle)
    assert again.sole.model.name == name
    assert again.sole.checks[0].outputs[0].name == output


@pytest.mark.parametrize("schema", [2, 3])
def test_an_older_manifest_is_that_of_one_component(bundle, manifest, schema):
    data = json.loads(render_manifest(manifest))
    (component,) = data.pop("components")
    old = {key: value for key, value in {**data, **component}.items() if key not in ("name", "budget_mb", "pipeline")}
    old["gate"]["budget_mb"] = {"bundle": 9.0}
    (bundle / "bundle.json").write_text(json.dumps({**old, "schema": schema}))
    again = read_manifest(bundle)
    assert again.components == manifest.components
    assert (again.schema, again.name, again.budget_mb) == (schema, "orientation", {"bundle": 9.0})


def test_half_a_surrogate_pair_does_not_break_the_file(bundle, manifest):
    write_manifest(bundle, change_manifest(manifest, package="a\ud800b"))
    assert read_manifest(bundle).package == "a?b"


def test_every_wrong_field_is_named(bundle, manifest):
    data = json.loads(render_manifest(manifest))
    data["components"][0]["variants"] = "none"
    data["proof"]["level"] = "perfect"
    data["files"][0]["size"] = "12"
    (bundle / "bundle.json").write_text(json.dumps(data))
    with pytest.raises(VerificationError) as caught:
        read_manifest(bundle)
    text = "\n".join(caught.value.details)
    assert "components.0.variants: " in text
    assert "proof.level: " in text
    assert "files.0.size: " in text


def test_a_missing_field_is_a_damaged_manifest(bundle, manifest):
    data = json.loads(render_manifest(manifest))
    del data["components"][0]["gate"]
    (bundle / "bundle.json").write_text(json.dumps(data))
    with pytest.raises(VerificationError, match="not a manifest"):
        read_manifest(bundle)


def test_a_newer_schema_asks_for_a_newer_bundler(bundle, manifest):
    write_manifest(bundle, change_manifest(manifest, schema=5))
    with pytest.raises(VerificationError, match="schema 5; this bundler reads up to 4"):
        read_manifest(bundle)


def test_a_comparison_may_stand_under_its_own_fact(request_of_build):
    wrapped = [
        dataclasses.replace(outcome, facts={"comparison": outcome.facts}) if outcome.stage == "compare" else outcome
        for outcome in request_of_build.components[SOLE].outcomes
    ]
    assert make_checks(request_of_build.plan.components[0], wrapped) == make_checks(
        request_of_build.plan.components[0], request_of_build.components[SOLE].outcomes
    )


@pytest.mark.parametrize(("count", "each", "values"), [(9, 1, 9), (64, 1, 64), (65, 2, 33), (256, 4, 64)])
def test_the_steps_of_a_stream_are_few_enough_to_ship(count, each, values):
    ratios = (None, *(100.0 - step for step in range(1, count)))
    check = check_output(dataclasses.replace(make_output("y", 0.1), step_sqnr_db=ratios))
    assert (check.steps_each, len(check.step_sqnr_db)) == (each, values)
    assert check.step_sqnr_db[0] == (None if each == 1 else 100.0 - (each - 1))
    assert check.step_sqnr_db[-1] == 101.0 - count


def test_an_output_that_was_compared_in_fewer_steps_hides_no_other():
    outputs = [
        dataclasses.replace(make_output("y", 0.1), step_sqnr_db=ratios) for ratios in ((50.0, 40.0, 30.0), (45.0, None))
    ]
    assert merge_steps(outputs) == [45.0, 40.0, 30.0]


def golden(**changes):
    return GoldenRecord(**{"samples": 8, "inputs": "seeded"} | changes)


@pytest.mark.parametrize(
    ("record", "line"),
    [
        (golden(), "8 synthetic, no real data: use --samples"),
        (
            golden(sizes={"batch": (1, 2), "height": (32, 64)}),
            "8 synthetic, no real data: use --samples; sizes batch 1, 2; height 32, 64",
        ),
        (golden(stream=True), "8 steps of a stream, synthetic, no real data: use --samples"),
        (golden(inputs="samples"), "8, given with --samples"),
        (golden(inputs="like-samples", judging=40), "8 synthetic, similar to the 40 given with --samples"),
        (golden(sizes={"a\x1b": (1,)}), "8 synthetic, no real data: use --samples; sizes a\\x1b 1"),
    ],
)
def test_a_line_says_what_the_figures_are_of(manifest, record, line):
    (component,) = manifest.components
    told = replace(manifest, components=(replace(component, golden=record),))
    assert list(describe_samples(told)) == [f"Samples: {line}"]
    both = replace(told, components=(told.components[0], replace(told.components[0], name="other")))
    assert list(describe_samples(both))[1] == f"Samples: other: {line}"
