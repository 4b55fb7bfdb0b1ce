"""Several models in one bundle, from the command line and from a project file, to a verified Python bundle."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import pytest

from tests.support.altered_bundles import renew_digest
from tests.support.command_line import ONE_PYTHON, CommandLine
from tests.support.recurrent_models import make_frames, make_gru

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'
GROW = f"{HEAD} grow (float[n, 3] x) => (float[n, 3] y) <float factor = {{2.1}}> {{ y = Mul(x, factor) }}"
LEAN = f"{HEAD} lean (float[n, 3] x) => (float[n, 3] z) <float half = {{0.3}}> {{ y = Sin(x) z = Mul(y, half) }}"

PROJECT = """
targets = ["linux-x64"]

[[bundles]]
name = "pair"
models.grow.path = "grow.onnx"
models.lean.path = "lean.onnx"
pipeline = { python = "pipeline.py:run", samples = "pages" }

[overrides."*"]
python = { versions = %s }
"""

PIPELINE = """
def run(bundle, sample):
    grown = bundle.grow.run(x=sample["x"]).y
    return {"sum": grown.sum(), "rows": bundle.lean.run(x=grown).z}
"""


WEIGHTS = np.random.default_rng(1).normal(size=(600, 600)).astype(np.float32)
"""1.44 MB, which two models have in common."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("grow", GROW), ("lean", LEAN)):
        onnx.save(onnx.parser.parse_model(text), tmp_path / f"{name}.onnx")
    return tmp_path


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.quick
def test_models_with_names_become_one_verified_bundle(warm: CommandLine, folder: Path) -> None:
    models = [f"{name}={folder / name}.onnx" for name in ("grow", "lean")]
    arguments = ("--bundle", "pair", "-t", "linux-x64", "--set", ONE_PYTHON, "-o", folder / "out", "--dim", "n=2")
    built = warm.run("build", *models, *arguments).expect(0)
    assert "Verified  grow/cpu, lean/cpu: executed on this host" in built.out
    bundle = folder / "out" / "pair-linux-x64"
    manifest = read(bundle / "bundle.json")
    assert [component["name"] for component in manifest["components"]] == ["grow", "lean"]
    assert {(record["component"], record["level"]) for record in manifest["proof"]["variants"]} == {
        ("grow", "executed"),
        ("lean", "executed"),
    }
    config = read(bundle / "pair" / "payload" / "runtime.json")
    assert [component["golden"] for component in config["components"]] == ["golden/grow", "golden/lean"]
    assert [size["size"] for component in config["components"] for size in component["fixed_sizes"]] == [2, 2]
    code = (
        "import numpy as np; from pair import Bundle\n"
        "with Bundle.open() as bundle:\n"
        "    grown = bundle.grow.run(x=np.ones((2, 3), np.float32)).y\n"
        "    print(bundle.lean.run(x=grown).z.tolist())"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=bundle, capture_output=True, text=True, check=True, timeout=120
    )
    assert json.loads(ran.stdout) == [[pytest.approx(0.25896, abs=1e-4)] * 3] * 2
    operators = (folder / "out" / "pair-linux-x64.report" / "required_operators.config").read_text("utf-8")
    assert {line.split("{")[0] for line in operators.splitlines()[1:]} == {"ai.onnx;7;Sin", "ai.onnx;14;Mul"}
    shown = warm.run("verify", bundle).expect(0)
    assert "Verified  grow/cpu, lean/cpu: executed on this host" in shown.out


