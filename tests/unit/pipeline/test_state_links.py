"""Links between outputs and the inputs of the next call, held to the model's signature."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.model.errors import UsageError
from bundler.model.fixing import Fixing
from bundler.model.golden_inputs import GoldenKind
from bundler.model.signature import Port, Signature, ValueType
from bundler.model.state import StateLink, check_state, doubt_state, find_state_pairs, parse_state, show_state
from bundler.planning.data import DataPlan, DataRequest, Seeds, plan_data
from bundler.profiles.resolve import resolve_target
from tests.support.facts import make_facts

Sizes = tuple[int | str | None, ...]


def port(name: str, *sizes: int | str | None, kind: str = "float32", optional: bool = False) -> Port:
    return Port(name=name, type=ValueType(element_type=kind, shape=sizes), optional=optional)


def sign(inputs: list[Port], outputs: list[Port]) -> Signature:
    return Signature(inputs=tuple(inputs), outputs=tuple(outputs))


GRU = sign([port("x", 1, 40), port("h0", 1, 64)], [port("scores", 1, 8), port("hn", 1, 64)])


def problems(signature: Signature, *texts: str) -> str:
    with pytest.raises(UsageError) as caught:
        check_state(signature, parse_state(texts))
    assert caught.value.hint
    return " ".join(caught.value.details)


def test_a_link_that_fits_is_taken() -> None:
    check_state(GRU, parse_state(["h0=hn"]))


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        (["h=hn"], "the model has no input 'h'; did you mean 'h0'?"),
        (["h0=hm"], "the model has no output 'hm'; did you mean 'hn'?"),
        (["h0=h0"], "the model has no output 'h0'"),
        (["hn=h0"], "the model has no input 'hn'"),
        (["h0=scores"], "the input is float32[1, 64], the output float32[1, 8]"),
        (["h0=hn", "h0=hn"], "input 'h0' is linked twice"),
        (["h0=hn", "x=hn"], "output 'hn' is linked twice"),
    ],
)
def test_a_link_that_does_not_fit_is_refused(texts: list[str], why: str) -> None:
    assert why in problems(GRU, *texts)


def test_likely_links_are_in_the_hint() -> None:
    with pytest.raises(UsageError) as caught:
        check_state(GRU, parse_state(["h0=scores"]))
    assert caught.value.hint == 'likely: --state h0=hn; in a project file state = { "h0" = "hn" }'


@pytest.mark.parametrize(
    ("taken", "given_", "text", "why"),
    [
        (port("s", 1, kind="float16"), port("t", 1), "s=t", "float16[1]"),
        (port("s", 1), port("t", 1, 1), "s=t", "float32[1, 1]"),
        (port("s", 1, optional=True), port("t", 1), "s=t", "is optional"),
        (port("s", "batch"), port("t", "batch"), "s=t", "fix its sizes (--dim or --shape)"),
        (port("s", None), port("t", 4), "s=t", "fix its sizes"),
        (port("s", 1, "past", 8), port("t", 1, "total", 8), "s=t", "longer than the input along axis 1: set grows=1"),
        (port("s", 1, "past", 8), port("t", 1, "total", 8), "s=t,grows=3", "has no axis 3 (the first is 0)"),
        (port("s", 1, "past", 8), port("t", 1, "total", 8), "s=t,grows=2", "has the fixed size 8: export the model"),
        (port("s", 1, 4, 8), port("t", 1, "total", 8), "s=t,grows=1", "has the fixed size 4: export the model"),
        (port("s", 1, "past", 8), port("t", 1, 4, 8), "s=t,grows=1", "output 't' has the fixed size 4 there"),
        (port("s", 1, "past", 8), port("t", 1, "past", 8), "s=t,grows=1", "input and output both have the size 'past'"),
        (port("s", "batch", "past", 8), port("t", "batch", "all", 8), "s=t,grows=1", "fix its other sizes"),
        (port("s", 1, kind="str"), port("t", 1, kind="str"), "s=t", "str cannot be a state"),
        (
            port("s", 1, kind="int64"),
            port("t", 1, kind="int64"),
            "s=t,initial=0.5",
            "0.5 cannot be represented as int64",
        ),
    ],
)
def test_ports_that_are_no_state_are_refused(taken: Port, given_: Port, text: str, why: str) -> None:
    assert why in problems(sign([taken], [given_]), text)


def test_a_state_may_grow_along_an_open_axis() -> None:
    cache = sign([port("past_k", 1, 4, "past", 8)], [port("present_k", 1, 4, "total", 8)])
    links = parse_state(["past_k=present_k,grows=2"])
    assert links == find_state_pairs(cache)
    assert show_state(links) == ("past_k=present_k,grows=2",)
    check_state(cache, links)
    check_state(cache, parse_state(["past_k=present_k,grows=2,initial=prompt.npy"]))
    check_state(sign([port("s", 1, None)], [port("t", 1, None)]), parse_state(["s=t,grows=1"]))


def test_links_against_the_names_and_links_that_are_missing_are_doubted() -> None:
    taken, given = ("h0", "c0"), ("hn", "cn")
    lstm = sign([port(name, 1, 4) for name in (*taken, "x")], [port(name, 1, 4) for name in (*given, "y")])
    assert list(doubt_state(lstm, ())) == []
    assert list(doubt_state(lstm, parse_state(["h0=hn", "c0=cn"]))) == []
    assert list(doubt_state(lstm, parse_state(["h0=cn", "c0=hn"]))) == [
        "state h0=cn: the names suggest h0=hn",
        "state c0=hn: the names suggest c0=cn",
    ]
    assert list(doubt_state(lstm, parse_state(["h0=hn"]))) == [
        "c0 and cn are likely a state: link them with --state c0=cn"
    ]


def test_an_initial_value_may_be_a_file() -> None:
    (link,) = parse_state(["h0=hn,initial=data/start.npy"])
    assert (link.initial, link.file) == ("file", "data/start.npy")
    assert show_state([link]) == ("h0=hn,initial=data/start.npy",)
    check_state(GRU, [link])


@pytest.mark.parametrize(
    "text",
    [
        *("h0", "=hn", "h0=", "", "h0=hn,first=1"),
        *("h0=hn,grows=", "h0=hn,grows=1,initial=0.5", "h0=hn,grows=-1", "h0=hn,grows=two", "h0=hn,grows=²"),
        *("h0=hn,initial=nan", "h0=hn,initial=inf", "h0=hn,initial=start.npz", "h0=hn,initial="),
    ],
)
def test_what_is_no_link_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_state([text])


NAMES = st.text("abcdefghn_0", min_size=1, max_size=4)
SIZES = st.lists(st.one_of(st.integers(1, 3), st.sampled_from(["n", None])), max_size=2)
KINDS = st.sampled_from(["float32", "int64", "str", "bool"])
PORTS = st.lists(st.builds(lambda name, sizes, kind: port(name, *sizes, kind=kind), NAMES, SIZES, KINDS), max_size=4)
AXES = st.one_of(st.none(), st.integers(0, 2))
LINKS = st.lists(
    st.builds(lambda taken, end, axis: StateLink(input=taken, output=end, grows=axis), NAMES, NAMES, AXES), max_size=3
)


@given(PORTS, PORTS, LINKS)
def test_links_that_are_taken_can_be_fed_back(inputs: list[Port], outputs: list[Port], links: list[StateLink]) -> None:
    """Whatever passes has ports of one type, sizes that are fixed but where it grows, and is linked once."""
    signature = sign(inputs, outputs)
    try:
        check_state(signature, links)
    except UsageError as error:
        assert error.details  # noqa: PT017
        return
    for link in links:
        taken = next(port for port in reversed(inputs) if port.name == link.input)
        end = next(port for port in reversed(outputs) if port.name == link.output)
        assert taken.type.element_type == end.type.element_type
        assert all(isinstance(size, int) != (axis == link.grows) for axis, size in enumerate(taken.type.shape or ()))
        assert len(taken.type.shape or ()) == len(end.type.shape or ())
    assert len({link.input for link in links}) == len({link.output for link in links}) == len(links)


@given(PORTS, PORTS)
def test_likely_pairs_have_one_type(inputs: list[Port], outputs: list[Port]) -> None:
    ends = {(port.name, port.type.element_type) for port in outputs}  # a hostile model has a name twice
    for pair in find_state_pairs(sign(inputs, outputs)):
        assert any(port.name == pair.input and (pair.output, port.type.element_type) in ends for port in inputs)


@given(LINKS.filter(lambda links: all("," not in link.input for link in links)))
def test_links_are_shown_as_they_are_given(links: list[StateLink]) -> None:
    assert parse_state(show_state(links)) == tuple(links)


@pytest.mark.parametrize(
    ("taken", "end"),
    [
        ("h0", "hn"),
        ("state", "stateN"),
        ("h", "hn"),
        ("c", "cn"),
        ("h_in", "h_out"),
        ("past_key_values.0.key", "present.0.key"),
        ("past_0", "present_0"),
        ("past_key", "present_key"),
        ("state_in", "state_out"),
        ("hidden", "new_hidden"),
        ("cache_0", "next_cache_0"),
    ],
)
def test_names_of_real_exports_are_likely_pairs(taken: str, end: str) -> None:
    signature = sign([port("x", 1, 4), port(taken, 2, 1, 64)], [port("y", 1, 4), port(end, 2, 1, 64)])
    assert show_state(find_state_pairs(signature)) == (f"{taken}={end}",)


def test_other_types_are_no_pair() -> None:
    assert find_state_pairs(sign([port("h0", 1, 64)], [port("hn", 1, 32)])) == ()
    assert find_state_pairs(sign([port("x", 1, 64)], [port("y", 1, 64)])) == ()


class TestData:
    """What a plan makes of data whose samples are steps."""

    FRAMES = DataRequest(plain="samples")
    LINKS = parse_state(["h0=hn"])

    def plan(self, *, calibrates: bool = False, golden: GoldenKind = "samples", **data: DataRequest | None) -> DataPlan:
        return plan_data(
            make_facts(),
            resolve_target("linux-x64"),
            Fixing(),
            Seeds(seed=1, count=8),
            samples=data.get("samples"),
            calibration=data.get("calibration"),
            rounds=True,
            calibrates=calibrates,
            golden=golden,
            state=self.LINKS,
        )

    def test_synthetic_steps_are_more_than_eight(self) -> None:
        (step,) = self.plan().steps
        assert step.options["count"] > 8

    def test_steps_that_calibrate_are_recorded_with_their_states(self) -> None:
        plan = self.plan(samples=self.FRAMES, calibration=DataRequest(plain="calibration"), calibrates=True)
        assert [(step.stage, step.inputs["samples"]) for step in plan.steps] == [
            ("record_golden", "samples"),
            ("record_golden", "calibration"),
        ]
        assert all(step.options["state"] for step in plan.steps)
        assert plan.calibration == plan.steps[1].id

    def test_steps_that_judge_and_calibrate_are_reported(self) -> None:
        plan = self.plan(samples=self.FRAMES, calibrates=True)
        assert any(note.level == "warning" and "also calibrate it" in note.text for note in plan.notes)

    def test_seeded_steps_like_the_samples_are_refused(self) -> None:
        with pytest.raises(UsageError, match="cannot be used with --state"):
            self.plan(samples=self.FRAMES, golden="synthetic")

    def test_steps_that_are_no_arrays_are_refused(self) -> None:
        with pytest.raises(UsageError, match="must be arrays"):
            self.plan(samples=DataRequest(inputs={"images": "samples"}))
