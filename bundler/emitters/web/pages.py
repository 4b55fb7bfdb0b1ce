"""The pages that verify and time a bundle, put on a device with the package and their task."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bundler.devices.contract import Device
from bundler.emitters.web.package import OpenPackage
from bundler.execution.temporary import temporary_folder
from bundler.model.paths import real_path
from bundler.support.data import data_root


@contextmanager
def put_pages(device: Device, package: OpenPackage, task: Mapping[str, Any]) -> Iterator[None]:
    """Put the package at the root, where a visitor's page has it, and our pages with the `task` that they read beside
    one another; it lasts as long as the block.
    """
    with temporary_folder("task") as name:
        file = real_path(Path(name)) / "task.json"
        file.write_text(json.dumps(task), "utf-8")
        device.put(package.root, "/")
        device.put(data_root("templates") / "web" / "_proof")
        device.put(file, file.name)
        yield