@pytest.mark.quick
def test_what_is_said_of_all_counts_files_once_and_names_those_that_are_meant(warm: CommandLine, folder: Path) -> None:
    plain = onnx.parser.parse_model(f"{HEAD} g (float[n, 600] x) => (float[n, 600] y) {{ y = MatMul(x, w) }}")
    plain.graph.initializer.append(onnx.numpy_helper.from_array(WEIGHTS, "w"))
    onnx.save(plain, folder / "wide.onnx")
    same = onnx.parser.parse_model(f"{HEAD} g (float[n, 3] x) => (float[n, 3] y) {{ z = Sub(x, x) y = Exp(z) }}")
    onnx.save(same, folder / "same.onnx")
    models = [f"{name}={folder / file}.onnx" for name, file in (("a", "wide"), ("b", "wide"), ("c", "same"))]
    arguments = ("--bundle", "trio", "-t", "linux-x64", "--set", ONE_PYTHON, "-o", folder / "out", "--dim", "n=2")
    built = warm.run("build", *models, *arguments).expect(0)
    assert "model 1.4 MB (was " in built.out
    manifest = read(folder / "out" / "trio-linux-x64" / "bundle.json")
    assert manifest["proof"]["level"] == "ran-unchecked"
    assert manifest["proof"]["reason"].endswith(": c/cpu")
    bill = read(folder / "out" / "trio-linux-x64" / "sbom.cdx.json")
    listed = [item["name"] for model in bill["components"] for item in model.get("properties", ())]
    named = {name.split(":")[2] for name in listed if name.startswith("bundler:variant:")}
    assert named == {"a/cpu", "b/cpu", "c/cpu"}


@pytest.mark.quick
def test_only_the_steps_of_the_model_that_changed_run_again(warm: CommandLine, folder: Path) -> None:
    models = [f"{name}={folder / name}.onnx" for name in ("grow", "lean")]
    arguments = ("--bundle", "pair", "-t", "linux-x64", "--set", ONE_PYTHON, "-o", folder / "out")
    warm.run("build", *models, *arguments, "--no-prove").expect(0)
    onnx.save(onnx.parser.parse_model(GROW.replace("{2.1}", "{2.5}")), folder / "grow.onnx")
    plan = warm.run("plan", *models, *arguments[:-2], "--json").expect(0).document
    states = {step["id"]: step["state"] for step in plan["steps"]}
    assert {state for step, state in states.items() if step.startswith("lean/")} == {"cached"}
    assert "cached" not in {state for step, state in states.items() if step.startswith("grow/")}


@pytest.mark.quick
def test_state_is_that_of_the_component_that_has_it(warm: CommandLine, folder: Path) -> None:
    onnx.save(make_gru(), folder / "gru.onnx")
    models = (f"hear={folder / 'gru.onnx'}", f"lean={folder / 'lean.onnx'}")
    arguments = ("--bundle", "pair", "-t", "linux-x64", "--set", ONE_PYTHON, "-o", folder / "out", "--state")
    warm.run("build", *models, *arguments, "h0=hn", "--dim", "n=2").expect(0)
    config = read(folder / "out" / "pair-linux-x64" / "pair" / "payload" / "runtime.json")
    state = {part["name"]: [link["input"] for link in part["state"]] for part in config["components"]}
    assert state == {"hear": ["h0"], "lean": []}


@pytest.mark.quick
def test_a_project_says_of_each_component_what_it_has(warm: CommandLine, folder: Path) -> None:
    """Equal state of both is not that of the one that has it."""
    onnx.save(make_gru(), folder / "gru.onnx")
    text = (PROJECT % ONE_PYTHON.partition("=")[2]).replace("grow.onnx", "gru.onnx").replace("pipeline =", "#")
    state = "".join(f'models.{name}.state = {{ h0 = "hn" }}\n' for name in ("grow", "lean"))
    (folder / "bundler.toml").write_text(text.replace("#", f"{state}#"))
    refused = CommandLine(cache=warm.cache, env=warm.env, cwd=folder).run("plan").expect(2)
    assert "the state does not fit the model" in refused.err


