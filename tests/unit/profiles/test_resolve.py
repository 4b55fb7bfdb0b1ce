import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bundler.model.errors import BundlerError, ProfileError, UsageError
from bundler.profiles.chain import Layered, load_chain
from bundler.profiles.locations import find_catalogue
from bundler.profiles.resolve import check_layers, resolve_target, target_ids

FIRST_TARGETS = ("linux-arm64", "linux-x64", "macos-arm64", "raspberry-pi-4", "raspberry-pi-5", "windows-x64")


def show(error: BundlerError) -> str:
    return "\n".join(["", error.message, *error.details, f"hint: {error.hint}", ""])


def problems(target: str, *overrides: str) -> tuple[str, ...]:
    with pytest.raises((ProfileError, UsageError)) as raised:
        resolve_target(target, overrides)
    return raised.value.details


def test_the_first_targets_are_there():
    assert set(FIRST_TARGETS) <= set(target_ids())


@pytest.mark.parametrize("name", target_ids())
def test_every_target_resolves_under_its_own_name(name):
    profile = resolve_target(name)
    assert profile.id == name


@pytest.mark.parametrize("name", target_ids())
def test_every_source_of_a_target_names_a_value_that_it_has(name):
    profile = resolve_target(name).model_dump()
    variants = {variant["name"]: variant for variant in profile["variants"]}
    for key in profile["sources"]:
        place, _, entry = key.partition('."')
        value = {**profile, "variants": variants}
        for part in place.split("."):
            value = value[part]
        if entry:
            value = value[entry.rstrip('"')]
        assert value is not None


def test_bases_and_targets_have_different_names():
    catalogue = find_catalogue()
    assert not set(catalogue.bases) & set(catalogue.targets)


def test_boards_do_not_spin_between_runs_and_servers_do():
    pi = resolve_target("raspberry-pi-5")
    assert pi.variants[0].session == {"intra_op_num_threads": 4}
    assert pi.variants[0].session_config == {"session.force_spinning_stop": "1"}
    assert pi.platform.cpu == "cortex-a76"
    assert resolve_target("intel-xeon").variants[0].session_config == {}


@pytest.mark.parametrize("name", ["linux-x64", "linux-arm64"])
def test_threads_soon_sleep_on_the_general_targets(name):
    assert resolve_target(name).variants[0].session_config == {"session.intra_op.spin_duration_us": "100"}


@pytest.mark.parametrize("name", ["linux-x46", "Raspberry-Pi-5", "no-such-thing", "", "./x\n.toml", "a\0.toml"])
@pytest.mark.usefixtures("folder")
def test_an_unknown_target_is_reported_with_what_was_meant(name, snapshot):
    with pytest.raises(ProfileError if name == "./x\n.toml" else UsageError) as raised:
        resolve_target(name)
    assert show(raised.value) == snapshot


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("linux-amd64", "linux-x64"),
        ("Linux_X86_64", "linux-x64"),
        ("linux-x86-64", "linux-x64"),
        ("windows-amd64", "windows-x64"),
        ("linux-aarch64", "linux-arm64"),
        ("darwin-arm64", "macos-arm64"),
        ("Raspberry-Pi-5", "raspberry-pi-5"),
    ],
)
def test_a_platform_may_have_the_names_of_other_programs(name, meant):
    with pytest.raises(UsageError) as raised:
        resolve_target(name)
    assert raised.value.message == f'unknown target "{name}"; did you mean "{meant}"?'


def test_an_architecture_alone_means_the_targets_that_have_it():
    with pytest.raises(UsageError, match='did you mean "android-x64" or "linux-x64" or "windows-x64"'):
        resolve_target("amd64")


def test_every_wrong_key_and_value_is_reported_at_once(write, snapshot):
    path = write(
        "mine.toml",
        """
extends = "raspberry-pi-5"
id = "My Board"
titel = "x"
dimensions = { batch = 0, seq = "1" }
python.versions = ["2.7", 3]

[platform]
architecture = "arm46"
sytem = "linux"
minimum = "latest"

[runtime]
version = "newest; rm -rf /"

[optimization]
simplifier = true
level = "extendet"

[accuracy]
absolute = -1
sqnr_db = nan

[budget]
model_mb = "12"

[[variants]]
name = "cpu"
providers = []
session = { a = [1, 2], b = {} }

[[variants]]
providers = [{ naem = "cpu" }]
""",
    )
    with pytest.raises(ProfileError) as raised:
        resolve_target(path)
    assert show(raised.value) == snapshot


