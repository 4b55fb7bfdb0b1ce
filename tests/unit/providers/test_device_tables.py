"""What holds for the tables of all providers of devices here: claims about the runtime are checked against it."""

import re

import onnxruntime
import pytest
from packaging.specifiers import SpecifierSet

from bundler.profiles.machines import ARCHITECTURES
from bundler.profiles.methods import METHODS
from bundler.providers.knowledge import ProviderKnowledge
from bundler.providers.registry import find_provider
from bundler.providers.session import SESSION_OPTIONS
from bundler.providers.session_config import SESSION_CONFIG
from bundler.providers.values import as_entry, normalize_value

NAMES = (
    "acl",
    "armnn",
    "cann",
    "coreml",
    "directml",
    "migraphx",
    "nnapi",
    "onednn",
    "rknpu",
    "rocm",
    "tvm",
    "vitisai",
    "webgpu-native",
    "xnnpack",
)
KNOWN = [pytest.param(find_provider(name), id=name) for name in NAMES]
RULES = [pytest.param(rule, id=f"{name}.{rule.key}") for name in NAMES for rule in find_provider(name).options.rules]

# What the source of the runtime no longer has: a name that comes back there would make the table wrong.
REMOVED = ("armnn", "rocm", "tvm")


@pytest.mark.parametrize("known", KNOWN)
def test_what_is_said_of_the_source_is_true_of_this_runtime(known: ProviderKnowledge):
    assert (known.runtime_name in onnxruntime.get_all_providers()) == (known.name not in REMOVED)
    assert ("removed" in known.presence.gone) == (known.name in REMOVED)


@pytest.mark.parametrize("known", KNOWN)
def test_what_no_package_has_says_what_became_of_it(known: ProviderKnowledge):
    assert known.presence.gone or known.presence.availability
    assert known.presence.instead
    assert not known.presence.gone.endswith(".")
    assert not known.presence.instead.endswith(".")


@pytest.mark.parametrize("known", KNOWN)
def test_rows_name_versions_platforms_and_what_was_seen(known: ProviderKnowledge):
    platforms = {f"{system}/{name}" for system, names in ARCHITECTURES.items() for name in names}
    for row in known.presence.availability:
        SpecifierSet(row.versions)
        SpecifierSet(row.runtime_versions)
        assert set(row.platforms) <= platforms
        assert row.platforms
        assert row.source


@pytest.mark.parametrize("known", KNOWN)
def test_keys_stand_once_in_order_and_are_not_also_replaced(known: ProviderKnowledge):
    keys = [rule.key for rule in known.options.rules]
    assert keys == sorted(set(keys))
    assert not {*keys} & {*known.options.replaced}


@pytest.mark.parametrize("known", KNOWN)
def test_replacements_name_what_exists(known: ProviderKnowledge):
    names = {rule.key for rule in (*known.options.rules, *SESSION_CONFIG)}
    names |= {f"session.{rule.key}" for rule in SESSION_OPTIONS}
    names |= {"precision.method", "dimensions", "ep.nnapi.partitioning_stop_ops", 'session_config."ep.dml.…"'}
    for text in known.options.replaced.values():
        for name in re.findall(r"`([^`]+)`", text):
            assert name.split(" = ")[0] in names, text


@pytest.mark.parametrize("rule", RULES)
def test_every_choice_and_bound_is_handed_over_as_text(rule):
    for value in rule.values or ():
        assert as_entry(normalize_value(rule, value)) == value
    for bound in (rule.least, rule.most):
        if bound is not None:
            assert as_entry(normalize_value(rule, int(bound))) == str(int(bound))
    assert rule.values is None or rule.default in rule.values or rule.default.startswith("the ")
    assert rule.meaning[0].isupper()
    assert rule.meaning.endswith(".")


@pytest.mark.parametrize("known", KNOWN)
def test_methods_exist_and_what_is_tried_is_taken(known: ProviderKnowledge):
    assert set(known.numerics.precisions) <= set(METHODS)
    assert set(known.numerics.tries) <= set(known.numerics.precisions)


@pytest.mark.parametrize("known", KNOWN)
def test_a_cache_goes_into_an_option_that_a_profile_may_not_set(known: ProviderKnowledge):
    if known.deferral is not None:
        (row,) = [rule for rule in known.options.rules if rule.key == known.deferral.folder_option]
        assert "loader" in row.decided


@pytest.mark.parametrize("known", KNOWN)
def test_the_building_machine_rehearses_with_another(known: ProviderKnowledge):
    assert known.validation_provider == "cpu"


@pytest.mark.parametrize("known", KNOWN)
def test_no_options_are_no_contradiction(known: ProviderKnowledge):
    assert known.options.check is None or not list(known.options.check({}))
