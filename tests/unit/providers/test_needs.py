"""What must be on a device beside the bundle: rows of the provider files, for one target."""

import pytest

from bundler.catalogue.outlook import foresee_variants
from bundler.model.requirements import describe_need
from bundler.planning.traits import judge_free_sizes, variant_needs
from bundler.profiles.resolve import resolve_target, target_ids
from bundler.providers.knowledge import GraphRules, NeedRule, Presence, ProviderKnowledge, SizeRule
from bundler.providers.needs import OWN_VERSION, Place, list_needs
from bundler.providers.registry import find_provider, provider_names

LINUX = Place(system="linux", runtime="1.31.1")
BOX = ProviderKnowledge(
    name="box",
    runtime_name="Box",
    title="Box",
    package="",
    presence=Presence(
        needs=(
            NeedRule(what="driver", version="2", libraries={"linux": ("libdriver.so.2",)}, runtime_versions=">=1.28"),
            NeedRule(what="driver", version="1", runtime_versions="<1.28"),
            NeedRule(what="loader", systems=("windows",)),
            NeedRule(what="NPU driver", when={"device": "NPU*"}),
        ),
    ),
    graph=GraphRules(
        free_sizes=(SizeRule(sizes="fixed", when={"device": "NPU*", "shape": ""}),),
    ),
)


def needs(options=None, place=LINUX, *more) -> list[str]:
    chain = [(BOX, options or {}), *more]
    return [describe_need(need) for need in list_needs(chain, place)]


def test_a_row_holds_for_its_runtimes_systems_and_options():
    assert needs() == ["driver 2"]
    assert needs(place=Place(system="linux", runtime="1.27.0")) == ["driver 1"]
    assert needs(place=Place(system="windows", runtime="1.31.1")) == ["driver 2", "loader"]
    assert needs({"device": "NPU.1"}) == ["driver 2", "NPU driver"]


def test_each_need_of_a_chain_is_reported_once():
    assert needs(None, LINUX, (BOX, {"device": "NPU"})) == ["driver 2", "NPU driver"]


def test_libraries_are_those_of_the_system():
    (linux,) = list_needs([(BOX, {})], LINUX)
    windows, _ = list_needs([(BOX, {})], Place(system="windows", runtime="1.31.1"))
    assert (linux.libraries, windows.libraries) == (("libdriver.so.2",), ())


def test_of_a_runtime_of_ones_own_nobody_knows_the_versions():
    own = Place(system="linux", runtime="1.31.1", own_build=True)
    assert needs(place=own) == [f"driver {OWN_VERSION}"]


def test_sizes_are_judged_by_options_and_their_defaults():
    assert BOX.judge_free_sizes({}) == "dynamic"
    assert BOX.judge_free_sizes({"device": "NPU"}) == "fixed"
    assert BOX.judge_free_sizes({"device": "NPU", "shape": "x[1]"}) == "dynamic"


@pytest.mark.parametrize("name", provider_names())
def test_every_condition_names_an_option_that_the_provider_has(name):
    known = find_provider(name)
    keys = {rule.key for rule in known.options.rules}
    assert {key for rule in (*known.presence.needs, *known.graph.free_sizes) for key in rule.when} <= keys


@pytest.mark.parametrize("name", target_ids())
def test_a_variant_on_an_accelerator_says_what_it_needs(name):
    """What the runtime's own packages bring, and the browser's or the processor's, needs nothing else."""
    complete = {"cpu", "wasm", "xnnpack", "openvino", "coreml"}
    profile = resolve_target(name)
    for variant, outlook in zip(profile.variants, foresee_variants(profile), strict=True):
        if outlook.fate != "left out" and variant.providers[0].name not in complete:
            assert variant_needs(variant, profile), variant.name


def test_cuda_13_is_needed_from_the_runtime_on_that_is_built_with_it():
    profile = resolve_target("a100", ())
    reported = [describe_need(need) for need in variant_needs(profile.variants[0], profile)]
    assert [text.partition(" (")[0] for text in reported] == [
        "NVIDIA's driver 580 or later",
        "CUDA 13",
        "cuDNN 9",
        "zlib, which cuDNN uses",
        "TensorRT 10 for CUDA 13",
    ]
    assert "pip install onnxruntime-gpu[cuda,cudnn]" in reported[1]
    assert "pip show nvidia-cudnn-cu13" in reported[2]
    older = resolve_target("a100", ("runtime.version=1.26.0",))
    of_older = [describe_need(need).partition(" (")[0] for need in variant_needs(older.variants[0], older)]
    assert of_older[1:] == ["CUDA 12", "cuDNN 9", "zlib, which cuDNN uses", "TensorRT 10 for CUDA 12"]


