"""Wrong models that gates were fooled with, each beside a good one of its kind, judged on answers made in code."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bundler.model.gates import check_gate
from bundler.model.results import Comparison, OutputComparison
from bundler.model.runtime import Gate
from bundler.onnxkit.metrics import Tally
from bundler.onnxkit.reference_tally import ReferenceTally
from bundler.planning.gate import LOSSY

Answers = list[np.ndarray]
"""One array a sample."""

SAMPLES, CLASSES = 40, 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """What a set answers, and two models' answers to it: one that is wrong and one that is good enough for int8."""

    name: str
    make: Callable[[np.random.Generator], tuple[Answers, Answers, Answers]]

    def judge(self, _folder: Path) -> Iterable[tuple[str, OutputComparison, tuple[str, ...]]]:
        """The two models with their figures, and what of them misses the gate of int8."""
        reference, wrong, good = self.make(np.random.default_rng(7))
        for kind, answers in (("wrong", wrong), ("good", good)):
            output = compare_answers(reference, answers)
            failures = check_gate(Comparison(outputs=(output,), samples=SAMPLES), Gate(default=LOSSY["eight-bit"]))
            yield f"{self.name}, {kind}", output, tuple(failure.figure for failure in failures)


def compare_answers(reference: Answers, answers: Answers) -> OutputComparison:
    """The figures of one output."""
    tally, known = Tally(name="y"), ReferenceTally(name="y")
    for number, (one, other) in enumerate(zip(reference, answers, strict=True)):
        tally.add(one, other, str(number))
        known.add(one)
    return tally.result(known.figures())


def _logits(random: np.random.Generator) -> Answers:
    """As a trained classifier gives them: one class leads."""
    answers = []
    for _ in range(SAMPLES):
        row = random.standard_normal((1, CLASSES))
        row[0, random.integers(CLASSES)] += 4
        answers.append(row.astype(np.float32))
    return answers


def _noisy(random: np.random.Generator, answers: Answers, ratio: float) -> Answers:
    """With noise of this share of each answer's own spread."""
    return [(one + ratio * one.std() * random.standard_normal(one.shape)).astype(one.dtype) for one in answers]


def _offset(random: np.random.Generator) -> tuple[Answers, Answers, Answers]:
    plain = _logits(random)
    shifted = [one + np.float32(1000) for one in plain]
    return (
        shifted,
        [one + np.float32(1000) for one in _noisy(random, plain, 1.0)],
        [one + np.float32(1000) for one in _noisy(random, plain, 0.1)],
    )


def _pooled(random: np.random.Generator) -> tuple[Answers, Answers, Answers]:
    plain = _logits(random)
    plain[0] = plain[0] * np.float32(1000)
    wrong = [one + 2 * random.standard_normal(one.shape).astype(np.float32) for one in plain]
    return plain, wrong, _noisy(random, plain, 0.1)


def _same_for_all(random: np.random.Generator, plain: Answers, common: np.ndarray) -> tuple[Answers, Answers, Answers]:
    """Beside something that no input changes, a model that answers nothing else, and a good one."""
    reference = [(one + common).astype(np.float32) for one in plain]
    good = [(one + common).astype(np.float32) for one in _noisy(random, plain, 0.1)]
    return reference, [np.broadcast_to(common, one.shape).astype(np.float32) for one in plain], good


def _class_offsets(random: np.random.Generator) -> tuple[Answers, Answers, Answers]:
    return _same_for_all(random, _logits(random), np.linspace(-100, 100, CLASSES))


def _filled(random: np.random.Generator) -> tuple[Answers, Answers, Answers]:
    """One class is suppressed by a finite number, as masks do."""
    return _same_for_all(random, _logits(random), np.eye(CLASSES)[0] * -1e9)


def _detector(random: np.random.Generator) -> tuple[Answers, Answers, Answers]:
    """Coordinates up to 640 beside scores up to 1 in one tensor; in the wrong model all scores are zero."""
    boxes = [random.uniform(0, 640, (1, 100, 4)) for _ in range(SAMPLES)]
    scores = [1 / (1 + np.exp(-2 * random.standard_normal((1, 100, 6)))) for _ in range(SAMPLES)]
    both = [np.concatenate(pair, axis=2).astype(np.float32) for pair in zip(boxes, scores, strict=True)]

    def change(factor: float) -> Answers:
        noise = np.array([2.0] * 4 + [0.02] * 6)
        kept = np.array([1.0] * 4 + [factor] * 6)
        return [(one * kept + noise * random.standard_normal(one.shape)).astype(np.float32) for one in both]

    return both, change(0.0), change(1.0)


def _one_loud(random: np.random.Generator) -> tuple[Answers, Answers, Answers]:
    """One sample is so large that errors in all others are less than its own last step."""
    plain = _logits(random)
    plain[0] = plain[0] * np.float32(1e8)
    return plain, [one if place == 0 else one * 0 for place, one in enumerate(plain)], _noisy(random, plain, 0.1)


def _batches(random: np.random.Generator) -> tuple[Answers, Answers, Answers]:
    """Rows of a batch, each at a level of its own."""
    plain = [np.concatenate(_logits(random)) for _ in range(SAMPLES)]
    levels = [random.uniform(-500, 500, (len(one), 1)) for one in plain]
    noisy = _noisy(random, plain, 0.1)
    reference, good = (
        [(one + level).astype(np.float32) for one, level in zip(rows, levels, strict=True)] for rows in (plain, noisy)
    )
    return reference, [np.repeat(level, CLASSES, axis=1).astype(np.float32) for level in levels], good


