"""A choice of precision as data: nothing here was measured."""

from bundler.model.attempts import Attempt, AttemptState, Frontier


def make_attempt(
    method: str, state: AttemptState, ratio: float | None, decibels: float | None, **more: object
) -> Attempt:
    known = {} if ratio is None else {"model_bytes": 181_000, "seconds": 0.00164 * ratio}
    figures = {"sqnr_db": decibels, "cosine": None, "max_absolute": 0.03, "top1_agreement": 0.99}
    values = {
        "title": f"method {method}",
        "figures": figures if ratio is not None else {},
        "reason": "",
        **known,
        **more,
    }
    return Attempt(method=method, state=state, ratio=ratio, **values)  # type: ignore[arg-type]


def make_frontier(variant: str = "cpu") -> Frontier:
    """One of each state; the fastest that held is 0.51 times the latency of the unchanged model."""
    unchanged = {"sqnr_db": None, "cosine": 1.0, "max_absolute": 0.0, "top1_agreement": 1.0}
    short = "scores: SQNR 11.2 dB, at least 20 dB"
    return Frontier(
        variant=variant,
        chosen="static-int8-percentile",
        attempts=(
            make_attempt("none", "passed", 1.0, None, model_bytes=585_532, figures=unchanged),
            make_attempt("static-int8", "failed", 0.50, 11.2, reason=short),
            make_attempt("static-int8-percentile", "chosen", 0.51, 27.4, processor_ratio=0.55),
            make_attempt("dynamic-int8", "passed", 4.4, 22.0),
            make_attempt("fp16", "passed", 1.17, 71.0, model_bytes=295_000),
            make_attempt("weights-8bit", "broken", None, None, reason="it quantised nothing"),
            make_attempt("bf16", "skipped", None, None, reason="cpu computes no bfloat16"),
        ),
        timing="measured",
        how="on this machine, alternating with the unchanged model",
        held_out=60,
        calibration=240,
        reason="the fastest that meets the gate",
    )
