import pytest

from bundler.catalogue.presentation import describe_profile, origins_of
from bundler.profiles.resolve import resolve_layers, resolve_target, target_ids


def test_a_shown_profile(snapshot):
    assert describe_profile(resolve_layers("raspberry-pi-5", ["optimization.level=basic"])) == snapshot


@pytest.mark.parametrize("name", target_ids())
def test_what_is_shown_is_a_profile_again(name, write):
    path = write("shown.toml", describe_profile(resolve_layers(name)))
    assert resolve_target(path) == resolve_target(name)


def test_every_value_has_an_origin():
    origins = origins_of(resolve_layers("linux-x64", ["accuracy.absolute=0.5"]))
    assert origins["accuracy.absolute"] == "--set"
    assert origins["accuracy.relative"] == "default"
    assert origins["platform.system"] == "targets/_base/glibc-x64.toml"
    assert origins["runtime.package"] == "targets/_base/onnxruntime-cpu.toml"
    assert origins["variants[0].providers[0].name"] == "targets/linux-x64.toml"


def test_a_files_name_cannot_break_out_of_a_comment(write):
    path = write('a\nid = "evil".toml', 'extends = "linux-x64"\nid = "mine"')
    shown = describe_profile(resolve_layers(path))
    assert resolve_target(write("shown.toml", shown)).id == "mine"
    assert '\nid = "evil"' not in shown
