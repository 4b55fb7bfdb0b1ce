"""Put what an application opens into the assets of a Gradle module.

    python add_to_app.py BUNDLE MODULE

BUNDLE is a folder that `bundler build` made for Android; MODULE is the module's folder.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

MAVEN_GROUP = "com.microsoft.onnxruntime"


def main() -> None:
    parser = argparse.ArgumentParser(description="Put a bundle into the assets of a Gradle module.")
    parser.add_argument("bundle", type=Path, metavar="BUNDLE")
    parser.add_argument("module", type=Path, metavar="MODULE")
    options = parser.parse_args()
    manifest = json.loads((options.bundle / "bundle.json").read_text(encoding="utf-8"))
    assets = options.module / "src" / "main" / "assets" / manifest["name"]
    names = list_files(options.bundle / manifest["payload"])
    shutil.rmtree(assets, ignore_errors=True)
    for name in names:
        copy_checked(options.bundle, manifest, name, assets)
    print(f"{assets}: {len(names)} files match their checksums")
    runtime = ":".join((MAVEN_GROUP, manifest["runtime"]["package"], manifest["runtime"]["version"]))
    print(f'add to {options.module}/build.gradle.kts: implementation("{runtime}")')


def list_files(payload: Path) -> list[str]:
    """What an application opens, relative to the payload: the configuration, the models and the golden set."""
    config = json.loads((payload / "runtime.json").read_text(encoding="utf-8"))
    models = {
        file["path"]
        for component in config["components"]
        for variant in component["variants"]
        for file in variant["files"]
    }
    golden = {path.relative_to(payload).as_posix() for path in (payload / "golden").rglob("*") if path.is_file()}
    return ["runtime.json", *sorted(models | golden)]


def copy_checked(bundle: Path, manifest: dict[str, Any], name: str, assets: Path) -> None:
    """Copy one file of the payload, which must be the one that the manifest lists."""
    source = bundle / manifest["payload"] / name
    listed = {file["path"]: file["sha256"] for file in manifest["files"]}
    data = source.read_bytes()
    if hashlib.sha256(data).hexdigest() != listed[source.relative_to(bundle).as_posix()]:
        raise SystemExit(f"error: {source} is not the file that the bundle was built with; build it again")
    (assets / name).parent.mkdir(parents=True, exist_ok=True)
    (assets / name).write_bytes(data)


if __name__ == "__main__":
    main()
