import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.model.errors import UsageError
from bundler.profiles.overrides import parse_override
from bundler.profiles.resolve import resolve_target
from bundler.profiles.toml_text import format_name, format_value


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("a=1", ("a",), 1),
        ("a.b = true", ("a", "b"), True),
        ("a.b=some text", ("a", "b"), "some text"),
        ("a=3.12", ("a",), 3.12),
        ('a=["3.12"]', ("a",), ["3.12"]),
        ("a=", ("a",), ""),
        ("a=b=c", ("a",), "b=c"),
        ('a."x=y".b=1', ("a", "x=y", "b"), 1),
        ("a='1'\nb=2", ("a",), "'1'\nb=2"),
        (
            "v.cpu.session_config.session.intra_op.allow_spinning=0",
            ("v", "cpu", "session_config", "session.intra_op.allow_spinning"),
            0,
        ),
        (
            'v.cpu.session_config."session.intra_op.allow_spinning"=0',
            ("v", "cpu", "session_config", "session.intra_op.allow_spinning"),
            0,
        ),
    ],
)
def test_key_and_value_are_read(text, key, value):
    assert parse_override(text) == (key, value)


@pytest.mark.parametrize(
    "text", ["", "a", "=1", "a..b=1", "a b=1", "x=1\ny=2\n[z]\nw", "[a]=1", '"a=1', "\0=1", "a\nb=1", "#=1"]
)
def test_a_malformed_override_is_refused(text):
    if text.startswith("x=1\n"):
        assert parse_override(text) == (("x",), text[2:])
        return
    with pytest.raises(UsageError, match="cannot apply --set"):
        parse_override(text)


def test_values_are_set_by_name_or_position():
    for place in ("cpu", "0"):
        profile = resolve_target("linux-x64", [f"variants.{place}.session.intra_op_num_threads=2"])
        assert profile.variants[0].session == {"intra_op_num_threads": 2}


def test_an_element_that_is_not_there_is_reported():
    with pytest.raises(UsageError) as raised:
        resolve_target("linux-x64", ["variants.htp.name=x"])
    assert 'has no "htp"' in raised.value.details[0]


@pytest.mark.parametrize(
    "overrides",
    [
        ["platform.minimum=2", "platform=5"],
        ["variants.cpu.name=1", "variants=[]"],
        ["title=1", "title.x=2"],
        ["platform=5", "platform.minimum=2"],
        ["variants=[1]", "variants.0.name=x"],
        ["variants=[1]", "variants.0=2"],
    ],
)
def test_overrides_that_undo_each_other_are_problems_of_the_profile(overrides):
    with pytest.raises(UsageError) as raised:
        resolve_target("linux-x64", overrides)
    assert raised.value.details


def test_the_problem_names_the_flag_as_its_origin():
    with pytest.raises(UsageError) as raised:
        resolve_target("linux-x64", ["optimization.level=bsic"])
    assert raised.value.details[0].startswith('--set optimization.level: got "bsic"')
    assert 'did you mean "basic"?' in raised.value.details[0]


@given(st.text())
def test_any_text_is_read_or_refused(text):
    try:
        key, _ = parse_override(text)
    except UsageError:
        return
    assert key


@given(
    st.lists(st.text(st.characters(exclude_categories=("Cs",)), min_size=0), min_size=1, max_size=4),
    st.one_of(st.integers(-(2**63), 2**63 - 1), st.booleans(), st.text(st.characters(exclude_categories=("Cs",)))),
)
def test_what_is_quoted_comes_back(parts, value):
    if not {"session_config", "sources"} & set(parts):
        assert parse_override(".".join(map(format_name, parts)) + "=" + format_value(value)) == (tuple(parts), value)
