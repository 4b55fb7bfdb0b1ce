"""Keys change with everything that decides a result, and with nothing else."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.environments.registry import Environment
from bundler.execution import stage_sources
from bundler.execution.cache import Cache
from bundler.execution.keys import describe_changes, ingredients_of, key_of
from bundler.execution.sources import digest_source
from bundler.model.errors import UsageError
from bundler.model.plan import HOST
from bundler.model.stage import StageSpec
from bundler.toolchains.registry import FoundToolchain
from tests.unit.execution.conftest import ROOT, step

SPEC = StageSpec(name="grow", title="", inputs=("model",), produces="model", packages=("onnxruntime",))


def environment(version: str = "1.31.1", python: str = "3.11", **others: str) -> Environment:
    versions = {"onnxruntime": version, **others}
    return Environment(name=HOST, python=Path("p"), versions=versions, digest="", python_version=python)


def ingredients(spec: StageSpec = SPEC, env: Environment | None = None, digest: str = "d", **options: object):
    return ingredients_of(step("grow", **options), spec, env or environment(), {"model": digest})


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"level": "extended"}, ("option level changed from 'basic' to 'extended'",)),
        ({"digest": "e"}, ("input model changed",)),
        ({"env": environment("1.30.0")}, ("onnxruntime 1.31.1 -> 1.30.0",)),
        ({"env": environment(python="3.12")}, ("Python 3.11 -> 3.12",)),
        ({"more": 1}, ("option more is new: 1",)),
        ({"env": environment(numpy="9")}, ()),
        ({}, ()),
    ],
)
def test_a_key_changes_exactly_when_there_is_a_reason(change: dict[str, object], why: tuple[str, ...]) -> None:
    base, changed = ingredients(level="basic"), ingredients(**{"level": "basic", **change})
    assert describe_changes(base, changed) == why
    assert (key_of(changed) == key_of(base)) is (not why)


def test_of_a_locked_environment_all_packages_count_and_the_digests_of_their_files() -> None:
    def locked(digest: str = "a", **versions: str) -> Environment:
        return replace(environment(**versions), name="compiler", digest=digest)

    base = ingredients(env=locked(compiler="1"))
    assert describe_changes(base, ingredients(env=locked("b", compiler="2"))) == ("compiler 1 -> 2",)
    rebuilt = ingredients(env=locked("b", compiler="1"))
    assert describe_changes(base, rebuilt) == ("the files of its locked environment changed",)
    assert key_of(base) != key_of(rebuilt)


def test_of_a_toolchain_counts_what_it_states_and_not_where_it_stands() -> None:
    def compiled(program: str = "/usr/bin/cc", version: str = "cc 12", digest: str = "a"):
        toolchain = FoundToolchain(name="cc", program=Path(program), version=version, digest=digest)
        return ingredients_of(step("grow"), SPEC, environment(), {"model": "d"}, toolchain)

    base = compiled()
    assert key_of(compiled(program="/opt/bin/cc")) == key_of(base)
    assert describe_changes(base, compiled(version="cc 14", digest="b")) == ("toolchain cc 12 -> cc 14",)
    assert describe_changes(base, compiled(digest="b")) == (
        "the toolchain cc has a different configuration of the same version",
    )
    assert describe_changes(ingredients(), base) == ("toolchain none -> cc 12",)
    assert len({key_of(one) for one in (ingredients(), base, compiled(digest="b"), compiled(version="cc 14"))}) == 4


def test_changed_code_and_options_that_went_away_are_reasons() -> None:
    base = ingredients(level="basic")
    assert describe_changes(base, {**base, "sources": "other"}) == ("the code of stage grow changed",)
    assert describe_changes(base, ingredients()) == ("option level was removed (was 'basic')",)


def test_what_needs_no_native_tool_is_the_same_on_every_machine() -> None:
    pure = StageSpec(name="grow", title="", inputs=("model",), produces="model")
    assert ingredients(spec=pure)["machine"] == "any"
    assert ingredients()["machine"] != "any"


@given(st.dictionaries(st.text(), st.one_of(st.text(), st.integers(), st.booleans(), st.none()), max_size=5))
def test_the_order_of_options_does_not_matter(options: dict[str, object]) -> None:
    backwards = dict(reversed(list(options.items())))
    assert key_of({"options": options}) == key_of({"options": backwards})


def test_the_digest_of_a_stages_sources_covers_what_it_imports() -> None:
    files = {str(path) for path in stage_sources._all_files("tests.support.stages_faults.grow.run").values()}
    names = {str(Path(path).relative_to(ROOT)) for path in files}
    assert {
        "tests/support/stages_faults/grow/run.py",
        "tests/support/stages_faults/grow/spec.py",
        "bundler/model/__init__.py",
        "bundler/model/stage.py",
        "bundler/model/codec.py",
        "bundler/model/errors.py",
        "bundler/execution/worker.py",
        "bundler/support/disk.py",
    } <= names
    assert "bundler/execution/executor.py" not in names
    assert "tests/support/stages_faults/crash/run.py" not in names


def test_imports_of_every_form_are_followed(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text(
        "import a.b\nfrom c import d  # why\nfrom e.f import (\n    g,\n    h as i,\n)\n"
        "def f():\n    from j import k\n# from z import z\ntext = 'import y'\n"
    )
    found = set(stage_sources._imports(path))
    assert {"a.b", "c", "c.d", "e.f", "e.f.g", "e.f.h", "j", "j.k"} <= found
    assert not found & {"z", "y"}


def test_a_source_is_hashed_once_for_each_identity(cache: Cache, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.utime(model)
    time.sleep(0.12)
    first = digest_source(model, (), cache)
    monkeypatch.setattr("bundler.execution.sources.digest_file", lambda path: pytest.fail(f"{path} was read"))
    assert digest_source(model, (), cache) == first


def test_a_file_that_changed_a_moment_ago_is_not_remembered(cache: Cache, model: Path) -> None:
    status = model.stat()
    first = digest_source(model, (), cache)
    model.write_bytes(b"b model")
    os.utime(model, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert digest_source(model, (), cache).digest != first.digest
    assert not list((cache.root / "sources").glob("*"))


def test_external_data_and_folders_count(cache: Cache, model: Path) -> None:
    data = model.with_name("weights.bin")
    data.write_bytes(b"1")
    with_data = digest_source(model, (data,), cache)
    assert [record.path for record in with_data.files] == ["model.onnx", "weights.bin"]
    data.write_bytes(b"2")
    assert digest_source(model, (data,), cache).digest != with_data.digest
    folder = digest_source(model.parent, (), cache)
    assert folder.artifact.files == folder.files
    assert [record.path for record in folder.files] == ["model.onnx", "weights.bin"]


def test_a_source_that_is_not_there_is_a_usage_error(cache: Cache, model: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read .*gone\.bin: No such file"):
        digest_source(model, (model.with_name("gone.bin"),), cache)
