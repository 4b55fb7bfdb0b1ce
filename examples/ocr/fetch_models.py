"""Get the three trained models that read a page, and what the reader's scores stand for, from rapidocr-onnxruntime.

python fetch_models.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import onnx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from package_files import PackageFile, run_fetch

REQUIREMENT = "rapidocr-onnxruntime==1.4.4"
MODELS = {
    "detect": ("ch_PP-OCRv4_det_infer", "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9"),
    "classify": ("ch_ppocr_mobile_v2.0_cls_infer", "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c"),
    "read": ("ch_PP-OCRv4_rec_infer", "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b"),
}


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python fetch_models.py FOLDER", file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    files = tuple(
        PackageFile(
            source=f"rapidocr_onnxruntime/models/{file}.onnx", destination=folder / f"{name}.onnx", sha256=sha256
        )
        for name, (file, sha256) in MODELS.items()
    )
    # The package asks for a Python older than 3.13; its models do not.
    code = run_fetch(REQUIREMENT, files, python_version="3.12")
    if code == 0:
        properties = {entry.key: entry.value for entry in onnx.load(folder / "read.onnx").metadata_props}
        (folder / "characters.txt").write_text(properties["character"], encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
