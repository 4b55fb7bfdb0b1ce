"""A finished build as data, the way the executor hands it on: nothing here is read from a real run."""

import dataclasses
import hashlib
import random
import zipfile
from collections.abc import Mapping
from pathlib import Path

from bundler.emitters.web.vendor import list_builds
from bundler.model.artifacts import Artifact, FileRecord, make_artifact
from bundler.model.codec import encode
from bundler.model.facts import ModelFacts
from bundler.model.golden_inputs import Weakness
from bundler.model.manifest import (
    ComponentRecord,
    GateRecord,
    GoldenOutput,
    GoldenRecord,
    Manifest,
    ProofRecord,
    VariantProofRecord,
)
from bundler.model.measurement import Measurement
from bundler.model.plan import BuildPlan, ComponentPlan, Decision, Step, VariantPlan
from bundler.model.proof import Dependency, Download, DownloadFile, DownloadRole, Emitted, RanOn, VariantProof
from bundler.model.reference import ReferenceFigures
from bundler.model.results import Comparison, OutputComparison, StepOutcome
from bundler.model.runtime import (
    RUNTIME_SCHEMA,
    SOLE,
    Compatibility,
    Gate,
    ProviderEntry,
    RuntimeComponent,
    RuntimeConfig,
    RuntimeVariant,
    Tolerance,
)
from bundler.model.signature import Port, Signature, ValueType
from bundler.model.stage import Note
from bundler.profiles.schema import Platform, Provider, Runtime, TargetProfile, Variant
from bundler.profiles.sections import profile_model
from bundler.reporting.data import ComponentReport, ReportData
from bundler.reporting.manifest import ManifestRequest, RecordedComponent, make_manifest, render_manifest

OPERATORS = {"Conv": 63, "Mul": 58, "Sigmoid": 40, "Add": 31, "HardSwish": 14, "GlobalAveragePool": 9, "Identity": 7}
SIMPLIFIED = {"Conv": 63, "Mul": 40, "Sigmoid": 40, "Add": 31, "HardSwish": 14, "GlobalAveragePool": 9}
FUSED = {"com.microsoft.FusedConv": 41, "Conv": 22, "Mul": 18, "Add": 24, "HardSwish": 14, "GlobalAveragePool": 9}
TOLERANCE = Tolerance(absolute=1e-4, relative=1e-3, sqnr_db=40.0)

MODEL_STEPS = (
    ("simplify", "model", None, SIMPLIFIED, 579_100, "the profile asks for it"),
    ("cpu/optimize", "simplify", "cpu", FUSED, 561_804, "the highest level that is right on every CPU of the target"),
    ("cpu/convert_ort", "cpu/optimize", "cpu", FUSED, 588_320, "opens faster than the ONNX file"),
)


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def make_facts(name: str = "orientation", output: str = "scores") -> ModelFacts:
    tensor = ValueType(element_type="float32", shape=("batch", 3, 48, 192))
    return ModelFacts(
        name=name,
        ir_version=7,
        opsets={"": 14},
        producer="pytorch",
        signature=Signature(inputs=(Port(name="x", type=tensor),), outputs=(Port(name=output, type=tensor),)),
        operators=OPERATORS,
        node_count=sum(OPERATORS.values()),
        parameter_count=140_000,
        file_bytes=585_532,
        weight_bytes=560_000,
        external_bytes=0,
        external_files=(),
        custom_domains=(),
        random_operators=(),
        control_flow=False,
        quantized=False,
        peak_memory_bytes=9_000_000,
    )


def make_profile() -> TargetProfile:
    return profile_model()(
        id="linux-x64",
        title="Linux on x86-64",
        group="Servers and desktops",
        platform=Platform(system="linux", architecture="x64", minimum="2.28"),
        runtime=Runtime(version="1.31.1"),
        variants=(Variant(name="cpu", providers=(Provider(name="cpu"),)),),
    )


