"""The generated part of a package: what it looks like, and that no name can break it."""

from __future__ import annotations

import ast
import dataclasses
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from bundler.emitters.contract import EmitRequest
from bundler.emitters.python.context import make_context
from bundler.emitters.rendering import make_environment
from bundler.model.requirements import Need
from bundler.model.signature import Port, Signature, ValueType
from bundler.support.data import data_root
from tests.support import models
from tests.support.bundles import combine_requests, make_request, sole_component, with_component, with_variants
from tests.unit.support.test_text import HOSTILE, texts

DIGEST = "0" * 64
MIXED = Signature(
    inputs=(
        Port(name="input:0", type=ValueType(element_type="float32", shape=("batch", 3, None))),
        Port(name="class", type=ValueType(element_type="str", shape=())),
        Port(name="bias", type=ValueType(element_type="bfloat16", shape=None), optional=True),
    ),
    outputs=(
        Port(name="count", type=ValueType(element_type="int64", shape=("batch",))),
        Port(
            name="probabilities",
            type=ValueType(
                kind="sequence",
                element=ValueType(kind="map", key_type="int64", element=ValueType(element_type="float32", shape=())),
            ),
        ),
        Port(name="rest", type=ValueType(kind="optional", element=ValueType(element_type="bool", shape=(2,)))),
        Port(name="odd", type=ValueType(kind="sparse_tensor", element_type="float32", shape=(4,))),
    ),
)

FIXED = Signature(
    inputs=tuple(Port(name=name, type=ValueType(element_type="float32", shape=(8, 3))) for name in ("left", "right")),
    outputs=(Port(name="scores", type=ValueType(element_type="float32", shape=(8,))),),
)


@pytest.fixture(scope="module")
def request_(tmp_path_factory: pytest.TempPathFactory) -> EmitRequest:
    return make_request(models.cnn(), tmp_path_factory.mktemp("facade"), name="tiny cnn")


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> EmitRequest:
    """A bundle of two models."""
    folder = tmp_path_factory.mktemp("several")
    requests = {}
    for name, model in (("detect", models.cnn()), ("classify", models.mlp(batch=4))):
        (folder / name).mkdir()
        requests[name] = make_request(model, folder / name, name=f"tiny {name}")
    return combine_requests(requests, name="ocr")


def with_signature(request: EmitRequest, signature: Signature, **changes: object) -> EmitRequest:
    config = dataclasses.replace(request.config, **changes)  # type: ignore[arg-type]
    return with_component(dataclasses.replace(request, config=config), signature=signature)


def with_needs(request: EmitRequest, *needs: Need) -> EmitRequest:
    """The sole variant has these requirements."""
    (variant,) = sole_component(request).variants
    requires = dataclasses.replace(variant.requires, needs=needs)
    return with_variants(request, dataclasses.replace(variant, requires=requires))


def render(request: EmitRequest, template: str = "facade.py.j2") -> str:
    context = make_context(request, DIGEST)
    fields = {field.name: getattr(context, field.name) for field in dataclasses.fields(context)}
    return make_environment(data_root("templates") / "python").get_template(template).render(fields)


def test_facade_of_a_plain_model(request_: EmitRequest, snapshot: SnapshotAssertion) -> None:
    assert render(request_) == snapshot


def test_facade_of_a_model_with_every_kind_of_value(request_: EmitRequest, snapshot: SnapshotAssertion) -> None:
    assert render(with_signature(request_, MIXED)) == snapshot


def test_facade_of_a_model_with_a_fixed_batch(request_: EmitRequest, snapshot: SnapshotAssertion) -> None:
    assert render(with_signature(request_, FIXED)) == snapshot


def test_facade_of_several_models(several: EmitRequest, snapshot: SnapshotAssertion) -> None:
    assert render(several) == snapshot


def test_readme_of_several_models(several: EmitRequest, snapshot: SnapshotAssertion) -> None:
    assert render(several, "README.md.j2") == snapshot


def test_start_of_several_models(several: EmitRequest) -> None:
    assert 'main(__package__ or "", Bundle.models)' in render(several, "main.py.j2")


def test_models_that_belong_together_are_documented(several: EmitRequest) -> None:
    bound = dataclasses.replace(several, config=dataclasses.replace(several.config, together=("detect", "classify")))
    words = "run on the variant of one name, or not at all"
    assert f"detect and classify belong together: they {words}" in render(bound, "README.md.j2")
    assert f"detect and classify {words}" in render(bound)


@pytest.mark.parametrize("format_", ["dir", "wheel", "pex"])
def test_readme(request_: EmitRequest, format_: str, snapshot: SnapshotAssertion) -> None:
    assert render(dataclasses.replace(request_, format=format_), "README.md.j2") == snapshot


def test_project_file(request_: EmitRequest, snapshot: SnapshotAssertion) -> None:
    assert render(request_, "pyproject.toml.j2") == snapshot


def many_ports(names: list[str], stem: str) -> tuple[Port, ...]:
    return tuple(Port(name=name or stem, type=ValueType(element_type="float32", shape=(name, 2))) for name in names)


