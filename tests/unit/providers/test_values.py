import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.providers.knowledge import OptionRule
from bundler.providers.values import as_entry, normalize_value

FLAG = OptionRule(key="f", kind="flag", default="0", meaning="")
COUNT = OptionRule(key="i", kind="integer", default="0", meaning="", least=0, most=64)
NUMBER = OptionRule(key="n", kind="number", default="0", meaning="", least=0)
CHOICE = OptionRule(key="c", values=("A", "B"), default="A", meaning="")
TEXT = OptionRule(key="t", default="", meaning="")


@pytest.mark.parametrize(
    ("rule", "given_value", "entry"),
    [
        (FLAG, True, "1"),
        (FLAG, 0, "0"),
        (FLAG, "true", "1"),
        (FLAG, "0", "0"),
        (COUNT, 64, "64"),
        (COUNT, "7", "7"),
        (NUMBER, 2, "2.0"),
        (NUMBER, "0.5", "0.5"),
        (CHOICE, "B", "B"),
        (TEXT, "1,2;3", "1,2;3"),
    ],
)
def test_value_becomes_the_runtimes_spelling(rule, given_value, entry):
    assert as_entry(normalize_value(rule, given_value)) == entry


@pytest.mark.parametrize(
    ("rule", "given_value", "reason"),
    [
        (FLAG, "yes", "true or false"),
        (FLAG, 2, "true or false"),
        (COUNT, True, "a whole number"),
        (COUNT, -1, "a whole number from 0 to 64"),
        (COUNT, 10**400, "a whole number from 0 to 64"),
        (COUNT, "9" * 5000, "a whole number"),
        (COUNT, 1.5, "a whole number"),
        (NUMBER, math.nan, "a finite number"),
        (NUMBER, "inf", "a finite number"),
        (NUMBER, 10**400, "a number"),
        (NUMBER, -0.1, "a number of at least 0"),
        (CHOICE, "a", "one of A, B"),
        (TEXT, 3, "text"),
        (TEXT, "a\0b", "text of at most 1024 characters without NUL"),
        (TEXT, "a" * 1025, "text of at most 1024 characters without NUL"),
    ],
)
def test_wrong_value_is_refused_with_what_is_expected(rule, given_value, reason):
    with pytest.raises(ValueError, match="^" + reason + "$"):
        normalize_value(rule, given_value)


@given(
    st.sampled_from([FLAG, COUNT, NUMBER, CHOICE, TEXT]),
    st.one_of(st.text(), st.integers(), st.floats(), st.booleans(), st.lists(st.integers(), max_size=2)),
)
def test_any_value_is_taken_once_and_for_all_or_refused(rule, value):
    try:
        taken = normalize_value(rule, value)
    except ValueError:
        return
    assert normalize_value(rule, taken) == taken
    assert normalize_value(rule, as_entry(taken)) == taken
