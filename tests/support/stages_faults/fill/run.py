"""Writes until the disk has no room, or the limit on a file's size is met."""

import resource

from bundler.model.stage import Report, StageRequest, StageResult


def run(request: StageRequest, report: Report) -> StageResult:
    limit = request.options.get("limit")
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, old[1]))
    try:
        (request.output / "model.onnx").write_bytes(bytes(request.options.get("bytes", 1 << 24)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    return StageResult(entry="model.onnx")
