"""Libraries that are older than the compiler refuse what it wrote; that is said before anything is compiled."""

import pytest

from bundler.environments.lockfiles import shipped_lock
from bundler.model.errors import UsageError
from bundler.profiles.asked import is_compiled_here
from bundler.profiles.resolve import resolve_target, target_ids
from bundler.providers.knowledge import Toolkit
from bundler.providers.registry import find_provider, provider_names
from bundler.providers.toolkits import compiler_release, explain_refusal, find_libraries, opens

KIT = Toolkit(name="Kit", compiler=("tool", "2"), releases={"parts": None, "tool": {"1": "7.8.40", "2": "7.9.40"}})


def compiled_variants(name):
    """Providers with a kit that compile for a target before shipping."""
    profile = resolve_target(name)
    firsts = [find_provider(variant.providers[0].name) for variant in profile.variants if is_compiled_here(variant)]
    return profile, [first for first in firsts if first.compiler is not None and first.compiler.toolkit is not None]


@pytest.mark.parametrize("name", target_ids())
def test_what_is_compiled_for_a_target_opens_with_its_libraries(name):
    profile, providers = compiled_variants(name)
    for provider in providers:
        toolkit = provider.compiler.toolkit
        libraries = find_libraries(toolkit, profile.runtime.plugins)
        assert libraries is not None
        assert libraries.release, f"which {toolkit.name} {libraries.package} {libraries.version} is of is not known"
        assert opens(toolkit, libraries.release, compiler_release(toolkit))


def test_some_targets_are_compiled_for():
    assert {"snapdragon-8g3", "qcs6490", "snapdragon-x-elite"} <= {
        name for name in target_ids() if compiled_variants(name)[1]
    }


@pytest.mark.parametrize("name", provider_names())
def test_the_compiler_is_the_one_that_its_environment_locks(name):
    compiler = find_provider(name).compiler
    if compiler is None or compiler.toolkit is None:
        return
    package, version = compiler.toolkit.compiler
    assert shipped_lock(compiler.environment).versions()[package] == version


@pytest.mark.parametrize(
    ("libraries", "compiler", "fits"),
    [
        ("7.9.40", "7.9.40", True),
        ("7.9.0", "7.9.40", True),
        ("7.10.0", "7.9.40", True),
        ("8.0.0", "7.9.40", True),
        ("7.8.99", "7.9.0", False),
        ("6.99", "7.0", False),
    ],
)
def test_libraries_open_what_a_compiler_of_their_release_or_an_older_one_wrote(libraries, compiler, fits):
    assert opens(KIT, libraries, compiler) is fits


def test_a_refusal_says_what_is_too_old_and_what_fits():
    assert explain_refusal(KIT, {"parts": "7.9.0", "tool": "1"}) is None
    assert explain_refusal(KIT, {}) is None
    assert explain_refusal(KIT, {"tool": "unknown"}) is None
    refusal = explain_refusal(KIT, {"tool": "1"})
    assert refusal is not None
    assert refusal[0] == "tool"
    assert refusal[1] == (
        "tool 1 is of Kit 7.8.40, which refuses what a newer compiler wrote, and models are compiled here with tool 2 "
        "(Kit 7.9.40); it needs Kit 7.9 or newer"
    )


def test_a_profile_with_older_libraries_is_refused():
    with pytest.raises(UsageError) as raised:
        resolve_target("snapdragon-8g3", ["runtime.plugins.qnn-runtime=2.49.0"])
    assert "qnn-runtime 2.49.0 is of QAIRT 2.49.0" in str(raised.value.details)
    assert "needs QAIRT 2.50 or newer" in str(raised.value.details)


def test_newer_libraries_are_taken():
    assert resolve_target("snapdragon-8g3", ["runtime.plugins.qnn-runtime=2.52.0"])


def test_where_nothing_is_compiled_here_old_libraries_do():
    overrides = ["runtime.plugins.qnn-runtime=2.49.0", "variants.htp.compile.here=false"]
    assert resolve_target("snapdragon-8g3", overrides)
