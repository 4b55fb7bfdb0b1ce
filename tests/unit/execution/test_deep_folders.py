"""What a stranger's program leaves in a passing folder goes with it."""

import os
from pathlib import Path

from bundler.execution.temporary import temporary_folder


def test_a_folder_goes_however_deep_it_is(tmp_path: Path) -> None:
    here = Path.cwd()
    with temporary_folder("test", otherwise=tmp_path) as name:
        place = Path(name)
        try:
            for _ in range(1500):
                os.chdir(place)
                place = Path("d")
                place.mkdir()
        finally:
            os.chdir(here)
    assert not any(tmp_path.iterdir())
