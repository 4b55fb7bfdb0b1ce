"""The base of the package's `Model`: opens a variant, runs it, and tests itself."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, cast

from .config import Component, Port, read_bundle
from .errors import FallbackWarning, InputError
from .integrity import Memory, always_check_wanted
from .lifetime import refuse_closed, stop_in_children
from .opening import Opened, device_copy_wanted
from .sessions import Runner, explain_tuning
from .tuning import Tuning, resolve_tuning
from .variants import LoadReport, open_first

if TYPE_CHECKING:
    from typing import Self

    import onnxruntime as ort

    from .golden import SelfTest
    from .streams import StreamState


class Pins:
    """Values of the generated part of the package: its folder, the digest of `runtime.json`, and the Python names of
    inputs and outputs in the model's order. `component` is the model's name in a bundle of several.
    """

    __slots__ = ("component", "inputs", "outputs", "payload", "sha256")

    def __init__(
        self, *, file: str, sha256: str, inputs: tuple[str, ...], outputs: tuple[str, ...], component: str = ""
    ) -> None:
        self.payload = os.path.join(os.path.dirname(os.path.abspath(file)), "payload")
        self.sha256 = sha256
        self.component = component
        self.inputs = inputs
        self.outputs = outputs

    def read(self, memory: Memory | None = None) -> Component:
        """The component in `runtime.json`, checked. Raises `IntegrityError` or `IncompatibleError`."""
        return self.pick(read_bundle(memory or Memory(self.payload), self.sha256))

    def pick(self, bundle: dict[str, Any]) -> Component:
        """The component in what `runtime.json` says."""
        data = next(data for data in bundle["components"] if self.component in ("", data["name"]))
        return Component(self.payload, bundle, data, self.inputs, self.outputs)


class BundledModel:
    """A model that is open and ready to run; safe to use from several threads, until `close` or the end of a `with`.

    A process that is forked from this one must open its own. The logger named like the package says at level INFO what
    was opened.

    `variant` selects a variant by name; without it the first that can run here is used. `strict` raises when that
    is not the preferred one (the default is in the bundle). `always_check` hashes all files again, regardless of
    earlier checks. With `device_copy=False` the loader neither opens nor writes the device's own copy of a model whose
    memory layout depends on the processor (`BUNDLER_DEVICE_COPY=0` does the same).

    `threads` is the number of threads inside one call, from 0 (one a physical core) to 1024, and `spinning=False` lets
    idle ones sleep at once, which can be better where several callers share a machine. Without them, `BUNDLER_THREADS`
    (a number) and `BUNDLER_SPINNING` (0 or 1) decide, and without those the bundle. They do not reach providers that
    compute on other devices; `report.remark` says so.

    Where a variant requires something generated on the device, `prewarm="wait"` generates it now, `"background"` lets
    another process generate it for a later start, and without either the next variant runs and the report says what to
    do.
    """

    pins: ClassVar[Pins]

    def __init__(
        self,
        variant: str | None = None,
        *,
        strict: bool | None = None,
        always_check: bool | None = None,
        device_copy: bool | None = None,
        prewarm: Literal["wait", "background"] | None = None,
        threads: int | None = None,
        spinning: bool | None = None,
    ) -> None:
        settings = Settings(
            strict=strict, device_copy=device_copy, prewarm=prewarm, tuning=resolve_tuning(threads, spinning)
        )
        memory = Memory(self.pins.payload, always=always_check_wanted() if always_check is None else always_check)
        component = self.pins.read(memory)
        chosen = choose_variants(component, variant)
        remark = settings.prepare(component, chosen, memory)
        opened, report = open_first(chosen, memory, strict=settings.is_strict(component), copies=settings.copies)
        memory.save()
        report.add_remarks(memory.refusal, remark)
        self._begin(component, opened, report, f"{type(self).__name__}()")
        if report.fell_back:
            warnings.warn(str(report), FallbackWarning, stacklevel=2)

    def _begin(self, component: Component, opened: Opened, report: LoadReport, reopen: str) -> None:
        """Be ready to run; `reopen` is how another one is opened, as errors say it."""
        report.add_remarks(explain_tuning(opened.variant))
        self._component = component
        self._report = report
        self._reopen = reopen
        runner = Runner(opened.session, component.inputs, component.outputs, opened.variant.device)
        self._runner: Runner | None = runner
        self._run, self._run_named = runner.run, runner.run_named
        stop_in_children(self)
        _log(report, self.pins.component)

    def close(self) -> None:
        """Free the session as soon as no thread computes with it. Every later call raises `ClosedError`."""
        self._stop(refuse_closed)

    def _stop(self, refuse: Callable[[str, str], NoReturn]) -> Any:
        """Let `refuse` answer every later call; returns what computed."""
        runner, self._runner = self._runner, None
        name, reopen = self.pins.component, self._reopen
        refused: Any = lambda *_: refuse(f"component {name}" if name else "this model", reopen)  # noqa: E731
        self._run = self._run_named = refused  # It has no name of `self`, so that nothing holds a closed model.
        return runner

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = f"{self._report.variant} on {', '.join(self._report.providers)}" if self._runner else "closed"
        return f"<{type(self).__module__}.{type(self).__name__}: {state}>"

    @classmethod
    def prewarm(
        cls, progress: Callable[[float, str], None] | None = None, *, variant: str | None = None, force: bool = False
    ) -> list[dict[str, Any]]:
        """Generate what variants require on this device (all that can run here, or only `variant`), verify it with the
        golden set and keep it for later starts; `force` generates it again. `progress` gets the share that is done and
        the next step. One process generates it at a time; another waits and uses its result.

        Returns for each such variant its name, `status` (`made`, `ready`: it existed, `unavailable`: the variant cannot
        run here, `failed`: the result does not reproduce the golden set, or cannot be kept), the `reason` and seconds.
        Raises `IntegrityError`, and `InputError` for an unknown variant.
        """
        memory = Memory(cls.pins.payload, always=always_check_wanted())
        component = cls.pins.read(memory)
        wanted = [one for one in choose_variants(component, variant) if one.prepare is not None]
        if not wanted:
            return []
        from .prewarming import prewarm_all

        outcomes = prewarm_all(component, wanted, memory, progress or _keep_quiet, force=force)
        memory.save()
        return outcomes

    @property
    def report(self) -> LoadReport:
        """Which variant runs, on which providers, and why the ones before it do not."""
        return self._report

    @property
    def inputs(self) -> tuple[Port, ...]:
        """The inputs in the model's order."""
        return tuple(self._component.inputs)

    @property
    def outputs(self) -> tuple[Port, ...]:
        """The outputs in the model's order."""
        return tuple(self._component.outputs)

    @property
    def preprocessing(self) -> Mapping[str, Any] | None:
        """The preprocessing of images, sound or text with which the accuracy was checked; apply it to your data. None
        when it was checked on arrays.
        """
        found: Mapping[str, Any] | None = self._component.data.get("preprocessing")
        return found

    @property
    def metadata(self) -> Mapping[str, str]:
        """The metadata of the original model, such as a recogniser's alphabet or a detector's classes: text by whoever
        made the model.
        """
        return MappingProxyType(self._component.data.get("metadata", {}))

    def run_named(self, values: Mapping[str, object]) -> dict[str, Any]:
        """Run once on inputs by name (the Python name or the model's own); outputs come by the model's own names.

        Raises `InputError` for an unknown or missing name, a wrong type or a wrong shape.
        """
        return self._run_named(values)

    async def _run_in_thread(self, values: Collection[Any]) -> list[Any]:
        """As `run`, while the event loop goes on."""
        import asyncio

        return await asyncio.to_thread(self._run, values)

    def _run_batches(self, values: tuple[Any, ...], size: int) -> list[Any]:
        """The outputs for any number of rows, of a model that takes `size` at a time."""
        from .batches import run_batches

        return run_batches(self._run, self._component.inputs, values, size)

    def require_open(self) -> None:
        """Raise the error that every call of a closed model raises."""
        if self._runner is None:
            self._run(())

    @property
    def session(self) -> ort.InferenceSession:
        """The runtime's session. Raises `ClosedError`."""
        self.require_open()
        return cast("Runner", self._runner).session

    def _open_stream(self) -> StreamState:
        """The state of a new stream, which begins with the initial values."""
        from .streams import StreamState

        self.require_open()
        return StreamState(self, self._component, choose_variants(self._component, self._report.variant)[0])

    def self_test(self) -> SelfTest:
        """Reproduce the bundle's golden set. Raises `SelfTestError` when an output is out of tolerance."""
        from .golden import test_model

        variant = choose_variants(self._component, self._report.variant)[0]
        result = test_model(self._component, variant, self._run)
        result.raise_on_failure()
        return result


