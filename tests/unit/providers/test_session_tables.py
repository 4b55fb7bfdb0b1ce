"""The option tables are those of the runtime that bundler installs: an upgrade that changes them fails here."""

import re
from pathlib import Path

import onnxruntime
import pytest

from bundler.providers.knowledge import OptionRule
from bundler.providers.playbook import MOVED_TO_SESSION, REPLACED_IN_SESSION, REPLACED_IN_SESSION_CONFIG
from bundler.providers.session import SESSION_OPTIONS
from bundler.providers.session_config import SESSION_CONFIG

SESSION_METHODS = (
    "add_external_initializers",
    "add_external_initializers_from_files_in_memory",
    "add_free_dimension_override_by_denotation",
    "add_free_dimension_override_by_name",
    "add_initializer",
    "add_provider",
    "add_provider_for_devices",
    "add_session_config_entry",
    "clear_ep_context_data_read_func",
    "get_session_config_entry",
    "has_providers",
    "register_custom_ops_library",
    "set_ep_context_data_read_func",
    "set_load_cancellation_flag",
    "set_provider_selection_policy",
    "set_provider_selection_policy_delegate",
)
"""What else the class has: calls, which are no values of a profile."""

# Strings of the library that look like configuration entries and are none that a profile could set.
OTHERS = re.compile(
    r"ep\.cuda\..*|memory\.enable_memory_arena_shrinkage|session\.(?:"
    r"enable_cpu_mem_arena|enable_mem_pattern|enable_profiling|execution_mode|graph_optimization_level|"
    r"inter_op_num_threads|intra_op_num_threads|log_id|log_severity_level|log_verbosity_level|"
    r"optimized_model_filepath|use_deterministic_compute|use_per_session_threads)"
)


def library() -> bytes:
    folder = Path(onnxruntime.__file__).parent / "capi"
    return max(folder.glob("onnxruntime_pybind11_state*"), key=lambda path: path.stat().st_size).read_bytes()


def as_runtime(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else getattr(value, "name", str(value))


def test_session_options_are_exactly_the_runtimes_attributes():
    names = {name for name in dir(onnxruntime.SessionOptions) if not name.startswith("_")}
    assert names == {rule.key for rule in SESSION_OPTIONS} | set(SESSION_METHODS)


@pytest.mark.parametrize("rule", SESSION_OPTIONS, ids=lambda rule: rule.key)
def test_session_option_has_the_runtimes_type_default_and_values(rule: OptionRule):
    default = getattr(onnxruntime.SessionOptions(), rule.key)
    assert as_runtime(default) == rule.default
    kinds = {bool: "flag", int: "integer", str: "text"}
    if rule.values is None:
        assert rule.kind == kinds[type(default)]
    else:
        training_only = {"MEMORY_EFFICIENT"}
        assert [name for name in type(default).__members__ if name not in training_only] == list(rule.values)


def test_every_entry_string_of_the_library_is_known():
    found = {
        text.decode()
        for text in re.findall(rb"(?<=\0)(?:session|optimization|mlas|ep)\.[a-z][a-z0-9_.]{6,}(?=\0)", library())
    }
    known = {rule.key for rule in SESSION_CONFIG}
    assert {text for text in found if not OTHERS.fullmatch(text)} <= known


# What the library of x86-64 does not show whole: other processors' keys, strings that the compiler cut to pieces, and
# what a plugin reads.
INVISIBLE = {
    "ep.context_source_model_path",
    "ep.share_ep_contexts",
    "mlas.enable_gemm_fastmath_arm64_bfloat16",
    "session.model_external_initializers_file_folder_path",
    "session.use_memory_mapped_ort_model",
    "session.x64quantprecision",
}


def test_every_known_entry_is_in_the_library():
    content = library()
    missing = {rule.key for rule in SESSION_CONFIG if rule.key.encode() + b"\0" not in content}
    assert missing <= INVISIBLE


def test_a_key_is_not_both_valid_and_replaced():
    assert not {rule.key for rule in SESSION_OPTIONS} & set(REPLACED_IN_SESSION)
    assert not {rule.key for rule in SESSION_CONFIG} & set(REPLACED_IN_SESSION_CONFIG)


def test_replacements_that_name_a_session_option_name_one_that_exists():
    texts = [*MOVED_TO_SESSION.values(), *REPLACED_IN_SESSION.values(), *REPLACED_IN_SESSION_CONFIG.values()]
    attributes = {rule.key for rule in SESSION_OPTIONS}
    entries = {rule.key for rule in SESSION_CONFIG}
    for text in texts:
        for name in re.findall(r"`([a-z_.]+)`", text):
            bare = name.removeprefix("session.")
            assert bare in attributes or name in entries or name in ("optimization.level", "dimensions"), text


def test_keys_stand_once_and_in_order():
    for rules in (SESSION_OPTIONS, SESSION_CONFIG):
        keys = [rule.key for rule in rules]
        assert keys == sorted(set(keys))
