"""OpenVINO's device properties: the JSON text of `load_config`, and what is wrong with one.

The provider reads `{"CPU": {"PROPERTY": "value"}, …}`. What a device does not have is silently ignored when the
device is not the chosen one, and ends the session when it is (onnxruntime-ep-openvino 1.8.1, measured).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from bundler.model.codec import parse_json

KEY = "load_config"
DEVICES = ("CPU", "GPU", "NPU")

_PRECISION = "INFERENCE_PRECISION_HINT"
_PRECISIONS = ("f32", "f16", "bf16", "dynamic")
_PROPERTIES = (
    _PRECISION,
    "EXECUTION_MODE_HINT",
    "PERFORMANCE_HINT",
    "PERFORMANCE_HINT_NUM_REQUESTS",
    "INFERENCE_NUM_THREADS",
    "NUM_STREAMS",
    "MODEL_PRIORITY",
    "ENABLE_CPU_PINNING",
    "ENABLE_HYPER_THREADING",
    "SCHEDULING_CORE_TYPE",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE",
    "KV_CACHE_PRECISION",
    "CACHE_MODE",
    "COMPILATION_NUM_THREADS",
)
"""Properties that spelling is compared with; devices have more."""
_FOLDERS = ("CACHE_DIR", "WEIGHTS_PATH")


def read_config(text: str) -> Mapping[str, Mapping[str, Any]]:
    """The properties by device. Raises `ValueError`, which says what is expected."""
    if not text.lstrip().startswith("{"):
        raise ValueError('is the JSON text itself, not a file\'s name: {"CPU": {"NUM_STREAMS": "1"}}')
    try:
        config = parse_json(text)
    except ValueError as error:
        raise ValueError(f"is not valid JSON: {error}") from error
    for device, properties in config.items():
        if not isinstance(properties, dict):
            raise ValueError(f"expected an object of properties for {device[:40]!r}")  # noqa: TRY004 - wrong to the reader
    return config  # type: ignore[no-any-return]


def check_config(text: str, device: str) -> Iterator[str]:
    """What is wrong with a `load_config` for the chosen device."""
    try:
        config = read_config(text)
    except ValueError as error:
        yield str(error)
        return
    chosen = device.partition(".")[0]
    for name, properties in config.items():
        yield from _check_device(name, chosen)
        for key, value in properties.items():
            yield from _check_property(key, value)


def is_exact(text: str, device: str) -> bool:
    """Whether the device is asked to compute in single precision."""
    try:
        config = read_config(text)
    except ValueError:
        return False
    chosen = device.partition(".")[0]
    properties = config.get(device, config.get(chosen, {}))
    if _PRECISION in properties:
        return str(properties[_PRECISION]).lower() == "f32"
    return str(properties.get("EXECUTION_MODE_HINT", "")).upper() == "ACCURACY"


def _check_device(name: str, chosen: str) -> Iterator[str]:
    bare = name.partition(".")[0]
    if bare not in DEVICES:
        close = difflib.get_close_matches(bare.upper()[:40], DEVICES, n=1)
        meant = f'; did you mean "{close[0]}"?' if close else ""
        yield f"{name[:40]!r} is not a device (known: {', '.join(DEVICES)}){meant}"
    elif bare != chosen:
        yield f"{name} is not the chosen device, so its properties have no effect; `device_type` is {chosen}"


def _check_property(key: str, value: Any) -> Iterator[str]:
    if key in _FOLDERS:
        yield f"{key} names a folder of one machine; the bundle itself keeps models compiled on the device"
    if key not in _PROPERTIES:
        near = difflib.get_close_matches(key.upper()[:60], _PROPERTIES, n=1, cutoff=0.85)
        if near:
            yield f'{key[:60]!r} is not a property; did you mean "{near[0]}"?'
    if key == _PRECISION and str(value).lower() not in _PRECISIONS:
        yield f"{_PRECISION} is one of {', '.join(_PRECISIONS)}, not {str(value)[:40]!r}"
