"""Options that several commands share, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from bundler.model.errors import UsageError
from bundler.model.shapes import Shape, parse_shape, write_shape

Cache = Annotated[
    str | None,
    typer.Option(
        "--cache",
        metavar="DIR|URL",
        envvar="BUNDLER_CACHE",
        help="Where finished steps are kept: a folder of your own, or a URL (s3://…) of a cache that a team shares. A "
        "shared one needs the key of those who write it, in BUNDLER_CACHE_KEY or the file BUNDLER_CACHE_KEY_FILE.",
        show_default="the user's cache folder",
    ),
]
CacheReadonly = Annotated[
    bool,
    typer.Option(
        "--cache-readonly",
        envvar="BUNDLER_CACHE_READONLY",
        help="Take what the cache has and write nothing to it: what is new is kept for this run alone or, with a "
        "shared cache, in your own.",
    ),
]
Jobs = Annotated[int, typer.Option("--jobs", "-j", min=1, max=256, help="Steps and builds that run at once.")]
Sandbox = Annotated[
    bool,
    typer.Option(
        "--sandbox",
        envvar="BUNDLER_SANDBOX",
        help="Run what computes on models and bundles without a network and with nothing of your files but the model, "
        "the data and the cache to read (Linux, with bubblewrap).",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document; everything else goes to standard error.")]
Progress = Annotated[
    str, typer.Option("--progress", metavar="STYLE", help="auto, rich, plain, json (one event a line) or none.")
]
On = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="DEVICE",
        help="Where the bundle is run: local, qemu-aarch64 (its setting is the core: qemu-aarch64:cortex-a76), browser "
        "(the program: browser:/usr/bin/chromium, or BUNDLER_BROWSER), or a device that a package brings.",
        show_default="the first that suits the target",
    ),
]
Samples = Annotated[
    str | None,
    typer.Option(
        "--samples",
        metavar="PATH|FUNCTION",
        help="Inputs for the golden set: a folder of .npz files, of test_data_set_* folders, or one .npz with a "
        "leading sample axis; a folder of images, recordings or texts with a preprocessing; or a function, as "
        "file.py:function, that gives mappings from input name to array. Without it, seeded synthetic inputs are used, "
        "and the report says so.",
    ),
]
Calibration = Annotated[
    str | None,
    typer.Option(
        "--calibration",
        metavar="PATH|FUNCTION",
        help="Data to find the ranges of quantised values from: what --samples takes, or the word synthetic (the "
        "bundle is then marked as not for shipping). Without it, most of the samples; a fifth is held out and judges.",
    ),
]
Preprocessing = Annotated[
    Path | None,
    typer.Option(
        "--preprocessing",
        metavar="FILE",
        help="TOML file that says what becomes of images, recordings or texts (docs/preprocessing.md).",
        show_default="preprocessing.toml in their folder",
    ),
]
Dimensions = Annotated[
    list[str] | None,
    typer.Option("--dim", metavar="NAME=N", help="Fix a dynamic dimension; may be given several times."),
]
Shapes = Annotated[
    list[str] | None,
    typer.Option(
        "--shape",
        metavar="INPUT=SIZES",
        help="Fix the sizes of an input (x=1,3,48,192), those without a name too; ? leaves one as it is, "
        "and 64..320 (or 64..192..320, tuned for 192) is a range where a provider takes ranges. May be given several "
        "times; with several models, MODEL:INPUT=SIZES says which one is meant.",
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the profile (accuracy.absolute=1e-3)."),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="NAME",
        help="Of what the project file names: bundles, models or targets by name or glob; may be repeated.",
    ),
]
Golden = Annotated[
    Literal["samples", "synthetic"] | None,
    typer.Option(
        "--golden",
        metavar="samples|synthetic",
        help="What the bundle carries of --samples: up to 16 of them, or seeded inputs like them. The real ones judge "
        "the build in either case.",
        show_default="samples",
    ),
]
TrustTarget = Annotated[
    bool, typer.Option("--trust-target", help="Let the target's own file name programs that run (accuracy.metric).")
]


def parse_dimensions(pairs: list[str] | None) -> dict[str, int]:
    """`name=n` pairs as a mapping. Raises `UsageError` for the first that is none."""
    dimensions: dict[str, int] = {}
    for pair in pairs or ():
        name, _, size = pair.rpartition("=")
        if not name or not size.isdecimal():
            raise UsageError(f"--dim {pair}: not of the form name=n", hint="for example --dim batch=1")
        if int(size) == 0:
            raise UsageError(f"--dim {pair}: a dimension has a size of at least 1", hint=f"for example --dim {name}=1")
        dimensions[name] = int(size)
    return dimensions


def parse_shapes(pairs: list[str] | None) -> dict[str, Shape]:
    """`input=sizes` pairs as a mapping. Raises `UsageError` for the first that is none."""
    shapes: dict[str, Shape] = {}
    for pair in pairs or ():
        name, equals, sizes = pair.rpartition("=")
        if not name or not equals:
            raise UsageError(f"--shape {pair}: not of the form input=sizes", hint=_SHAPE_EXAMPLE)
        try:
            shape = parse_shape(sizes)
        except ValueError as error:
            raise UsageError(f"--shape {pair}: {error}", hint=_SHAPE_EXAMPLE) from error
        if shapes.setdefault(name, shape) != shape:
            raise UsageError(
                f"--shape {pair}: {name} has the shape {write_shape(shapes[name])} already", hint="give each input once"
            )
    return shapes


_SHAPE_EXAMPLE = "for example --shape x=1,3,48,192, or --shape 'x=?,3,48,192' to leave the first size as it is"


def progress_style(name: str, *, json: bool) -> str:
    """The checked style of progress. Raises `UsageError`."""
    styles = ("auto", "rich", "plain", "json", "none")
    if name not in styles:
        raise UsageError(f"--progress {name}: unknown style", hint=f"one of {', '.join(styles)}")
    # With --json a program reads us: the live display would only clutter its log.
    return "plain" if json and name == "auto" else name
