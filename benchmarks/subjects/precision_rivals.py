"""The command lines of other tools that change a model's precision, in environments of their own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import uv
from processes import CHILDREN, PYTHON, CommandError, run_timed
from workplace import Workplace

TORCH = "torch==2.13.0"
LOCKS = Path(__file__).parents[1] / "locks"
"""Environments whose every file is known by its digest."""
ENVIRONMENTS: Mapping[str, tuple[str, ...]] = {
    # The newest optimum excludes the newest optimum-onnx.
    "optimum": ("optimum-onnx==0.1.0", "optimum==2.1.0", "onnxruntime==1.31.1", "onnx==1.23.2"),
    "exporters": (
        *("optimum-onnx==0.1.0", "optimum==2.1.0", "onnxruntime==1.31.1", "onnx==1.23.2"),
        *("transformers==4.57.6", "onnxscript==0.7.2", "onnx-ir==1.1.0"),
    ),
}
# Whatever its switches say, Olive sends a first message home, and waits up to ten seconds for the answer where there
# is no network; not if it takes itself for a job of continuous integration.
OFFLINE = {"HF_HUB_OFFLINE": "1", "OLIVE_DISABLE_TELEMETRY": "1", "CI": "1"}
READY = "ready"
_BROKEN: dict[str, CommandError] = {}
"""Environments that could not be made: nobody waits for that twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a rival is to do: `model` is alone in its folder but for what an export put there; `calibration` holds .npz
    samples; `output` does not exist yet.
    """

    model: Path
    calibration: Path
    output: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """One command line. `arguments` follow the tool's program; `result` is what it leaves in the output folder."""

    name: str
    environment: str
    program: str
    arguments: Callable[[Job], list[str]]
    result: str

    def command(self, workplace: Workplace, job: Job) -> list[str]:
        """The whole command, in an empty folder of its own: Olive keeps a cache where it runs, so that a second run
        would be none. The output folder is made anew.
        """
        place = job.output.with_suffix(".run")
        for folder in (job.output, place):
            shutil.rmtree(folder, ignore_errors=True)
        place.mkdir(parents=True)
        program = find_program(workplace, self.environment, self.program)
        return ["sh", "-c", 'cd "$0" && exec "$@"', str(place), str(program), *self.arguments(job)]


def find_program(workplace: Workplace, environment: str, program: str) -> Path:
    """A program of an environment, which is made when it is not there. Raises `CommandError`."""
    folder = workplace.folder / "rivals" / environment
    if environment in _BROKEN:
        raise _BROKEN[environment]
    try:
        if not (folder / READY).exists():
            _make_environment(folder, environment)
    except CommandError as error:
        _BROKEN[environment] = error
        raise
    return folder / "bin" / program


