"""Get the trained model that tells whether a line of text stands upside down, from rapidocr-onnxruntime.

python fetch_model.py DEST.onnx
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from package_files import PackageFile, run_fetch

REQUIREMENT = "rapidocr-onnxruntime==1.4.4"


def list_files(model: Path) -> tuple[PackageFile, ...]:
    """The one file, for a model that shall stand at `model`."""
    return (
        PackageFile(
            source="rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
            destination=model,
            sha256="e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c",
        ),
    )


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python fetch_model.py DEST.onnx", file=sys.stderr)
        return 2
    # The package asks for a Python older than 3.13; its model does not.
    return run_fetch(REQUIREMENT, list_files(Path(arguments[0])), python_version="3.12")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
