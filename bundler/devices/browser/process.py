"""A headless browser with a fresh profile, started at one page and ended with all that it started."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from bundler.environments.variables import browser_environment
from bundler.execution.temporary import temporary_folder
from bundler.model.errors import EnvironmentMissingError
from bundler.support.processes import Child, end_session, name_signal

Adapter = Literal["hardware", "software"]
"""What WebGPU runs on: the machine's own, or the browser's software adapter."""

_QUIET: Final = (
    "--headless",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-quic",
    "--disable-sync",
    "--metrics-recording-only",
    "--mute-audio",
    "--password-store=basic",
    "--use-mock-keychain",
    # Containers give shared memory so little room that a tab dies of it.
    "--disable-dev-shm-usage",
    # The page is not shown, and must run as fast as one that is.
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
)

_SOFTWARE: Final = ("--disable-gpu", "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader")
_HARDWARE: Final = ("--enable-unsafe-webgpu",)
_HARDWARE_LINUX: Final = ("--use-angle=vulkan", "--enable-features=Vulkan", "--disable-vulkan-surface")

_LAST_LINES = 5
_NOISE = ("dbus/", "DevTools listening", "vaapi", "gcm/engine", "object_proxy")
"""Messages that a browser without a desktop always prints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningBrowser:
    """A started browser."""

    process: subprocess.Popen[bytes]
    log: Path

    def find_ending(self) -> str | None:
        """How it ended, with its last output; None while it runs."""
        code = self.process.poll()
        if code is None:
            return None
        how = f"it was ended by {name_signal(-code)}" if code < 0 else f"it ended with code {code}"
        return f"{how}: {self.last_lines()}"

    def last_lines(self) -> str:
        """The last lines of its output, as one line."""
        try:
            lines = self.log.read_text("utf-8", "replace").splitlines()
        except OSError:
            lines = []
        shown = [line.strip() for line in lines if line.strip() and not any(word in line for word in _NOISE)]
        return " | ".join(shown[-_LAST_LINES:]) or "no output"


def guess_adapter() -> Adapter:
    """What WebGPU can be expected to run on. Only on Linux can a missing GPU be seen cheaply."""
    if not sys.platform.startswith("linux"):
        return "hardware"
    there = any(Path("/dev/dri").glob("renderD*")) or Path("/dev/nvidiactl").exists()
    return "hardware" if there else "software"


@contextmanager
def start_browser(browser: Path, url: str, adapter: Adapter) -> Iterator[RunningBrowser]:
    """Run `browser` at `url` for as long as the block does. Raises `EnvironmentMissingError` when it does not start."""
    with temporary_folder("browser") as folder, temporary_folder("socket", short=True) as temporary:
        home, log = Path(folder), Path(folder) / "log.txt"
        command = (str(browser), *_flags(adapter), f"--user-data-dir={home / 'profile'}", url)
        # Its caches and settings are for this run alone, not in the user's home.
        places = {"XDG_CONFIG_HOME": str(home / "config"), "XDG_CACHE_HOME": str(home / "cache"), "TMPDIR": temporary}
        process = _start(command, places, log)
        try:
            yield RunningBrowser(process=process, log=log)
        finally:
            _end(process)


def _flags(adapter: Adapter) -> tuple[str, ...]:
    hardware = (*_HARDWARE, *(_HARDWARE_LINUX if sys.platform.startswith("linux") else ()))
    return (*_QUIET, *(_SOFTWARE if adapter == "software" else hardware), *_sandbox())


def _sandbox() -> tuple[str, ...]:
    """Chromium refuses to make its sandbox for root. What it opens there is our page and the bundle alone, served from
    this machine under a policy that lets nothing else in; for other users the sandbox stays.
    """
    return ("--no-sandbox",) if hasattr(os, "geteuid") and os.geteuid() == 0 else ()


def _start(command: tuple[str, ...], places: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    try:
        with log.open("wb") as stream:
            return Child(
                command,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                env={**browser_environment(), **places},
            )
    except OSError as error:
        raise EnvironmentMissingError(
            f"the browser {command[0]} cannot be started",
            details=(str(error.strerror or error),),
            hint="use another Chromium-family browser with --on browser:PATH",
        ) from error


def _end(process: subprocess.Popen[bytes]) -> None:
    """End it and all its children at once: there is nothing in the profile that it should save."""
    end_session(process)
    process.wait()
