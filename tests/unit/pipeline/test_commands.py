"""A request as a command."""

from __future__ import annotations

from pathlib import Path

from bundler.pipeline.requests import BuildRequest, repeat_command


def test_only_what_was_given_is_said_again() -> None:
    assert repeat_command(BuildRequest(model=Path("-m.onnx"), target="linux-x64")) == (
        *("bundler", "build", "./-m.onnx", "--target", "linux-x64"),
    )
    request = BuildRequest(
        model=Path("m.onnx"),
        target="linux-x64",
        output=Path("out"),
        package_name="p",
        dimensions={"n": 1},
        shapes={"x": (1, None)},
        overrides=("budget.model_mb=3",),
        prove=False,
        golden="synthetic",
    )
    assert repeat_command(request, sandbox=True)[5:] == (
        *("--output", "out", "--golden", "synthetic", "--dim", "n=1", "--shape", "x=1,?"),
        *("--set", "budget.model_mb=3", "--package-name", "p", "--no-prove", "--sandbox"),
    )


def test_what_keeps_something_from_happening_is_said_again() -> None:
    """A hint that is run as it stands may not ship what was held back, nor open what was shut in."""
    request = BuildRequest(model=Path("m.onnx"), target="linux-x64", samples="private", golden="synthetic")
    command = repeat_command(request, sandbox=True)
    assert command[-3:] == ("--golden", "synthetic", "--sandbox")
    assert "--sandbox" not in repeat_command(request)
