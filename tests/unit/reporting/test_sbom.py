"""The bill of materials is valid CycloneDX, complete, and the same on any day."""

import json
import subprocess
import sys
import uuid
from dataclasses import replace

import pytest
from cyclonedx.output.json import BY_SCHEMA_VERSION
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.licenses import _spdx

from bundler.model.artifacts import FileRecord
from bundler.model.manifest import ModelRecord, RuntimeRecord
from bundler.model.runtime import SOLE
from bundler.reporting.notices import render_notices
from bundler.reporting.sbom import render_sbom
from tests.unit.reporting.builds import join_components, make_component, make_config, make_dependency, make_facts, sha
from tests.unit.reporting.library_bill import reference_of, render_by_library

NUMPY = make_dependency(
    name="numpy",
    version="2.4.0",
    licence="BSD-3-Clause AND MIT",
    licence_text="Copyright NumPy Developers",
    purl="pkg:pypi/numpy@2.4.0",
    sha256=sha("numpy"),
    file="wheels/numpy.whl",
)
ODD = make_dependency(
    name="vendor blob", licence="Vendor licence, see file", purl="pkg:generic/blob@1", sha256=None, file=None
)
VENDORED = (make_dependency(), NUMPY, ODD)


def render(components=VENDORED, name="orientation-linux-x64", model="orientation"):
    return render_sbom(
        name=name,
        version="1.0.0",
        config=make_config(make_facts(model)),
        models={SOLE: ModelRecord(name=model, digest=sha("the model"), size=585_532)},
        runtime=RuntimeRecord(package="onnxruntime", version="1.31.1"),
        dependencies=components,
    )


SPDX_IDS = sorted({item["id"] for item in (*_spdx.LICENSES.values(), *_spdx.EXCEPTIONS.values())})
WORDS = st.sampled_from(
    [
        *SPDX_IDS,
        "MIT",
        "mit",
        "Apache-2.0",
        "BSD",
        "3-Clause",
        "License",
        "LicenseRef-own",
        "MIT+",
        "",
        "(",
        ")",
        "and",
        "é",
    ]
)
JOINTS = st.sampled_from([" AND ", " or ", " WITH ", " ", "  ", "(", ")", " AND (", ") OR "])
LICENCES = st.lists(st.tuples(WORDS, JOINTS), max_size=3).map(lambda parts: "".join(map("".join, parts)))


def list_records(paths):
    return tuple(FileRecord(path=path, size=1, sha256=sha(path)) for path in sorted(paths))


PARTS = st.builds(make_dependency, name=st.text(min_size=1), purl=st.just("pkg:pypi/part@1"), sha256=st.none())
COMPONENTS = st.builds(
    make_dependency,
    parts=st.lists(PARTS, max_size=2).map(tuple),
    name=st.text(),
    version=st.sampled_from(["1.0", "2", "10"]),
    licence=LICENCES | WORDS | st.builds("{}{}{}".format, WORDS, JOINTS, WORDS) | st.text(max_size=9),
    purl=st.sampled_from(["pkg:pypi/a@1", "pkg:pypi/B_c@2?x=%C3%A9", "pkg:generic/d", "pkg:maven/g/a@1#sub/path"]),
    sha256=st.sampled_from([None, sha("a"), sha("b")]),
    file=st.sampled_from([None, "wheels/a.whl", "b"]),
    files=st.sets(st.text(min_size=1), max_size=2).map(list_records),
)
REQUIRED = st.builds(
    make_dependency,
    purl=st.sampled_from(["pkg:npm/a@1", "pkg:maven/g/a@1"]),
    sha256=st.sampled_from([None, sha("a")]),
    file=st.none(),
    provided_by=st.text(min_size=1),
)


def place_parts(components):
    """Each part and file at a place of its own, as wheels and packages have them."""
    return [
        replace(
            whole,
            parts=tuple(replace(part, file=f"{at}.whl/{place}") for place, part in enumerate(whole.parts)),
            files=tuple(replace(record, path=f"{at}/{record.path}") for record in whole.files),
        )
        for at, whole in enumerate(components)
    ]


def check_against_library(components):
    """Whether the text is to the byte what the standard's own library writes."""
    ours = render(components)
    given = {
        "serial_number": uuid.UUID(json.loads(ours)["serialNumber"]),
        "name": "orientation-linux-x64",
        "version": "1.0.0",
        "config": make_config(make_facts("orientation")),
        "models": {SOLE: ModelRecord(name="orientation", digest=sha("the model"), size=585_532)},
        "runtime": RuntimeRecord(package="onnxruntime", version="1.31.1"),
    }
    last_of_each = {reference_of(component): component for component in components}
    assert ours == render_by_library(**given, dependencies=last_of_each.values())


@settings(max_examples=200)
@given(st.lists(COMPONENTS | REQUIRED, max_size=4).map(place_parts))
def test_the_text_is_that_of_the_library(components):
    check_against_library(components)


@pytest.mark.parametrize("form", ["{}", "{} AND MIT", "mit or ({})", "GPL-2.0-only WITH {}"])
def test_every_known_licence_is_written_as_the_library_writes_it(form):
    check_against_library(
        [make_dependency(licence=form.format(name), purl=f"pkg:generic/{place}") for place, name in enumerate(SPDX_IDS)]
    )


