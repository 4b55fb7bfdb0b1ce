"""Web bundles in which every string that a model brings is made to break out of the page that shows it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper

from bundler.emitters.web.emitter import EMITTER
from bundler.environments.registry import Environments
from tests.support import models
from tests.support.bundles import sole_built
from tests.support.web_bundles import make_web_request

MARK = "globalThis.broken=1"
"""What runs when a string becomes code."""

BREAKOUTS = (
    f"<img src=x onerror={MARK}>",
    f"</script><script>{MARK}</script>",
    f'"><svg onload={MARK}>',
    f"' onmouseover={MARK} x='",
    f"`${{{MARK}}}`",
    f"${{{MARK}}}",
    f"\u2028{MARK}//\u2029",
    f'\\");{MARK}//',
    f"*/{MARK}/*",
    f"<!--<script>{MARK}",
    f"]]>{MARK}",
    f"javascript:{MARK}",
    f"{{{{ {MARK} }}}} {{% raw %}}",
    "__proto__",
    "constructor",
    "toString",
    "then",
    "hasOwnProperty",
    "0",
    " ",
    "\u202egnp.exe",
    "&lt;b&gt;&amp;",
    "%3Cscript%3E",
    "../../x",
    "new\nline\r\ttab",
    "出力 🙂",
)


def hostile_model(names: Sequence[str]) -> onnx.ModelProto:
    """Each name is an input, an output and the dimension of both; the first input takes strings."""
    nodes, inputs, outputs = [], [], []
    for at, name in enumerate(names):
        operator, element = ("Identity", TensorProto.STRING) if at == 0 else ("Relu", TensorProto.FLOAT)
        result = f"{name} out" if name != "__proto__" else "__proto__ "
        nodes.append(helper.make_node(operator, [name], [result]))
        inputs.append(models.value(name, [name, 2], element))
        outputs.append(models.value(result, [name, 2], element))
    return models.make_model(nodes, inputs, outputs)


def emit_hostile(names: Sequence[str], folder: Path, cache: Path) -> Path:
    """The bundle of such a model: its title, its samples' names and the strings in them are of the same kind."""
    request = make_web_request(hostile_model(names), folder, name=names[0], environments=Environments(cache))
    _poison_golden(sole_built(request).golden / "index.json", names)
    bundle = folder / "bundle"
    bundle.mkdir()
    EMITTER.emit(request, bundle)
    return bundle


def _poison_golden(index: Path, names: Sequence[str]) -> None:
    document: dict[str, Any] = json.loads(index.read_text("utf-8"))
    for at, sample in enumerate(document["samples"]):
        sample["name"] = names[at % len(names)]
        for side in ("inputs", "outputs"):
            for entry in sample[side].values():
                if "values" in entry:
                    entry["values"] = [names[k % len(names)] for k in range(len(entry["values"]))]
    index.write_text(json.dumps(document), "utf-8")
