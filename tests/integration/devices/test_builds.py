"""Trained networks for devices that are not here, as a user builds them: what is compiled, proven and reported."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bundler.verification.configuration import load_config
from tests.support import digits, models
from tests.support.command_line import CommandLine, digest_folder
from tests.support.documents import read_document
from tests.support.encoders import encoder, sentences

PHONE = "snapdragon-8g3"
FAMILY = (
    *("snapdragon-888", "snapdragon-8g1", "snapdragon-8g2", PHONE, "snapdragon-8sg3", "snapdragon-8-elite"),
    *("snapdragon-8-elite-g5", "snapdragon-8-series", "snapdragon-x-elite", "snapdragon-x2-elite"),
)
GRAPHICS = {"rtx-3090": ["8.6"], "rtx-4090": ["8.9"], "rtx-5090": ["12.0"]}

pytestmark = pytest.mark.timeout(600)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """A model, the options that it is built with, and where its bundles go."""

    folder: Path
    options: tuple[str | Path, ...]

    def arguments(self, *targets: str, output: Path | None = None) -> list[str | Path]:
        chosen = [f"--target={target}" for target in targets]
        return [*self.options, "--format=files", *chosen, f"--output={output or self.folder / 'out'}"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A finished build: its entry of `--json`, and its manifest."""

    result: dict[str, Any]

    @property
    def folder(self) -> Path:
        return Path(self.result["bundle"])

    @property
    def manifest(self) -> dict[str, Any]:
        found: dict[str, Any] = read_document(self.folder / "bundle.json")
        return found

    def facts(self, step: str) -> dict[str, Any]:
        (record,) = (record for record in self.manifest["stages"] if record["step"] == step)
        facts: dict[str, Any] = record["facts"]
        return facts

    def check(self, step: str) -> dict[str, Any]:
        """The figures of the first output of a comparison."""
        (record,) = (record for record in self.manifest["checks"] if record["step"] == step)
        figures: dict[str, Any] = record["outputs"][0]
        return figures

    @property
    def report(self) -> str:
        return Path(self.result["report"]).read_text("utf-8")


def write_digits(folder: Path) -> Workplace:
    """A convolutional network with digits to calibrate it with, and others to judge it by."""
    model = models.save(digits.make_network("convolutional"), folder, "digits.onnx")
    train, held_out = digits.load_digits()
    digits.write_samples(train.part(40), folder / "calibration", "convolutional")
    digits.write_samples(held_out.part(24), folder / "samples", "convolutional")
    data = (f"--calibration={folder / 'calibration'}", f"--samples={folder / 'samples'}")
    return Workplace(folder=folder, options=(model, "--dim=batch=1", *data))


def write_encoder(folder: Path, *, sequence: int = 16, vocabulary: int = 60, **sizes: int) -> Workplace:
    """An encoder of sentences as PyTorch exports it, with its own dynamic dimensions."""
    model = models.save(encoder(vocabulary=vocabulary, **sizes), folder, "encoder.onnx")
    for name, first in (("calibration", 0), ("samples", 100)):
        (folder / name).mkdir()
        for seed in range(6):
            feed = sentences(1, sequence, vocabulary=vocabulary, seed=first + seed)
            np.savez(folder / name / f"{seed}.npz", **feed)
    shape = ("--dim=batch=1", f"--dim=sequence={sequence}")
    return Workplace(folder=folder, options=(model, *shape, f"--samples={folder / 'samples'}"))


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    return write_digits(tmp_path_factory.mktemp("digits"))


@pytest.fixture(scope="module")
def phone(bundler: CommandLine, work: Workplace) -> Built:
    """The digits on the NPU of a phone."""
    return Built(result=bundler.build(*work.arguments(PHONE)))


def split_of(variant: str, report: str) -> str:
    """What the report's section on how the graph is split says of a variant, without its markup."""
    section = report[report.index('id="placement"') :]
    found = re.search(rf"<h3><bdi>{variant}</bdi>(.*?)</h3>", section, re.DOTALL)
    assert found is not None, "the report names every variant"
    return re.sub(r"<[^>]*>", "", found[1]).strip()


def test_each_variant_is_proven_as_far_as_can_be_without_the_phone(phone: Built) -> None:
    assert phone.result["proofs"] == {"htp": "emulated", "gpu": "resolved", "cpu": "stand-in"}
    assert phone.result["unproven"] == {"gpu": "its QNN context is generated on the device"}
    assert phone.result["proof"] == "resolved", "no more than the least of them"
    assert phone.result["reservations"] == []