@pytest.mark.parametrize(
    ("version", "driver", "cuda", "package"),
    [
        ("1.26.0", "525", "12", ""),
        ("1.27.0", "580", "13", "nvidia-cuda-runtime-cu13 "),
        ("1.28.0", "580", "13", "nvidia-cuda-runtime "),
    ],
)
def test_the_runtime_of_each_version_names_its_own_cuda(version, driver, cuda, package):
    profile = resolve_target("a100", (f"runtime.version={version}",))
    needs = {need.what: need for need in variant_needs(profile.variants[0], profile)}
    assert needs["NVIDIA's driver"].version.startswith(driver)
    assert (needs["CUDA"].version, needs["TensorRT"].version) == (cuda, f"10 for CUDA {cuda}")
    assert package in needs["CUDA"].check
    assert f"nvidia-cudnn-cu{cuda}" in needs["cuDNN"].check
    assert ("libcufft.so.12" in needs["CUDA"].libraries) == (version == "1.27.0")


def test_of_versions_of_one_thing_the_latest_is_asked_for():
    rules = tuple(NeedRule(what="iOS", version=f"{least} or later") for least in ("15", "18", "9"))
    asking = ProviderKnowledge(
        name="a",
        runtime_name="A",
        title="A",
        package="",
        presence=Presence(
            needs=rules,
        ),
    )
    assert [describe_need(need) for need in list_needs([(asking, {})], LINUX)] == ["iOS 18 or later"]


def test_the_npu_of_openvino_needs_its_driver_and_the_cpu_nothing():
    profile = resolve_target("intel-npu")
    found = {variant.name: [need.what for need in variant_needs(variant, profile)] for variant in profile.variants}
    found = {name: [what for what in needs if "Visual C++" not in what] for name, needs in found.items()}
    assert found == {"npu": ["Intel's driver of the NPU"], "gpu": ["Intel's driver of the GPU"], "cpu": []}
    assert [judge_free_sizes(variant) for variant in profile.variants] == ["fixed", "dynamic", "dynamic"]


@pytest.mark.parametrize("name", target_ids())
def test_every_variant_on_windows_needs_the_visual_cpp_runtime_and_no_other_does(name):
    """Also a chain without the CPU provider: the runtime has it, and its library is the one that imports it."""
    profile = resolve_target(name)
    for variant in profile.variants:
        libraries = {library for need in variant_needs(variant, profile) for library in need.libraries}
        wanted = (
            {"MSVCP140.dll", "MSVCP140_1.dll", "MSVCP140_ATOMIC_WAIT.dll"}
            if profile.platform.system == "windows"
            else set()
        )
        assert {library for library in libraries if library.startswith("MSVCP")} == wanted, variant.name


@pytest.mark.parametrize(
    ("version", "least"), [("1.31.1", "14.44 or later"), ("1.24.4", "14.44 or later"), ("1.22.0", "")]
)
def test_the_version_of_the_visual_cpp_runtime_is_known_from_the_runtime_on_that_was_read(version, least):
    profile = resolve_target("windows-x64", (f"runtime.version={version}",))
    (need,) = variant_needs(profile.variants[0], profile)
    assert (need.what, need.version) == ("Microsoft's Visual C++ 2015-2022 Redistributable", least)


def test_tensorrt_for_rtx_on_linux_needs_zlib():
    profile = resolve_target("rtx-4090")
    libraries = {library for need in variant_needs(profile.variants[0], profile) for library in need.libraries}
    assert libraries == {"libcuda.so.1", "libnvidia-ml.so.1", "libz.so.1"}


def test_what_is_required_on_windows_is_checked_by_means_of_windows():
    profile = resolve_target("rtx-4090-windows")
    checks = {need.what: need.check for variant in profile.variants for need in variant_needs(variant, profile)}
    assert not [check for check in checks.values() if "ldconfig" in check or "grep" in check]
    assert (checks["CUDA"], checks["cuDNN"]) == ("where cublas64_13.dll cublasLt64_13.dll", "where cudnn64_9.dll")
