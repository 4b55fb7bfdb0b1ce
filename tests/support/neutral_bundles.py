"""Requests for bundles of no ecosystem, with variants of every kind, all of one tiny model."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import onnx

from bundler.emitters.contract import EmitRequest
from bundler.model.runtime import Compatibility, Compiled, Preparation, ProviderEntry, RuntimeVariant
from tests.support.bundles import make_request, make_variant, model_artifact, with_variants

QNN = "QNNExecutionProvider"
TENSORRT = "TensorrtExecutionProvider"
OPENVINO = "OpenVINOExecutionProvider"
XNNPACK = "XnnpackExecutionProvider"
_HTP = {"backend_type": "htp", "soc_model": "57", "htp_arch": "75"}
_INTEL_NPU = {"ov_device": "NPU"}
_CPU = ProviderEntry(name="CPUExecutionProvider", options={})


def make_files_request(model: onnx.ModelProto, folder: Path, *kinds: str, **changes: Any) -> EmitRequest:
    """A request for `files` with a variant of each of `kinds` (by default the CPU's alone)."""
    request = make_request(model, folder, format=changes.pop("format", "files"), **changes)
    artifact = model_artifact(request)
    variants = (make_kind(kind, make_variant("cpu", artifact)) for kind in kinds or ("cpu",))
    return with_variants(request, *variants)


def make_kind(kind: str, plain: RuntimeVariant) -> RuntimeVariant:
    """One variant as planning makes it for such a device; equal files share the folder of the CPU's."""
    changes: dict[str, dict[str, Any]] = {
        "cpu": {},
        "htp": {"providers": (_npu(),), "requires": _phone(("57",)), "least_share": 0.9},
        "series": {"providers": (_npu(),), "requires": _phone(("43", "57", "69"))},
        "tensorrt": {
            "providers": (ProviderEntry(name=TENSORRT, options={"trt_fp16_enable": "1"}), _CPU),
            "prepare": Preparation(
                kind="cache", thing="TensorRT engine", options={"trt_engine_cache_path": "{folder}/engine"}
            ),
        },
        "openvino": {
            "providers": (
                ProviderEntry(
                    name=OPENVINO, options={}, library="onnxruntime_ep_openvino", select={"ov_device": "NPU"}
                ),
                _CPU,
            ),
            "prepare": Preparation(kind="context", thing="OpenVINO blob"),
        },
        "xnnpack": {"providers": (ProviderEntry(name=XNNPACK, options={"intra_op_num_threads": "4"}), _CPU)},
    }
    return dataclasses.replace(plain, name=kind, **changes[kind])


def _npu() -> ProviderEntry:
    return ProviderEntry(name=QNN, options=_HTP, library="onnxruntime_qnn", select={})


def _phone(devices: tuple[str, ...]) -> Compatibility:
    compiled = Compiled(provider=QNN, devices=devices, sdk="2.51.0", statement="v2:6:2.51.0:5.51.0:75:57:0:0")
    return Compatibility(
        systems=("Android", "Linux"),
        machines=("aarch64", "arm64", "ARM64"),
        runtime="1.31.1",
        plugins={"onnxruntime-qnn": "2.7.0"},
        compiled=compiled,
    )


def with_config(request: EmitRequest, **changes: Any) -> EmitRequest:
    """`request` with fields of its configuration replaced."""
    return dataclasses.replace(request, config=dataclasses.replace(request.config, **changes))
