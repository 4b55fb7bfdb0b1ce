"""A model gets the targets that suit it, for a device or for this machine, with the command to run next."""

import dataclasses
from collections.abc import Iterator

import pytest

from bundler.catalogue.listing import Summary, list_targets
from bundler.catalogue.machine import Machine
from bundler.catalogue.recommending import FAMILIES
from bundler.cli.commands.targets.recommend import recommendation_lines
from bundler.model.errors import ProfileError, UsageError
from bundler.pipeline import recommend
from bundler.pipeline.recommend import Recommendations, find_matches, pick_targets
from bundler.profiles.schema import Platform
from tests.support.facts import SIGNATURE, make_facts
from tests.unit.profiles.devices import CPU, make_target, make_variant, register_known

PROFILES = {
    profile.id: profile
    for profile in (
        make_target(
            make_variant("htp", "npu", options={"half": True}, calibrated="static-int8"),
            CPU,
            id="snapdragon-8g3",
            title="Snapdragon 8 Gen 3",
            aliases=("Galaxy S24 Ultra", "SM8650"),
        ),
        make_target(id="android-arm64", title="Android on Arm"),
        make_target(
            make_variant("webgpu", "webgpu"),
            make_variant("wasm", "wasm"),
            id="web-webgpu",
            title="Browsers, on the GPU",
            platform=Platform(system="web", architecture="wasm32"),
        ),
        make_target(id="linux-x64", title="Linux on x86-64", platform=Platform(system="linux", architecture="x64")),
        make_target(
            make_variant("trt", "engine"),
            CPU,
            id="rtx-4090",
            title="NVIDIA GeForce RTX 4090 on Linux",
            aliases=("RTX 4090",),
            platform=Platform(system="linux", architecture="x64"),
        ),
    )
}
SUMMARIES = tuple(
    Summary(
        id=profile.id,
        title=profile.title,
        group=profile.group,
        system=profile.platform.system,
        architecture=profile.platform.architecture,
        aliases=profile.aliases,
    )
    for profile in PROFILES.values()
)
SERVER = Machine(system="linux", architecture="x64", clues=("NVIDIA GeForce RTX 4090", "Some CPU"))