@pytest.mark.quick
def test_a_project_names_what_runs_all_models(warm: CommandLine, folder: Path) -> None:
    versions = ONE_PYTHON.partition("=")[2]
    (folder / "bundler.toml").write_text(PROJECT % versions)
    (folder / "pipeline.py").write_text(PIPELINE)
    (folder / "pages").mkdir()
    for number in range(2):
        np.savez(folder / "pages" / f"{number}.npz", x=np.full((1, 3), number, np.float32))
    here = CommandLine(cache=warm.cache, env=warm.env, cwd=folder)
    (planned,) = here.run("plan", "--json").expect(0).document["plans"]
    assert [step["id"] for step in planned["steps"] if step["state"] == "stale"] == ["pipeline/cpu"]
    built = here.run("build").expect(0)
    assert "pipeline.py:run matches the original models on 2 of 2 samples" in built.out
    (record,) = read(folder / "dist" / "pair-linux-x64" / "bundle.json")["pipeline"]
    assert (record["variant"], record["function"], record["equal"]) == ("cpu", "pipeline.py:run", 2)
    assert str(folder) not in json.dumps(record)
    bundle = folder / "dist" / "pair-linux-x64"
    assert (bundle / "pipeline.py").read_text(encoding="utf-8") == PIPELINE
    assert "from pipeline import run" in (bundle / "README.md").read_text(encoding="utf-8")


@pytest.mark.quick
def test_answers_that_change_with_the_bundle_keep_it_from_being_built(warm: CommandLine, folder: Path) -> None:
    """The pipeline sees a difference that is within every model's own gate."""
    (folder / "bundler.toml").write_text(
        (PROJECT % ONE_PYTHON.partition("=")[2]).replace('"pages" }', '"pages", absolute = 0, relative = 0 }')
        + '\n[overrides."*".precision]\nmethod = "fp16"\n'
    )
    (folder / "pipeline.py").write_text(PIPELINE)
    (folder / "pages").mkdir()
    np.savez(folder / "pages" / "0.npz", x=np.full((1, 3), 0.1, np.float32))
    refused = CommandLine(cache=warm.cache, env=warm.env, cwd=folder).run("build").expect(7)
    assert "the answers of your pipeline with variant cpu differ from those with the original models" in refused.err
    assert "0 of 1 answers match (min 100%)" in refused.err
    assert not (folder / "dist").exists() or not list((folder / "dist").iterdir())


IMPORTING = """
from pathlib import Path

from scaling import scale


def run(bundle, sample):
    print("it prints", sample["x"])
    label = Path(__file__).with_name("label.txt").read_text()
    return {label: scale(bundle.lean.run(x=bundle.grow.run(x=sample["x"]).y).z)}
"""


@pytest.mark.quick
def test_a_pipeline_is_shipped_with_what_it_needs_and_timed_from_there(warm: CommandLine, folder: Path) -> None:
    text = (PROJECT % ONE_PYTHON.partition("=")[2]).replace('"pages"', '"pages", files = ["label.txt"]')
    (folder / "bundler.toml").write_text(text)
    (folder / "pipeline.py").write_text(IMPORTING)
    (folder / "scaling.py").write_text("import many\n\n\ndef scale(values):\n    return values * 3\n")
    (folder / "many").mkdir()
    for name in ("__init__", *"abcdefgh"):
        (folder / "many" / f"{name}.py").write_text("import json\n")
    (folder / "label.txt").write_text("tripled")
    (folder / "json.py").write_text("raise RuntimeError('the standard library comes first')")
    (folder / "pages").mkdir()
    np.savez(folder / "pages" / "0.npz", x=np.full((1, 3), 0.1, np.float32))
    here = CommandLine(cache=warm.cache, env=warm.env, cwd=folder)
    built = here.run("build").expect(0)
    assert "many/e.py, many/f.py, 4 more in the bundle as an example of use" in built.err
    bundle = folder / "dist" / "pair-linux-x64"
    (record,) = read(bundle / "bundle.json")["pipeline"]
    assert {name for name in record["files"] if "/" not in name} == {"label.txt", "scaling.py"}
    assert "It needs 11 files beside it." in (bundle / "README.md").read_text(encoding="utf-8")
    for name in ("pipeline.py", "scaling.py", "label.txt"):
        (folder / name).unlink()
    timed = here.run("bench", bundle, "--pipeline", "pages", "--seconds", "0.3", "--json").expect(0).document
    (whole,) = [one for one in timed["variants"] if one["variant"] == "pipeline.py:run"]
    assert whole["opening"]["count"] >= 1
    assert whole["latency"]["median"] > 0
    assert whole["measurement"]["name"] == "grow/cpu, lean/cpu"


