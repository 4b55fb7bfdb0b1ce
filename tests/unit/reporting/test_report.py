"""The report shows what was measured, says what was not, and obeys no name that a model brings."""

import base64
import dataclasses
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bundler.model.golden_inputs import Weakness
from bundler.model.manifest import PipelineRecord
from bundler.model.measurement import Measurement
from bundler.model.plan import Decision
from bundler.model.proof import VariantProof
from bundler.model.results import Comparison
from bundler.model.runtime import SOLE
from bundler.model.stage import Note
from bundler.reporting.diff import diff_manifests, render_diff
from bundler.reporting.report import render_report, render_timings, write_report
from bundler.reporting.story import describe_proof, make_cards
from bundler.support.data import data_root
from tests.unit.reporting.builds import (
    change_manifest,
    change_report,
    make_downloads,
    make_manifest_of,
    make_output,
    make_report,
    make_request,
    make_request_of_several,
)

VOID = {"meta"}
ELEMENT_NAMES = """html head meta title style body header main footer section article div p h1 h2 h3 span bdi ul li dl
    dt dd table caption thead tbody tr th td details summary small code strong i svg rect line circle text tspan"""
ELEMENTS = frozenset(ELEMENT_NAMES.split())
ATTRIBUTE_NAMES = """lang charset http-equiv content name class id role aria-label aria-hidden aria-labelledby focusable
    scope open x y x1 x2 y1 y2 cx cy r rx width height text-anchor"""
ATTRIBUTES = frozenset(ATTRIBUTE_NAMES.split())
ATTACKS = (
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onload='alert(1)",
    "</title><svg onload=alert(1)>",
    "</style><style>@import url(//evil.example)</style>",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:alert(1)",
    "\u202egnp.exe\x1b[31m\0",
    "<!--",
    "]]>",
    "&lt;script&gt;",
)


