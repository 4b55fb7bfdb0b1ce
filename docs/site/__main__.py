"""Build the documentation as a site: README.md, docs/ and the other documents of the repository.

    python -m docs.site [FOLDER]

Pages keep their places, so that a link works in the repository as it does on the site. A link to a page, an anchor or a
picture that is not there is an error, and so is a page that `properdocs.yml` does not list.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
PARTS: Final = (
    *("*.md", "docs/*.md", "docs/*.json", "docs/images/*", "examples/**/*.md"),
    *("benchmarks/*.md", "benchmarks/*.html"),
)
"""What belongs to the site, as patterns below the repository's root."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the documentation, with every broken link as an error.")
    parser.add_argument("folder", nargs="?", type=Path, help="where the site is put [it is only checked]")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="site-") as kept:
        place = Path(kept)
        link_pages(place / "pages")
        return build_site(place / "pages", (options.folder or place / "site").resolve())


def list_pages() -> Iterator[Path]:
    """Every file of the site, relative to the root."""
    for pattern in PARTS:
        yield from (path.relative_to(ROOT) for path in sorted(ROOT.glob(pattern)))


def link_pages(folder: Path) -> None:
    """Put links to all files of the site into the new `folder`, at the places that they have in the repository."""
    for page in list_pages():
        link = folder / page
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(ROOT / page)


def build_site(pages: Path, site: Path) -> int:
    """The exit code of the generator; it writes `site`, and what is wrong to standard error."""
    config = Path(__file__).with_name("properdocs.yml")
    # Not --quiet: it drops the warnings before they are counted.
    command = [sys.executable, "-m", "properdocs", "build", "--strict", "--config-file", str(config)]
    environment = os.environ | {"PAGES": str(pages), "SITE": str(site)}
    done = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        print(done.stderr, file=sys.stderr, end="")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