@settings(max_examples=60, deadline=None)
@given(st.lists(texts, min_size=0, max_size=6), st.lists(texts, min_size=1, max_size=6), texts)
def test_no_name_breaks_the_facade(request_: EmitRequest, inputs: list[str], outputs: list[str], model: str) -> None:
    signature = Signature(inputs=many_ports(inputs, "i"), outputs=many_ports(outputs, "o"))
    request = with_signature(request_, signature, name=model)
    tree = ast.parse(render(request))
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    assert [node.name for node in classes] == ["Outputs", "Model"]
    run = next(node for node in classes[1].body if isinstance(node, ast.FunctionDef))
    pins = next(node for node in ast.walk(classes[1]) if isinstance(node, ast.Call)).keywords
    held = {keyword.arg: ast.literal_eval(keyword.value) for keyword in pins if keyword.arg != "file"}
    assert held["inputs"] == tuple(argument.arg for argument in run.args.kwonlyargs)
    assert len(held["inputs"]) == len(inputs)
    assert len(held["outputs"]) == len(outputs)
    assert len(run.body) == (3 if inputs else 2)
    tomllib.loads(render(request, "pyproject.toml.j2"))


ODD = ("a1", "a_1", "load_report", "detect", "detect_outputs", "np", "npt", "dict", "tuple", "property", "a" * 32)
"""Names of components that come near to what the facade uses itself."""


@pytest.fixture
def rendered(request_: EmitRequest, several: EmitRequest, tmp_path: Path) -> Path:
    """Packages as they are emitted: a plain one, one with every kind of value, one with hostile names, one that
    requires libraries of the device, one of several models, one of several with odd names and hostile ports.
    """
    hostile = Signature(inputs=many_ports(list(HOSTILE), "i"), outputs=many_ports(list(HOSTILE), "o"))
    signatures = {"plain": sole_component(request_).signature, "mixed": MIXED, "fixed": FIXED, "hostile": hostile}
    requests = {name: with_signature(request_, signature) for name, signature in signatures.items()}
    requests["needy"] = with_needs(requests["plain"], Need(what="driver", libraries=("libdriver.so.1",)))
    odd = combine_requests(dict.fromkeys(ODD, requests["hostile"]), name="odd")
    for name, request in {**requests, "several": several, "odd": odd}.items():
        package = tmp_path / name
        package.mkdir()
        (package / "__init__.py").write_text(render(request), "utf-8")
        (package / "_loader").symlink_to(data_root("templates") / "python" / "package" / "_loader")
    return tmp_path


def check(*command: str, folder: Path) -> None:
    done = subprocess.run([sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_rendered_code_passes_the_linter(rendered: Path) -> None:
    rules = "E,F,W,I,UP,B,C4,D,SIM,PL,ANN,PYI"
    ignored = "D203,D213,D205,D301,D413,D400,D401,D415,D105,D107,D212,PLR0913,E501"
    for name in ("plain", "mixed", "fixed", "hostile", "needy", "several", "odd"):
        options = ("--isolated", "--no-cache", "--target-version", "py311", "--select", rules, "--ignore", ignored)
        check("ruff", "check", *options, f"{name}/__init__.py", folder=rendered)


def test_rendered_code_is_formatted(rendered: Path) -> None:
    for name in ("plain", "mixed", "fixed", "needy", "several"):
        options = ("--isolated", "--no-cache", "--line-length", "120", "--check", "--diff")
        check("ruff", "format", *options, f"{name}/__init__.py", folder=rendered)


USE_SEVERAL = """
import numpy as np
import numpy.typing as npt
from several import Bundle, ClassifyOutputs, Detect, DetectOutputs

def f(bundle: Bundle, x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    out: DetectOutputs = bundle.detect.run(image=x)
    alone: Detect = Detect(threads=1)
    return out.scores + alone.run(image=x).scores

def g(x: npt.NDArray[np.float32]) -> ClassifyOutputs:
    with Bundle.open(only=["classify"], lazy=True, threads=2) as bundle:
        print(bundle.report["classify"].variant, bundle.self_test()["classify"].passed)
        return bundle.classify.run(x=x)
"""


def test_rendered_code_passes_the_type_checker(rendered: Path) -> None:
    use = "from plain import Model, Outputs\nimport numpy as np\nimport numpy.typing as npt\n"
    use += "def f(x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:\n    out: Outputs = Model().run(image=x)\n"
    (rendered / "use.py").write_text(use + "    return out.scores\n", "utf-8")
    (rendered / "use_several.py").write_text(USE_SEVERAL, "utf-8")
    (rendered / "misuse.py").write_text("from several import Bundle\nBundle.open().recognise\n", "utf-8")
    options = (
        "--strict",
        "--disable-error-code",
        "import-untyped",
        "--no-incremental",
        "--cache-dir",
        str(rendered / "cache"),
    )
    packages = [text for name in ("plain", "mixed", "fixed", "hostile", "several", "odd") for text in ("-p", name)]
    check("mypy", *options, *packages, "-m", "use", "-m", "use_several", folder=rendered)
    with pytest.raises(AssertionError, match='"Bundle" has no attribute "recognise"'):
        check("mypy", *options, "-m", "misuse", folder=rendered)