def test_the_npu_takes_the_whole_network_and_json_and_report_say_so(phone: Built) -> None:
    (placed,) = phone.result["placements"]
    assert (placed["variant"], placed["provider"]) == ("htp", "QNNExecutionProvider")
    assert (placed["assigned"], placed["total"], placed["least_share"], placed["estimated"]) == (5, 5, 0.9, False)
    assert split_of("htp", phone.report) == "100% of the nodes assigned to QNNExecutionProvider (min 90%)"
    assert split_of("gpu", phone.report) == "The assignment of nodes is only known on the device (min 50%)"


def test_the_manifest_tells_how_well_the_compiled_network_answers(phone: Built) -> None:
    """It was quantised: what it loses beside the original was lost there, and not by compiling."""
    quantised, compiled = (phone.check(f"htp/{step}/compare") for step in ("quantize_static", "compile_context"))
    assert compiled["sqnr_db"] > quantised["sqnr_db"] - 3
    assert compiled["top1_agreement"] >= 22 / 24
    facts = phone.facts("htp/compile_context")
    assert (facts["devices"], facts["contexts"], facts["left_nodes"]) == (["57"], 1, [])


def test_it_is_verified_in_emulation_from_its_folder_alone(bundler: CommandLine, phone: Built) -> None:
    answer = bundler.run("verify", phone.folder, "--json").expect(0).document
    assert {proof["variant"]: proof["level"] for proof in answer["variants"]} == phone.result["proofs"]
    (npu,) = (proof for proof in answer["variants"] if proof["variant"] == "htp")
    assert npu["comparison"]["samples"] == 16
    assert npu["comparison"]["outputs"][0]["top1_agreement"] >= 15 / 16


def test_the_summary_says_of_each_variant_what_was_run(bundler: CommandLine, work: Workplace, phone: Built) -> None:
    """A rebuild with nothing changed says it as well."""
    answer = bundler.run("build", *work.arguments(PHONE)).expect(0)
    assert f"{phone.folder} is up to date (" in answer.out
    rows = (
        "  Verified  htp: emulated in Qualcomm QNN's emulator\n",
        "  Stand-in  cpu: ran on this host in place of the device\n",
        "  Not run   gpu: its QNN context is generated on the device\n",
    )
    assert "".join(rows) in answer.out
    assert "  Placement htp: 5 of 5 nodes assigned to QNNExecutionProvider\n" in answer.out


def test_another_phone_needs_only_its_own_context(bundler: CommandLine, work: Workplace, phone: Built) -> None:
    """What is made anew is that; what is compared anew runs on it, or on another number of cores."""
    assert phone.result["target"] == PHONE
    steps = bundler.run("plan", *work.options, "--target=snapdragon-8sg4", "--json").expect(0).document["steps"]
    anew = {step["id"] for step in steps if step["state"] != "cached"}
    assert {step for step in anew if not step.endswith(("/compare", "/reproduce"))} == {"htp/compile_context"}
    assert not any(step.startswith("gpu/") for step in anew)


@pytest.mark.slow
def test_ten_targets_in_one_command(bundler: CommandLine, work: Workplace, phone: Built) -> None:
    """What is compiled differs from chip to chip; the quantised network does not."""
    found = [Built(result=result) for result in bundler.build_all(*work.arguments(*FAMILY))]
    assert [built.result["target"] for built in found] == list(FAMILY)
    assert {built.result["placements"][0]["assigned"] for built in found} == {5}
    weights = {built.facts("htp/quantize_static")["bytes"] for built in (*found, phone)}
    assert len(weights) == 1
    contexts = {
        record["artifact"]
        for built in found
        for record in built.manifest["stages"]
        if record["step"] == "htp/compile_context"
    }
    assert len(contexts) == len(FAMILY)
    several = found[FAMILY.index("snapdragon-8-series")]
    assert several.facts("htp/compile_context")["devices"] == ["43", "57", "69"]
    assert several.result["proofs"]["htp"] == "resolved"
    assert "only a device can pick its part" in several.result["unproven"]["htp"]


def test_a_sentence_encoder_computes_in_halves_on_the_npu(bundler: CommandLine, tmp_path: Path) -> None:
    work = write_encoder(tmp_path)
    built = Built(result=bundler.build(*work.arguments(PHONE)))
    assert built.result["proofs"]["htp"] == "emulated"
    (placed,) = built.result["placements"]
    assert placed["assigned"] == placed["total"] > 100
    assert built.check("htp/compile_context/compare")["sqnr_db"] > 40
    bundler.run("verify", built.folder).expect(0)


