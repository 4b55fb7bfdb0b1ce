import pytest

from bundler.model.errors import ProfileError
from bundler.profiles.chain import load_chain
from bundler.profiles.resolve import resolve_layers, resolve_target


def test_tables_merge_and_arrays_are_replaced(write):
    write("a.toml", 'extends = "linux-x64"\n[python]\nversions = ["3.12"]\n[accuracy]\nabsolute = 0.5\n')
    profile = resolve_target(write("b.toml", 'extends = "a.toml"\n[accuracy]\nrelative = 0.25\n'))
    assert profile.python.versions == ("3.12",)
    assert profile.python.wheel_platforms[0] == "manylinux_2_28_x86_64"
    assert (profile.accuracy.absolute, profile.accuracy.relative) == (0.5, 0.25)


def test_id_is_the_files_own_and_never_inherited(write):
    assert resolve_target(write("mine.toml", 'extends = "linux-x64"')).id == "mine"
    assert resolve_target(write("other.toml", 'extends = "mine.toml"\nid = "third"')).id == "third"


def test_a_path_is_relative_to_the_file_that_extends(write):
    write("boards/base.toml", 'extends = "raspberry-pi"\n[platform]\ncpu = "cortex-a76"')
    path = write("boards/own/mine.toml", 'extends = "../base.toml"\ntitle = "Mine"')
    assert resolve_target(path).platform.cpu == "cortex-a76"


def test_each_value_knows_its_file(write):
    path = write("mine.toml", 'extends = "raspberry-pi-5"\n[platform]\nminimum = "2.36"')
    layered = resolve_layers(path).layered
    assert layered.files == (
        "mine.toml",
        "targets/raspberry-pi-5.toml",
        "targets/_base/raspberry-pi.toml",
        "targets/_base/glibc-arm64.toml",
        "targets/_base/onnxruntime-cpu.toml",
    )
    assert layered.origin(("platform", "minimum")) == "mine.toml"
    assert layered.origin(("platform", "cpu")) == "targets/raspberry-pi-5.toml"
    assert layered.origin(("variants", 0, "session", "intra_op_num_threads")) == "targets/_base/raspberry-pi.toml"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a.toml": 'extends = "a.toml"'}, "a.toml extends itself"),
        ({"a.toml": 'extends = "b.toml"', "b.toml": 'extends = "a.toml"'}, "a.toml extends itself"),
        ({"a.toml": 'extends = "linux-x46"'}, 'unknown base or target "linux-x46"; did you mean "linux-x64"?'),
        ({"a.toml": "extends = 3"}, "a.toml: extends: got 3"),
        ({"a.toml": 'extends = "gone.toml"'}, "cannot read the profile gone.toml: No such file or directory"),
        ({"a.toml": 'extends = "../../../etc"'}, "unknown base or target"),
        ({"a.toml": 'extends = "x\\u0000.toml"'}, "expected a name or a relative path"),
        ({"a.toml": "title = "}, "a.toml is not valid TOML"),
        ({"a.toml": "x = " + "[" * 5000}, "a.toml is not valid TOML"),
        ({"a.toml": "x = " + "9" * 5000}, "a.toml is not valid TOML"),
        ({"a.toml": "#" * 1_000_001}, "a.toml is not valid TOML"),
    ],
)
def test_a_chain_that_does_not_hold_is_reported(write, files, message):
    for name, text in files.items():
        write(name, text)
    with pytest.raises(ProfileError) as raised:
        resolve_target("./a.toml")
    assert message in raised.value.message
    assert raised.value.hint


def test_a_file_that_is_no_text_is_reported(folder):
    (folder / "a.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ProfileError, match="is not valid TOML"):
        resolve_target("a.toml")


def test_a_folder_is_no_profile(folder):
    (folder / "a.toml").mkdir()
    with pytest.raises(ProfileError, match=r"cannot read the profile a\.toml"):
        resolve_target("a.toml")


def test_a_changed_file_is_read_again(write):
    path = write("mine.toml", 'extends = "linux-x64"\ntitle = "one"')
    assert resolve_target(path).title == "one"
    write("mine.toml", 'extends = "linux-x64"\ntitle = "two"')
    assert resolve_target(path).title == "two"


def test_an_empty_table_does_not_erase_what_is_inherited(write, folder):
    write("mine.toml", 'extends = "raspberry-pi-5"\n[platform]\n[budget]\n')
    assert load_chain(folder / "mine.toml").data["platform"]["cpu"] == "cortex-a76"
