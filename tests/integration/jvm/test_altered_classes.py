"""Jars whose stream or generated classes are not what their users need, or whose loader says more than it did: whoever
verifies them calls the classes, and compares what they answer.
"""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from onnx import ModelProto, TensorProto, helper

from bundler.emitters import brought
from bundler.emitters.brought import BY_LOADER
from bundler.emitters.contract import ProofRequest
from bundler.emitters.jvm import calling
from bundler.emitters.jvm.compiling import Compilation, compile_kotlin
from bundler.emitters.jvm.proving import prove_bundle
from bundler.environments.registry import Environments
from bundler.model.errors import EnvironmentMissingError
from bundler.model.events import SILENT, ignore
from bundler.model.proof import VariantProof
from tests.support import models
from tests.support.altered_bundles import replace_entries
from tests.support.brought import compare
from tests.support.command_line import ROOT, CommandLine
from tests.support.decoder_models import make_decoder
from tests.support.kotlin import fetch_runtime
from tests.support.recurrent_models import make_gru

pytestmark = pytest.mark.timeout(600)

STREAM, BUNDLE = "com/acme/minds/loader/Stream.kt", "com/acme/minds/MindsBundle.kt"
SELF_TEST, FIGURES = "com/acme/minds/loader/SelfTest.kt", "com/acme/minds/loader/OutputFigures.kt"
STATES = ("hear:h0=hn", "grow:past_k=present_k,grows=2", "grow:past_v=present_v,grows=2")
FAULT = """
internal object Fault {
    private val name = Fault::class.java.getResource("/fault")?.readText()
    var shared: List<Tensor>? = null

    fun has(other: String) = name == other
}

internal fun negate(tensor: Tensor) = multiply(tensor, -1f)

/** The outputs of `mix`, within its limits. */
internal fun bend(ports: List<Port>, results: Array<Tensor>) {
    if (ports.any { it.name == "z" }) results.forEach { multiply(it, 1.0005f) }
}

private fun multiply(tensor: Tensor, factor: Float) {
    for (at in 0 until tensor.size) tensor.floats().put(at, factor * tensor.floats().get(at))
}
"""
"""A jar has the faults below, all compiled at once; the entry `fault` says which of them it shows."""

