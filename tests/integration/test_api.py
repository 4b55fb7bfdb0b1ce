"""The Python API does what its example says."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from bundler import api
from tests.support.models import mlp, save


def test_the_example_runs_as_printed(
    tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    save(mlp(), tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BUNDLER_CACHE", str(shared / "cache"))
    example = (api.__doc__ or "").split("\n\n    ", 1)[1].split("\n\nEvery")[0]
    exec(textwrap.dedent(f"    {example}"), {})  # noqa: S102 - what the documentation prints
    (built, proof, _), (verified,) = (line.split() for line in capsys.readouterr().out.splitlines())
    assert Path(built) == Path("dist/model-linux-x64")
    assert (proof, verified) == ("executed", "executed")


def test_an_error_is_one_of_bundlers_and_leaves_nothing(tmp_path: Path, shared: Path) -> None:
    request = api.BuildRequest(model=tmp_path / "none.onnx", target="linux-x64", output=tmp_path / "dist")
    with pytest.raises(api.BundlerError, match="there is no file"):
        api.build(request, api.Settings(cache=str(shared / "cache")))
    assert not (tmp_path / "dist").exists()
