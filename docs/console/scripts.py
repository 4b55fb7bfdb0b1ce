"""The commands that README.md and the pages of docs/ show, and how much of what they print."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """Commands, and what a page shows of them.

    `target` is the Makefile's, else `commands` are given. `after` is a script that is run before, and not recorded;
    `setup` are commands that are not recorded either. `path` is a folder of programs that come first. `code` is the
    exit code that each command has. `shown` are parts of the commands that are shown (none: all), `lines` finds the
    lines of output that are.
    """

    target: str = ""
    commands: tuple[str, ...] = ()
    after: str = ""
    setup: tuple[str, ...] = ()
    path: str = ""
    code: int = 0
    shown: tuple[str, ...] = ()
    lines: str = ""


_ENVIRONMENT = "python -m venv demo-output/env"
_INSTALL = "python -m pip install --no-index --find-links"
_FULL = """\
bundler build demo-output/magika.onnx --target linux-x64 --output demo-output --name magika-full \\
    --calibration demo-output/calibration --samples demo-output/held-out --set precision.method=static-int8-full"""
_NAMED = "--package-name content-type"
SCRIPTS: Mapping[str, Script] = {
    "help": Script(commands=("make help",), lines=r"^demo"),
    "demo": Script(target="demo", shown=("bundler ", "classify.py"), lines=r"^(demo-output|Built)|^  "),
    "install": Script(
        after="demo",
        setup=(_ENVIRONMENT,),
        path="demo-output/env/bin",
        commands=(
            f"{_INSTALL} demo-output/magika-linux-x64/wheels demo-output/magika-linux-x64",
            "python -m content_type self-test",
        ),
    ),
    "demo-web": Script(target="demo-web", shown=("bundler ",)),
    "demo-precision": Script(
        target="demo-precision",
        shown=("bundler build", "classify.py"),
        lines=r"trying|gate not met|^Built|^  |^demo-output/",
    ),
    "gate": Script(
        after="demo-precision",
        commands=(_FULL,),
        code=7,
        lines=r"^(error|hint)|^  output",
    ),
    "demo-device": Script(
        target="demo-device",
        shown=("bundler build",),
        lines=r"Compile|in emulation|proving|^Built|^  ",
    ),
    "demo-android": Script(
        target="demo-android",
        shown=("bundler ",),
        lines=r"loader|in emulation|^Built|^  |match",
    ),
    "prewarm": Script(
        after="demo",
        setup=(
            f"bundler build demo-output/magika.onnx --target intel-xeon --output demo-output --no-prove {_NAMED}",
            _ENVIRONMENT,
            f"demo-output/env/bin/{_INSTALL} demo-output/magika-intel-xeon/wheels demo-output/magika-intel-xeon",
        ),
        path="demo-output/env/bin",
        commands=("python -m content_type info", "python -m content_type prewarm", "python -m content_type self-test"),
        lines=r"openvino|cpu:|Provider|samples|passed|made",
    ),
}
"""By the names on the pages, in an order in which they can be run."""
