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
from .errors import BundleError, FallbackWarning, InputError, naming
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
Models = Sequence[ModelType]

LARGE = 1_000_000_000
"""Bytes; from this size on, two open models may not fit into memory."""


def main(package: str, offered: ModelType | tuple[ModelType, ...], arguments: Sequence[str] | None = None) -> int:
    """Run one command on the models that the package offers. Returns the exit code."""
    models = offered if isinstance(offered, tuple) else (offered,)
    options = make_parser(package, ACTIONS, [model.pins.component for model in models]).parse_args(arguments)
    chosen = getattr(options, "component", None)
    warnings.simplefilter("ignore", FallbackWarning)  # The report says it in full below.
    try:
        code: int = options.action([model for model in models if chosen in (None, model.pins.component)], options)
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


def print_info(models: Models, options: Any) -> int:
    """`info`."""
    components = [model.pins.read() for model in models]
    found = {component.name: _look_at(component) for component in components}
    if options.json:
        sole = {} if models[0].pins.component else found[components[0].name]
        _print_json({**_describe_host(models[0]), **sole, "components": found})
        return 0
    print(f"{components[0].bundle['name']} for {components[0].bundle['target']}")
    for model, component in zip(models, components, strict=True):
        if model.pins.component:
            print(f"\ncomponent {component.name}")
        _print_component(component, found[component.name]["variants"])
    print("\n" if models[0].pins.component else "", end="")
    print(f"runtime\n  onnxruntime {ort.__version__}, Python {platform.python_version()}, {platform.platform()}")
    return 0


def _look_at(component: Component) -> dict[str, Any]:
    memory = integrity.Memory(component.payload)
    variants = {variant.name: _explain(variant, memory) for variant in component.variants}
    return {"model": component.data["model"], "signature": component.data["signature"], "variants": variants}


def _print_component(component: Component, variants: dict[str, str | None]) -> None:
    print("inputs")
    _print_ports(component.inputs)
    print("outputs")
    _print_ports(component.outputs)
    print("variants, in order of preference")
    for name, obstacle in variants.items():
        print(f"  {name}: {'can run here' if obstacle is None else f'cannot run here: {obstacle}'}")


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


def run_prewarm(models: Models, options: Any) -> int:
    """`prewarm`."""
    outcomes: list[dict[str, Any]] = []
    with Heartbeat() as heartbeat:
        for model in models:
            with naming(model.pins.component):
                outcomes += model.prewarm(heartbeat.tell, variant=options.variant, force=options.force)
    if options.json:
        _print_json({**_describe_host(models[0]), "prewarmed": outcomes})
    elif not outcomes:
        print("no variant requires anything to be generated on the device")
    else:
        print_prewarmed(_label(models, outcomes))
    if any(outcome["status"] == "failed" for outcome in outcomes):
        return 1
    return 3 if outcomes and all(outcome["status"] == "unavailable" for outcome in outcomes) else 0


def run_self_test(models: Models, options: Any) -> int:
    """`self-test`."""
    outcomes: list[dict[str, Any]] = []
    for model in models:
        with naming(model.pins.component):
            outcomes += _test_model(model, options)
    if options.json:
        _print_json({**_describe_host(models[0]), "variants": outcomes})
    else:
        print_outcomes(_label(models, outcomes))
    failed = any(outcome["status"] == "failed" for outcome in outcomes)
    ran = any(outcome["status"] == "passed" for outcome in outcomes)
    return 1 if failed else 0 if ran else 3


def _test_model(model: ModelType, options: Any) -> list[dict[str, Any]]:
    component = model.pins.read()
    if options.variant == "each":
        return [try_variant(model, component, variant.name) for variant in component.variants]
    return [prove_variant(model, component, options.variant, strict=options.strict or None)]


def _label(models: Models, outcomes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The outcomes as people read them: with the component's name before the variant's where there are several."""
    if not models[0].pins.component:
        return outcomes
    return [{**outcome, "variant": f"{outcome['component']}/{outcome['variant']}"} for outcome in outcomes]


def run_once(models: Models, options: Any) -> int:
    """`run`."""
    if len(models) > 1:
        names = [model.pins.component for model in models]
        hint = f"name one of them: --component {names[0]} (or {', '.join(names[1:])})"
        raise InputError(f"this bundle has {len(names)} components, and one of them is run at a time", hint=hint)
    (model,) = models
    opened = _open(model, options)
    values = tuple(match_names(list(opened.inputs), read_inputs(options.files, list(opened.inputs))))
    results = opened._run(values)  # noqa: SLF001 (one package)
    if options.output:
        write_outputs(options.output, opened.outputs, results)
    else:
        show_outputs(opened.outputs, results)
    return 0


def run_bench(models: Models, options: Any) -> int:
    """`bench`."""
    if options.compare and len(models) > 1:
        raise InputError("a model is compared with one component", hint="name it: --component NAME")
    options.seconds /= len(models)
    found = []
    for model in models:
        with naming(model.pins.component):
            found.append(_time_model(model, options))
    if options.json:
        several = {**_describe_host(models[0]), "components": found}
        _print_json(several if len(models) > 1 else {**_describe_host(models[0]), **found[0]})
        return 0
    for model, figures in zip(models, found, strict=True):
        if model.pins.component:
            print(f"component {figures['component']}, variant {figures['variant']}")
        _print_times(figures)
    return 0


def _time_model(model: ModelType, options: Any) -> dict[str, Any]:
    """All figures of one component, in seconds."""
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
    return {
        "component": component.name,
        "variant": variant.name,
        "sample": sample.name,
        **{name: timing.to_json() for name, timing in named.items()},
        "series": {name: timing.series() for name, timing in named.items()},
        "batch": options.batch,
        "throughput": [{"callers": number, "calls_per_second": found} for number, found in rates.items()],
    }


def _print_times(figures: dict[str, Any]) -> None:
    for name, series in figures["series"].items():
        print("\n".join([f"{name} ({len(series['latency_seconds'])} calls)", *summarise(figures[name])]))
    for rate in figures["throughput"]:
        number, middle = rate["callers"], find_quantile(rate["calls_per_second"], 0.5)
        print(f"{number} caller{'' if number == 1 else 's'}: {middle:.4g} calls per second")


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


def _describe_host(model: ModelType) -> dict[str, Any]:
    component = model.pins.read()
    named = {"name": component.bundle["name"]} if model.pins.component else {"model": component.data["model"]}
    return {
        **named,
        "target": component.bundle["target"],
        "runtime": ort.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
    }


def _print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=True, default=str))
