"""Text of strangers on the terminal: whatever a model, a bundle, a profile or a file's name holds, it is only shown."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from bundler.cli.printing import LONGEST_LINE
from tests.support import models
from tests.support.command_line import Answer, CommandLine, end_group

SHORT = "\x1b[38;5;199mA\x1b]0;owned\x07\x9b5n\u202eB\u2066\n::error::C\r##[group]D [bold red]E[/] [/bold] \\\u2028\0"
"""Commands to a terminal and to logs, an end of line and a false start of the next, directions of writing, markup."""
HOSTILE = SHORT + "x" * 10_000
FILE = "\x1b[38;5;199mA\x1b]0;o\x07\u202eB\n::error::C\n##[group]D [bold red]E[bold] \\.onnx"
OURS = re.compile(r"\x1b\[(?:(?:0|1|2|3[1-6]|9[0-7]|1;3[1-6]|38;5;\d+|38;2;[\d;]+)?m|\d*[AKG]|2K|\?25[lh])|\x1b\[1A")


def tag(text: str, place: str) -> str:
    """`text` with a head of its own, so that names stay different."""
    return f"{place}{text}"


def hostile_model(*, runs: bool = True) -> onnx.ModelProto:
    """Every text that a model has is hostile; with `runs` it is a good model all the same."""
    x, y = tag(HOSTILE, "in"), tag(HOSTILE, "out")
    node = helper.make_node("Relu", [x], [y], name=tag(HOSTILE, "node"), doc_string=HOSTILE)
    if not runs:
        node = helper.make_node(tag(SHORT, "Operator"), [x], [y], name=HOSTILE, domain=tag(SHORT, "domain"))
    ports = [models.value(name, [tag(SHORT, "batch"), 4]) for name in (x, y)]
    for port in ports:
        port.doc_string = HOSTILE
    model = models.make_model([node], ports[:1], ports[1:], domains=() if runs else ((tag(SHORT, "domain"), 1),))
    model.producer_name, model.producer_version, model.domain, model.doc_string = (HOSTILE,) * 4
    model.graph.name, model.graph.doc_string = HOSTILE, HOSTILE
    helper.set_model_props(model, {SHORT: HOSTILE})
    return model


def check_shown(answer: Answer, *, documents: bool = False) -> None:
    """Nothing but text and ends of lines; no endless line but in a document, which is exact."""
    for stream, exact in ((answer.out, documents), (answer.err, False)):
        bad = sorted({c for c in stream if not c.isprintable() and c != "\n"})
        assert not bad, f"{' '.join(map(ascii, answer.command))}: {bad}"
        for line in stream.split("\n"):
            assert exact or len(line) <= LONGEST_LINE, f"{answer.command!a}: a line of {len(line)}"
            assert not re.match(r"\s*::", line), ascii(line)
            assert not re.search(r"##[\w-]*\[", line), ascii(line)
            assert not re.match(r"(?:error|hint): ?(?:fake|C)", line), ascii(line)
    assert "Traceback" not in answer.err
    assert "internal error" not in answer.err


def run(warm: CommandLine, *arguments: str | Path, code: int | None = 0) -> Answer:
    """`arguments` for people and for programs, both looked at. `code` None: any, but for a defect of ours."""
    for options in ((), ("--json",)):
        answer = warm.run(*arguments, *options)
        if code is not None:
            answer.expect(code)
        assert answer.code != 1, answer.err
        check_shown(answer, documents=bool(options))
        if options:
            json.loads(answer.out)
    return warm.run(*arguments)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return models.save(hostile_model(), tmp_path_factory.mktemp("model"), FILE)


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A valid one: what its texts may hold, they hold. A title has no control characters of ASCII, and all others."""
    title = json.dumps("\u202eT\x9b5n\u2066 [bold]T[/]")
    path = tmp_path_factory.mktemp("profile") / "\x1b[38;5;199mp\u202e\n::error::.toml"
    path.write_text(
        f'extends = "linux-x64"\nid = "hostile"\ntitle = {title}\ngroup = {title}\n'
        f"description = {json.dumps(HOSTILE.replace(chr(0), ''))}\naliases = [{title}]\n"
        f"[cautions]\n{title} = {title}\n[sources]\n{json.dumps(SHORT)} = {json.dumps(SHORT)}\n",
        encoding="utf-8",
    )
    return path


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    rng = np.random.default_rng(0)
    for number in range(3):
        values = rng.normal(size=(2, 4)).astype("f4")
        values[0, 0] = np.nan if number == 0 else 1
        write_npz(folder / f"{number}\x1b[38;5;199m\u202e\n::error::C.npz", tag(HOSTILE, "in"), values)
    return folder


def write_npz(path: Path, name: str, values: np.ndarray) -> None:
    np.savez(path, **{name: values})