REQUIRING = """
import iniconfig


def run(bundle, sample):
    assert sample["x"].sum() < 5, "this page is too bright"
    return {iniconfig.__name__: bundle.lean.run(x=bundle.grow.run(x=sample["x"]).y).z}
"""


def test_what_a_pipeline_requires_is_locked_and_there_when_it_runs(warm: CommandLine, folder: Path) -> None:
    text = PROJECT % ONE_PYTHON.partition("=")[2]
    (folder / "bundler.toml").write_text(text.replace('"pages"', '"pages", requires = ["iniconfig>=2"]'))
    (folder / "pipeline.py").write_text(REQUIRING)
    (folder / "pages").mkdir()
    np.savez(folder / "pages" / "0.npz", x=np.full((1, 3), 0.1, np.float32))
    here = CommandLine(cache=warm.cache, env=warm.env, cwd=folder)
    built = here.run("build").expect(0)
    assert "packages of the pipeline (iniconfig>=2) are not in the bundle; pipeline.lock pins them" in built.err
    bundle = folder / "dist" / "pair-linux-x64"
    (record,) = read(bundle / "bundle.json")["pipeline"]
    assert record["requires"] == ["iniconfig>=2"]
    assert re.findall(r"^\w+==", (bundle / "pipeline.lock").read_text("utf-8"), re.MULTILINE) == ["iniconfig=="]
    (listed,) = [entry for entry in read(bundle / "sbom.cdx.json")["components"] if entry["name"] == "iniconfig"]
    assert listed["isExternal"]
    assert 'pipeline = [\n    "iniconfig>=2",\n]' in (bundle / "pyproject.toml").read_text("utf-8")
    assert "-r pipeline.lock" in (bundle / "README.md").read_text("utf-8")
    timed = here.run("bench", bundle, "--pipeline", "pages", "--seconds", "0.3", "--json").expect(0).document
    assert "pipeline.py:run" in [one["variant"] for one in timed["variants"]]
    np.savez(folder / "pages" / "1.npz", x=np.full((1, 3), 9, np.float32))
    failed = here.run("bench", bundle, "--pipeline", "pages", "--seconds", "0.3").expect(6)
    assert "the pipeline of pair-linux-x64 failed: AssertionError: this page is too bright (pipeline.py, line 6)" in (
        failed.err
    )


