"""A `runtime.json` that somebody else wrote asks for nothing but what a profile may ask for."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bundler.emitters.neutral.emitter import EMITTER
from bundler.model.errors import VerificationError
from bundler.verification.configuration import MAX_BYTES, load_config
from tests.support import models
from tests.support.neutral_bundles import make_files_request

KINDS = ("cpu", "htp", "series", "tensorrt", "openvino", "xnnpack")
Edit = Callable[[dict[str, Any]], None]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    EMITTER.emit(make_files_request(models.mlp(), folder, *KINDS), folder / "bundle")
    return folder / "bundle"


def refuse(bundle: Path, edit: Edit) -> str:
    """What is said of the bundle's configuration after `edit`."""
    config = json.loads((bundle / "runtime.json").read_text("utf-8"))
    edit(config)
    altered = bundle / "altered.json"
    altered.write_text(json.dumps(config))
    with pytest.raises(VerificationError) as caught:
        load_config(bundle, altered)
    return "\n".join((caught.value.message, *caught.value.details))


def test_what_bundler_writes_is_taken(bundle: Path) -> None:
    assert [variant.name for variant in load_config(bundle, bundle / "runtime.json").components[0].variants] == list(
        KINDS
    )


def set_in(place: str, key: str, value: Any) -> Edit:
    def edit(config: dict[str, Any]) -> None:
        config["components"][0]["variants"][0][place][key] = value

    return edit


def set_of_variant(key: str, value: Any) -> Edit:
    def edit(config: dict[str, Any]) -> None:
        config["components"][0]["variants"][0][key] = value

    return edit


def set_of_provider(position: int, key: str, value: Any) -> Edit:
    def edit(config: dict[str, Any]) -> None:
        config["components"][0]["variants"][position]["providers"][0][key] = value

    return edit


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (
            set_in("session", "optimized_model_filepath", "/victim/x"),
            "is not allowed in a bundle: bundler writes models itself",
        ),
        (set_in("session", "enable_profiling", True), "is not allowed in a bundle: it writes files"),
        (set_in("session", "profile_file_prefix", "/victim/x"), "is not allowed in a bundle"),
        (set_in("session", "__class__", "x"), "is not a known option"),
        (set_in("session", "intra_op_num_threads", 10**9), "expected a whole number from 0 to 1024"),
        (
            set_in("session_config", "session.collect_node_memory_stats_to_file", "/victim/x"),
            "is not allowed in a bundle",
        ),
        (set_in("session_config", "session.node_partition_config_file", "/etc/passwd"), "is not allowed in a bundle"),
        (set_in("session_config", "ep.context_file_path", "/victim/x"), "is not allowed in a bundle"),
        (set_in("session_config", "of.no.table", "1"), "is not a known option"),
        (set_of_provider(0, "name", "EvilExecutionProvider"), "is not a provider that this bundler knows"),
        (set_of_provider(1, "library", "/victim/evil.so"), "is not a plugin of QNNExecutionProvider"),
        (set_of_provider(1, "options", {"backend_path": "/victim/evil.so"}), "is not allowed in a bundle"),
        (set_of_provider(1, "options", {"op_packages": "X:/victim/evil.so:f"}), "is not allowed in a bundle"),
        (set_of_provider(1, "options", {"profiling_file_path": "/victim/x"}), "is not allowed in a bundle"),
        (set_of_provider(4, "options", {"load_config": '{"CPU": {"CACHE_DIR": "/victim/x"}}'}), "CACHE_DIR"),
        (set_of_variant("model", "../secret.onnx"), "is not among its files"),
        (set_of_variant("name", "\x1b[2J"), "not a name"),
        (set_of_variant("name", "htp"), "given twice"),
        (set_of_variant("providers", []), "it names no provider"),
        (set_in("requires", "runtime", "1.31.1 @ file:///victim"), "not a version of a runtime"),
        (set_in("requires", "runtime", "--index-url=x"), "not a version of a runtime"),
        (set_of_variant("session", ["x"]), "runtime.json: components.0.variants.0.session"),
        (set_of_variant("gate", None), "runtime.json: components.0.variants.0.gate"),
    ],
)
def test_what_it_must_not_ask_for_is_refused_and_named(bundle: Path, edit: Edit, said: str) -> None:
    assert said in refuse(bundle, edit)


def set_of_component(**values: Any) -> Edit:
    return lambda config: config["components"][0].update(values)


def add_component(**values: Any) -> Edit:
    return lambda config: config["components"].append({**config["components"][0], **values})


def link(source: str, target: str, **more: Any) -> dict[str, Any]:
    return {"input": target, "output": source, **more}


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (
            lambda config: config.update(schema=5),
            "runtime.json has schema 5; this bundler reads 3 (of one model) and 4",
        ),
        (lambda config: config.update(schema=3), "runtime.json has schema 3; "),
        (lambda config: config.update(schema="4"), "runtime.json: schema"),
        (lambda config: config.update(schema=True), "runtime.json"),
        (lambda config: config.update(components=[]), "it has no component"),
        (set_of_component(name="while"), "a keyword"),
        (set_of_component(name="../../x"), "not an identifier"),
        (set_of_component(variants=[]), "it has no variant"),
        (set_of_component(golden="../elsewhere"), "its golden set '../elsewhere/index.json': leaves its folder"),
        (set_of_component(golden="gone"), "its golden set 'gone/index.json' is missing"),
        (add_component(), "component 'model': given twice"),
        (add_component(name="class"), "component 'class': 'class' cannot be the name of a component"),
        (add_component(name="detect", variants=[]), "component 'detect': it has no variant"),
        (lambda config: config.update(together=["model", "detect"]), "'detect' belongs together with others"),
        (lambda config: config.update(together=["model"]), "are not two or more names"),
        (lambda config: config.update(together=["model", "model"]), "are not two or more names"),
        (set_of_component(state=[link("y", "nothing")]), "'nothing' and 'y' are not an input and an output"),
        (set_of_component(state=[link("y", "x", grows=9)]), "state 'x': output 'y' has another type or shape"),
        (set_of_component(state=[link("y", "x"), link("y", "x")]), "state 'x': linked twice"),
        (
            set_of_component(state=[link("y", "x", initial="file", file="/etc/passwd")]),
            "its initial value '/etc/passwd'",
        ),
        (set_of_component(state=[link("y", "x", initial="random")]), "components.0.state.0.initial"),
    ],
)
def test_what_is_wrong_with_a_component_is_named(bundle: Path, edit: Edit, said: str) -> None:
    assert said in refuse(bundle, edit)


