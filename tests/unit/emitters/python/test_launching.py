"""A proof says which Python it was made with, and which of the bundle's were not started."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bundler.emitters.contract import ProofRequest
from bundler.emitters.python import launching, proving
from bundler.emitters.python.layout import Layout
from bundler.emitters.reports import Ending
from bundler.model.events import ignore
from tests.support import models
from tests.support.bundles import make_request
from tests.support.reports import recorded_of, report_of

VERSIONS = ("3.11", "3.12", "3.13")


def test_the_version_of_python_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = make_request(models.cnn(), tmp_path / "made")
    config, recorded = request.config, recorded_of(request)
    layout = Layout(
        root=tmp_path,
        package="tiny",
        format="pex",
        config=config,
        artifact=tmp_path / "tiny.pex",
        recorded=recorded,
        python_versions=VERSIONS,
    )
    answer = {"variants": [report_of(component, recorded[component.name]) for component, _ in config.pairs]}
    ending = Ending(report=answer, failure=None, seconds=1.0)
    monkeypatch.setattr("bundler.emitters.python.proving.start", lambda *_: ending)
    monkeypatch.setattr(proving, "read_layout", lambda _: layout)
    monkeypatch.setattr(launching, "find_python", lambda *_: ("3.12", Path(sys.executable)))
    (proof,) = proving.prove_bundle(ProofRequest(bundle=tmp_path, cache_root=tmp_path, listener=ignore))
    assert (
        proof.reason == "ran with onnxruntime 1.31.1 on Python 3.12, with no index, compared by the bundle's own loader"
    )
    assert proof.unrun == ("Python 3.11", "Python 3.13")
    assert (proof.place, proof.means) == ("", "Python 3.12")