@pytest.mark.slow  # Twelve heads of 384, vocabulary and all: emulating it takes half a minute a run.
def test_a_sentence_encoder_of_the_size_that_people_ship(bundler: CommandLine, tmp_path: Path) -> None:
    sizes = {"layers": 6, "width": 384, "hidden": 1536, "heads": 12, "vocabulary": 30522, "positions": 512}
    work = write_encoder(tmp_path, **sizes)
    # Weights that nobody trained answer nearly the same to every sentence, and int8 keeps little of what is left.
    calibrated = (*work.options, f"--calibration={tmp_path / 'calibration'}", "--set=accuracy.typical_sqnr_db=4")
    for options, least in ((work.options, 40), (calibrated, 10)):
        answer = bundler.run("build", *options, "--target", PHONE, "--output", tmp_path / "out", "--json", timeout=500)
        built = Built(result=answer.expect(0).document["bundles"][0])
        assert built.result["proofs"]["htp"] == "emulated"
        assert built.result["placements"][0]["assigned"] > 100
        assert built.check("htp/compile_context/compare")["sqnr_db"] > least
    bundler.run("verify", built.folder, timeout=500).expect(0)


@pytest.mark.slow
def test_engines_for_four_architectures(bundler: CommandLine, tmp_path: Path) -> None:
    """Built with no GPU; each is for its own, and says so."""
    model = models.save(models.cnn(), tmp_path, "cnn.onnx")
    options = (model, "--dim=batch=1", "--format=files", f"--output={tmp_path / 'out'}")
    found = bundler.build_all(*options, *(f"--target={target}" for target in GRAPHICS))
    for result in found:
        built = Built(result=result)
        assert built.facts("tensorrt-rtx/build_engine")["devices"] == GRAPHICS[result["target"]]
        assert result["placements"][0]["assigned"] == result["placements"][0]["total"] == 8
        assert result["proofs"] == {"tensorrt-rtx": "resolved", "cuda": "resolved", "cpu": "stand-in"}
        assert "runs on the device only" in result["unproven"]["tensorrt-rtx"]
        assert (built.folder / "models" / "tensorrt-rtx" / "engine.bin").stat().st_size > 100_000
    several = '--set=variants.tensorrt-rtx.compile.compute_capabilities="8.6,8.9,12.0,12.1"'
    built = Built(result=bundler.build(*options, "--name=several", "--target=rtx-4090", several))
    assert built.facts("tensorrt-rtx/build_engine")["devices"] == ["8.6", "8.9", "12.0", "12.1"]


@pytest.mark.slow
def test_equal_input_gives_equal_bytes_in_another_folder_and_cache(
    bundler: CommandLine, cold: CommandLine, work: Workplace, phone: Built, tmp_path: Path
) -> None:
    """Contexts of the NPU and engines of the GPU, each compiled twice."""
    engine = bundler.build(*work.arguments("rtx-4090"))
    again = write_digits(tmp_path / "a longer way")
    twice = {result["target"]: result for result in cold.build_all(*again.arguments(PHONE, "rtx-4090"))}
    for first in (phone.result, engine):
        second = twice[first["target"]]
        assert not second["up_to_date"]
        assert digest_folder(Path(first["bundle"])) == digest_folder(Path(second["bundle"]))


@pytest.mark.slow
def test_every_target_of_the_catalogue_is_built(bundler: CommandLine, tmp_path: Path) -> None:
    """As files, so that no runtime of gigabytes is fetched; calibrated, for some NPUs compute with integers alone."""
    listed = bundler.run("targets", "list", "--json").expect(0).document
    chosen = [f"--target={target['id']}" for target in listed if target["system"] != "web"]
    model = models.save(models.cnn(), tmp_path / "in", "cnn.onnx")
    options = (
        "--calibration=synthetic",
        "--set=accuracy.sqnr_db=5",  # weights that nobody trained leave int8 little to keep: 13 dB with made-up data
        "--format=files",
        "--no-prove",
        "--dim=batch=1",
        f"--output={tmp_path / 'out'}",
    )
    built = bundler.build_all(model, *chosen, *options, f"--output={tmp_path / 'out'}")
    assert [f"--target={bundle['target']}" for bundle in built] == chosen
    for bundle in built:
        runtime = load_config(
            Path(bundle["bundle"]), Path(bundle["bundle"]) / "runtime.json"
        )  # asks for nothing unusual
        assert all((Path(bundle["bundle"]) / variant.model).is_file() for _, variant in runtime.pairs)
        assert runtime.target == bundle["target"]