def make_component_plan(name: str = "orientation", component: str = SOLE) -> ComponentPlan:
    steps = [Step(id="record_golden", stage="record_golden", inputs={"model": "model"}, options={"seed": 0})]
    for step_id, source, variant, _, _, reason in MODEL_STEPS:
        stage = step_id.rpartition("/")[2]
        steps.append(Step(id=step_id, stage=stage, inputs={"model": source}, variant=variant, reason=reason))
        inputs = {"model": step_id, "golden": "record_golden"}
        steps.append(Step(id=f"{step_id}/compare", stage="compare", inputs=inputs, variant=variant))
    cpu = VariantPlan(
        name="cpu",
        model="cpu/convert_ort",
        providers=(ProviderEntry(name="ExampleProvider", options={}),),
        session={"intra_op_num_threads": 4},
        session_config={"session.intra_op.allow_spinning": "0"},
        comparisons=tuple(f"{step[0]}/compare" for step in MODEL_STEPS),
    )
    return ComponentPlan(
        name=component,
        model_name=name,
        steps=tuple(steps),
        golden="record_golden",
        variants=(cpu,),
        decisions=(
            Decision(subject="dimension batch", choice="dynamic", reason="nobody fixed it"),
            Decision(subject="optimisation level", choice="extended", reason="higher levels bake the host's layout"),
            Decision(subject="model format", choice="ort", reason="a small network opens faster from ORT format"),
        ),
    )


def make_plan(*components: ComponentPlan, name: str = "orientation") -> BuildPlan:
    return BuildPlan(name=name, target="linux-x64", emitter="python", format="dir", components=components)


def make_output(name: str, error: float, *, equal: bool = False) -> OutputComparison:
    return OutputComparison(
        name=name,
        equal=equal,
        max_absolute=error,
        mean_absolute=error / 7,
        max_relative=error * 3,
        cosine=1.0,
        sqnr_db=None if equal else 131.4,
        top1_agreement=1.0,
        worst_sqnr_db=None if equal else 122.8,
        reference=ReferenceFigures(name=name, elements=15, signal=2.5, scores=True),
    )


def make_outcomes(
    plan: ComponentPlan, output: str = "scores", note: str = "Dropped 7 Identity nodes"
) -> list[StepOutcome]:
    sizes = {step[0]: (step[3], step[4]) for step in MODEL_STEPS}
    outcomes = [_outcome("inspect", "inspect", encode(make_facts(output=output)), None)]
    for step in plan.steps:
        if step.stage == "compare":
            first = step.inputs["model"] == "simplify"
            comparison = Comparison(outputs=(make_output(output, 0.0 if first else 2.4e-7, equal=first),), samples=3)
            outcomes.append(_outcome(step.id, step.stage, encode(comparison), None))
        elif step.id in sizes:
            operators, size = sizes[step.id]
            notes = (Note(text=note),) if step.stage == "simplify" else ()
            outcomes.append(_outcome(step.id, step.stage, {"operators": operators}, size, notes))
        else:
            notes = (Note(text="No samples were given; inputs are synthetic", level="warning"),)
            outcomes.append(_outcome(step.id, step.stage, {"synthetic": True, "seed": 0}, None, notes))
    return outcomes


def _outcome(step_id, stage, facts, size, notes=()) -> StepOutcome:
    artifact: Artifact | None = None
    if size is not None:
        artifact = make_artifact((FileRecord(path="model.onnx", size=size, sha256=sha(step_id)),))
    return StepOutcome(
        step=step_id,
        stage=stage,
        key=sha(f"key of {step_id}"),
        artifact=artifact,
        folder=Path("/nowhere") if artifact else None,
        entry="model.onnx" if artifact else None,
        facts=facts,
        notes=tuple(notes),
        ingredients={"stage": stage, "machine": "x86_64", "packages": {"onnx": "1.23.2", "onnxruntime": "1.31.1"}},
        seconds=0.31,
        cached=stage == "inspect",
    )


def make_component(facts: ModelFacts, name: str = SOLE) -> RuntimeComponent:
    folder = "" if name == SOLE else f"{name}/"
    path = f"models/{folder}cpu/model.ort"
    variant = RuntimeVariant(
        name="cpu",
        model=path,
        files=(FileRecord(path=path, size=588_320, sha256=sha("model.ort")),),
        providers=(ProviderEntry(name="ExampleProvider", options={"use_arena": "1"}),),
        session={"intra_op_num_threads": 4},
        session_config={"session.intra_op.allow_spinning": "0"},
        disabled_optimizers=(),
        requires=Compatibility(systems=("Linux",), machines=("x86_64",), runtime="1.31.1"),
        gate=Gate(default=TOLERANCE),
    )
    return RuntimeComponent(
        name=name,
        model=facts.name,
        model_digest=sha("the model") if name == SOLE else sha(facts.name),
        signature=facts.signature,
        variants=(variant,),
        golden=f"golden/{folder}".rstrip("/"),
        golden_digest=sha("golden"),
    )