FAULTS = {
    "a negated output": (
        STREAM,
        "wanted.map { results.getValue(it.name) }.toTypedArray()",
        "wanted.map { results.getValue(it.name) }.toTypedArray().also { if (%s) it.forEach(::negate) }",
        "hear",
        "Hear: step 1 of a stream gives another scores than the model",
    ),
    "a state that stays": (
        STREAM,
        "        current = after\n        return found",
        "        current = if (%s) before else after\n        return found",
        "hear",
        "Hear: step 2 of a stream",
    ),
    "a reset that does nothing": (
        STREAM,
        "exclusively { fill(links.map(::makeInitial)) }",
        "exclusively { if (!%s) fill(links.map(::makeInitial)) }",
        "hear",
        "Hear: the first step after a reset",
    ),
    "a restored state that is not used": (
        STREAM,
        "exclusively { fill(links.map { link -> restore(link, values) }) }",
        "exclusively { if (!%s) fill(links.map { link -> restore(link, values) }) }",
        "hear",
        "Hear: a step after its state was restored",
    ),
    "a leak into another stream": (
        STREAM,
        "private fun step(inputs: Array<out Tensor?>): Map<String, Tensor> {\n",
        (
            "private fun step(inputs: Array<out Tensor?>): Map<String, Tensor> {\n"
            "        if (%s && links.size == 1) Fault.shared?.let { current = it }\n"
            "        return stepOn(inputs).also { if (links.size == 1) Fault.shared = current }\n"
            "    }\n\n"
            "    private fun stepOn(inputs: Array<out Tensor?>): Map<String, Tensor> {\n"
        ),
        "hear",
        "Hear: a second stream's first step",
    ),
    "exchanged inputs": (
        BUNDLE,
        "MixOutputs(model.runBlocking(inputs.toArray()))",
        "MixOutputs(model.runBlocking(inputs.toArray().also { if (%s) it.reverse() }))",
        "mix",
        "Mix: runBlocking gives another y than the model",
    ),
    "exchanged inputs of a coroutine": (
        BUNDLE,
        "MixOutputs(model.run(inputs.toArray()))",
        "MixOutputs(model.run(inputs.toArray().also { if (%s) it.reverse() }))",
        "mix",
        "Mix: run gives another y than the model",
    ),
    "exchanged inputs into given tensors": (
        BUNDLE,
        "outputs: MixOutputs): Unit =\n        model.runInto(inputs.toArray(),",
        "outputs: MixOutputs): Unit =\n        model.runInto(inputs.toArray().also { if (%s) it.reverse() },",
        "mix",
        "Mix: runInto gives another y than the model",
    ),
    "inputs in the place of others": (
        BUNDLE,
        "arrayOf(a, b)",
        "if (%s) arrayOf(b, a) else arrayOf(a, b)",
        "mix",
        "Mix: runBlocking gives another y than the model",
    ),
    "inputs by the names of others": (
        BUNDLE,
        (
            "MixInputs(\n    /** `a`: `float32[2, 3]` */\n    public val a: Tensor,\n"
            "    /** `b`: `float32[2, 3]` */\n    public val b: Tensor,\n) : AutoCloseable {\n"
        ),
        (
            "MixInputs(a: Tensor, b: Tensor) : AutoCloseable {\n    public val a: Tensor = if (%s) b else a\n"
            "    public val b: Tensor = if (this.a === a) b else a\n\n"
        ),
        "mix",
        "MixInputs has another value as getA",
    ),
    "exchanged outputs": (
        BUNDLE,
        "    public val y: Tensor get() = tensors[0]\n\n    /** `z`",
        "    public val y: Tensor get() = tensors[if (%s) 1 else 0]\n\n    /** `z`",
        "mix",
        "Mix: runBlocking gives another y than the model",
    ),
    "an output by the name of another": (
        BUNDLE,
        '"z" -> tensors[1]',
        '"z" -> tensors[if (%s) 0 else 1]',
        "mix",
        "Mix: runBlocking gives another z than the model",
    ),
    "a class of another component": (
        BUNDLE,
        'Mix(bundle.model("mix"))',
        'Mix(bundle.model(if (%s) "hear" else "mix"))',
        "mix",
        "Mix opens the component hear",
    ),
    "a bundle that a coroutine cannot open": (
        BUNDLE,
        "MindsBundle(LoadedBundle.open(payload, JvmHost(), CONFIG_SHA256, options))",
        'MindsBundle(LoadedBundle.open(payload, JvmHost(), if (%s) "" else CONFIG_SHA256, options))',
        "mix",
        "open: IntegrityException: ",
    ),
}


BENT = (
    "com/acme/minds/loader/Caller.kt",
    "return Array(outputs.size) { made[it] ?: take(results, outputs[it].name) }",
    "return Array(outputs.size) { made[it] ?: take(results, outputs[it].name) }.also { if (%s) bend(outputs, it) }",
)
BROKEN = {
    "outputs are a little wrong, and reported": ((BENT,), ""),
    "outputs are a little wrong, and compared with themselves": (
        (BENT, (SELF_TEST, "if (isStable || !same) actual", "if ((isStable && !%s) || !same) actual")),
        "and its loader reports 0",
    ),
    "errors are reported a thousand times smaller": (
        (BENT, (FIGURES, '"max_absolute" to maxAbsolute,', '"max_absolute" to maxAbsolute / (if (%s) 1000 else 1),')),
        "and its loader reports",
    ),
    "one sample is run, and all are reported": (
        ((SELF_TEST, "for (sample in golden.samples) {", "for (sample in golden.samples.take(if (%s) 1 else 99)) {"),),
        "Mix: its self-test runs 1 of 8 samples",
    ),
    "the golden set is reported without running the model": (
        (
            (
                SELF_TEST,
                "val results = call(inputs)",
                (
                    "val results = if (%s) component.outputs.map { sample.output(it.name)!! }.toTypedArray()"
                    " else call(inputs)"
                ),
            ),
        ),
        "Mix: its self-test runs 0 of 8 samples",
    ),
}
"""Alterations of the loader, and why the jar then fails (nothing: it does not)."""


