"""Run the golden set in the bundle's own runtime, and say what that proves."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from bundler.emitters.contract import Proof, VariantProof
from bundler.emitters.python.layout import Layout
from bundler.environments.processes import end_session, name_signal
from bundler.environments.sandbox import Sandbox
from bundler.environments.variables import proof_environment
from bundler.execution.limits import bound_command, find_limits
from bundler.execution.passing import passing_folder
from bundler.model.codec import parse_json
from bundler.model.results import Comparison, restore_output

TIME_LIMIT = 1800.0
"""Seconds for the golden set of all variants; a bundle that takes longer is taken to hang."""

OUTPUT_BYTES = 16_000_000
"""Of what a bundle says that are read: an answer has some kilobytes for each variant and output."""

NO_ANSWER = (LookupError, TypeError, ValueError, AttributeError)
"""What reading the answer of a stranger's program may raise."""

_OWN = ("PEX_ROOT",)
"""Variables that name a folder which the program writes to."""

_SELF_TEST = ("self-test", "--json", "--variant", "each")


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How the bundle is started: the command that stands for `python -m <package>`, and what it needs to be told.

    `place`, `means` and `unrun` are as in `VariantProof`.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str]
    level: Proof
    remark: str
    place: str = ""
    means: str = ""
    unrun: tuple[str, ...] = ()
    sandbox: Sandbox | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What came back. `failure` says why there is no answer, None when there is one."""

    answer: Mapping[str, Any]
    failure: str | None
    seconds: float


def is_native(layout: Layout) -> bool:
    """Whether this machine is of the kind that the bundle is for."""
    requires = layout.config.variants[0].requires
    machines = [machine.lower() for machine in requires.machines]
    return (not requires.systems or platform.system() in requires.systems) and (
        not machines or platform.machine().lower() in machines
    )


def run_self_test(layout: Layout, launch: Launch) -> tuple[VariantProof, ...]:
    """Start the bundle once and read what it says of each of its variants."""
    ending = start(launch, _SELF_TEST)
    try:
        return _read_outcomes(layout, launch, ending)
    except NO_ANSWER as error:
        why = f"what it said is no answer of a loader ({type(error).__name__}: {error})"
        return _read_outcomes(layout, launch, replace(ending, answer={}, failure=why[:200]))


def _read_outcomes(layout: Layout, launch: Launch, ending: Ending) -> tuple[VariantProof, ...]:
    told = {outcome["variant"]: outcome for outcome in ending.answer.get("variants", ())}
    return tuple(
        _make_proof(variant.name, told.get(variant.name), ending, launch) for variant in layout.config.variants
    )


def start(launch: Launch, arguments: tuple[str, ...]) -> Ending:
    """Run one command of the bundle with a home of its own, a time limit, and no path to the rest of the machine."""
    with passing_folder("proof") as home:
        began = time.perf_counter()
        try:
            command = bound_command((*launch.command, *arguments), find_limits(Path(home)))
            if launch.sandbox is not None:
                own = [Path(home), *(Path(place) for name, place in launch.environment.items() if name in _OWN)]
                command = launch.sandbox.wrap(command, writable=own)
            done = _run(command, _isolate(launch.environment, home), home)
        except subprocess.TimeoutExpired:
            return Ending(answer={}, failure=f"it did not end within {TIME_LIMIT:.0f} s", seconds=TIME_LIMIT)
        seconds = time.perf_counter() - began
    answer = _parse(_hide_home(done.stdout, home))
    failure = None if "variants" in answer or "bundle" in answer else _explain(done, answer)
    return Ending(answer=answer, failure=failure, seconds=seconds)


def _run(command: tuple[str, ...], environment: dict[str, str], home: str) -> subprocess.CompletedProcess[str]:
    """In a session of its own, so that a time-out ends its children too. What it says goes to files, so that it fills
    no memory of ours.
    """
    with (
        tempfile.TemporaryFile(dir=home) as output,
        tempfile.TemporaryFile(dir=home) as errors,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            env=environment,
            cwd=home,
            start_new_session=True,
        ) as process,
    ):
        try:
            process.wait(timeout=TIME_LIMIT)
        except BaseException:
            end_session(process)
            raise
        return subprocess.CompletedProcess(command, process.returncode, _read_said(output), _read_said(errors))


def _read_said(stream: IO[bytes]) -> str:
    """The end of it: that is where an error stands."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - OUTPUT_BYTES))
    return stream.read(OUTPUT_BYTES).decode("utf-8", "replace")


def _isolate(extra: Mapping[str, str], home: str) -> dict[str, str]:
    """Nothing of the user's set-up: what works here works elsewhere. No byte code is written into the bundle."""
    return {
        **proof_environment(),
        "HOME": home,
        "TMPDIR": home,
        "USERPROFILE": home,
        "LOCALAPPDATA": home,
        "XDG_CACHE_HOME": os.path.join(home, "cache"),  # noqa: PTH118 (text for another process)
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "PYTHONUTF8": "1",
        "ORT_DISABLE_TELEMETRY": "1",
        **extra,
    }


def _hide_home(text: str, home: str) -> str:
    """JSON in which the home of this run is `~`: what is told goes into the manifest, which names no place of ours."""
    for path in (home, str(Path(home).resolve())):
        text = text.replace(json.dumps(path)[1:-1], "~")
    return text


def _parse(text: str) -> dict[str, Any]:
    try:
        answer = parse_json(text)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


def _explain(done: subprocess.CompletedProcess[str], answer: dict[str, Any]) -> str:
    error = answer.get("error")
    if isinstance(error, dict) and error.get("message"):
        return f"{error['message']} ({error['why']})" if error.get("why") else str(error["message"])
    last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
    if done.returncode < 0:
        return f"it was ended by {name_signal(-done.returncode)}: {last}"
    return f"it ended with code {done.returncode}: {last}"


def _make_proof(name: str, told: Mapping[str, Any] | None, ending: Ending, launch: Launch) -> VariantProof:
    if told is None:
        reason = ending.failure or "the bundle said nothing of it"
        return VariantProof(variant=name, level="resolved", passed=False, comparison=None, reason=reason, figures={})
    ran = told["status"] != "unavailable"
    return VariantProof(
        variant=name,
        level=launch.level if ran else "resolved",
        passed=told["status"] == "passed" if ran else None,
        comparison=_read_comparison(told) if ran else None,
        reason=told["reason"] or launch.remark + _tell_copy(told),
        figures={**told["figures"], "process_seconds": ending.seconds} if ran else {},
        nodes=dict(told.get("nodes", {})),
        place=launch.place if ran else "",
        means=launch.means if ran else "",
        unrun=launch.unrun if ran else (),
    )


def _tell_copy(told: Mapping[str, Any]) -> str:
    """Whether it ran on what was made for this device, and whether the device's own copy was tried."""
    if "prewarm_seconds" in told["figures"]:
        return ", on what was made for it on this machine"
    copy = told.get("device_copy")
    if copy is None:
        return ""
    if copy["status"] == "passed":
        return ", as shipped and from the device's own copy"
    return ", as shipped; the device's own copy could not be kept there"  # Why is of the machine, not of the bundle.


def _read_comparison(told: Mapping[str, Any]) -> Comparison:
    unjudged = told.get("unjudged", {})
    outputs = (restore_output(output, unjudged.get(output["name"], "")) for output in told["outputs"])
    return Comparison(samples=told["samples"], outputs=tuple(outputs))