def make_config(facts: ModelFacts) -> RuntimeConfig:
    return join_components(facts.name, make_component(facts))


def join_components(name: str, *components: RuntimeComponent) -> RuntimeConfig:
    return RuntimeConfig(schema=RUNTIME_SCHEMA, name=name, target="linux-x64", components=components, fallback="report")


def make_dependency(**changes: object) -> Dependency:
    runtime = Dependency(
        name="onnxruntime",
        version="1.31.1",
        licence="MIT",
        licence_text="MIT License\n\nCopyright (c) Microsoft Corporation",
        purl="pkg:pypi/onnxruntime@1.31.1",
        sha256=sha("onnxruntime wheel"),
        file="wheels/onnxruntime-1.31.1-cp311-cp311-manylinux_2_28_x86_64.whl",
    )
    return dataclasses.replace(runtime, **changes)


def write_bundle(folder: Path) -> Path:
    """A small folder that looks like a bundle, without its manifest."""
    for path, size in (
        ("orientation/payload/models/cpu/model.ort", 5_883),
        ("README.md", 900),
    ):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(b"x" * size)
    (folder / "wheels").mkdir()
    with zipfile.ZipFile(folder / "wheels/a.whl", "w") as wheel:
        wheel.writestr(zipfile.ZipInfo("a/b.py"), b"x" * 23_690)  # 23,800 bytes with its headers
    return folder


def record_component(
    plan: ComponentPlan, facts: ModelFacts, output: str = "scores", note: str = ""
) -> RecordedComponent:
    return RecordedComponent(
        facts=facts,
        outcomes=make_outcomes(plan, output, note),
        gate=GateRecord(gates={step: Gate(default=TOLERANCE) for step in plan.variants[0].comparisons}, passed=True),
        synthetic_inputs=True,
        golden=GoldenRecord(
            samples=3,
            outputs=(
                GoldenOutput(name=output, elements=15),
                GoldenOutput(name="boxes", elements=0, unjudged="it is empty in every sample"),
            ),
            weaknesses=(Weakness(kind="synthetic", name="", text="the inputs are seeded, not real data"),),
        ),
    )


def make_proof(*components: str) -> ProofRecord:
    return ProofRecord(
        level="executed",
        reason="the golden set was reproduced in the bundle's own runtime",
        variants=tuple(
            VariantProofRecord(
                component=component,
                variant="cpu",
                level="executed",
                passed=True,
                reason="ran with onnxruntime 1.31.1",
                ran_on=RanOn(device="local", system="Linux", processor="x86_64", runtime="onnxruntime 1.31.1"),
            )
            for component in components
        ),
    )


def make_request(
    name: str = "orientation", output: str = "scores", note: str = "Dropped 7 Identity nodes"
) -> ManifestRequest:
    plan, facts = make_component_plan(name), make_facts(name, output)
    return ManifestRequest(
        plan=make_plan(plan, name=name),
        profile=make_profile(),
        config=make_config(facts),
        emitted=Emitted(payload="orientation/payload", package="orientation", dependencies=()),
        components={SOLE: record_component(plan, facts, output, note)},
        proof=make_proof(SOLE),
    )


def make_request_of_several(*names: str) -> ManifestRequest:
    """Of a bundle whose components have these names, and models of the same names."""
    plans = {name: make_component_plan(f"{name}.onnx", name) for name in names}
    facts = {name: make_facts(f"{name}.onnx") for name in names}
    return ManifestRequest(
        plan=make_plan(*plans.values(), name="ocr"),
        profile=make_profile(),
        config=join_components("ocr", *(make_component(facts[name], name) for name in names)),
        emitted=Emitted(payload="ocr/payload", package="ocr", dependencies=()),
        components={name: record_component(plans[name], facts[name], "scores", f"note on {name}") for name in names},
        proof=make_proof(*names),
    )


