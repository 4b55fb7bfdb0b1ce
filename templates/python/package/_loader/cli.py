"""The command line, `python -m <package>`: show, test, run and time the model."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnxruntime as ort

from . import integrity
from .arrays import read_inputs, show_outputs, write_outputs
from .checks import match_names
from .command import name_command
from .config import Config, Port, Variant, describe_type
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

EXIT_CODES = """\
exit codes: 0 done; 1 the model, or what was generated on the device, does not reproduce the golden set;
2 wrong usage or inputs; 3 the bundle was altered, or cannot run here; 130 interrupted"""


def main(package: str, model: ModelType, arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit code."""
    options = _make_parser(package).parse_args(arguments)
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


def _make_parser(package: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=name_command(package),
        description="Run, test and time the model of this package.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_info(commands)
    _add_prewarm(commands)
    _add_self_test(commands)
    _add_run(commands)
    _add_bench(commands)
    return parser


def _add_command(
    commands: Any, name: str, action: Callable[[ModelType, Any], int], text: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    parser.set_defaults(action=action)
    return parser


def _add_info(commands: Any) -> None:
    parser = _add_command(commands, "info", print_info, "Show inputs, outputs, variants, and which of them runs here.")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def _add_prewarm(commands: Any) -> None:
    text = "Generate what variants require on this device, verify it, and keep it for later starts."
    parser = _add_command(commands, "prewarm", run_prewarm, text)
    parser.add_argument("--variant", default=None, help="a variant's name (default: all that can run here)")
    parser.add_argument("--force", action="store_true", help="generate it again even if it exists")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def _add_self_test(commands: Any) -> None:
    text = "Reproduce the golden set that was recorded from the original model."
    parser = _add_command(commands, "self-test", run_self_test, text)
    parser.add_argument("--variant", default=None, help="a variant's name, or `each` for all of them in turn")
    parser.add_argument("--strict", action="store_true", help="fail when the preferred variant cannot run here")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def _add_run(commands: Any) -> None:
    parser = _add_command(commands, "run", run_once, "Run the model once on arrays from files.")
    parser.add_argument(
        "files",
        nargs="+",
        metavar="INPUT",
        help="an .npz file with one array for each input, or NAME=FILE.npy for each input",
    )
    parser.add_argument("-o", "--output", metavar="FILE.npz", help="write the outputs there (default: print them)")
    _add_choice(parser)


def _add_bench(commands: Any) -> None:
    parser = _add_command(commands, "bench", run_bench, "Time loading, first inference and steady-state latency.")
    parser.add_argument("-n", "--runs", type=_positive, default=100, help="timed calls (default: %(default)s)")
    parser.add_argument("--openings", type=_positive, default=15, help="timed loads (default: %(default)s)")
    parser.add_argument("--warm-up", type=int, default=10, help="warm-up calls (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=60, help="approximate duration (default: %(default)s)")
    parser.add_argument("--batch", type=_positive, help="rows per call (default: those of the golden sample)")
    parser.add_argument("--threads", type=_positive, help="threads inside one call (default: the bundle's own number)")
    parser.add_argument(
        "--spinning",
        action=argparse.BooleanOptionalAction,
        help="whether idle threads spin instead of sleeping (default: the bundle's own choice)",
    )
    parser.add_argument(
        "--callers",
        type=_counts,
        default=[],
        metavar="N,N",
        help="also count calls per second with these numbers of concurrent callers (1,2,4)",
    )
    parser.add_argument("--compare", metavar="MODEL.onnx", help="compare with a default session on this model")
    parser.add_argument("--json", action="store_true", help="print one JSON document; times are in seconds")
    _add_choice(parser)


def _add_choice(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--variant", default=None, help="run this variant (default: the first that can run here)")
    parser.add_argument("--strict", action="store_true", help="fail when the preferred variant cannot run here")
    parser.add_argument("--prewarm", action="store_true", help="first generate what is missing, as `prewarm` does")


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return value


def _counts(text: str) -> list[int]:
    """`1,2,4`, each once."""
    return list(dict.fromkeys(_positive(part) for part in text.split(",")))


def _open(model: ModelType, options: Any) -> BundledModel:
    opened = model(options.variant, strict=options.strict or None, prewarm="wait" if options.prewarm else None)
    if opened.report.fell_back:
        print(f"note: {opened.report}", file=sys.stderr)
    return opened


def print_info(model: ModelType, options: Any) -> int:
    """`info`."""
    config = model.pins.read()
    memory = integrity.Memory(config.payload)
    variants = {variant.name: _explain(variant, memory) for variant in config.variants}
    if options.json:
        _print_json({**_describe_host(config), "signature": config.data["signature"], "variants": variants})
        return 0
    print(f"{config.data['model']} for {config.data['target']}")
    print("inputs")
    _print_ports(config.inputs)
    print("outputs")
    _print_ports(config.outputs)
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
    config = model.pins.read()
    if options.variant == "each":
        outcomes = [try_variant(model, config, variant.name) for variant in config.variants]
    else:
        outcomes = [prove_variant(model, config, options.variant, strict=options.strict or None)]
    if options.json:
        _print_json({**_describe_host(config), "variants": outcomes})
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
    config = model.pins.read()
    tuning = resolve_tuning(options.threads, options.spinning)
    variant = _settle(model, options)
    variant.tuning = tuning
    sample = next(iter(GoldenSet(config)))
    inputs = widen_inputs(config.inputs, sample.inputs, options.batch) if options.batch else sample.inputs
    opens = [_opener(model, variant, tuple(inputs.get(port.name) for port in config.inputs))]
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
        about = {**_describe_host(config), "variant": variant.name, "sample": sample.name}
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


def _describe_host(config: Config) -> dict[str, Any]:
    return {
        "model": config.data["model"],
        "target": config.data["target"],
        "runtime": ort.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
    }


def _print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=True, default=str))
