import os
from pathlib import Path

import pytest

from bundler.model.golden_inputs import Weakness
from bundler.model.manifest import GoldenOutput, GoldenRecord
from bundler.model.results import Comparison, OutputComparison
from bundler.pipeline.memo import recall_bundle, remember_bundle
from bundler.pipeline.results import BuildSummary, FirstVisit, MetricResult, VerifiedRun
from bundler.support.remembered import recall, remember

OUTPUT = OutputComparison(
    name="y",
    equal=False,
    max_absolute=1e-6,
    mean_absolute=1e-7,
    max_relative=1e-5,
    cosine=1.0,
    sqnr_db=120.0,
    top1_agreement=None,
    envelope=((1.0, 1e-6), (0.5, 1e-7)),
)
SUMMARY = BuildSummary(
    digest="0f" * 32,
    proof="executed",
    proofs={"cpu": "executed"},
    unproven={"gpu": "there is none here"},
    verified=("cpu: executed",),
    bundle_bytes=12_000_000,
    model_bytes=11_000_000,
    notes=("a note",),
    golden=GoldenRecord(
        samples=8,
        outputs=(GoldenOutput(name="y", elements=80),),
        weaknesses=(Weakness(kind="synthetic", name="", text="its inputs are made up"),),
        inputs="seeded",
    ),
    reservations=("calibrated with synthetic inputs",),
    metrics=(MetricResult(variant="cpu", value=0.9, reference=1),),
    pipeline=(),
    first_visits=(FirstVisit(variant="cpu", build="wasm", size=3, gzip=2, brotli=1),),
    runs=(VerifiedRun(variant="cpu", place="", comparison=Comparison(outputs=(OUTPUT,), samples=8)),),
)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    folder = tmp_path / "bundle"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "model.onnx").write_bytes(b"weights")
    remember_bundle(tmp_path / "cache", folder, "key", SUMMARY)
    return folder


def test_an_unchanged_bundle_is_recalled(bundle: Path, tmp_path: Path) -> None:
    assert recall_bundle(tmp_path / "cache", bundle, "key") == SUMMARY


def test_another_key_is_another_bundle(bundle: Path, tmp_path: Path) -> None:
    assert recall_bundle(tmp_path / "cache", bundle, "other") is None


def test_an_altered_byte_is_noticed_though_size_and_time_are_forged(bundle: Path, tmp_path: Path) -> None:
    path = bundle / "inner" / "model.onnx"
    before = path.stat()
    path.write_bytes(b"w3ights")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert recall_bundle(tmp_path / "cache", bundle, "key") is None


@pytest.mark.parametrize("change", ["added", "removed"])
def test_files_that_come_or_go_are_noticed(bundle: Path, tmp_path: Path, change: str) -> None:
    if change == "added":
        (bundle / "extra").touch()
    else:
        (bundle / "inner" / "model.onnx").unlink()
    assert recall_bundle(tmp_path / "cache", bundle, "key") is None


def test_a_damaged_memo_is_no_memo(bundle: Path, tmp_path: Path) -> None:
    for memo in (tmp_path / "cache" / "bundles").iterdir():
        memo.write_text("{")
    assert recall_bundle(tmp_path / "cache", bundle, "key") is None


@pytest.mark.parametrize("summary", [{"proof": "executed"}, "text", None])
def test_a_memo_that_holds_no_summary_is_no_memo(bundle: Path, tmp_path: Path, summary: object) -> None:
    (memo,) = (tmp_path / "cache" / "bundles").iterdir()
    about = f"bundle {bundle}"
    kept = recall(memo, about)
    remember(memo, {**kept, "summary": summary}, about)
    assert recall(memo, about)["key"] == "key"
    assert recall_bundle(tmp_path / "cache", bundle, "key") is None