def make_measurement(component: str = SOLE) -> Measurement:
    chance = random.Random(7)  # noqa: S311 - the same noise on every run, not a secret

    def series(middle: float, count: int) -> tuple[float, ...]:
        return tuple(middle * (1 + abs(chance.gauss(0, 0.05))) for _ in range(count))

    return Measurement(
        name="golden sample 0",
        component=component,
        variant="cpu",
        opening_ms=series(11.4, 15),
        latency_ms=series(1.62, 60),
        baseline_opening_ms=series(24.9, 15),
        baseline_latency_ms=series(1.64, 60),
    )


NODES = {"ExampleProvider": 121, "OtherProvider": 7}


def prove(component: str, variant: str, nodes: Mapping[str, int]) -> VariantProof:
    return VariantProof(
        component=component,
        variant=variant,
        level="executed",
        passed=True,
        comparison=None,
        reason="",
        figures={},
        nodes=nodes,
    )


def make_report(manifest: Manifest, request: ManifestRequest, **changes: object) -> ReportData:
    parts = tuple(
        ComponentReport(
            plan=plan,
            outcomes=request.components[plan.name].outcomes,
            facts=request.components[plan.name].facts,
            record=manifest.component(plan.name),
            proofs=(prove(plan.name, "cpu", NODES),),
            measurements=(make_measurement(plan.name),),
        )
        for plan in request.plan.components
    )
    data = ReportData(
        manifest=manifest,
        components=parts,
        bundle_bytes=manifest.size + len(render_manifest(manifest).encode("utf-8", "replace")),
        phases={"emit": 1.4, "prove": 6.3},
        log=("step simplify started", "step simplify finished"),
    )
    return change_report(data, **changes) if changes else data


def change_manifest(manifest: Manifest, **changes: object) -> Manifest:
    """The manifest of one model with changes of itself, and of its component where they are that one's."""
    (record,) = manifest.components
    own = {name: value for name, value in changes.items() if name in ComponentRecord.__annotations__ and name != "name"}
    whole = {name: value for name, value in changes.items() if name not in own}
    return dataclasses.replace(manifest, components=(dataclasses.replace(record, **own),), **whole)


def change_report(data: ReportData, **changes: object) -> ReportData:
    """The report on one model with changes of itself, and of its component where they are that one's. `assignments` are
    nodes by provider for each variant.
    """
    (part,) = data.components
    assignments = changes.pop("assignments", None)
    if assignments is not None:
        changes["proofs"] = tuple(prove(SOLE, variant, nodes) for variant, nodes in assignments.items())
    manifest = changes.get("manifest", data.manifest)
    own = {name: value for name, value in changes.items() if name in ComponentReport.__annotations__}
    whole = {name: value for name, value in changes.items() if name not in own}
    part = dataclasses.replace(part, **{"record": manifest.components[0], **own})
    return dataclasses.replace(data, components=(part,), **whole)


def make_manifest_of(folder: Path, request: ManifestRequest) -> Manifest:
    return make_manifest(write_bundle(folder), request)


def make_downloads(variant: str = "webgpu") -> tuple[Download, ...]:
    """Of a target with a GPU variant, whose runtime has two builds, and one for the CPU."""

    def file(path: str, role: DownloadRole, size: int, share: float) -> DownloadFile:
        return DownloadFile(path=path, role=role, size=size, gzip=round(size * share * 1.5), brotli=round(size * share))

    def visit(name: str, build: str, size: int) -> Download:
        files = (
            file("index.js", "loader", 323, 0.5),
            file("loader/index.js", "loader", 76_000, 0.3),
            file(f"vendor/{build}.mjs", "runtime", 110_000, 0.3),
            file(f"vendor/{build}.wasm", "runtime", size, 0.16),
            file(f"payload/models/{name}/model.onnx", "model", 527_000, 0.66),
        )
        return Download(variant=name, build=build, browsers=list_builds()[build].browsers, files=files)

    sizes = (("jspi", 16_758_545), ("asyncify", 26_781_914))
    return (*(visit(variant, *size) for size in sizes), visit("wasm", "wasm", 14_239_897))
