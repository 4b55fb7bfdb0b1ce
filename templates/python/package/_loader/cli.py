"""The command line, `python -m <package>`: show, test, run and time the model."""

from __future__ import annotations

import json
import os
import platform
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnxruntime as ort

from . import integrity
from .arguments import Action, make_parser
from .arrays import read_inputs, show_outputs, write_outputs
from .checks import match_names
from .config import Component, Port, Variant, describe_type
from .errors import BundleError, FallbackWarning, InputError
from .golden import GoldenSet
from .heartbeat import Heartbeat, print_prewarmed
from .model import BundledModel, choose_variants
from .proving import print_outcomes, prove_variant, try_variant
from .runtime_errors import RUNTIME_ERRORS, first_line
from .sessions import open_original
from .throughput import count_calls, widen_inputs
from .timing import Limits, Open, find_quantile, summarise, time_one_by_one, time_side_by_side
from .tuning import resolve_tuning
from .variants import find_reason

ModelType = type[BundledModel]

LARGE = 1_000_000_000
"""Bytes; from this size on, two open models may not fit into memory."""


def main(package: str, model: ModelType, arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit code."""
    options = make_parser(package, ACTIONS).parse_args(arguments)
    warnings.simplefilter("ignore", FallbackWarning)  # The report says it in full below.
    try:
        code: int = options.action(model, options)
        sys.stdout.flush()
    except BundleError as error:
        return _print_error(error, as_json=getattr(options, "json", False))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of the output closed it (`… | head`): not an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    return code


def _print_error(error: BundleError, *, as_json: bool) -> int:
    if as_json:
        fields = {"kind": type(error).__name__, "message": error.what, "why": error.why, "hint": error.hint}
        _print_json({"error": fields})
    print(f"error: {error}", file=sys.stderr)
    return error.exit_code


def _open(model: ModelType, options: Any) -> BundledModel:
    opened = model(options.variant, strict=options.strict or None, prewarm="wait" if options.prewarm else None)
    if opened.report.fell_back:
        print(f"note: {opened.report}", file=sys.stderr)
    return opened


def print_info(model: ModelType, options: Any) -> int:
    """`info`."""
    component = model.pins.read()
    memory = integrity.Memory(component.payload)
    variants = {variant.name: _explain(variant, memory) for variant in component.variants}
    if options.json:
        _print_json({**_describe_host(component), "signature": component.data["signature"], "variants": variants})
        return 0
    print(f"{component.bundle['name']} for {component.bundle['target']}")
    print("inputs")
    _print_ports(component.inputs)
    print("outputs")
    _print_ports(component.outputs)
    print("variants, in order of preference")
    for name, obstacle in variants.items():
        print(f"  {name}: {'can run here' if obstacle is None else f'cannot run here: {obstacle}'}")
    print(f"runtime\n  onnxruntime {ort.__version__}, Python {platform.python_version()}, {platform.platform()}")
    return 0


def _explain(variant: Variant, memory: integrity.Memory) -> str | None:
    """Why the variant does not run here, as far as known without opening it; None if it should."""
    reason = find_reason(variant, memory)
    if reason is not None or not variant.requires.get("needs"):
        return reason
    from .needs import find_missing

    return find_missing(variant) or None


def _print_ports(ports: list[Port]) -> None:
    for port in ports:
        note = "" if port.name == port.python_name else f"   (in the model: {port.name!r})"
        print(f"  {port.python_name}: {describe_type(port.type)}{', optional' if port.optional else ''}{note}")


def run_prewarm(model: ModelType, options: Any) -> int:
    """`prewarm`."""
    with Heartbeat() as heartbeat:
        outcomes = model.prewarm(heartbeat.tell, variant=options.variant, force=options.force)
    if options.json:
        _print_json({**_describe_host(model.pins.read()), "prewarmed": outcomes})
    elif not outcomes:
        print("no variant requires anything to be generated on the device")
    else:
        print_prewarmed(outcomes)
    if any(outcome["status"] == "failed" for outcome in outcomes):
        return 1
    return 3 if outcomes and all(outcome["status"] == "unavailable" for outcome in outcomes) else 0


def run_self_test(model: ModelType, options: Any) -> int:
    """`self-test`."""
    component = model.pins.read()
    if options.variant == "each":
        outcomes = [try_variant(model, component, variant.name) for variant in component.variants]
    else:
        outcomes = [prove_variant(model, component, options.variant, strict=options.strict or None)]
    if options.json:
        _print_json({**_describe_host(component), "variants": outcomes})
    else:
        print_outcomes(outcomes)
    failed = any(outcome["status"] == "failed" for outcome in outcomes)
    ran = any(outcome["status"] == "passed" for outcome in outcomes)
    return 1 if failed else 0 if ran else 3


def run_once(model: ModelType, options: Any) -> int:
    """`run`."""
    opened = _open(model, options)
    values = tuple(match_names(list(opened.inputs), read_inputs(options.files, list(opened.inputs))))
    results = opened._run(values)  # noqa: SLF001 (one package)
    if options.output:
        write_outputs(options.output, opened.outputs, results)
    else:
        show_outputs(opened.outputs, results)
    return 0


def run_bench(model: ModelType, options: Any) -> int:
    """`bench`."""
    component = model.pins.read()
    tuning = resolve_tuning(options.threads, options.spinning)
    variant = _settle(model, options)
    variant.tuning = tuning
    sample = next(iter(GoldenSet(component)))
    inputs = widen_inputs(component.inputs, sample.inputs, options.batch) if options.batch else sample.inputs
    opens = [_opener(model, variant, tuple(inputs.get(port.name) for port in component.inputs))]
    if options.batch:
        _try_batch(opens[0], options.batch)
    if options.compare:
        opens.append(_plain_opener(options.compare, variant, inputs))
    limits = Limits(openings=options.openings, runs=options.runs, warm_up=options.warm_up, seconds=options.seconds)
    timings = (time_one_by_one if _is_large(variant) else time_side_by_side)(opens, limits)
    rates = count_calls(opens[0](), options.callers, options.seconds) if options.callers else {}
    named = dict(zip(("bundle", "plain"), timings, strict=False))
    figures = {name: timing.to_json() for name, timing in named.items()}
    if options.json:
        series = {name: timing.series() for name, timing in named.items()}
        about = {
            **_describe_host(component),
            "component": component.name,
            "variant": variant.name,
            "sample": sample.name,
        }
        throughput = [{"callers": number, "calls_per_second": found} for number, found in rates.items()]
        _print_json({**about, **figures, "series": series, "batch": options.batch, "throughput": throughput})
        return 0
    for name, lines in figures.items():
        print("\n".join([f"{name} ({len(named[name].latencies)} calls)", *summarise(lines)]))
    for number, found in rates.items():
        print(f"{number} caller{'' if number == 1 else 's'}: {find_quantile(found, 0.5):.4g} calls per second")
    return 0


def _try_batch(open_: Open, batch: int) -> None:
    """Run once, because a model may refuse a batch size that its signature allows. Raises `InputError`."""
    try:
        open_()()
    except RUNTIME_ERRORS as error:
        raise InputError(f"the model does not run on a batch of {batch}", why=first_line(error)) from error


def _settle(model: ModelType, options: Any) -> Variant:
    """The variant that runs. Does the two starts that are slower than later ones: the first makes the device's own
    copy, and the second checks it in full.
    """
    integrity.SETTLED_NS = 0  # Nothing changes these files while they are timed, however new they are.
    opened = _open(model, options)
    name = opened.report.variant
    variant: Variant = choose_variants(model.pins.read(), name)[0]
    if variant.device_cache:
        del opened  # A large model fits into memory once, maybe not twice.
        model(name)
    return variant


def _is_large(variant: Variant) -> bool:
    return sum(file.size for file in variant.files) > LARGE


def _opener(model: ModelType, variant: Variant, values: tuple[Any, ...]) -> Open:
    def open_bundle() -> Callable[[], object]:
        opened = model(variant.name, threads=variant.tuning.threads, spinning=variant.tuning.spinning)
        run = opened._run  # noqa: SLF001 (one package)
        return lambda: run(values)

    return open_bundle


def _plain_opener(path: str, variant: Variant, inputs: dict[str, Any]) -> Open:
    given = {name: value for name, value in inputs.items() if value is not None}

    def open_plain() -> Callable[[], object]:
        session = open_original(path, variant)
        return lambda: session.run(None, given)

    return open_plain


ACTIONS: Mapping[str, Action] = {
    "info": print_info,
    "prewarm": run_prewarm,
    "self-test": run_self_test,
    "run": run_once,
    "bench": run_bench,
}
"""The commands, by name."""


def _describe_host(component: Component) -> dict[str, Any]:
    return {
        "model": component.data["model"],
        "target": component.bundle["target"],
        "runtime": ort.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
    }


def _print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=True, default=str))