def test_every_contradiction_is_reported_at_once(write, snapshot):
    path = write(
        "mine.toml",
        """
extends = "linux-x64"

[platform]
cpu = "cortex-a76"

[python]
wheel_platforms = ["manylinux_2_34_x86_64", "win_amd64", "macosx_14_0_arm64"]

[optimization]
format = "ort"

[[variants]]
name = "cpu"
providers = [
    { name = "cpu", options = { use_arena = true, zip = 1 } },
    { name = "CPUExecutionProvider" },
    { name = "qnn" },
    { name = "cpu" },
]

[variants.session]
use_arena = true
intra_op_num_thread = 2
intra_op_num_threads = 4
log_severity_level = 9
execution_mode = "ORT_PARALEL"
graph_optimization_level = "ORT_ENABLE_ALL"
"session.force_spinning_stop" = true

[variants.session_config]
"session.intra_op_num_threads" = 4
"session.enable_quant_qdq" = true
"session.intra_op.allow_spining" = false
"session.intra_op.allow_spinning" = false
"session.intra_op.spin_duration_us" = 100
"session.intra_op_thread_affinities" = "1;2"
"session.disable_cpu_ep_fallback" = 1
"session.gqa_value_layout" = "BNHS"
"ep.context_enable" = 1
enable_mem_pattern = true

[[variants]]
name = "cpu"
providers = [{ name = "cpu" }]
""",
    )
    with pytest.raises(ProfileError) as raised:
        resolve_target(path)
    assert show(raised.value) == snapshot


@pytest.mark.parametrize(
    ("overrides", "text"),
    [
        (("platform.architecture=wasm32",), "linux does not run on wasm32"),
        (("precision.block_size=30",), "got 30, expected one of 16, 32, 64, 128, 256"),
        (("platform.system=android", "platform.architecture=arm64"), "there are no Python wheels for android on arm64"),
        (("python.wheel_platforms=[]",), "is empty: a Python bundle would carry no runtime"),
        (("python.versions=[]",), "is empty: a Python bundle would carry no runtime"),
        (("platform.cpu=haswel",), 'QEMU has no x64 core "haswel"; did you mean "Haswell"?'),
        (("platform.minimum=2.17",), "requires 2.28, but platform.minimum is 2.17"),
    ],
)
def test_what_does_not_fit_together_is_reported(overrides, text):
    assert any(text in line for line in problems("linux-x64", *overrides))


@pytest.mark.parametrize("text", ["2.20", '"2.20"'])
def test_an_override_of_a_text_is_taken_as_typed(text):
    profile = resolve_target(
        "linux-x64", [f"platform.minimum={text}", "python.wheel_platforms=['manylinux2014_x86_64']"]
    )
    assert profile.platform.minimum == "2.20"


def test_options_are_given_in_the_runtimes_spelling(write):
    path = write(
        "mine.toml",
        """
extends = "linux-x64"
[[variants]]
name = "cpu"
providers = [{ name = "cpu" }]
session = { enable_mem_pattern = "false", intra_op_num_threads = "3", execution_mode = "ORT_PARALLEL" }
session_config = { "session.set_denormal_as_zero" = true, "session.dynamic_block_base" = 4 }
""",
    )
    variant = resolve_target(path).variants[0]
    assert variant.session == {"enable_mem_pattern": False, "intra_op_num_threads": 3, "execution_mode": "ORT_PARALLEL"}
    assert variant.session_config == {"session.set_denormal_as_zero": "1", "session.dynamic_block_base": "4"}


TEXT = st.text(max_size=20)
SCALAR = st.one_of(TEXT, st.booleans(), st.integers(), st.floats(), st.none(), st.dates())
VALUE = st.recursive(
    SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=8
)
NAMES = (
    "id title platform runtime python variants optimization dimensions accuracy sources system architecture version "
    "name providers session session_config options level"
)
KEYS = st.sampled_from(NAMES.split()) | TEXT


@st.composite
def hostile_profiles(draw):
    """A valid profile, with anything at all at a few places of it."""
    data = copy.deepcopy(load_chain(find_catalogue().targets["raspberry-pi-5"]).data)  # it is shared
    for _ in range(draw(st.integers(1, 3))):
        holder = data
        for _ in range(draw(st.integers(0, 3))):
            inner = [
                value
                for value in (holder.values() if isinstance(holder, dict) else holder)
                if isinstance(value, dict | list) and value
            ]
            holder = draw(st.sampled_from(inner)) if inner else holder
        if isinstance(holder, dict):
            holder[draw(KEYS)] = draw(VALUE)
        else:
            holder.append(draw(VALUE))
    return data


@settings(max_examples=200, deadline=None)
@given(hostile_profiles())
def test_whatever_a_file_holds_is_a_profile_or_printable_problems(data):
    for line in find_problems(data):
        assert line.startswith("mine.toml: ")
        assert line.isprintable()
        assert len(line) < 1500


def find_problems(data) -> tuple[str, ...]:
    try:
        check_layers(Layered(data=data, files=("mine.toml",)))
    except ProfileError as error:
        return error.details or ("no details",)
    return ()
