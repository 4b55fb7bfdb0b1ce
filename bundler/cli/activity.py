"""Running steps and waiting builds, from events: shown by the live display, and logged after a long silence."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bundler.model.events import (
    BuildFinished,
    BuildsStarted,
    Event,
    Message,
    StepFinished,
    StepProgress,
    StepsEnded,
    StepStarted,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """A running step, or (`waits`) a build without one. `since` is the clock's time; `detail` is the last message of
    the step or the build; `share` is the fraction of the step that is done, from 0 to 1, None if unknown.
    """

    build: str
    text: str
    since: float
    detail: str = ""
    share: float | None = None
    waits: bool = False


class Activities:
    """Running steps by build and step, and waiting builds. Times are those of the caller's clock."""

    def __init__(self) -> None:
        self.total = 0
        self.done = 0
        self._steps: dict[tuple[str, str], Activity] = {}
        self._waiting: dict[str, Activity] = {}

    def observe(self, event: Event, now: float) -> None:
        """Update from one event."""
        match event:
            case BuildsStarted():
                self.total, self.done = event.total, 0
                self._waiting.clear()
            case BuildFinished():
                self.done = event.done
                for name in event.names:
                    self._end(name)
            case StepStarted():
                self._steps[event.build, event.step] = Activity(build=event.build, text=place_step(event), since=now)
                self._waiting.pop(event.build, None)
            case StepProgress():
                self._advance(event)
            case StepFinished():
                self._steps.pop((event.build, event.step), None)
                self._wait(event.build, now)
            case StepsEnded():
                self._end(event.build)
            case Message():
                if event.note.level == "info":
                    self._set_detail(event.build, event.note.text, now)

    def now(self) -> tuple[Activity, ...]:
        """Running steps, the longest first, then waiting builds."""
        return (*sorted(self._steps.values(), key=lambda activity: activity.since), *self._waiting.values())

    def _advance(self, event: StepProgress) -> None:
        step = self._steps.get((event.build, event.step))
        if step is not None:
            self._steps[event.build, event.step] = replace(step, share=event.fraction, detail=event.text)

    def _set_detail(self, build: str, text: str, now: float) -> None:
        """Attach a message to the build's only running step, unless the step reports progress itself."""
        running = [key for key in self._steps if key[0] == build]
        if not running:
            self._wait(build, now, text)
        elif len(running) == 1 and self._steps[running[0]].share is None:
            self._steps[running[0]] = replace(self._steps[running[0]], detail=text)

    def _wait(self, build: str, now: float, text: str = "") -> None:
        if any(name == build for name, _ in self._steps):
            return
        self._waiting[build] = Activity(build=build, text="between steps", since=now, detail=text, waits=True)

    def _end(self, build: str) -> None:
        self._waiting.pop(build, None)
        for key in [key for key in self._steps if key[0] == build]:
            del self._steps[key]


def place_step(event: StepStarted) -> str:
    """`step 3 of 12: Optimise the graph`; a single step and steps after the plan have no number."""
    return f"step {event.position} of {event.total}: {event.title}" if event.total > 1 else event.title


def show_duration(seconds: float) -> str:
    """`45 s`, `2 min 5 s`, `1 h 3 min`."""
    whole = int(seconds)
    if whole < 60:  # noqa: PLR2004 - seconds of a minute
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"  # noqa: PLR2004
