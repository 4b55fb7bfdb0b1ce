"""The kind of device that runs pages: a headless browser of the Chromium family on this machine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from bundler.devices.browser.process import Adapter
from bundler.devices.browser.programs import NONE_FOUND, ask_version, find_browser, is_named
from bundler.devices.browser.site import Content, list_folder
from bundler.devices.browser.visiting import Visit, visit_page
from bundler.devices.contract import Command, Facts, Need, Opening, Outcome
from bundler.devices.local import see_facts
from bundler.environments.survey import ToolStatus
from bundler.model.errors import DeviceMissingError, EnvironmentMissingError

NAME = "browser"

ADAPTER = "WEBGPU_ADAPTER"
"""In a command's environment: what WebGPU runs on, `hardware` or `software`."""

FRAMES = "FRAMES"
"""In a command's environment: set where the page holds frames."""

IN_NO_SANDBOX = "--sandbox cannot be used with a browser: the sandbox has no network, and a page is loaded over one"


@dataclass(slots=True, kw_only=True)
class BrowserDevice:
    """Its commands are pages, opened in a new browser each; what a page posts are the lines of its output. With `named`
    the user chose the program.
    """

    facts: Facts
    program: Path
    named: bool
    _content: dict[str, Path] = field(default_factory=dict)

    def put(self, source: Path, name: str = "") -> str:
        """Serve a file, or all in a folder: from the root where `name` begins with a slash, else beside the page."""
        self._content[name] = source
        return name

    def run(self, command: Command) -> Outcome:
        """Open a page that was put and listen until it is done, dies, or its time is over."""
        (page,) = command.argv
        adapter: Adapter = "hardware" if command.environment.get(ADAPTER) == "hardware" else "software"
        visit = Visit(
            page=page,
            rooted=self._list(from_root=True),
            beside=self._list(from_root=False),
            seconds=command.seconds,
            framed=FRAMES in command.environment,
        )
        began = time.perf_counter()
        ending = visit_page(visit, self.program, adapter, command.on_line)
        if not ending.started:
            raise self._explain(ending.errors)
        return Outcome(code=ending.code, output="", errors=ending.errors, seconds=time.perf_counter() - began)

    def _list(self, *, from_root: bool) -> dict[str, Content]:
        files: dict[str, Content] = {}
        for name, source in self._content.items():
            if name.startswith("/") == from_root:
                files |= list_folder(source, name) if source.is_dir() else {name: source}
        return files

    def _explain(self, said: str) -> EnvironmentMissingError:
        hint = "start it by hand to see why, or use another with --on browser:PATH"
        if self.named:
            return EnvironmentMissingError(
                f"the browser {self.program} does not run our page", details=(said,), hint=hint
            )
        return DeviceMissingError(
            f"{self.program.name}, the browser of this machine, does not run the page of the verification",
            details=(f"the browser {self.program} does not run our page", said),
            hint=hint,
        )


class BrowserKind:
    """The browser that is named, or the first that is found."""

    def suits(self, need: Need) -> bool:
        """Whether the bundle is a page's."""
        return need.runs == "pages"

    @contextmanager
    def open(self, opening: Opening) -> Iterator[BrowserDevice]:
        """Its setting is the program: a path, or a command. Raises `EnvironmentMissingError` when that is not there."""
        program = find_browser(opening.setting)
        if program is None:
            raise DeviceMissingError(NONE_FOUND)
        if opening.sandbox is not None:
            raise DeviceMissingError(IN_NO_SANDBOX, hint="remove --sandbox")
        facts = replace(see_facts(), name=NAME, runs="pages", place=f"in {program.name}", is_here=False)
        yield BrowserDevice(facts=facts, program=program, named=is_named(opening.setting))

    def examine(self, cache_root: Path) -> ToolStatus:
        """Which browser is found, and its version."""
        del cache_root
        try:
            path, why = find_browser(), NONE_FOUND
        except EnvironmentMissingError as error:
            path, why = None, error.message
        return ToolStatus(
            name=f"device {NAME}",
            found=path is not None,
            version=_last_word(ask_version(path)) if path else None,
            detail=f"{path}: runs the golden set of web bundles" if path else "web bundles are built, but not run here",
            hint=None if path else why,
        )


def _last_word(text: str | None) -> str | None:
    """`156.0.8078.79` of `Chromium 156.0.8078.79`."""
    return text.split()[-1] if text else None


KIND = BrowserKind()