@pytest.mark.quick
def test_a_package_that_a_pipeline_does_not_name_is_missing_when_it_runs(warm: CommandLine, folder: Path) -> None:
    """It is in bundler's own environment, and not in the bundle's."""
    (folder / "bundler.toml").write_text(PROJECT % ONE_PYTHON.partition("=")[2])
    (folder / "pipeline.py").write_text(REQUIRING.replace("iniconfig", "pytest"))
    (folder / "pages").mkdir()
    np.savez(folder / "pages" / "0.npz", x=np.full((1, 3), 0.1, np.float32))
    here = CommandLine(cache=warm.cache, env=warm.env, cwd=folder)
    here.run("build", "--no-prove").expect(0)
    failed = here.run("bench", folder / "dist" / "pair-linux-x64", "--pipeline", "pages").expect(6)
    assert "the pipeline of pair-linux-x64 failed: ModuleNotFoundError: No module named 'pytest'" in failed.err
    assert 'requires = ["PACKAGE"]' in failed.err


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ('"../outside.txt"', "outside.txt is not in the folder of the pipeline"),
        ('"missing.txt"', "there is no file"),
        ('"pages"', "pipeline.files names files, not folders"),
        ('"README.md"', "the pipeline needs README.md, and the bundle has a file of this name"),
        ('"pair.py"', "the pipeline needs pair.py, and the bundle has a file of this name"),
    ],
)
@pytest.mark.quick
def test_files_of_a_pipeline_that_cannot_be_shipped_are_refused(
    warm: CommandLine, folder: Path, files: str, text: str
) -> None:
    project = (PROJECT % ONE_PYTHON.partition("=")[2]).replace('"pages"', f'"pages", files = [{files}]')
    (folder / "work").mkdir()
    for name in ("grow.onnx", "lean.onnx"):
        (folder / name).rename(folder / "work" / name)
    for name in ("outside.txt", "work/README.md", "work/pair.py"):
        (folder / name).write_text("private")
    (folder / "work" / "bundler.toml").write_text(project)
    (folder / "work" / "pipeline.py").write_text(PIPELINE)
    (folder / "work" / "pages").mkdir()
    np.savez(folder / "work" / "pages" / "0.npz", x=np.full((1, 3), 0.1, np.float32))
    refused = CommandLine(cache=warm.cache, env=warm.env, cwd=folder / "work").run("build", "--no-prove").expect(2)
    assert text in refused.err
    assert not list((folder / "work").glob("dist/*"))


@pytest.mark.quick
def test_what_has_no_pipeline_cannot_be_timed_with_one(warm: CommandLine, folder: Path) -> None:
    (folder / "pages").mkdir()
    (folder / "pages" / "0.txt").write_text("one")
    arguments = ("-t", "linux-x64", "--set", ONE_PYTHON, "-o", folder / "out", "--no-prove")
    warm.run("build", folder / "lean.onnx", *arguments).expect(0)
    refused = warm.run("bench", folder / "out" / "lean-linux-x64", "--pipeline", folder / "pages").expect(2)
    assert "was built without a pipeline" in refused.err
    missing = warm.run("bench", folder / "out" / "lean-linux-x64", "--pipeline", folder / "none").expect(2)
    assert "there are no samples in" in missing.err


HEARING = """
def run(bundle, sample):
    with bundle.hear.stream() as stream:
        loudest = [int(stream.run(x=frame).scores.argmax()) for frame in sample["frames"]]
        last = stream.state["h0"]
    return {"loudest": loudest, "last": last, "lean": bundle.lean.run(x=sample["x"]).z}
"""
SCORE = """
def equal_steps(samples):
    pairs = [pair for one in samples for pair in zip(one.reference["loudest"], one.answer["loudest"], strict=True)]
    return sum(first == second for first, second in pairs) / len(pairs)
"""


@pytest.mark.quick
def test_a_pipeline_runs_streams_and_the_projects_own_metric_judges_it(warm: CommandLine, folder: Path) -> None:
    onnx.save(make_gru(), folder / "gru.onnx")
    text = (PROJECT % ONE_PYTHON.partition("=")[2]).replace("grow", "hear").replace("hear.onnx", "gru.onnx")
    text = text.replace("pipeline =", 'models.hear.state = { h0 = "hn" }\npipeline =').replace(
        '"pages"', '"pages", absolute = 0, relative = 0, metric = { python = "score.py:equal_steps", drop = 0.1 }'
    )
    (folder / "bundler.toml").write_text(text + '\n[overrides."*".precision]\nmethod = "fp16"\n')
    (folder / "pipeline.py").write_text(HEARING)
    (folder / "score.py").write_text(SCORE)
    (folder / "pages").mkdir()
    for number in range(2):
        values = {"frames": make_frames(12, number), "x": np.full((1, 3), 0.1 + number, np.float32)}
        np.savez(folder / "pages" / f"{number}.npz", **values)
    here = CommandLine(cache=warm.cache, env=warm.env, cwd=folder)
    built = here.run("build").expect(0)
    assert "metric score.py:equal_steps of pipeline.py:run " in built.out
    (record,) = read(folder / "dist" / "pair-linux-x64" / "bundle.json")["pipeline"]
    assert (record["equal"], record["least"], record["metric"]["reference"]) == (0, 0.0, 1.0)
    assert record["metric"]["value"] > 0.9

    (folder / "bundler.toml").write_text(text.replace("drop = 0.1", "least = 1.5"))
    refused = here.run("build").expect(7)
    assert "metric score.py:equal_steps: 1 over 2 samples (min 1.5)" in refused.err


