"""scikit-learn's handwritten digits (1797 images of 8 by 8 pixels) and two networks trained on them within seconds.

The perceptron goes through skl2onnx: image `x`[batch, 64] -> `label`[batch], `probabilities`[batch, 10]. The
convolutional network is trained here, by NumPy: `image`[batch, 1, 8, 8] -> `scores`[batch, 10] (they are logits).
Pixels are float32 from 0 to 1. The same process of the same machine always trains the same weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal

import numpy as np
import onnxruntime as ort
from onnx import ModelProto, helper

from tests.support.models import make_model, save, tensor, value

Network = Literal["perceptron", "convolutional"]
HELD_OUT: Final = 360
"""So many of the images are kept from training and from calibration."""
SIDE, CLASSES = 8, 10


@dataclass(frozen=True, slots=True)
class Digits:
    """`images` are float32[count, 1, 8, 8], `labels` int64[count]."""

    images: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    def feed(self, network: Network) -> dict[str, np.ndarray]:
        """All images as that network takes them."""
        if network == "convolutional":
            return {"image": self.images}
        return {"x": self.images.reshape(len(self), SIDE * SIDE)}

    def part(self, count: int) -> Digits:
        """The first `count`."""
        return Digits(self.images[:count], self.labels[:count])


@cache
def load_digits() -> tuple[Digits, Digits]:
    """What networks are trained (and quantisers calibrated) on, and what is held out."""
    from sklearn.datasets import load_digits as load  # noqa: PLC0415 (imports for a second)

    found = load()
    order = np.random.default_rng(0).permutation(len(found.target))
    images = (found.data[order] / 16).astype(np.float32).reshape(-1, 1, SIDE, SIDE)
    labels = found.target[order].astype(np.int64)
    return Digits(images[HELD_OUT:], labels[HELD_OUT:]), Digits(images[:HELD_OUT], labels[:HELD_OUT])


def make_network(network: Network) -> ModelProto:
    """The trained network."""
    return make_perceptron() if network == "perceptron" else make_convolutional()


def write_network(network: Network, folder: Path) -> Path:
    """The trained network as `digits-<network>.onnx` in `folder`."""
    return save(make_network(network), folder, f"digits-{network}.onnx")


def write_samples(digits: Digits, folder: Path, network: Network, *, batch: int = 1) -> Path:
    """One .npz of `batch` images a call, as `--calibration` and `--samples` take them; the rest is left out."""
    folder.mkdir(parents=True, exist_ok=True)
    feed = digits.feed(network)
    for index in range(len(digits) // batch):
        part = {name: values[index * batch : (index + 1) * batch] for name, values in feed.items()}
        np.savez(folder / f"{index:04d}.npz", **part)
    return folder


def write_images(digits: Digits, folder: Path) -> Path:
    """One grey PNG of 8 by 8 pixels a digit, named after its number and its label."""
    from PIL import Image  # noqa: PLC0415

    folder.mkdir(parents=True, exist_ok=True)
    for index, (image, label) in enumerate(zip(digits.images, digits.labels, strict=True)):
        Image.fromarray(np.rint(image[0] * 255).astype(np.uint8)).save(folder / f"{index:04d}-{label}.png")
    return folder


def read_scores(model: Path, network: Network, digits: Digits) -> np.ndarray:
    """float32[count, 10] of a model with the interface of `network`, by plain ONNX Runtime on the CPU."""
    output = "scores" if network == "convolutional" else "probabilities"
    session = ort.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    scores: np.ndarray = session.run([output], digits.feed(network))[0]
    return scores


def measure_accuracy(model: Path, network: Network, digits: Digits | None = None) -> float:
    """The share of `digits` (the held-out ones) that the model names rightly."""
    digits = digits or load_digits()[1]
    return float(np.mean(read_scores(model, network, digits).argmax(1) == digits.labels))


def make_perceptron(hidden: int = 64) -> ModelProto:
    """Two hidden layers of matrix products; the caller's own copy."""
    return _copy(_train_perceptron(hidden))