@pytest.fixture(autouse=True)
def catalogue(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A catalogue of its own; planning, which knows real providers only, refuses dynamic sizes for the NPU."""
    monkeypatch.setattr(recommend, "list_targets", lambda: SUMMARIES)
    monkeypatch.setattr(recommend, "resolve_target", lambda name: PROFILES[name])
    monkeypatch.setattr(recommend, "make_plan", lambda *_: None)
    with register_known():
        yield


def ask(device, model="model.onnx", **changes):
    facts = make_facts(**changes)
    asked = None if device is None else (device, find_matches(device, SUMMARIES))
    picks = pick_targets(facts, model, asked, SERVER)
    return Recommendations(facts=facts, digest="0" * 64, device=device, picks=picks)


def page(found):
    return "\n".join(recommendation_lines(found))


def test_a_device_is_explained_with_what_to_run_next(snapshot):
    assert page(ask("galaxy s24")) == snapshot


def test_without_a_device_this_machine_and_each_family_get_one(snapshot):
    assert page(ask(None)) == snapshot


def test_what_does_not_fit_says_why_and_what_does(snapshot, monkeypatch):
    wide = PROFILES["linux-x64"].model_copy(
        update={"budget": PROFILES["linux-x64"].budget.model_copy(update={"model_mb": None})}
    )
    monkeypatch.setitem(PROFILES, "linux-x64", wide)
    assert page(ask("SM8650", file_bytes=900_000_000)) == snapshot


def test_where_nothing_fits_every_obstacle_is_named():
    with pytest.raises(ProfileError, match="no target fits cnn") as raised:
        ask("SM8650", file_bytes=900_000_000)
    assert raised.value.details == ("snapdragon-8g3: the model has 900 MB; the target's budget is 200 MB",)
    assert "--set budget.model_mb=N" in (raised.value.hint or "")


def test_what_planning_refuses_is_an_obstacle(monkeypatch):
    def refuse(settled, _request):
        if settled.profile.id == "snapdragon-8g3":
            raise UsageError("it requires fixed sizes", details=("input 'x' has sizes without names",))

    monkeypatch.setattr(recommend, "make_plan", refuse)
    first, *others = ask("SM8650").picks
    assert first.obstacles == ("it requires fixed sizes; input 'x' has sizes without names",)
    assert [pick.fits for pick in others] == [True] * len(others)
    assert others


def test_a_profile_that_is_not_valid_spoils_no_other(monkeypatch):
    def resolve(name):
        if name == "snapdragon-8g3":
            raise ProfileError("the profile is not valid: 1 problem", details=("x.toml: titel: unknown key",))
        return PROFILES[name]

    monkeypatch.setattr(recommend, "resolve_target", resolve)
    first, *others = ask("SM8650").picks
    assert first.obstacles == ("the profile is not valid: 1 problem; x.toml: titel: unknown key",)
    assert all(pick.fits for pick in others)
    assert "snapdragon-8g3: not valid" in page(ask("SM8650"))


def test_an_unknown_device_is_refused_with_what_is_spelt_alike():
    with pytest.raises(UsageError, match='no target is known for the device "rtx 4o9o"') as raised:
        find_matches("rtx 4o9o", SUMMARIES)
    assert raised.value.details == ("spelt alike: rtx-4090",)


def test_a_machine_without_a_target_of_its_own_gets_the_general_one():
    picks = pick_targets(make_facts(), "m.onnx", None, dataclasses.replace(SERVER, clues=()))
    assert [pick.target for pick in picks if pick.occasion == "this machine"] == ["linux-x64"]


def test_a_machine_of_an_unknown_kind_still_gets_the_families():
    picks = pick_targets(make_facts(), "m.onnx", None, Machine(system="", architecture="", clues=("SM8650",)))
    assert "this machine" not in {pick.occasion for pick in picks}
    assert "a phone" in {pick.occasion for pick in picks}


@pytest.mark.parametrize(
    ("model", "shell"),
    [
        ("my model.onnx", "bundler build 'my model.onnx' --target android-arm64"),
        ("-x.onnx", "bundler build ./-x.onnx --target android-arm64"),
        ("$(reboot).onnx", "bundler build '$(reboot).onnx' --target android-arm64"),
        ("a\x1b[31m.onnx", "bundler build MODEL --target android-arm64"),
        ("hf:org/name", "bundler build hf:org/name --target android-arm64"),
    ],
)
def test_commands_are_safe_for_a_shell_and_a_terminal(model, shell):
    (pick,) = ask("android arm64", model).picks
    assert pick.shell == shell


def test_names_of_dimensions_reach_no_terminal_as_they_are():
    shape = ("a\x1b[2J; rm", 8)
    port = dataclasses.replace(SIGNATURE.inputs[0], type=dataclasses.replace(SIGNATURE.inputs[0].type, shape=shape))
    found = ask("SM8650", signature=dataclasses.replace(SIGNATURE, inputs=(port,)))
    assert "\x1b" not in page(found)
    assert found.picks[0].command[-1] == "a\x1b[2J; rm=N"
    assert found.picks[0].shell.endswith("--dim NAME=N")


@pytest.mark.parametrize(
    ("device", "target"),
    [
        ("Galaxy S24 Ultra", "snapdragon-8g3"),
        ("SM8650", "snapdragon-8g3"),
        ("rtx 4090", "rtx-4090"),
        ("rtx 4090", "rtx-4090-windows"),
        ("pixel 8", "pixel-8-pro"),
        ("macbook", "macbook-m3"),
        ("raspberry pi", "raspberry-pi-4"),
        ("rasberry pi 5", "raspberry-pi-5"),
        ("iPhone 15 Pro", "iphone-15-pro"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("Intel(R) Xeon(R) Processor @ 2.70GHz", "intel-xeon"),
    ],
)
def test_devices_of_the_catalogue_are_found(device, target):
    assert target in {match.target for match in find_matches(device, list_targets())}


def test_the_families_stand_for_targets_of_the_catalogue():
    named = {name for family in FAMILIES for name in (*family.accelerated, *family.plain)}
    assert named <= {summary.id for summary in list_targets()}
