"""Installs these stages as a third party would: a distribution with entry points, found on the path."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent


def write_distribution(folder: Path) -> None:
    """Make `folder` one that, on `sys.path`, registers the stages here."""
    place = folder / "stages_faults-0.dist-info"
    place.mkdir(parents=True)
    names = sorted(path.parent.name for path in FOLDER.glob("*/spec.py"))
    lines = [f"{name} = tests.support.stages_faults.{name}.spec:SPEC" for name in names]
    (place / "METADATA").write_text("Metadata-Version: 2.1\nName: stages-faults\nVersion: 0\n")
    (place / "entry_points.txt").write_text("\n".join(["[bundler.stages]", *lines]) + "\n")