@pytest.fixture(scope="module")
def bundle(warm: CommandLine, model: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """`bundle(*options)`, built once for the same options."""
    made: dict[tuple[str, ...], Path] = {}

    def build(*options: str) -> Path:
        if options not in made:
            output = tmp_path_factory.mktemp("out")
            answer = warm.run("build", model, *options, "--output", output).expect(0)
            check_shown(answer)
            made[options] = next(path for path in output.iterdir() if (path / "bundle.json").is_file())
        return made[options]

    return build


FILES = ("--target=linux-x64", "--format=files")
WEB = ("--target=web-wasm", "--no-prove")


@pytest.mark.quick
@pytest.mark.parametrize("command", ["inspect", "plan", "recommend"])
def test_what_looks_at_a_model_shows_its_texts_and_obeys_none(warm: CommandLine, model: Path, command: str) -> None:
    words = {"inspect": ("inspect",), "plan": ("plan", "--target=linux-x64"), "recommend": ("targets", "recommend")}
    answer = run(warm, *words[command], model)
    assert "[38;5;199m" in answer.out, "the text itself is shown"


@pytest.mark.parametrize("command", ["inspect", "plan", "build", "recommend"])
@pytest.mark.parametrize("kind", ["no-such-operator", "not-there", "text"])
def test_refusals_name_what_they_refuse_and_obey_none_of_it(
    warm: CommandLine, tmp_path: Path, command: str, kind: str
) -> None:
    words = {
        "inspect": ("inspect",),
        "plan": ("plan", "--target=linux-x64"),
        "build": ("build", "--target=linux-x64", "--target=web-wasm", "--output", tmp_path / "out"),
        "recommend": ("targets", "recommend"),
    }
    bad = tmp_path / FILE
    if kind == "no-such-operator":
        models.save(hostile_model(runs=False), tmp_path, FILE)
    elif kind == "text":
        bad.write_text(HOSTILE * 3)
    run(warm, *words[command], bad, code=None)


@pytest.mark.parametrize(
    "arguments",
    [
        ("build", "--target", HOSTILE),
        ("build", "--target=linux-x64", "--set", f"accuracy.absolute={HOSTILE}"),
        ("build", "--target=linux-x64", "--set", f'"{SHORT}"={HOSTILE}'),
        ("build", "--target=linux-x64", "--set", HOSTILE),
        ("build", "--target=linux-x64", "--dim", HOSTILE),
        ("build", "--target=linux-x64", "--dim", f"{HOSTILE}=1"),
        ("build", "--target=linux-x64", "--format", HOSTILE),
        ("build", "--target=linux-x64", "--name", HOSTILE),
        ("build", "--target=linux-x64", "--version", HOSTILE),
        ("build", "--target=linux-x64", "--samples", HOSTILE),
        ("build", "--target=linux-x64", "--calibration", HOSTILE),
        ("build", "--target=linux-x64", "--progress", HOSTILE),
        ("build", f"--{HOSTILE}"),
        ("targets", "show", HOSTILE),
        ("targets", "methods", HOSTILE),
        ("targets", "providers", HOSTILE),
        ("targets", "list", "--group", HOSTILE),
        ("targets", "new", HOSTILE),
        ("verify",),
        ("verify", "--digest", HOSTILE),
        ("serve",),
        ("bench",),
        ("cache", "trim", "--to", HOSTILE),
    ],
    ids=lambda words: ascii(" ".join(words))[1:40],
)
def test_what_was_typed_is_shown_as_harmlessly(
    warm: CommandLine, model: Path, arguments: tuple[str, ...], tmp_path: Path
) -> None:
    typed = [word.replace("\0", "") for word in arguments]
    named = [] if arguments[0] in ("targets", "cache") else [model]
    check_shown(dataclasses.replace(warm, cwd=tmp_path).run(*typed, *named))


def test_a_build_says_what_samples_are_called_and_obeys_none_of_it(
    warm: CommandLine, samples: Path, model: Path, tmp_path: Path
) -> None:
    run(warm, "build", model, *FILES, "--samples", samples, "--output", tmp_path / "out", code=None)
    for stream in ("plain", "json"):
        asked = ("--no-prove", "--progress", stream, "--output", tmp_path / stream)
        answer = warm.run("build", model, *FILES, *asked).expect(0)
        # Events are documents, a line each.
        shown = answer if stream == "plain" else dataclasses.replace(answer, out=answer.err, err="")
        check_shown(shown, documents=stream == "json")


def poison(value: Any) -> Any:
    """Every text that is a sentence, made hostile: what a bundle says of itself is a stranger's."""
    if isinstance(value, dict):
        return {key: poison(item) for key, item in value.items()}
    if isinstance(value, list):
        return [poison(item) for item in value]
    return value + HOSTILE if isinstance(value, str) and " " in value else value


@pytest.mark.parametrize("options", [FILES, WEB], ids=["files", "web"])
def test_what_a_bundle_says_of_itself_is_only_shown(
    warm: CommandLine, bundle: Callable[..., Path], tmp_path: Path, options: tuple[str, ...]
) -> None:
    good = bundle(*options)
    evil = tmp_path / "\x1b[38;5;199m\u202e\n::error::evil"
    subprocess.run(["cp", "-a", str(good), str(evil)], check=True)
    manifest = json.loads((evil / "bundle.json").read_text("utf-8"))
    poisoned = poison(manifest)
    (component,) = poisoned["components"]
    component["reservations"] = [HOSTILE]
    component["shortfalls"] = [HOSTILE]
    component["decisions"] = [{"subject": HOSTILE, "choice": HOSTILE, "reason": HOSTILE}]
    (evil / "bundle.json").write_text(json.dumps(poisoned), "utf-8")
    run(warm, "diff", good, evil)
    run(warm, "verify", evil, "--digests-only")
    run(warm, "bench", evil, code=None)
    if options is FILES:
        run(warm, "verify", evil, code=None)
    poisoned["files"][0]["path"] = FILE
    (evil / "bundle.json").write_text(json.dumps(poisoned), "utf-8")
    run(warm, "verify", evil, "--digests-only", code=8)
    run(warm, "serve", evil, code=None)
    (evil / "bundle.json").write_text(json.dumps({**manifest, "target": HOSTILE, HOSTILE: HOSTILE}), "utf-8")
    run(warm, "verify", evil, code=8)
    run(warm, "diff", good, evil, code=8)


def test_a_served_bundle_is_announced_on_one_line(
    bundler: CommandLine, bundle: Callable[..., Path], tmp_path: Path
) -> None:
    evil = tmp_path / "\x1b[38;5;199m\u202e\n::error::evil"
    subprocess.run(["cp", "-a", str(bundle(*WEB)), str(evil)], check=True)
    for options in ((), ("--json",)):
        process = bundler.start("serve", evil, "--port=0", *options)
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
        finally:
            end_group(process)
            process.communicate()
        check_shown(Answer(command=("serve", *options), code=0, out=line, err=""))
        assert "http://" in line


def test_profiles_are_listed_shown_and_checked(warm: CommandLine, profile: Path, model: Path, tmp_path: Path) -> None:
    shown = warm.run("targets", "show", profile).expect(0)
    check_shown(shown, documents=True)
    run(warm, "plan", model, "--target", profile)
    run(warm, "targets", "validate", profile)
    run(warm, "build", model, "--target", profile, "--format=files", "--no-prove", "--output", tmp_path / "out")
    bad = tmp_path / FILE.replace(".onnx", ".toml")
    bad.write_text(f'extends = "linux-x64"\n[{json.dumps(SHORT)}]\nx = {json.dumps(SHORT)}\n', "utf-8")
    check_shown(warm.run("targets", "validate", bad).expect(4))
    run(warm, "build", model, "--target", bad, code=4)
    copy = tmp_path / "copy.toml"
    copy.write_text(shown.out, "utf-8")
    warm.run("targets", "validate", copy).expect(0)


def test_a_project_file_is_only_read(warm: CommandLine, tmp_path: Path) -> None:
    inside = dataclasses.replace(warm, cwd=tmp_path)
    text = json.dumps(SHORT)
    for content in (
        f"[[models]]\npath = {text}\ntargets = [{text}]\n",
        f"{text} = {text}\n[[models]]\n{text} = 1\n",
        "a" * 10_000,
        f'output = {text}\n[[models]]\npath = "m.onnx"\ntargets = ["linux-x64"]\nsamples = {text}\n',
    ):
        (tmp_path / "bundler.toml").write_text(content, "utf-8")
        run(inside, "build", code=None)
        run(inside, "lock", code=None)


@pytest.mark.quick
@pytest.mark.skipif(sys.platform == "win32", reason="there are no such terminals")
def test_the_live_display_has_no_commands_but_its_own(
    bundler: CommandLine, model: Path, samples: Path, tmp_path: Path
) -> None:
    """On a terminal of its own: what is drawn there has colours and moves, and all of them are the display's."""
    for words in (
        ("build", model, *FILES, "--progress=rich", "--output", tmp_path / "out"),
        ("build", model, *FILES, "--samples", samples, "--output", tmp_path / "two"),
        ("inspect", model),
        ("targets", "list"),
        ("targets", "show", HOSTILE.replace("\0", "")),
    ):
        drawn = draw(bundler, *words)
        rest = OURS.sub("", drawn.replace("\x1b[38;5;199m", "ESC"))
        bad = sorted({c for c in rest if not c.isprintable() and c not in "\r\n"})
        assert not bad, f"{words!a}: {bad}\n{ascii(drawn)[-3000:]}"
        assert "ESC" not in rest
        assert "Traceback" not in rest


def draw(bundler: CommandLine, *arguments: str | Path) -> str:
    """What a terminal gets."""
    import pty  # noqa: PLC0415 - not on Windows

    ours, theirs = pty.openpty()
    environment = {key: value for key, value in bundler.environment().items() if key != "NO_COLOR"}
    process = subprocess.Popen(
        bundler.command(arguments), stdin=theirs, stdout=theirs, stderr=theirs, env={**environment, "TERM": "xterm"}
    )
    os.close(theirs)
    found = b""
    try:
        while chunk := read(ours):
            found += chunk
    finally:
        process.wait(timeout=240)
        os.close(ours)
    return found.decode("utf-8")


def read(descriptor: int) -> bytes:
    """The next bytes; none when the other side is gone, which Linux tells as a fault."""
    try:
        return os.read(descriptor, 1 << 16)
    except OSError as error:
        if error.errno == errno.EIO:
            return b""
        raise