@settings(max_examples=50)
@given(st.lists(st.sampled_from(["detect", "classify", "recognise"]), min_size=2, unique=True), st.text(min_size=1))
def test_each_model_of_several_is_an_entry_of_its_own_as_the_library_writes_it(names, model):
    components = [make_component(make_facts(f"{name}{model}"), name) for name in names]
    given = {
        "name": "ocr-linux-x64",
        "version": "1.0.0",
        "config": join_components("ocr", *components),
        "models": {c.name: ModelRecord(name=c.model, digest=c.model_digest, size=5) for c in components},
        "runtime": RuntimeRecord(package="onnxruntime", version="1.31.1"),
        "dependencies": (NUMPY,),
    }
    text = render_sbom(**given)
    bill = json.loads(text)
    models = [entry for entry in bill["components"] if entry["type"] == "machine-learning-model"]
    assert {entry["bom-ref"] for entry in models} == {f"model:{name}" for name in names}
    assert JsonStrictValidator(SchemaVersion.V1_7).validate_str(text) is None
    assert text == render_by_library(serial_number=uuid.UUID(bill["serialNumber"]), **given)


def find(bill, name):
    return next(entry for entry in bill["components"] if entry["name"] == name)


def test_the_standard_accepts_it():
    assert JsonStrictValidator(SchemaVersion.V1_7).validate_str(render()) is None


def test_it_is_the_newest_version_that_the_library_writes():
    assert max(BY_SCHEMA_VERSION, key=lambda version: version.value) is SchemaVersion.V1_7
    assert json.loads(render())["specVersion"] == "1.7"


def test_order_and_clock_leave_no_trace():
    assert render(VENDORED) == render((*VENDORED[::-1], NUMPY))
    assert "timestamp" not in json.loads(render())["metadata"]


def test_the_serial_number_comes_from_the_content():
    first, second = json.loads(render()), json.loads(render(model="other"))
    assert uuid.UUID(first["serialNumber"].removeprefix("urn:uuid:")).version == 5
    assert first["serialNumber"] != second["serialNumber"]


def test_the_model_is_named_with_its_digest():
    model = find(json.loads(render()), "orientation")
    assert model["type"] == "machine-learning-model"
    assert model["hashes"] == [{"alg": "SHA-256", "content": sha("the model")}]


@pytest.mark.parametrize(
    ("name", "licences"),
    [
        ("onnxruntime", [{"license": {"id": "MIT"}}]),
        ("numpy", [{"expression": "BSD-3-Clause AND MIT"}]),
        ("vendor blob", [{"license": {"name": "Vendor licence, see file"}}]),
    ],
)
def test_licences_are_identifiers_where_the_standard_has_them(name, licences):
    found = find(json.loads(render()), name)["licenses"]
    stripped = [{key: value for key, value in entry.items() if key != "acknowledgement"} for entry in found]
    assert stripped == licences


def test_what_a_wheel_has_vendored_itself_stands_below_it():
    tomli = make_dependency(name="tomli", purl="pkg:pypi/tomli@1.2.3", sha256=None, file="numpy.whl/numpy/tomli")
    text = render((replace(NUMPY, parts=(tomli,)), ODD))
    assert JsonStrictValidator(SchemaVersion.V1_7).validate_str(text) is None
    bill = json.loads(text)
    assert [part["name"] for part in find(bill, "numpy")["components"]] == ["tomli"]
    assert "tomli" not in {part["name"] for part in bill["components"]}


def test_vendored_wheels_have_purl_and_digest():
    numpy = find(json.loads(render()), "numpy")
    assert numpy["purl"] == "pkg:pypi/numpy@2.4.0"
    assert numpy["hashes"] == [{"alg": "SHA-256", "content": sha("numpy")}]


def test_the_bundle_depends_on_all_that_it_holds():
    bill = json.loads(render())
    root = next(entry for entry in bill["dependencies"] if entry["ref"] == bill["metadata"]["component"]["bom-ref"])
    assert len(root["dependsOn"]) == 4


@settings(max_examples=25)
@given(name=st.text(min_size=1), licence=st.text())
def test_no_name_makes_it_invalid(name, licence):
    text = render((make_dependency(name=name, licence=licence),), name=name, model=name)
    assert JsonStrictValidator(SchemaVersion.V1_7).validate_str(text) is None


def test_notices_hold_each_licence_once(snapshot):
    twin = make_dependency(name="onnxruntime-extensions", licence="", purl="pkg:pypi/onnxruntime-extensions@1")
    silent = make_dependency(name="silent", licence_text="  \n")
    text = render_notices("orientation-linux-x64", (NUMPY, twin, make_dependency(), silent))
    assert text.count("MIT License") == 1
    assert text == snapshot


def test_notices_of_a_bundle_that_vendors_nothing():
    required = make_dependency(provided_by="the application")
    text = render_notices("net", (required,))
    assert "This bundle contains no third-party software" in text
    assert text.endswith("and does not contain them:\n\n  onnxruntime 1.31.1: MIT, from the application\n")


def test_a_licence_that_is_the_same_for_all_is_there_where_a_package_has_no_text():
    text = render_notices("net", (make_dependency(name="bare", licence="Apache-2.0", licence_text=""),))
    assert "TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION" in text


def test_what_others_provide_is_external():
    text = render((make_dependency(file=None, provided_by="Maven repositories"),))
    assert JsonStrictValidator(SchemaVersion.V1_7).validate_str(text) is None
    found = find(json.loads(text), "onnxruntime")
    assert found["isExternal"] is True
    assert found["properties"] == [{"name": "bundler:provided-by", "value": "Maven repositories"}]


def test_usual_licences_are_written_without_the_library():
    program = (
        "import sys; from bundler.reporting.sbom import _licence, preload; preload(); "
        "texts = ('MIT', 'BSD-3-Clause AND 0BSD AND MIT AND Zlib', 'Apache-2.0', 'MIT License', '3-Clause BSD'); "
        "found = [_licence(text) for text in texts]; "
        "print(len(found), *(name for name in sys.modules if name.startswith(('cyclonedx', 'license_expression'))))"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "5\n"
