"""Download size is reported for bundles that are visited, and for no others."""

import dataclasses
import json
import re

import pytest

from bundler.reporting.downloads import render_downloads
from bundler.reporting.report import render_report, write_report
from bundler.reporting.story import make_cards
from bundler.support.text import format_bytes
from tests.unit.reporting.builds import (
    change_manifest,
    change_report,
    make_downloads,
    make_manifest_of,
    make_report,
    make_request_of_several,
)
from tests.unit.reporting.test_report import words


@pytest.fixture
def data(manifest, request_of_build):
    """A build for browsers."""
    return make_report(manifest, request_of_build, downloads=make_downloads())


def with_budget(data, megabytes):
    return change_report(data, manifest=change_manifest(data.manifest, budget_mb={"download": megabytes}))


def section(page: str) -> str:
    found = re.search(r'<section aria-labelledby="downloads">.*?</section>', page, re.DOTALL)
    assert found is not None
    return found[0]


def test_the_page_tells_first_and_second_visit(data, snapshot):
    assert words(section(render_report(with_budget(data, 4.0)))) == snapshot


def test_the_headline_is_what_a_visitor_of_the_preferred_variant_fetches(data):
    text = words(render_report(data))
    assert "First visit3.1 MB with brotli, model 348 kB; a second visit loads it from the browser's cache" in text
    assert "Model size" not in text


def test_the_bars_of_all_visits_stand_on_one_scale(data):
    page = section(render_report(data))
    shares = [float(width) for width in re.findall(r'class="f0" x="0.0%" y="4" height="22" width="([\d.]+)%"', page)]
    assert len(shares) == 3
    assert shares[0] / shares[1] == pytest.approx(16_758_545 / 26_781_914, rel=0.01)
    assert 'class="gate"' not in page


def test_a_budget_is_drawn_where_there_is_one(data):
    assert section(render_report(with_budget(data, 5.0))).count('class="gate"') == 3
    assert "budget 5.0 MB with brotli, met" in words(section(render_report(with_budget(data, 5.0))))
    assert "First visit3.1 MB within 5.0 MB" in words(render_report(with_budget(data, 5.0)))


def test_the_visits_of_several_components_share_the_runtime(tmp_path):
    def of(component, item):
        files = [
            dataclasses.replace(file, path=f"{component}/{file.path}") if file.role == "model" else file
            for file in item.files
        ]
        return dataclasses.replace(item, component=component, files=tuple(files))

    request = make_request_of_several("detect", "recognise")
    downloads = tuple(of(name, item) for name in ("detect", "recognise") for item in make_downloads())
    data = make_report(make_manifest_of(tmp_path, request), request)
    card = make_cards(dataclasses.replace(data, downloads=downloads))[1]
    assert card.label == "First visit, all components"
    assert card.detail.startswith("with brotli, models 696 kB;")
    first = downloads[0]
    model = sum(file.brotli for file in first.files if file.role == "model")
    assert card.value == format_bytes(first.brotli + model)
    text = words(section(render_report(dataclasses.replace(data, downloads=downloads))))
    assert "detect/webgpu" in text
    assert "recognise/webgpu" in text


def test_nothing_of_it_is_shown_for_what_is_installed(data):
    installed = change_report(data, downloads=())
    text = words(render_report(installed))
    assert "visit" not in text
    assert "Model size" in text


def test_programs_get_every_figure(tmp_path, data):
    page = write_report(tmp_path, data)
    reported = json.loads((page.parent / "downloads.json").read_text())
    assert [visit["build"] for visit in reported["first_visits"]] == ["jspi", "asyncify", "wasm"]
    first = reported["first_visits"][0]
    assert first["brotli"] == sum(part["brotli"] for part in first["parts"].values())
    assert first["size"] == sum(file["size"] for file in first["files"])
    assert first["second_visit"] == 0


def test_an_installed_bundle_leaves_no_such_file(tmp_path, data):
    write_report(tmp_path, change_report(data, downloads=()))
    assert not (tmp_path / "downloads.json").exists()


def test_equal_downloads_are_reported_in_equal_words(snapshot):
    assert render_downloads(make_downloads()[-1:]) == snapshot


def test_a_variant_that_this_browser_lacks_stands_among_what_was_not_proven(data):
    proven, *_ = data.manifest.proof.variants
    reason = "ran with onnxruntime-web 1.30.0 in Chromium 156.0, on the software adapter"
    proof = dataclasses.replace(
        data.manifest.proof,
        variants=(
            dataclasses.replace(
                proven, variant="webnn", level="resolved", passed=None, reason="Chromium 156.0 cannot run it: no WebNN"
            ),
            dataclasses.replace(proven, variant="webgpu", reason=reason),
        ),
    )
    text = words(render_report(change_report(data, manifest=change_manifest(data.manifest, proof=proof))))
    assert "Variant webnn: not run (Chromium 156.0 cannot run it: no WebNN)." in text
    assert f"Variant webgpu: verified on the host that built it ({reason})." in text


def test_a_variant_that_was_proven_and_not_timed_is_named(data):
    proven, *_ = data.manifest.proof.variants
    variants = (proven, dataclasses.replace(proven, variant="webgpu"))
    proof = dataclasses.replace(data.manifest.proof, variants=variants)
    text = words(render_report(change_report(data, manifest=change_manifest(data.manifest, proof=proof))))
    assert "Variant webgpu was not timed here." in text
    assert "Variant cpu was not timed here." not in text