@pytest.mark.quick
def test_an_error_names_the_component_that_it_is_about(warm: CommandLine, folder: Path) -> None:
    lean = onnx.parser.parse_model(f"{HEAD} lean (float[3] x) => (float[3] z) {{ z = Sin(x) }}")
    onnx.save(lean, folder / "lean.onnx")
    models = [f"{name}={folder / name}.onnx" for name in ("grow", "lean")]
    arguments = ("--bundle", "pair", "-t", "linux-x64", "-o", folder / "out", "--set", "precision.method=fp16")
    refused = warm.run("build", *models, *arguments).expect(6)
    assert "error: lean: nothing to convert: it has no 32-bit float" in refused.err


@pytest.mark.quick
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("grow=grow.onnx", "lean.onnx"), "grow=grow.onnx has the name of a component, and lean.onnx has none"),
        (("grow=grow.onnx", "lean=lean.onnx"), "a bundle of several models requires a name"),
        (("run=grow.onnx", "lean=lean.onnx", "--bundle", "x"), "'run' cannot be the name of a component"),
        (("a=grow.onnx", "b=lean.onnx", "--bundle", "x", "--dim", "m=1"), "no component has a dynamic dimension"),
        (("a=grow.onnx", "b=lean.onnx", "--bundle", "x", "--shape", "x=1,3"), "a, b have an input"),
        (("a=grow.onnx", "b=lean.onnx", "--bundle", "x", "--state", "x=w"), "no component has the state"),
        (("a=grow.onnx", "b=lean.onnx", "--bundle", "x", "--samples", "."), "has no data for component a"),
        (("a=grow.onnx", "b=none.onnx", "--bundle", "x"), "none.onnx"),
    ],
)
def test_what_is_wrong_with_components_is_said(
    warm: CommandLine, folder: Path, arguments: tuple[str, ...], text: str
) -> None:
    here = CommandLine(cache=warm.cache, env=warm.env, cwd=folder)
    refused = here.run("build", *arguments, "-t", "linux-x64")
    assert refused.code in (2, 3)
    assert text in refused.err
    assert "hint: " in refused.err


def keep_heavy(path: Path, activation: str) -> Path:
    graph = f"net (float[1, 600] x) => (float[1, 600] y) {{ z = MatMul(x, w) y = {activation}(z) }}"
    model = onnx.parser.parse_model(f"{HEAD} {graph}")
    model.graph.initializer.append(onnx.numpy_helper.from_array(WEIGHTS, "w"))
    onnx.save(model, path)
    return path


@pytest.mark.quick
def test_models_that_changed_places_with_their_golden_sets_are_found(warm: CommandLine, tmp_path: Path) -> None:
    """Each still reproduces what was recorded, under the other's name."""
    models = [
        f"{name}={keep_heavy(tmp_path / f'{name}.onnx', kind)}" for name, kind in (("lift", "Relu"), ("bend", "Tanh"))
    ]
    arguments = ("--bundle", "pair", "-t", "linux-x64", "--format", "files", "-o", tmp_path / "out", "--no-prove")
    warm.run("build", *models, *arguments).expect(0)
    bundle = tmp_path / "out" / "pair-linux-x64"
    warm.run("verify", bundle).expect(0)
    config = read(bundle / "runtime.json")
    first, second = config["components"]
    first["name"], second["name"] = second["name"], first["name"]
    (bundle / "runtime.json").write_text(json.dumps(config), encoding="utf-8")
    renew_digest(bundle, bundle / "runtime.json")
    found = warm.run("verify", bundle).expect(8).err
    assert "bundle.json and runtime.json do not belong together" in found
    assert "component lift has another model or golden set in runtime.json than in bundle.json" in found


