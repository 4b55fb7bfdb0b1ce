"""The base of the package's `Bundle`: opens several models together, or each at its first use, and closes them."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from .errors import FallbackWarning, InputError, naming
from .integrity import always_check_wanted
from .lifetime import refuse_closed, stop_in_children
from .model import BundledModel, Settings
from .together import REOPEN, Source, map_at_once
from .tuning import resolve_tuning
from .variants import LoadReport

if TYPE_CHECKING:
    from typing import Self

    from .golden import SelfTest

ModelType = type[BundledModel]
Progress = Callable[[float, str], None]


class BundledModels:
    """The models of a bundle, each a member with the component's name; safe to use from several threads.

    What is said of one model holds for each: a process that is forked from this one must open its own.
    """

    models: ClassVar[tuple[ModelType, ...]]

    def __init__(self, names: Iterable[str], source: Source) -> None:
        """For `open`: `names` are those of the members."""
        self._source = source
        self._groups = _make_groups(names, source.together)
        self._lock = threading.Lock()
        self._closed = False
        stop_in_children(self)

    @classmethod
    def open(
        cls,
        *,
        only: str | Iterable[str] | None = None,
        lazy: bool = False,
        strict: bool | None = None,
        always_check: bool | None = None,
        device_copy: bool | None = None,
        prewarm: Literal["wait", "background"] | None = None,
        threads: int | None = None,
        spinning: bool | None = None,
    ) -> Self:
        """Open all components, or `only` those that are named; with `lazy`, each at its first use.

        They open at the same time, as far as there are processors for it. Each takes the first variant that can run
        here; those that belong together take the variant of one name. If one cannot be opened, none stays open. The
        other arguments are those of each model, and `threads` is the number inside one call of one of them.

        Raises `IntegrityError`, `IncompatibleError` or `FallbackError` with the name of the component, and `InputError`
        for an unknown name.
        """
        settings = Settings(
            strict=strict, device_copy=device_copy, prewarm=prewarm, tuning=resolve_tuning(threads, spinning)
        )
        source = Source(cls.models, settings, always=always_check_wanted() if always_check is None else always_check)
        bundle = cls(_choose_names(cls.models, only), source)
        if not lazy:
            bundle._open_all()
        return bundle

    if not TYPE_CHECKING:  # A type checker knows the members, and should find a name that is none of them.

        def __getattr__(self, name: str) -> BundledModel:
            """A member at its first use."""
            return self._open_member(name)

    def _open_member(self, name: str) -> BundledModel:
        known = () if name.startswith("_") else [model.pins.component for model in self.models]
        if name not in known:
            raise AttributeError(f"{type(self).__name__} has no component {name!r}", name=name, obj=self)
        group = self._groups.get(name)
        if group is None:
            hint = "add it to `only`, or remove `only`"
            raise InputError(f"this bundle was opened without component {name}", hint=hint)
        if self._open_group(group):
            self._warn(group.names)
        member: BundledModel = self.__dict__[name]
        return member

    def _open_all(self) -> None:
        """The largest begin first, so that none of them is left for the end."""
        groups = list(dict.fromkeys(self._groups.values()))
        groups.sort(key=lambda group: self._source.weigh(group.names), reverse=True)
        try:
            map_at_once(self._open_group, groups)
            self._warn(self._groups)
        except BaseException:
            self.close()
            raise

    def _open_group(self, group: _Group) -> bool:
        """Open what belongs together, unless another thread has done so. Raises `ClosedError`."""
        with group.lock:
            if self._closed:
                refuse_closed("this bundle", REOPEN)
            if group.names[0] in self.__dict__:
                return False
            self._keep(self._source.open(group.names))
            return True

    def _keep(self, opened: dict[str, BundledModel]) -> None:
        """Make them members, unless the bundle was closed meanwhile."""
        with self._lock:
            self._source.memory.save()
            if not self._closed:
                self.__dict__.update(opened)
                return
        for model in opened.values():
            model.close()
        refuse_closed("this bundle", REOPEN)

    def _warn(self, names: Iterable[str]) -> None:
        """Two calls below what the user called."""
        for name in names:
            report = self.report[name]
            if report.fell_back:
                warnings.warn(f"component {name}: {report}", FallbackWarning, stacklevel=4)

    @property
    def _opened(self) -> dict[str, BundledModel]:
        """Those that were opened, in order."""
        return {name: self.__dict__[name] for name in self._groups if name in self.__dict__}

    @property
    def report(self) -> dict[str, LoadReport]:
        """For each component that was opened: which variant runs, on which providers, and why the ones before it do
        not.
        """
        return {name: model.report for name, model in self._opened.items()}

    def self_test(self) -> dict[str, SelfTest]:
        """Reproduce the golden set of each component. Raises `SelfTestError` when an output is out of tolerance."""
        return {name: self._test_member(name) for name in self._groups}

    def _test_member(self, name: str) -> SelfTest:
        member: BundledModel = getattr(self, name)
        with naming(name):
            return member.self_test()

    @classmethod
    def prewarm(
        cls, progress: Progress | None = None, *, only: str | Iterable[str] | None = None, force: bool = False
    ) -> list[dict[str, Any]]:
        """Generate what variants require on this device, as `prewarm` of each model does, one after the other.

        Returns the outcomes of all, with the name of the component. Raises as that does.
        """
        chosen = _choose_names(cls.models, only)
        models = [model for model in cls.models if model.pins.component in chosen]
        return [outcome for model in models for outcome in model.prewarm(progress, force=force)]

    def close(self) -> None:
        """Free all sessions as soon as no thread computes with them. Every later call raises `ClosedError`."""
        with self._lock:
            self._closed = True
            opened = self._opened
        for model in opened.values():
            model.close()

    def _stop(self, _: object) -> None:
        """In a forked process: its open members refuse by themselves, others can be opened there. A lock may have been
        held by a thread that the process does not have.
        """
        self._lock = threading.Lock()
        for group in self._groups.values():
            group.lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        opened = {name: f"{name} on {report.variant}" for name, report in self.report.items()}
        state = ", ".join(opened.get(name, f"{name} not open") for name in self._groups)
        return f"<{type(self).__module__}.{type(self).__name__}: {'closed' if self._closed else state}>"


class _Group:
    """The names of components that are opened at once: one, or those that belong together."""

    __slots__ = ("lock", "names")

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.lock = threading.Lock()


def _make_groups(names: Iterable[str], together: list[str]) -> dict[str, _Group]:
    """The group of each name, in order."""
    names = tuple(names)
    bound = _Group(tuple(name for name in names if name in together))
    return {name: bound if name in together else _Group((name,)) for name in names}


def _choose_names(models: tuple[ModelType, ...], only: str | Iterable[str] | None) -> tuple[str, ...]:
    """The names of all components, or of those in `only`. Raises `InputError` for an unknown one."""
    known = tuple(model.pins.component for model in models)
    wanted = set(known if only is None else (only,) if isinstance(only, str) else only)
    if not wanted or not wanted.issubset(known):
        unknown = ", ".join(sorted(map(repr, wanted.difference(known)))) or "(none)"
        raise InputError(f"there is no component {unknown}", hint=f"the components are {', '.join(known)}")
    return tuple(name for name in known if name in wanted)
