"""A folder with other jars than a bundle has is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from bundler.emitters.jvm.launching import open_jar
from bundler.model.errors import VerificationError


@pytest.mark.parametrize("names", [(), ("a.jar",), ("a.jar", "a-sources.jar", "b.jar"), ("a.jar", "b-sources.jar")])
def test_a_folder_with_other_jars_is_no_bundle(tmp_path: Path, names: tuple[str, ...]) -> None:
    for name in names:
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(VerificationError):
        open_jar(tmp_path)