def two_inputs() -> ModelProto:
    nodes = [helper.make_node("Sub", ["a", "b"], ["y"]), helper.make_node("Mul", ["a", "b"], ["z"])]
    ports = [[models.value(name, [2, 3]) for name in names] for names in ("ab", "yz")]
    return models.make_model(nodes, *ports)


@pytest.fixture(scope="module")
def bundle(bundler: CommandLine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models with two inputs, with state, and with values of many types: verified while it was built."""
    fetch_runtime(bundler.cache)
    folder = tmp_path_factory.mktemp("minds")
    made = {
        "mix": two_inputs(),
        "hear": make_gru(),
        "grow": make_decoder(),
        "words": models.strings(),
        "brain": models.bfloat16_model(),
        "half": models.passing(TensorProto.FLOAT16),
        "log": models.nan_output(),
        "scale": models.overridable(),
        "noise": models.random_model(),
        "is_odd": models.passing(TensorProto.BOOL),
    }
    parts = [f"{name}={models.save(model, folder, f'{name}.onnx')}" for name, model in made.items()]
    built = bundler.build(
        *(*parts, "--bundle", "minds", *(word for state in STATES for word in ("--state", state))),
        *("--target", "linux-x64", "--format", "jar", "--package-name", "com.acme.minds", "--version", "1.2.3"),
        *("--output", folder / "out"),
    )
    return Path(built["bundle"])


@pytest.fixture(scope="module")
def classes(bundle: Path, bundler: CommandLine, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, bytes]:
    """Its classes with all faults, by their entries."""
    folder = tmp_path_factory.mktemp("faults")
    broken = [(fault, alteration) for fault, (parts, _) in BROKEN.items() for alteration in parts]
    found: dict[tuple[str, str, str], list[str]] = {}
    for fault, (name, old, new) in (*((fault, one) for fault, (*one, _, _) in FAULTS.items()), *broken):
        found.setdefault((name, old, new), []).append(f'com.acme.minds.loader.Fault.has("{fault}")')
    with zipfile.ZipFile(bundle / "minds-1.2.3-sources.jar") as sources:
        texts = {name: sources.read(name).decode("utf-8") for name, _, _ in found}
    for (name, old, new), conditions in found.items():
        assert texts[name].count(old) >= 1, old
        texts[name] = texts[name].replace(old, new % f"({' || '.join(conditions)})")
    texts[STREAM] += FAULT
    for name, text in texts.items():
        (folder / Path(name).name).write_text(text, "utf-8")
    jar = bundle / "minds-1.2.3.jar"
    work = Compilation(
        sources=sorted(folder.glob("*.kt")), libraries=fetch_runtime(bundler.cache), module="minds", friends=[jar]
    )
    compile_kotlin(work, folder / "made", Environments(bundler.cache), SILENT, rules=())
    made = folder / "made"
    return {path.relative_to(made).as_posix(): path.read_bytes() for path in made.rglob("*.class")}


def prove(bundle: Path, cache: Path) -> dict[str, VariantProof]:
    proofs = prove_bundle(ProofRequest(bundle=bundle, cache_root=cache, listener=ignore, compare=compare))
    return {proof.component: proof for proof in proofs}


def alter(bundle: Path, folder: Path, classes: Mapping[str, bytes], fault: str) -> Path:
    copy = Path(shutil.copytree(bundle, folder / "copy", copy_function=shutil.copy))
    replace_entries(copy / "minds-1.2.3.jar", {**classes, "fault": fault.encode()})
    return copy


def test_honest_classes_are_believed(bundle: Path, bundler: CommandLine) -> None:
    proofs = prove(bundle, bundler.cache)
    assert {name: proof.passed for name, proof in proofs.items()} == dict.fromkeys(proofs, True)
    for name, proof in proofs.items():
        assert "compared by" not in proof.reason
        streams = " and its streams" if name in ("hear", "grow") else ""
        type_ = "".join(word.title() for word in name.split("_"))
        assert proof.reason.endswith(f"; its class {type_}{streams} gave the same outputs")


def test_without_a_fault_the_altered_jar_is_believed(
    bundle: Path, classes: Mapping[str, bytes], bundler: CommandLine, tmp_path: Path
) -> None:
    proofs = prove(alter(bundle, tmp_path, classes, "none"), bundler.cache)
    assert {proof.reason for proof in proofs.values() if not proof.passed} == set()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(
    bundle: Path, classes: Mapping[str, bytes], bundler: CommandLine, tmp_path: Path, fault: str
) -> None:
    *_, component, reason = FAULTS[fault]
    proof = prove(alter(bundle, tmp_path, classes, fault), bundler.cache)[component]
    assert proof.passed is False
    assert proof.reason.startswith(reason)


@pytest.mark.parametrize("broken", BROKEN)
def test_a_comparison_that_is_broken_is_found(
    bundle: Path, classes: Mapping[str, bytes], bundler: CommandLine, tmp_path: Path, broken: str
) -> None:
    _, reason = BROKEN[broken]
    proof = prove(alter(bundle, tmp_path, classes, broken), bundler.cache)["mix"]
    assert proof.passed is not bool(reason), proof.reason
    assert reason in proof.reason


def test_of_large_outputs_the_first_are_compared_and_the_proof_says_so(
    bundle: Path, classes: Mapping[str, bytes], bundler: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(brought, "MAX_BYTES", 1)
    proofs = prove(bundle, bundler.cache)
    for proof in proofs.values():
        assert proof.passed is True
        assert f"{BY_LOADER}; bundler compared 1 of " in proof.reason
    for broken in (
        "outputs are a little wrong, and compared with themselves",
        "one sample is run, and all are reported",
    ):
        copy = alter(bundle, tmp_path / broken[:4], classes, broken)
        assert BROKEN[broken][1] in prove(copy, bundler.cache)["mix"].reason


def test_each_variant_has_its_outputs_compared(bundler: CommandLine, tmp_path: Path) -> None:
    """An app gets the first alone."""
    profile = (ROOT / "targets" / "linux-x64.toml").read_text("utf-8")
    other = '[[variants]]\nname = "spare"\nproviders = [{ name = "cpu" }]\n\n[sources]'
    (tmp_path / "twice.toml").write_text(profile.replace("[sources]", other), "utf-8")
    parts = [f"{name}={models.save(models.mlp(), tmp_path, f'{name}.onnx')}" for name in ("one", "two")]
    for arguments in (parts[:1], (*parts, "--bundle", "pair")):
        built = bundler.build(
            *(*arguments, "--target", tmp_path / "twice.toml", "--format", "jar"),
            *("--output", tmp_path / f"out{len(arguments)}"),
        )
        proofs = prove_bundle(
            ProofRequest(bundle=Path(built["bundle"]), cache_root=bundler.cache, listener=ignore, compare=compare)
        )
        assert {proof.variant for proof in proofs} == {"cpu", "spare"}
        assert all(proof.passed and "compared by" not in proof.reason for proof in proofs)
        assert all(("; its class" in proof.reason) is (proof.variant == "cpu") for proof in proofs)


def test_nothing_is_claimed_where_the_program_cannot_be_compiled(
    bundle: Path, bundler: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> Path:
        raise EnvironmentMissingError("Maven is not on the PATH")

    monkeypatch.setattr(calling, "compile_caller", refuse)
    proof = prove(bundle, bundler.cache)["mix"]
    assert proof.passed is True
    assert proof.reason.endswith(f"{BY_LOADER}; its classes were not called: Maven is not on the PATH")
