"""Get the trained model of magika, which tells what kind of content a file holds.

    python fetch_model.py DEST.onnx

Beside it stand the model's own configuration (sizes, thresholds, labels) and what is known of each label.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from package_files import PackageFile, run_fetch

REQUIREMENT = "magika==1.0.3"
CONFIG_NAME = "config.min.json"
TYPES_NAME = "content_types_kb.min.json"


def list_files(model: Path) -> tuple[PackageFile, ...]:
    """The three files, for a model that shall stand at `model`."""
    return (
        PackageFile(
            source="magika/models/standard_v3_3/model.onnx",
            destination=model,
            sha256="fe2d2eb49c5f88a9e0a6c048e15d6ffdf86235519c2afc535044de433169ec8c",
        ),
        PackageFile(
            source=f"magika/models/standard_v3_3/{CONFIG_NAME}",
            destination=model.with_name(CONFIG_NAME),
            sha256="ae24c742205358f6ff6dfd5facb6743fb69743dbba8373e73da58ff0cbd695db",
        ),
        PackageFile(
            source=f"magika/config/{TYPES_NAME}",
            destination=model.with_name(TYPES_NAME),
            sha256="75208adba69bc0556403b62b32ef3ccf8b5ce494411780845852e52e6583a10d",
        ),
    )


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python fetch_model.py DEST.onnx", file=sys.stderr)
        return 2
    return run_fetch(REQUIREMENT, list_files(Path(arguments[0])))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
