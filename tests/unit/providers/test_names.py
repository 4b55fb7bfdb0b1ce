"""What a provider is called stands in its own file: nothing else of the program names one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import bundler
from bundler.profiles.methods import METHODS
from bundler.profiles.resolve import target_ids
from bundler.providers.registry import find_provider, provider_names

ROOT = Path(bundler.__file__).parent
COMMON = {"cpu", "wasm", "acl", "tvm"}
"""Short names that are words, or parts of words, for other things as well: the processor, a file format."""

WRAPPED = {
    "stages/build_engine/": "the stage is TensorRT for RTX's own compiler, and names it in its errors",
    "stages/quantize_nncf/": "the stage is OpenVINO's NNCF",
    "stages/fuse_transformers/": "what the library's packed attention runs on",
    "onnxkit/quantization/extra_options.py": "keys of the reference's own options",
    "cli/": "examples in help texts, and what a browser refuses",
    "environments/variables.py": "variables of vendors' drivers and toolkits",
    "devices/browser/": "switches of browsers for a standard of the web",
}
"""Where another program's own word is meant."""


def own_words(path: Path) -> Iterator[str]:
    """Names and texts of a module, without docstrings: what the program says and does, not what it explains."""
    tree = ast.parse(path.read_text("utf-8"))
    documented = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            yield node.value
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name


def outside() -> Iterator[Path]:
    for path in sorted(ROOT.rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        if not place.startswith(("providers/", *WRAPPED)):
            yield path


def find_naming(pattern: re.Pattern[str]) -> dict[str, list[str]]:
    """Texts by file that match, once the names of targets are taken out of them."""
    targets = re.compile("|".join(sorted(map(re.escape, target_ids()), key=len, reverse=True)))
    found = {
        path.relative_to(ROOT).as_posix(): [word for word in own_words(path) if pattern.search(targets.sub("", word))]
        for path in outside()
    }
    return {place: words for place, words in found.items() if words}


def test_no_other_file_has_the_runtimes_name_of_a_provider() -> None:
    names = {find_provider(name).runtime_name for name in provider_names()}
    assert not find_naming(re.compile("|".join(sorted(name for name in names if name.endswith("Provider")))))


def test_no_other_file_has_a_providers_short_name() -> None:
    names = "|".join(re.escape(name.replace("-", "_")) for name in provider_names() if name not in COMMON)
    assert not find_naming(re.compile(rf"(?<![a-z])({names})(?![a-z])".replace("_", "[-_]"), re.IGNORECASE))


def test_methods_that_one_provider_wants_stand_with_it() -> None:
    for name in provider_names():
        for method in find_provider(name).numerics.methods:
            assert METHODS[method.name] is method
            assert method.name in find_provider(name).numerics.precisions
