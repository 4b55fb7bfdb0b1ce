"""One bundle with a variant of every kind, written once."""

from __future__ import annotations

from pathlib import Path

import pytest

from bundler.emitters.contract import EmitRequest
from bundler.emitters.neutral.emitter import EMITTER
from tests.support import models
from tests.support.neutral_bundles import make_files_request

KINDS = ("htp", "series", "tensorrt", "openvino", "xnnpack", "cpu")


@pytest.fixture(scope="session")
def request_(tmp_path_factory: pytest.TempPathFactory) -> EmitRequest:
    return make_files_request(models.cnn(), tmp_path_factory.mktemp("neutral"), *KINDS, name="Tiny CNN")


@pytest.fixture(scope="session")
def bundle(request_: EmitRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    EMITTER.emit(request_, folder)
    return folder