def _columns(random: np.random.Generator) -> tuple[Answers, Answers, Answers]:
    """A salary, an age and a rating; the wrong model knows nothing but the salary."""
    middle, spread = np.array([60000.0, 45.0, 3.0]), np.array([20000.0, 12.0, 1.0])
    units = [random.standard_normal((1, 3)) for _ in range(SAMPLES)]

    def scale(answers: Answers) -> Answers:
        return [(middle + spread * one).astype(np.float32) for one in answers]

    good = [one + 0.1 * random.standard_normal(one.shape) for one in units]
    return scale(units), scale([one * [1, 0, 0] for one in units]), scale(good)


def _boxes_and_logits(random: np.random.Generator) -> tuple[Answers, Answers, Answers]:
    """Boxes in pixels beside class logits; the wrong model rounds both to steps of the boxes."""
    middle, spread = np.array([320.0, 320, 80, 80, -4, -4, -4, -4]), np.array([100.0] * 4 + [3.0] * 4)
    reference = [middle + spread * random.standard_normal((1, 100, 8)) for _ in range(SAMPLES)]
    wrong = [np.round(one / 8) * 8 for one in reference]
    good = [one + 0.1 * spread * random.standard_normal(one.shape) for one in reference]
    return _as_floats(reference), _as_floats(wrong), _as_floats(good)


def _many_lengths(random: np.random.Generator) -> tuple[Answers, Answers, Answers]:
    """Tags of tokens, one of them forbidden by -1000, and no two sentences of one length."""
    plain = [3 * random.standard_normal((1, 5 + length, 9)) for length in range(SAMPLES)]
    forbidden = np.eye(9)[4] * -1000
    wrong = [np.round((one + forbidden) / 8) * 8 for one in plain]
    good = [one + forbidden + 0.3 * random.standard_normal(one.shape) for one in plain]
    return _as_floats([one + forbidden for one in plain]), _as_floats(wrong), _as_floats(good)


def _large(random: np.random.Generator) -> tuple[Answers, Answers, Answers]:
    """Class logits of each pixel with an offset for each class, in answers of a million numbers."""
    offsets = np.linspace(-200, 200, 21).reshape(1, 21, 1, 1)
    plain = [3 * random.standard_normal((1, 21, 224, 224)) for _ in range(6)]
    wrong = [np.round((one + offsets) / 8) * 8 for one in plain]
    good = [one + offsets + 0.3 * random.standard_normal(one.shape) for one in plain]
    return _as_floats([one + offsets for one in plain]), _as_floats(wrong), _as_floats(good)


def _token_levels(random: np.random.Generator) -> tuple[Answers, Answers, Answers]:
    """A language model's logits: each token has a level of its own, which no choice depends on."""
    plain = [1.4 * random.standard_normal((1, 16, 50)) for _ in range(SAMPLES)]
    levels = [40 * random.standard_normal((1, 16, 1)) for _ in plain]
    reference = [one + level for one, level in zip(plain, levels, strict=True)]
    wrong = [one + 1.2 * random.standard_normal(one.shape) for one in reference]
    good = [one + 0.14 * random.standard_normal(one.shape) for one in reference]
    return _as_floats(reference), _as_floats(wrong), _as_floats(good)


def _as_floats(answers: Answers) -> Answers:
    return [one.astype(np.float32) for one in answers]


def _zero(random: np.random.Generator) -> tuple[Answers, Answers, Answers]:
    zero = [np.zeros((1, CLASSES), np.float32) for _ in range(SAMPLES)]
    wrong = [random.standard_normal(one.shape).astype(np.float32) for one in zero]
    return zero, wrong, [one + np.float32(0.01) for one in zero]


def _constant(random: np.random.Generator) -> tuple[Answers, Answers, Answers]:
    constant = [np.full((1, CLASSES), 5, np.float32) for _ in range(SAMPLES)]
    wrong = [one + 3 * random.standard_normal(one.shape).astype(np.float32) for one in constant]
    return constant, wrong, [one + np.float32(0.05) for one in constant]


def _labels(random: np.random.Generator) -> tuple[Answers, Answers, Answers]:
    labels = [random.integers(0, CLASSES, (5,)) for _ in range(SAMPLES)]

    def change(count: int) -> Answers:
        flat = np.concatenate(labels)
        flat[:count] = (flat[:count] + 1) % CLASSES
        return np.split(flat, SAMPLES)

    return labels, change(8), change(4)


ATTACKS = (
    Attack(name="logits with an offset of 1000", make=_offset),
    Attack(name="one sample of 40 a thousand times larger", make=_pooled),
    Attack(name="an offset for each class", make=_class_offsets),
    Attack(name="a class filled with -1e9", make=_filled),
    Attack(name="boxes and scores in one tensor", make=_detector),
    Attack(name="one sample a hundred million times larger", make=_one_loud),
    Attack(name="rows of a batch, each with an offset", make=_batches),
    Attack(name="a salary, an age and a rating", make=_columns),
    Attack(name="boxes and class logits in one tensor", make=_boxes_and_logits),
    Attack(name="tags of sentences of many lengths, one forbidden", make=_many_lengths),
    Attack(name="pixel labels, a million numbers an answer", make=_large),
    Attack(name="tokens, each with a level of its own", make=_token_levels),
    Attack(name="outputs that are zero everywhere", make=_zero),
    Attack(name="outputs that are constant", make=_constant),
    Attack(name="integer labels (4 % and 2 % changed)", make=_labels),
)