class Reader(HTMLParser):
    """Collects what a browser would see, and checks that elements are closed in order."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.elements: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.text: list[str] = []
        self.ids: list[str] = []
        self._open: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.elements.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    def handle_comment(self, data):
        raise AssertionError(f"a comment: {data}")

    def close(self):
        super().close()
        assert not self._open


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    return reader


def words(page: str) -> str:
    return re.sub(r"\s+", " ", "".join(read(page).text))


@pytest.fixture
def data(manifest, request_of_build):
    return make_report(manifest, request_of_build)


def assert_harmless(page: str) -> None:
    reader = read(page)
    assert reader.elements <= ELEMENTS
    assert {name for name, _ in reader.attributes} <= ATTRIBUTES
    assert len(reader.ids) == len(set(reader.ids))
    outside = [value for name, value in reader.attributes if name in {"content", "id", "class", "role"}]
    assert not [value for value in outside if "//" in value or "javascript" in value]


def hostile_report(folder, attack):
    request = make_request(attack, attack, attack)
    manifest = make_manifest_of(folder, request)
    manifest = change_manifest(
        manifest,
        decisions=(Decision(subject=attack, choice=attack, reason=attack),),
        unstable_outputs=(attack,),
        files=tuple(dataclasses.replace(record, path=attack) for record in manifest.files),
        proof=dataclasses.replace(
            manifest.proof,
            reason=attack,
            variants=tuple(dataclasses.replace(v, variant=attack, reason=attack) for v in manifest.proof.variants),
        ),
    )
    facts = dataclasses.replace(request.components[SOLE].facts, operators={attack: 3})
    return make_report(
        manifest,
        request,
        facts=facts,
        unmeasured=attack,
        assignments={attack: {attack: 2}},
        phases={attack: 0.1},
        downloads=make_downloads(attack),
    )


@pytest.mark.parametrize("attack", ATTACKS)
def test_known_attacks_stay_text(tmp_path, attack):
    page = render_report(hostile_report(tmp_path, attack))
    assert_harmless(page)
    shown = words(page)
    assert attack.isprintable() is (attack in shown)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(attack=st.text(st.characters() | st.sampled_from("<>\"'&/{}%\\=` \n\0"), max_size=40))
def test_no_string_becomes_an_element_or_an_attribute(tmp_path_factory, attack):
    assert_harmless(render_report(hostile_report(tmp_path_factory.mktemp("bundle"), attack)))


def test_characters_that_turn_text_around_are_shown_as_escapes(tmp_path):
    page = render_report(hostile_report(tmp_path, "abc\u202egnp.exe\x1b"))
    assert "\u202e" not in page
    assert "\x1b" not in page
    assert "abc\\u202egnp.exe\\x1b" in page


def test_the_page_asks_nothing_of_the_network(data):
    page = render_report(data)
    assert_harmless(page)
    assert not re.search(r"https?:|url\(|@import|src=|href=|<script|<link", page)


def test_the_policy_allows_exactly_the_one_style_sheet(data):
    page = render_report(data)
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    assert style is not None
    assert style[1] == (data_root("templates") / "report" / "report.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert ("content", policy) in read(page).attributes


def test_the_headline_says_what_changed(data):
    text = words(render_report(data))
    assert "2.2 times faster" in text
    assert "no difference shown" in text
    assert "131 dB gate met" in text
    assert "original 586 kB" in text


def test_every_part_of_the_story_is_there(data):
    text = words(render_report(data))
    for heading in (
        "Size by stage",
        "Operators and nodes",
        "Nodes by provider",
        "Accuracy by stage",
        "Speed",
        "Decisions and reasons",
        "Notes and warnings",
        "What was verified",
        "What was not",
        "Build steps",
        "Files",
    ):
        assert heading in text
    assert "Synthetic inputs" in text
    assert "Dropped 7 Identity nodes" in text
    assert "Compare with the golden set, after Convert to ORT format" in text
    assert "higher levels bake the host's layout" in text


def test_what_was_not_measured_is_said_with_its_reason(data):
    bare = change_report(data, measurements=(), unmeasured="--no-prove was given", assignments={})
    text = words(render_report(bare))
    assert "Not measured: --no-prove was given." in text
    assert "Speed was not measured: --no-prove was given." in text
    assert "Not measured: no runtime reported the assignment of nodes to providers." in text
    assert "times faster" not in text


def test_a_slower_bundle_is_called_slower(data):
    slow = Measurement(name="x", variant="cpu", latency_ms=(3.0, 3.1) * 4, baseline_latency_ms=(2.0, 2.1) * 4)
    text = words(render_report(change_report(data, measurements=(slow,))))
    assert "1.5 times slower" in text


def test_a_brief_measurement_says_its_runs_and_how_to_get_more(data):
    few = Measurement(name="x", variant="cpu", latency_ms=(1.0, 1.1, 1.2), baseline_latency_ms=(2.0, 2.1))
    text = words(render_report(change_report(data, measurements=(few,), is_brief=True)))
    assert "original model 2.05 ms; medians of 2 and 3 runs" in text
    assert "The build spent about 0.5 s on it: bundler build --measure takes more runs, of every variant." in text
    assert "--measure" not in words(render_report(change_report(data, measurements=(few,))))


def test_too_few_runs_are_shown_and_claim_nothing(data):
    few = Measurement(name="x", variant="cpu", latency_ms=(1.0, 1.1), baseline_latency_ms=(2.0, 2.1))
    page = render_report(change_report(data, measurements=(few,)))
    assert "too few runs" in words(page)
    assert "times faster" not in words(page)
    assert page.count('class="dot') >= 4


def test_on_a_busy_machine_no_difference_is_claimed(data):
    (measured,) = data.components[0].measurements
    busy = dataclasses.replace(measured, others=0.5)
    text = words(render_report(change_report(data, measurements=(busy,))))
    assert "no difference shown, the machine was busy" in text
    assert "times faster" not in text


def test_measurements_that_are_not_finite_do_not_break_the_page(data):
    odd = Measurement(name="x", variant="cpu", latency_ms=(float("nan"),), baseline_latency_ms=(float("inf"), 0.0))
    assert_harmless(render_report(change_report(data, measurements=(odd,))))


def test_outputs_equal_to_the_bit_are_the_headline(data):
    checks = tuple(
        dataclasses.replace(
            check, equal=True, outputs=tuple(dataclasses.replace(o, equal=True, sqnr_db=None) for o in check.outputs)
        )
        for check in data.manifest.sole.checks
    )
    text = words(render_report(change_report(data, manifest=change_manifest(data.manifest, checks=checks))))
    assert "Equal bit-identical" in text
    assert "Bit-identical: every output, after Simplify, Optimise, Convert to ORT format." in text
    assert "Least signal-to-noise ratio" not in text


def test_what_could_not_be_judged_has_no_figures(data):
    """Answers of zero, or of dice, are reached without an error: that is no merit of a model."""
    why = "it is zero everywhere"
    checks = tuple(
        dataclasses.replace(
            check, outputs=tuple(dataclasses.replace(o, equal=True, unjudged=why) for o in check.outputs), equal=True
        )
        for check in data.manifest.sole.checks
    )
    unjudged = change_report(data, manifest=change_manifest(data.manifest, checks=checks))
    text = words(render_report(unjudged))
    assert "to the bit" not in text
    assert f"not judged: {why}" in text
    reported = accuracy_tile(unjudged)
    assert (reported.value, reported.tone) == ("Not judged", "none")


def report_several(folder, *names):
    request = make_request_of_several(*names)
    return make_report(make_manifest_of(folder, request), request)


def test_several_components_have_a_summary_and_a_part_each(tmp_path):
    page = render_report(report_several(tmp_path, "detect", "recognise"))
    assert_harmless(page)
    text = words(page)
    assert "ocr → linux-x64" in text
    assert re.search("Components ?2 ?detect, recognise", text)
    assert "Verified: detect/cpu, recognise/cpu: executed on the host that built it" in text
    order = ["detect.onnx", "What was verified", "detect detect.onnx", "note on detect", "recognise recognise.onnx"]
    places = [text.index(part) for part in (*order, "note on recognise", "Bundle steps", "All files with")]
    assert places == sorted(places)
    assert {"detect-speed", "recognise-speed", "components"} <= set(read(page).ids)
    assert "Model of detect" in text


def test_the_headline_of_several_is_the_least_accurate_of_them(tmp_path):
    data = report_several(tmp_path, "detect", "recognise")
    first, second = data.components
    noisy = dataclasses.replace(second, proofs=(proof_of("cpu", 42.0, component="recognise"),))
    card = make_cards(dataclasses.replace(data, components=(first, noisy)))[-1]
    assert (card.label, card.value) == ("Lowest accuracy", "SQNR 42 dB")
    assert card.detail.startswith("recognise: ")
    failed = dataclasses.replace(first.record, gate=dataclasses.replace(first.record.gate, passed=False))
    worst = make_cards(dataclasses.replace(data, components=(dataclasses.replace(first, record=failed), noisy)))[-1]
    assert worst.detail.startswith("detect: "), "a gate that was missed counts before every figure"


def test_what_the_users_pipeline_answered_was_verified(tmp_path):
    data = report_several(tmp_path, "detect", "recognise")
    record = PipelineRecord(
        variant="cpu",
        function="p.py:run",
        sha256="0" * 64,
        samples=12,
        equal=11,
        least=0.9,
        max_absolute=2e-6,
        absolute=0.0,
        relative=0.1,
    )
    manifest = dataclasses.replace(data.manifest, pipeline=(record,))
    proven, _ = describe_proof(dataclasses.replace(data, manifest=manifest))
    assert "p.py:run matches the original models on 11 of 12 samples; max difference 2e-06." in proven
    diff = diff_manifests(data.manifest, manifest, names=("a", "b"))
    assert "pipeline cpu equal: absent → 11" in render_diff(diff)


def test_a_component_that_was_not_timed_names_those_that_were(tmp_path):
    data = report_several(tmp_path, "detect", "recognise")
    untimed = dataclasses.replace(data.components[1], measurements=())
    text = words(render_report(dataclasses.replace(data, components=(data.components[0], untimed))))
    assert "Not measured: only detect was timed." in text
    assert "Variant recognise/cpu was not timed here." in text


def test_what_holds_for_every_component_is_said_once(tmp_path):
    data = report_several(tmp_path, "detect", "recognise")
    proven, unproven = describe_proof(data)
    assert "1 of 2 outputs were compared with the original model's after 3 stages; the rest cannot be judged." in proven
    odd = dataclasses.replace(data.components[1].record, unstable_outputs=("noise",))
    manifest = dataclasses.replace(data.manifest, components=(data.manifest.components[0], odd))
    _, unproven = describe_proof(dataclasses.replace(data, manifest=manifest))
    assert "recognise: Only names, types and shapes were compared for outputs of random operators: noise." in unproven


@pytest.mark.parametrize("attack", ATTACKS)
def test_known_attacks_stay_text_in_a_bundle_of_several(tmp_path, attack):
    data = report_several(tmp_path, "detect", "recognise")
    parts = [
        dataclasses.replace(
            part, record=dataclasses.replace(part.record, model=dataclasses.replace(part.record.model, name=attack))
        )
        for part in data.components
    ]
    manifest = dataclasses.replace(data.manifest, name=attack, components=tuple(part.record for part in parts))
    assert_harmless(render_report(dataclasses.replace(data, components=tuple(parts), manifest=manifest)))


def test_timings_name_the_component(tmp_path):
    timings = json.loads(render_timings(report_several(tmp_path, "detect", "recognise")))
    assert {step["component"] for step in timings["steps"]} == {"detect", "recognise"}
    assert [measured["component"] for measured in timings["measurements"]] == ["detect", "recognise"]
    assert list(timings["proofs"]) == ["detect/cpu", "recognise/cpu"]


def test_several_variants_are_distinguished(data):
    second = dataclasses.replace(data.components[0].plan.variants[0], name="gpu")
    plan = dataclasses.replace(data.components[0].plan, variants=(*data.components[0].plan.variants, second))
    faster = dataclasses.replace(data.components[0].measurements[0], variant="gpu")
    two = change_report(data, plan=plan, measurements=(*data.components[0].measurements, faster))
    text = words(render_report(two))
    assert "Steady-state latency, cpu" in text
    assert "Steady-state latency, gpu" in text
    assert "Optimisecpu" in text.replace(" ", "")


def test_a_bundle_of_a_model_that_nothing_changed(data):
    manifest = change_manifest(data.manifest, checks=(), decisions=())
    empty = change_report(data, manifest=manifest, outcomes=(), measurements=(), assignments={})
    text = words(render_report(empty))
    assert "Not compared: no stage changed the model." in text
    assert "No decisions." in text
    assert "No notes." in text


def test_warnings_come_before_notes(data):
    noisy = [
        dataclasses.replace(o, notes=(*o.notes, Note(text="beware", level="warning")))
        for o in data.components[0].outcomes
    ]
    text = words(render_report(change_report(data, outcomes=noisy)))
    assert text.index("beware") < text.index("Dropped 7")


def test_the_folder_holds_page_timings_and_log(tmp_path, data):
    page = write_report(tmp_path / "x.report", data)
    assert page.name == "report.html"
    assert sorted(path.name for path in page.parent.iterdir()) == ["build.log", "report.html", "timings.json"]
    assert (page.parent / "build.log").read_text().splitlines() == ["step simplify started", "step simplify finished"]


def test_timings_tell_every_run_and_its_spread(data):
    timings = json.loads(render_timings(data))
    measured = timings["measurements"][0]["latency_ms"]
    assert len(measured["values"]) == 60
    assert measured["spread"]["low"] <= measured["spread"]["median"] <= measured["spread"]["high"]
    assert timings["phases"] == {"emit": 1.4, "prove": 6.3}
    assert timings["steps"][0] == {
        "component": SOLE,
        "step": "inspect",
        "stage": "inspect",
        "seconds": 0.31,
        "cached": True,
    }


def proof_of(variant: str, decibels: float, **changes: object) -> VariantProof:
    output = dataclasses.replace(make_output("scores", 0.02), sqnr_db=decibels, worst_sqnr_db=decibels)
    reported = Comparison(samples=3, outputs=(output,))
    plain = VariantProof(variant=variant, level="executed", passed=True, comparison=reported, reason="", figures={})
    return dataclasses.replace(plain, **changes)


def accuracy_tile(data):
    return next(card for card in make_cards(data) if card.label == "Accuracy")


def test_the_headline_is_the_least_of_all_that_ran(data):
    reported = accuracy_tile(change_report(data, proofs=(proof_of("cpu", 52.0),)))
    assert reported.value == "SQNR 52 dB"
    assert "largest absolute error 0.02" in reported.detail
    assert "in place of" not in reported.detail


def test_what_ran_on_the_cpu_alone_is_said_in_the_headline(data):
    reported = accuracy_tile(data)
    assert reported.value == "SQNR 131 dB"
    assert reported.detail.endswith("; for cpu on the CPU instead of its provider")
    rehearsed = tuple(
        dataclasses.replace(step, options={"providers": [["ExampleProvider", {}]]})
        for step in data.components[0].plan.steps
    )
    assert (
        "CPU"
        not in accuracy_tile(
            change_report(data, plan=dataclasses.replace(data.components[0].plan, steps=rehearsed))
        ).detail
    )
    unproven = proof_of("cpu", 52.0, comparison=None, passed=None, level="resolved")
    assert accuracy_tile(change_report(data, proofs=(unproven,))).detail == reported.detail


def test_versions_that_were_not_run_stand_among_what_was_not_verified(data):
    proofs = (proof_of("cpu", 52.0, unrun=("Python 3.11", "Python 3.12")),)
    _, unproven = describe_proof(change_report(data, proofs=proofs))
    assert "Variant cpu: not run with Python 3.11, Python 3.12, which the bundle also supports." in unproven


def test_what_the_golden_set_cannot_show_was_not_verified(data):
    few = Weakness(kind="few-samples", name="", text="three samples are few")
    golden = dataclasses.replace(data.manifest.sole.golden, weaknesses=(*data.manifest.sole.golden.weaknesses, few))
    manifest = change_manifest(data.manifest, golden=golden, synthetic_inputs=True)
    _, unproven = describe_proof(change_report(data, manifest=manifest))
    assert "Output 'boxes' could not be judged: it is empty in every sample." in unproven
    assert "Three samples are few." in unproven
    assert sum("seeded" in line or "synthetic" in line for line in unproven) == 1


@pytest.mark.parametrize(
    ("unjudged", "reported"),
    [
        (("", ""), "Outputs were compared with the original model's after 3 stages."),
        (
            ("", "it is empty"),
            "1 of 2 outputs were compared with the original model's after 3 stages; the rest cannot be",
        ),
        (("it is NaN", "it is empty"), None),
    ],
)
def test_only_outputs_that_can_be_judged_are_said_to_be_compared(data, unjudged, reported):
    manifest = data.manifest
    outputs = tuple(
        dataclasses.replace(output, unjudged=why)
        for output, why in zip(manifest.sole.golden.outputs, unjudged, strict=True)
    )
    golden = dataclasses.replace(manifest.sole.golden, outputs=outputs)
    proven, _ = describe_proof(change_report(data, manifest=change_manifest(manifest, golden=golden)))
    lines = [line for line in proven if "compared with the original" in line]
    assert [line[: len(reported)] for line in lines] == [reported] if reported else not lines