class Settings:
    """What a model is opened with: arguments, or what the environment says instead. None leaves it to the bundle."""

    __slots__ = ("_prewarm", "_strict", "_tuning", "copies")

    def __init__(self, *, strict: bool | None, device_copy: bool | None, prewarm: str | None, tuning: Tuning) -> None:
        if prewarm not in ("wait", "background", None):
            raise InputError(f"prewarm={prewarm!r} is unknown", hint='use "wait", "background" or None')
        self._strict = strict
        self._prewarm = prewarm
        self._tuning = tuning
        self.copies = device_copy_wanted() if device_copy is None else device_copy

    def is_strict(self, component: Component) -> bool:
        """Whether only the preferred variant may run."""
        return component.strict if self._strict is None else self._strict

    def prepare(self, component: Component, variants: list[Any], memory: Memory) -> str:
        """Generate what is missing, here or in the background, and tune the variants; returns remarks for the
        report.
        """
        remark = self._generate(component, variants, memory)
        for variant in variants:  # Only now: what is generated on the device is generated as the bundle says.
            variant.tuning = self._tuning
        return remark

    def _generate(self, component: Component, variants: list[Any], memory: Memory) -> str:
        if self._prewarm is None or all(variant.prepare is None for variant in variants):
            return ""
        from .prewarming import prewarm_first, prewarm_in_background

        if self._prewarm == "background":
            return prewarm_in_background(variants, memory)
        prewarm_first(component, variants, memory, _keep_quiet)
        return ""


def _log(report: LoadReport, component: str) -> None:
    """Whoever listens to loggers has loaded them; nobody else needs to."""
    if "logging" in sys.modules:
        import logging

        name = f"{component}: " if component else ""
        logging.getLogger(__name__.rpartition("._loader.")[0]).info("%s%s", name, report)


def _keep_quiet(share: float, text: str) -> None:
    del share, text


def choose_variants(component: Component, name: str | None) -> list[Any]:
    """All variants in order of preference, or the one that is named. Raises `InputError` for an unknown name."""
    if name is None:
        return component.variants
    chosen = [variant for variant in component.variants if variant.name == name]
    if not chosen:
        known = ", ".join(variant.name for variant in component.variants)
        raise InputError(f"there is no variant {name!r}", hint=f"the variants are {known}")
    return chosen