def test_a_link_between_ports_of_one_type_is_taken(bundle: Path) -> None:
    config = json.loads((bundle / "runtime.json").read_text("utf-8"))
    (component,) = config["components"]
    component["signature"]["outputs"][0]["type"] = component["signature"]["inputs"][0]["type"]
    names = component["signature"]["outputs"][0]["name"], component["signature"]["inputs"][0]["name"]
    component["state"] = [link(*names)]
    (bundle / "linked.json").write_text(json.dumps(config))
    assert load_config(bundle, bundle / "linked.json").components[0].state[0].output == names[0]


@pytest.mark.parametrize(("axis", "taken"), [(0, True), (1, False), (2, False), (-1, False)])
def test_a_state_grows_along_an_open_axis_only(bundle: Path, axis: int, *, taken: bool) -> None:
    """The first axis is the batch, which is open; the second has a fixed size."""
    config = json.loads((bundle / "runtime.json").read_text("utf-8"))
    (component,) = config["components"]
    signature = component["signature"]
    assert signature["inputs"][0]["type"]["shape"] == ["batch", 8]
    signature["outputs"][0]["type"] = signature["inputs"][0]["type"]
    component["state"] = [link(signature["outputs"][0]["name"], signature["inputs"][0]["name"], grows=axis)]
    (bundle / "growing.json").write_text(json.dumps(config))
    with (
        contextlib.nullcontext()
        if taken
        else pytest.raises(VerificationError, match="has values that bundler never writes")
    ):
        load_config(bundle, bundle / "growing.json")


def test_an_older_document_is_a_bundle_of_one_component(bundle: Path) -> None:
    config = json.loads((bundle / "runtime.json").read_text("utf-8"))
    (component,) = config.pop("components")
    old = {key: value for key, value in component.items() if key not in ("name", "golden", "state")}
    (bundle / "old.json").write_text(json.dumps({**config, **old, "schema": 3}))
    assert (
        load_config(bundle, bundle / "old.json").components == load_config(bundle, bundle / "runtime.json").components
    )


@pytest.mark.parametrize(
    "path", ["../secret", "/etc/passwd", "C:\\x", "a//b", "models/./x", "", "link", "pipe", "gone"]
)
def test_files_of_variants_are_regular_files_of_the_bundle(bundle: Path, path: str) -> None:
    if path == "link" and not (bundle / "link").is_symlink():
        (bundle / "link").symlink_to("/etc/passwd")
    if path == "pipe" and not (bundle / "pipe").exists():
        os.mkfifo(bundle / "pipe")

    def edit(config: dict[str, Any]) -> None:
        config["components"][0]["variants"][0]["model"] = config["components"][0]["variants"][0]["files"][0]["path"] = (
            path
        )

    assert "its file" in refuse(bundle, edit)


def test_a_pipe_or_a_file_without_end_is_no_configuration(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "runtime.json")
    with pytest.raises(VerificationError, match="is not a complete bundle"):
        load_config(tmp_path, tmp_path / "runtime.json")
    (tmp_path / "runtime.json").unlink()
    (tmp_path / "runtime.json").write_bytes(b" " * (MAX_BYTES + 1))
    with pytest.raises(VerificationError, match="is not a complete bundle"):
        load_config(tmp_path, tmp_path / "runtime.json")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)


@settings(max_examples=150, deadline=None)
@given(value=JSON, position=st.integers(0, 10**6))
def test_any_value_anywhere_is_taken_or_refused(bundle: Path, value: Any, position: int) -> None:
    """Never another error."""
    config = json.loads((bundle / "runtime.json").read_text("utf-8"))
    places = list(walk(config))
    holder, key = places[position % len(places)]
    holder[key] = value
    (bundle / "altered.json").write_text(json.dumps(config))
    with contextlib.suppress(VerificationError):
        load_config(bundle, bundle / "altered.json")


def walk(data: Any) -> Any:
    """Every place that a value stands at: what holds it, and its key."""
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in list(entries):
        yield data, key
        yield from walk(value)


def test_metadata_that_no_build_carries(bundle: Path) -> None:
    def lengthen(config: dict[str, Any]) -> None:
        config["components"][0]["metadata"] = {"character": "\u4e00" * 400_000}

    assert "its metadata have 1,200,009 bytes, which is more than 1,048,576" in refuse(bundle, lengthen)


def test_metadata_that_are_not_texts(bundle: Path) -> None:
    assert "metadata" in refuse(bundle, lambda config: config["components"][0].update(metadata={"classes": 3}))
