import tomllib

from hypothesis import given
from hypothesis import strategies as st

from bundler.profiles.toml_text import write_toml

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
SCALAR = st.one_of(TEXT, st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False))
VALUE = st.recursive(
    SCALAR,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3), st.dictionaries(TEXT, inner, min_size=1, max_size=3)
    ),
    max_leaves=12,
)


@given(st.dictionaries(TEXT, VALUE, max_size=5))
def test_what_is_written_is_read_back(data):
    assert tomllib.loads(write_toml(data)) == data


@given(st.dictionaries(TEXT, VALUE, max_size=5))
def test_comments_change_nothing(data):
    assert tomllib.loads(write_toml(data, lambda _key: "targets/x.toml")) == data