def make_convolutional(channels: tuple[int, int] = (16, 32), epochs: int = 8) -> ModelProto:
    """Conv, Relu, Conv, Relu, MaxPool, Flatten, Gemm; the caller's own copy."""
    return _copy(_train_convolutional(channels, epochs))


def _copy(model: ModelProto) -> ModelProto:
    """Tests alter their models, and training is remembered."""
    copy = ModelProto()
    copy.CopyFrom(model)
    return copy


@cache
def _train_perceptron(hidden: int) -> ModelProto:
    """Two hidden layers of matrix products; trained by scikit-learn in about a second."""
    from skl2onnx import to_onnx  # noqa: PLC0415 (imports for seconds)
    from sklearn.neural_network import MLPClassifier  # noqa: PLC0415

    train, _ = load_digits()
    flat = train.feed("perceptron")["x"]
    classifier = MLPClassifier((hidden, hidden // 2), random_state=0, max_iter=40, early_stopping=True)
    classifier.fit(flat, train.labels)
    named = to_onnx(classifier, flat[:1], options={"zipmap": False, "output_class_labels": False}, target_opset=17)
    model = ModelProto.FromString(named.SerializeToString())
    for node in model.graph.node:
        _rename(node.input, "X", "x")
    model.graph.input[0].name = "x"
    return model


def _rename(names: object, old: str, new: str) -> None:
    for place, name in enumerate(names):  # type: ignore[arg-type, var-annotated] # a repeated field of protobuf
        if name == old:
            names[place] = new  # type: ignore[index]


@cache
def _train_convolutional(channels: tuple[int, int], epochs: int) -> ModelProto:
    """Trained by `_Trainer` in two seconds or so."""
    trainer = _Trainer(channels)
    train, _ = load_digits()
    for images, labels in _shuffle(train, epochs, batch=32):
        trainer.step(images, labels)
    first, first_bias, second, second_bias, last, last_bias = trainer.weights
    nodes = [
        helper.make_node("Conv", ["image", "w1", "b1"], ["c1"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("Conv", ["r1", "w2", "b2"], ["c2"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c2"], ["r2"]),
        helper.make_node("MaxPool", ["r2"], ["pool"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["pool"], ["flat"]),
        helper.make_node("Gemm", ["flat", "w3", "b3"], ["scores"]),
    ]
    initializers = (
        tensor("w1", first.reshape(channels[0], 1, 3, 3)),
        tensor("b1", first_bias),
        tensor("w2", second.reshape(channels[1], channels[0], 3, 3)),
        tensor("b2", second_bias),
        tensor("w3", last),
        tensor("b3", last_bias),
    )
    inputs, outputs = [value("image", ["batch", 1, SIDE, SIDE])], [value("scores", ["batch", CLASSES])]
    return make_model(nodes, inputs, outputs, initializers)


def _shuffle(digits: Digits, epochs: int, batch: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(1)
    for _ in range(epochs):
        order = rng.permutation(len(digits))
        for start in range(0, len(order) - batch + 1, batch):
            chosen = order[start : start + batch]
            yield digits.images[chosen], digits.labels[chosen]


class _Trainer:
    """Adam on the cross entropy of two 3 by 3 convolutions, a maximum of 2 by 2 and a matrix product.

    `weights`: kernels [out, in * 9], bias, kernels, bias, matrix [flat, 10], bias.
    """

    RATE, DECAYS, TINY = 2e-3, (0.9, 0.999), 1e-8

    def __init__(self, channels: tuple[int, int]) -> None:
        rng = np.random.default_rng(2)
        flat = channels[1] * (SIDE // 2) ** 2
        shapes = ((channels[0], 9), (channels[1], channels[0] * 9), (flat, CLASSES))
        fans = (9, channels[0] * 9, flat)
        self.weights: list[np.ndarray] = []
        for shape, fan, out in zip(shapes, fans, (*channels, CLASSES), strict=True):
            self.weights += [rng.normal(0, (2 / fan) ** 0.5, shape).astype(np.float32), np.zeros(out, np.float32)]
        self._means = [np.zeros_like(weight) for weight in self.weights]
        self._squares = [np.zeros_like(weight) for weight in self.weights]
        self._steps = 0

    def step(self, images: np.ndarray, labels: np.ndarray) -> None:
        """One step down the gradient of a batch."""
        self._steps += 1
        for place, gradient in enumerate(self._gradients(images, labels)):
            self._means[place] += (1 - self.DECAYS[0]) * (gradient - self._means[place])
            self._squares[place] += (1 - self.DECAYS[1]) * (gradient**2 - self._squares[place])
            mean = self._means[place] / (1 - self.DECAYS[0] ** self._steps)
            square = self._squares[place] / (1 - self.DECAYS[1] ** self._steps)
            self.weights[place] -= (self.RATE * mean / (np.sqrt(square) + self.TINY)).astype(np.float32)

    def _gradients(self, images: np.ndarray, labels: np.ndarray) -> list[np.ndarray]:
        first, first_bias, second, second_bias, last, last_bias = self.weights
        patches1 = _unfold(images)
        active1 = np.maximum(patches1 @ first.T + first_bias, 0)
        patches2 = _unfold(active1.transpose(0, 3, 1, 2))
        active2 = np.maximum(patches2 @ second.T + second_bias, 0)
        pooled, winners = _pool(active2)
        flat = pooled.transpose(0, 3, 1, 2).reshape(len(labels), -1)
        error = _softmax(flat @ last + last_bias)
        error[np.arange(len(labels)), labels] -= 1
        error /= len(labels)
        back = (error @ last.T).reshape(len(labels), -1, SIDE // 2, SIDE // 2).transpose(0, 2, 3, 1)
        back2 = _unpool(back, winners) * (active2 > 0)
        back1 = _fold(back2 @ second) * (active1 > 0)
        kernels = (_sum_outer(back1, patches1), back1.sum((0, 1, 2)), _sum_outer(back2, patches2))
        return [*kernels, back2.sum((0, 1, 2)), flat.T @ error, error.sum(0)]


def _unfold(images: np.ndarray) -> np.ndarray:
    """[n, channels, h, w] as the 3 by 3 neighbourhoods [n, h, w, channels * 9], zeros around the image."""
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return windows.transpose(0, 2, 3, 1, 4, 5).reshape(*images.shape[:1], *images.shape[2:], -1)


def _fold(patches: np.ndarray) -> np.ndarray:
    """Neighbourhoods [n, h, w, channels * 9] added up where they overlap: [n, h, w, channels]."""
    count, height, width, _ = patches.shape
    parts = patches.reshape(count, height, width, -1, 3, 3)
    whole = np.zeros((count, height + 2, width + 2, parts.shape[3]), np.float32)
    for down in range(3):
        for across in range(3):
            whole[:, down : down + height, across : across + width] += parts[..., down, across]
    return whole[:, 1:-1, 1:-1]


def _pool(active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The greatest of each 2 by 2 pixels of [n, h, w, channels], and a mask of the squares that says which it was."""
    count, height, width, channels = active.shape
    squares = active.reshape(count, height // 2, 2, width // 2, 2, channels)
    greatest = squares.max((2, 4), keepdims=True)
    return greatest[:, :, 0, :, 0], squares == greatest


def _unpool(back: np.ndarray, winners: np.ndarray) -> np.ndarray:
    count, rows, _, columns, _, channels = winners.shape
    spread = winners * back[:, :, None, :, None]
    return spread.reshape(count, rows * 2, columns * 2, channels)


def _sum_outer(back: np.ndarray, patches: np.ndarray) -> np.ndarray:
    return back.reshape(-1, back.shape[-1]).T @ patches.reshape(-1, patches.shape[-1])


def _softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(1, keepdims=True))
    shares: np.ndarray = powers / powers.sum(1, keepdims=True)
    return shares
