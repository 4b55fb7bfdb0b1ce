"""The generated classes of a module on a Java virtual machine: compiled once for all trainings of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bundler.emitters.android import loader_classes
from bundler.emitters.android.loader_classes import provide_classes
from bundler.environments.registry import Environments
from bundler.model.errors import VerificationError
from bundler.model.events import SILENT

PIN = "ab" * 32


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """The sources of each compilation, by their names; the "classes" that it gives are these texts."""
    found: list[dict[str, str]] = []

    def keep(work: Any, *_: object) -> Path:
        found.append({path.name: path.read_text("utf-8") for path in work.sources})
        place = tmp_path / f"kept{len(found)}"
        place.mkdir()
        (place / "Facade.class").write_text("\n".join(found[-1].values()), "utf-8")
        return place

    monkeypatch.setattr(loader_classes, "keep_classes", keep)
    monkeypatch.setattr(loader_classes, "fetch_artifacts", lambda *_: {})
    return found


def write_module(folder: Path, *more: str) -> Path:
    loader = folder / "com/acme/x/loader"
    loader.mkdir(parents=True)
    for name in ("LoadedBundle", *more):
        (loader / f"{name}.kt").write_text("package com.acme.x.loader\n", "utf-8")
    facade = f'package com.acme.x\nimport com.acme.x.loader.LoadedBundle\nconst val CONFIG_SHA256 = "{PIN}"\n'
    (loader.parent / "X.kt").write_text(facade, "utf-8")
    return loader


def provide(loader: Path, folder: Path) -> tuple[str, tuple[Path, ...]]:
    return provide_classes(loader, "1.28.0", Environments(folder), SILENT, pin=PIN, folder=folder / "made")


def test_the_pin_is_in_the_classes_and_not_in_what_is_compiled(compiled: list[dict[str, str]], tmp_path: Path) -> None:
    package, path = provide(write_module(tmp_path / "module"), tmp_path)
    assert package == "bundler.loader"
    facade = compiled[1]["X.kt"]
    assert "import bundler.loader.LoadedBundle" in facade
    assert PIN not in facade
    assert f'"{PIN}"' in (path[1] / "Facade.class").read_text("utf-8")
    assert PIN not in (tmp_path / "kept2/Facade.class").read_text("utf-8")


@pytest.mark.parametrize(("more", "expected"), [((), False), (("Pixels",), True)])
def test_what_stands_for_pictures_comes_with_them(
    compiled: list[dict[str, str]], tmp_path: Path, more: tuple[str, ...], *, expected: bool
) -> None:
    provide(write_module(tmp_path / "module", *more), tmp_path)
    assert ("AndroidPixels.kt" in compiled[0]) is expected
    assert {"AndroidHost.kt", "AssetPayload.kt", "Context.kt"} <= set(compiled[0])


@pytest.mark.usefixtures("compiled")
def test_classes_that_cannot_be_read_are_no_defect_of_ours(tmp_path: Path) -> None:
    loader = write_module(tmp_path / "module")
    (loader.parent / "X.kt").write_bytes(b"\xff\xfe")
    with pytest.raises(VerificationError, match="cannot be read"):
        provide(loader, tmp_path)
