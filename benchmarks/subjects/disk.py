"""What a folder of bundles takes on the disk, beside the sum of its files."""

from __future__ import annotations

import subprocess
from pathlib import Path

from bars import Bar, set_bar
from document import Section, Table
from models import choose, make_ready
from workplace import Workplace, build_bundle, measure_folder

LIMIT_MB = 250.0
MODEL = "magika"
TARGETS = ("linux-x64", "raspberry-pi-5")
_MB = 1e6


def measure(workplace: Workplace) -> Section:
    (model,) = choose((MODEL,))
    source = make_ready(model, workplace.folder / "models").path
    output = workplace.empty("folder-of-bundles")
    names = [f"model-{number}" for number in range(1, workplace.pick(2, 5) + 1)]
    taken = []
    for name in names:
        for target in TARGETS:
            build_bundle(workplace, source, output, arguments=("--no-prove", "--name", name), target=target)
            taken.append((_ask_du(output), measure_folder(output) / _MB))
    return Section(
        name="disk",
        title="a folder of bundles",
        method=(
            f"{len(names)} models of {source.stat().st_size / _MB:.1f} MB ({MODEL}, under {len(names)} names) for each "
            f"of {' and '.join(TARGETS)}, built into one folder with their reports: `du -s` of the folder, which "
            "counts a file with several names once, beside the sum of the sizes of all files (what copies would take)."
        ),
        tables=(_table(taken),),
        figures={"du_mb": [pair[0] for pair in taken], "sum_mb": [pair[1] for pair in taken]},
    )


def _ask_du(folder: Path) -> float:
    """MB, as `du -s` counts them."""
    done = subprocess.run(["du", "-s", "--block-size=1", folder], check=True, capture_output=True, text=True)
    return int(done.stdout.split()[0]) / _MB


def _table(taken: list[tuple[float, float]]) -> Table:
    rows = tuple((str(count), f"{du:.1f}", f"{size:.1f}", "") for count, (du, size) in enumerate(taken, 1))
    return Table(
        columns=("bundles", "du -s, MB", "sum of all files, MB", f"bar: at most {LIMIT_MB:g} MB"),
        rows=(*rows[:-1], (*rows[-1][:-1], _judge(taken[-1][0]))),
    )


def _judge(megabytes: float) -> Bar:
    return set_bar("folder of bundles", [megabytes], LIMIT_MB, unit="MB")
