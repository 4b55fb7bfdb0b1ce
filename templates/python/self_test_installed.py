"""Run the self-test of an installed package, call its classes as an app does, and open it as other installers would
have laid its files.

self_test_installed.py PACKAGE COPY COMPONENTS OUTPUTS WANTED [ARGUMENT…]

pip copies files, uv makes hard or symbolic links, and an image or an administrator leaves a folder that its user may
not write to. The runtime refuses some files that are links. COPY is a folder with a copy of the package, or empty: then
the package is copied. COMPONENTS is JSON: by name, the class of each component, the names of its inputs and outputs in
Python by their ONNX names, the digest of its model, its golden set, and its state. The outputs of the self-test are
written below the folder OUTPUTS, as WANTED says (JSON): by component and variant, the `folder`, that for
the device's own `copy` of the model, and how many `samples`.

Prints the report of `self-test ARGUMENT…`; each variant that passed gets `calls`: why its class answers otherwise than
the model that the self-test ran (nothing: it does not), and `installations`: how its files lay, and why it did not open
(nothing: it did).
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import itertools
import json
import math
import os
import runpy
import shutil
import sys
import tempfile
import types
from collections.abc import Callable, Container, Iterator
from pathlib import Path
from typing import Any

READ_ONLY = 0o555
MOST_STEPS = 8
"""Of a stream, that are called."""


def main(package: str, copy: str, components: str, outputs: str, wanted: str, *arguments: str) -> int:
    """Print the report; returns the exit code of the self-test."""
    sys.path[:] = [place for place in sys.path if place != str(Path(__file__).parent)]
    with keep_outputs(package, Path(outputs), json.loads(wanted)):
        text, code = run_self_test(package, arguments)
    with contextlib.suppress(ValueError):
        report = json.loads(text)
        with contextlib.redirect_stdout(sys.stderr):
            outcomes = [item for item in report.get("variants", ()) if is_openable(item)]
            open_elsewhere(package, copy, outcomes, json.loads(components))
        text = json.dumps(report) + "\n"
    sys.stdout.write(text)
    return code


@contextlib.contextmanager
def keep_outputs(package: str, folder: Path, wanted: dict[str, Any]) -> Iterator[None]:
    """While it lasts, write what each opened variant answers first: the self-test runs its samples in their order."""
    kept: dict[str, list[dict[str, Any]]] = {}
    try:
        base = importlib.import_module(f"{package}._loader.model").BundledModel
        begin = base._begin  # noqa: SLF001 - where the loader says what is called from now on
    except Exception:  # noqa: BLE001 - the self-test says why the package cannot be imported
        yield
        return

    def watch(model: Any, component: Any, opened: Any, report: Any, *others: Any) -> None:
        begin(model, component, opened, report, *others)
        task = wanted.get(component.name, {}).get(report.variant)
        if task is None:
            return
        run = model._run  # noqa: SLF001
        place = task["copy" if report.device_copy else "folder"]
        samples = kept.setdefault(place, [])

        def call(values: Any) -> Any:
            results = run(values)
            if len(samples) < task["samples"]:
                write = Writer(folder / place, len(samples))
                samples.append(
                    {"name": str(len(samples)), "inputs": {}, "outputs": write.ports(component.outputs, results)}
                )
            return results

        if not samples:  # a variant that is opened again answered already
            model._run = call  # noqa: SLF001

    base._begin = watch  # noqa: SLF001
    try:
        yield
    finally:
        base._begin = begin  # noqa: SLF001
        for place, samples in kept.items():
            (folder / place).mkdir(exist_ok=True)
            index = {"synthetic": False, "seed": None, "unstable_outputs": [], "samples": samples}
            (folder / place / "index.json").write_text(json.dumps(index), "ascii")


class Writer:
    """Writes the outputs of one sample, in the form of the golden set."""

    def __init__(self, folder: Path, sample: int) -> None:
        self.folder = folder
        self.sample = sample
        self.written = 0

    def ports(self, ports: Any, values: Any) -> dict[str, Any]:
        """The entries of all outputs, by ONNX name."""
        return {port.name: self.write(value, port.element_type) for port, value in zip(ports, values, strict=True)}

    def write(self, value: Any, element_type: str | None) -> dict[str, Any]:
        """The entry of one value. `element_type` names what NumPy lacks: of that, the array has the bits."""
        if value is None:
            return {"kind": "none"}
        if isinstance(value, list):
            return {"kind": "sequence", "items": [self.write(item, element_type) for item in value]}
        if isinstance(value, dict):
            return {"kind": "map", "keys": list(map(plain, value)), "values": list(map(plain, value.values()))}
        entry = {"kind": "tensor", "shape": list(value.shape)}
        if value.dtype.kind in "OUS":
            return {**entry, "type": "str", "values": [str(item) for item in value.reshape(-1)]}
        name = f"{self.sample}-{self.written}.bin"
        self.written += 1
        self.folder.mkdir(exist_ok=True)
        value.astype(value.dtype.newbyteorder("<"), copy=False).tofile(self.folder / name)
        stored = element_type if element_type in BITS and value.dtype.name == BITS[element_type] else value.dtype.name
        return {**entry, "type": stored, "file": name}


BITS = {"bfloat16": "uint16", **{f"float8e{kind}": "uint8" for kind in ("4m3fn", "4m3fnuz", "5m2", "5m2fnuz")}}
"""Element types that NumPy lacks, and the type of an array with their bits."""


def plain(value: Any) -> Any:
    """A key or a value of a map, as JSON has it."""
    number = value.item() if hasattr(value, "item") else value
    if isinstance(number, float) and not math.isfinite(number):
        return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    return number


def run_self_test(package: str, arguments: tuple[str, ...]) -> tuple[str, int]:
    """As `python -m PACKAGE self-test` does: its output and its exit code."""
    sys.argv[:] = [package, "self-test", *arguments]
    with contextlib.redirect_stdout(io.StringIO()) as output:
        try:
            runpy.run_module(package, run_name="__main__", alter_sys=True)
        except SystemExit as ending:
            return output.getvalue(), ending.code if isinstance(ending.code, int) else 1
    return output.getvalue(), 0


def is_openable(outcome: dict[str, Any]) -> bool:
    """Whether it ran on the shipped files: what was generated for it here is gone."""
    return outcome["status"] == "passed" and "prewarm_seconds" not in outcome["figures"]


def call(module: Any, kind: Any, model: Any, name: str, about: dict[str, Any]) -> str:
    """Why the class answers otherwise than its model; nothing where it does not."""
    try:
        return check_calls(module, kind, model, name, about)
    except Exception as error:  # noqa: BLE001 - as in `open_variant`
        return explain(error)


def check_calls(module: Any, kind: Any, model: Any, name: str, about: dict[str, Any]) -> str:
    """Whether the class opens its own component, and its methods take and give values by their own names."""
    if model._component.data["model_digest"] != about["model_digest"]:  # noqa: SLF001 - the loader says what it runs
        return f"{about['class']} opens another model"
    if hasattr(module, "Bundle"):
        with module.Bundle.open(only=name, lazy=True) as bundle:
            if type(getattr(bundle, name)) is not kind:
                return f"Bundle.{name} is another component"
    samples = list(itertools.islice(read_golden(module, about), MOST_STEPS))
    if about["state"] and not about["unstable"]:
        return check_stream(model, samples, about)
    outputs = run_directly(model, samples[0].inputs, about)
    return find_difference(model.run(**name_inputs(samples[0].inputs, about)), outputs, about, "run")


def check_stream(model: Any, samples: list[Any], about: dict[str, Any]) -> str:
    """Whether streams answer as the model with its state passed by hand: two at once, after a reset, and restored."""
    steps: list[dict[str, Any]] = []
    held: dict[str, Any] = {}
    for sample in samples:
        steps.append(run_directly(model, {**sample.inputs, **held}, about))
        held = {taken: steps[-1][given] for taken, given in about["state"].items()}
    inputs = [name_inputs(sample.inputs, about, without=about["state"]) for sample in samples]
    saved: dict[str, Any] = {}
    with model.stream() as first, model.stream() as second:
        for place, (given, wanted) in enumerate(zip(inputs, steps, strict=True)):
            if place == len(inputs) // 2:
                saved = first.state
            found = find_difference(first.run(**given), wanted, about, f"step {place + 1} of a stream")
            if not found and place == min(1, len(inputs) - 1):  # the first stream has left its initial state
                found = find_difference(second.run(**inputs[0]), steps[0], about, "a second stream's first step")
            if found:
                return found
        first.state = saved
        place = len(inputs) // 2
        found = find_difference(first.run(**inputs[place]), steps[place], about, "a step after its state was restored")
        first.reset()
        return found or find_difference(first.run(**inputs[0]), steps[0], about, "the first step after a reset")


def read_golden(module: Any, about: dict[str, Any]) -> Iterator[Any]:
    """The recorded samples of the component that the bundle says it is, whatever the class opens."""
    golden = importlib.import_module(f"{module.__name__}._loader.golden")
    payload = str(Path(str(module.__file__)).parent / "payload")
    place = types.SimpleNamespace(payload=payload, golden=about["golden"], golden_digest=about["golden_digest"])
    return iter(golden.GoldenSet(place))


def run_directly(model: Any, inputs: dict[str, Any], about: dict[str, Any]) -> dict[str, Any]:
    """The outputs by ONNX name, of what the self-test called."""
    results = model._run(tuple(inputs.get(name) for name in about["inputs"]))  # noqa: SLF001 - as the loader's own test
    return dict(zip(about["outputs"], results, strict=True))


def name_inputs(inputs: dict[str, Any], about: dict[str, Any], without: Container[str] = ()) -> dict[str, Any]:
    """The values as an app gives them: by their Python names."""
    names = about["inputs"].items()
    return {python: inputs[name] for name, python in names if name not in without and inputs.get(name) is not None}


def find_difference(found: Any, wanted: dict[str, Any], about: dict[str, Any], what: str) -> str:
    """The first output that differs, by its Python name or its ONNX name; nothing where none does."""
    states = set(about["state"].values())
    for name, python in about["outputs"].items():
        if name in states or name in about["unstable"]:
            continue
        for value in (getattr(found, python), found[name]):
            if not is_alike(value, wanted[name]):
                return f"{about['class']}: {what} gives another {python} than the model"
    return ""


def is_alike(found: Any, wanted: Any) -> bool:
    """Equal, but for the rounding of threads that share the work otherwise."""
    numpy = importlib.import_module("numpy")
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(is_alike, found, wanted))
    if not isinstance(wanted, numpy.ndarray) or wanted.dtype.kind not in "fc":
        return numpy.array_equal(found, wanted) if isinstance(wanted, numpy.ndarray) else found == wanted
    size = float(numpy.nanmax(numpy.abs(wanted), initial=0.0, where=numpy.isfinite(wanted)))
    return found.shape == wanted.shape and numpy.allclose(found, wanted, rtol=1e-4, atol=1e-5 * size, equal_nan=True)


def open_elsewhere(package: str, copy: str, outcomes: list[dict[str, Any]], components: dict[str, Any]) -> None:
    """Open each variant from each installation that can be made here, call it where it is opened first, and note the
    results in `outcomes`.
    """
    found = importlib.util.find_spec(package)
    if not outcomes or found is None or not found.submodule_search_locations:
        return
    source = Path(found.submodule_search_locations[0])
    own = "hard links" if any(path.stat().st_nlink > 1 for path in list_files(source)) else "copies"
    for outcome in outcomes:
        outcome["installations"] = {own: ""}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        for how, folder in lay_files(source, own, copy, Path(scratch)):
            for outcome in outcomes:
                outcome["installations"][how] = open_variant(package, folder, outcome, components)
    for outcome in outcomes:
        if "calls" not in outcome:  # this system makes none of them
            open_variant(package, source.parent, outcome, components)


def lay_files(source: Path, own: str, copy: str, scratch: Path) -> Iterator[tuple[str, Path]]:
    """How the files lie, and the folder to import the package from. What this system cannot make is left out."""
    if own != "copies":
        yield "copies", Path(copy) if copy else lay(source, scratch / "copies", shutil.copyfile)
    with contextlib.suppress(OSError):
        if own != "hard links":
            yield "hard links", lay(source, scratch / "hard", os.link)
    with contextlib.suppress(OSError):
        place = lay(source, scratch / "symbolic", os.symlink)
        yield "symbolic links", place
        folders = [place, *(path for path in place.rglob("*") if path.is_dir() and not path.is_symlink())]
        for folder in folders:
            folder.chmod(READ_ONLY)
        try:
            yield "a read-only folder", place
        finally:
            for folder in folders:
                folder.chmod(0o700)


def lay(source: Path, target: Path, place: Callable[[Path, Path], object]) -> Path:
    """The package below `target`, each of its files by `place`."""
    for path in list_files(source):
        there = target / source.name / path.relative_to(source)
        there.parent.mkdir(parents=True, exist_ok=True)
        place(path, there)
    return target


def list_files(folder: Path) -> list[Path]:
    """The files of the package; byte code is not one of them."""
    return [path for path in folder.rglob("*") if path.is_file() and path.parent.name != "__pycache__"]


def open_variant(package: str, folder: Path, outcome: dict[str, Any], components: dict[str, Any]) -> str:
    """Why the variant does not open from `folder`; nothing where it does. The first time, it is called as well."""
    sys.modules.pop(package, None)  # its loader stays: it reads what lies beside the module that is imported again
    before = list_files(folder / package)  # the mode of a folder does not keep an administrator out
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        module = importlib.import_module(package)
        about = components[outcome["component"]]
        kind = getattr(module, about["class"])
        with kind(outcome["variant"], device_copy=False) as model:
            if "calls" not in outcome:
                outcome["calls"] = call(module, kind, model, outcome["component"], about)
    except Exception as error:  # noqa: BLE001 - the bundle's own code may raise anything
        return explain(error)
    finally:
        sys.path.remove(str(folder))
    return "" if list_files(folder / package) == before else "it writes into its own folder"


def explain(error: Exception) -> str:
    """An error of the bundle's code, as one line."""
    return f"{error} ({why})" if (why := getattr(error, "why", "")) else f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