def test_weights_that_components_have_in_common_lie_once_and_are_checked(warm: CommandLine, tmp_path: Path) -> None:
    models = [
        f"{name}={keep_heavy(tmp_path / f'{name}.onnx', kind)}" for name, kind in (("lift", "Relu"), ("bend", "Tanh"))
    ]
    arguments = ("--bundle", "pair", "-t", "linux-x64", "--set", ONE_PYTHON, "-o", tmp_path / "out")
    built = warm.run("build", *models, *arguments).expect(0)
    assert "bend/cpu, lift/cpu share weights: 1.4 MB are stored once" in built.err
    assert "Verified  lift/cpu, bend/cpu: executed on this host" in built.out
    bundle = tmp_path / "out" / "pair-linux-x64"
    payload = bundle / "pair" / "payload"
    lift, bend = (component["variants"][0]["files"] for component in read(payload / "runtime.json")["components"])
    (common,) = [file for file in lift if file in bend]
    assert common["size"] == WEIGHTS.nbytes
    assert [path.name for path in bundle.rglob("*") if path.is_file() and path.stat().st_size == WEIGHTS.nbytes] == [
        "weights.data"
    ]
    for component in read(bundle / "bundle.json")["components"]:
        assert component["stages"][-1]["stage"] == "share_weights"
        (shipped,) = [artifact for artifact in component["artifacts"] if artifact["kind"] == "model"]
        assert (shipped["step"], shipped["size"]) == ("share_weights", component["variants"][0]["size"])
    assert "up to date" in warm.run("build", *models, *arguments).expect(0).out
    with (payload / common["path"]).open("r+b") as file:
        file.seek(WEIGHTS.nbytes // 2)
        file.write(b"\1\2\3\4")
    ran = subprocess.run(
        [sys.executable, "-m", "pair", "self-test"],
        cwd=bundle,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ran.returncode != 0
    assert "weights.data" in ran.stdout + ran.stderr


@pytest.mark.quick
def test_weights_that_variants_have_in_common_lie_once(warm: CommandLine, tmp_path: Path) -> None:
    model = keep_heavy(tmp_path / "net.onnx", "Relu")
    warm.run("build", model, "-t", "mediatek-dimensity", "-o", tmp_path / "out", "--format=files", "--no-prove").expect(
        0
    )
    bundle = tmp_path / "out" / "net-mediatek-dimensity"
    variants = read(bundle / "runtime.json")["components"][0]["variants"]
    assert len(variants) > 1
    assert len({variant["model"] for variant in variants}) > 1
    (common,) = set.intersection(*({(file["path"], file["sha256"]) for file in entry["files"]} for entry in variants))
    assert (bundle / common[0]).stat().st_size == WEIGHTS.nbytes
    assert sum(path.stat().st_size for path in (bundle / "models").rglob("*") if path.is_file()) < WEIGHTS.nbytes + 2000
    warm.run("verify", bundle, "--digests-only").expect(0)


def test_a_download_budget_counts_all_components_of_a_page(warm: CommandLine, folder: Path) -> None:
    models = [f"{name}={folder / name}.onnx" for name in ("grow", "lean")]
    arguments = ("--bundle", "pair", "-t", "web-wasm", "--no-prove", "-o", folder / "out")
    built = warm.run("build", *models, *arguments, "--json").expect(0).document["bundles"][0]
    sizes = {visit["variant"]: visit["brotli"] for visit in built["first_visits"]}
    whole, single = sizes.pop("all components"), max(sizes.values())
    assert single < whole < 1.1 * single
    budget = f"budget.download_mb={(single + whole) / 2 / 1e6}"
    refused = warm.run("build", *models, *arguments, "--set", budget).expect(7)
    assert "download of all components (wasm)" in refused.err
    assert "download of variant" not in refused.err
