"""A Chromium for the tests: the machine's own, else Debian's where it may be installed."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from bundler.devices.browser.programs import find_browser

COMMAND = "apt-get install -y chromium"


def provide_browser() -> Path | str:
    """The browser, or why there is none and what to do."""
    found = find_browser()
    if found is not None:
        return found
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return f"no Chromium-family browser is here, and only root may install one: `{COMMAND}` as root"
    if shutil.which("apt-get") is None:
        return "no Chromium-family browser is here, and no apt-get to install one with: install Chromium by hand"
    return _install()


def _install() -> Path | str:
    # The processes of a test run would hinder each other: one installs, the others wait and find it.
    with (Path(tempfile.gettempdir()) / "bundler-tests-chromium.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = find_browser()
        if found is not None:
            return found
        for command in (("apt-get", "-qq", "update"), ("apt-get", "-qq", "install", "-y", "chromium")):
            environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280, env=environment)
            if done.returncode != 0:
                last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
                return f"no Chromium-family browser is here, and `{' '.join(command)}` failed: {last}"
    return find_browser() or f"`{COMMAND}` succeeded, and yet there is no browser"