def _make_environment(folder: Path, name: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    run_timed([PYTHON, "-m", "venv", str(folder)])
    python, lock = str(folder / "bin" / "python"), LOCKS / f"{name}.txt"
    install = [str(uv.find_uv_bin()), "pip", "install", "--quiet", "--python", python]
    if lock.exists():
        run_timed([*install, "--require-hashes", "--requirement", str(lock)])
    else:
        _install_unlocked(python, install, ENVIRONMENTS[name])
    (folder / READY).touch()


def _install_unlocked(python: str, install: list[str], packages: tuple[str, ...]) -> None:
    # pip, for it looks where its own settings say: there may be a build for CPUs, gigabytes smaller than the index's.
    run_timed([python, "-m", "pip", "install", "--quiet", TORCH])
    run_timed([*install, TORCH, *packages])


def describe_versions(workplace: Workplace) -> str:
    """What is installed, for the section's notes; and what cannot be."""
    code = "import importlib.metadata as m, sys; print(', '.join(f'{n} {m.version(n)}' for n in sys.argv[1:]))"
    packages = {"olive": ("olive-ai", "torch", "transformers"), "optimum": ("optimum", "optimum-onnx", "torch")}
    found = []
    for environment, names in packages.items():
        try:
            python = find_program(workplace, environment, "python")
            found.append(run_timed([str(python), "-c", code, *names]).output.strip())
        except CommandError as error:
            found.append(f"{environment} could not be installed: {error.reason}")
    return "; ".join(found)


def _olive_quantize(job: Job) -> list[str]:
    options = ("--implementation", "ort", "--precision", "int8", "--algorithm", "rtn", "--disable_telemetry")
    return ["quantize", "-m", str(job.model), *options, "-o", str(job.output)]


def _olive_auto(precision: str) -> Callable[[Job], list[str]]:
    def arguments(job: Job) -> list[str]:
        where = ("--device", "cpu", "--provider", "CPUExecutionProvider", "--disable_telemetry")
        return ["auto-opt", "-m", str(job.model), *where, "--precision", precision, "-o", str(job.output)]

    return arguments


def _olive_optimize(job: Job) -> list[str]:
    where = ("--device", "cpu", "--provider", "CPUExecutionProvider", "--disable_telemetry")
    return ["optimize", "-m", str(job.model), "--precision", "fp32", *where, "-o", str(job.output)]


def _olive_blocks(job: Job) -> list[str]:
    options = ("--implementation", "olive", "--precision", "int4", "--algorithm", "rtn", "--disable_telemetry")
    return ["quantize", "-m", str(job.model), *options, "-o", str(job.output)]


def _olive_static(calibrate: str) -> Callable[[Job], list[str]]:
    def arguments(job: Job) -> list[str]:
        config = job.output.with_suffix(".json")
        config.write_text(json.dumps(_configure_static(job, calibrate)), encoding="utf-8")
        return ["run", "--config", str(config)]

    return arguments


def _configure_static(job: Job, calibrate: str) -> dict[str, object]:
    accelerator = {"device": "cpu", "execution_providers": ["CPUExecutionProvider"]}
    quantize = {
        "type": "OnnxStaticQuantization",
        "data_config": "calibration",
        "precision": "int8",
        "activation_type": "uint8",
        "quant_format": "QDQ",
        "calibrate_method": calibrate,
        "per_channel": False,
        "prepare_qdq_config": False,
    }
    data = {
        "name": "calibration",
        "user_script": str(CHILDREN / "olive_data.py"),
        "load_dataset_config": {"type": "npz_folder", "data_dir": str(job.calibration)},
        "dataloader_config": {"type": "no_auto_batch_dataloader"},
    }
    return {
        "input_model": {"type": "OnnxModel", "model_path": str(job.model)},
        "systems": {"local": {"type": "LocalSystem", "accelerators": [accelerator]}},
        "data_configs": [data],
        "passes": {"quantize": quantize},
        "host": "local",
        "target": "local",
        "no_artifacts": True,
        "output_dir": str(job.output),
    }


def _optimum(action: str, option: str) -> Callable[[Job], list[str]]:
    def arguments(job: Job) -> list[str]:
        return ["onnxruntime", action, "--onnx_model", str(job.model.parent), option, "-o", str(job.output)]

    return arguments


def _olive(name: str, arguments: Callable[[Job], list[str]]) -> Rival:
    return Rival(name=name, environment="olive", program="olive", arguments=arguments, result="model.onnx")


OLIVE_QUANTIZE = _olive("olive quantize", _olive_quantize)
OLIVE_AUTO = _olive("olive auto-opt, int8", _olive_auto("int8"))
OLIVE_FUSE = _olive("olive auto-opt, fp32", _olive_auto("fp32"))
OLIVE_OPTIMIZE = _olive("olive optimize, fp32", _olive_optimize)
OLIVE_BLOCKS = _olive("olive quantize, int4", _olive_blocks)
OLIVE_STATIC = _olive("olive run, static", _olive_static("MinMax"))
OPTIMUM_QUANTIZE = Rival(
    name="optimum-cli quantize",
    environment="optimum",
    program="optimum-cli",
    arguments=_optimum("quantize", "--avx512_vnni"),
    result="model_quantized.onnx",
)
OPTIMUM_OPTIMIZE = Rival(
    name="optimum-cli optimize -O2",
    environment="optimum",
    program="optimum-cli",
    arguments=_optimum("optimize", "-O2"),
    result="model_optimized.onnx",
)
