"""The page of all targets."""

import pytest

from bundler.catalogue.matrix import describe_matrix
from bundler.profiles.resolve import resolve_target, target_ids
from bundler.providers.registry import provider_names


@pytest.fixture(scope="module")
def page() -> str:
    return describe_matrix(["# Targets", ""])


def test_it_begins_with_how_to_choose(page):
    assert page.startswith("# Targets\n\n## How to choose\n")
    for command in ("bundler targets recommend", "--calibration", "--dim", "prewarm", "--format files"):
        assert command in page


def test_every_target_has_a_row_for_each_variant_and_a_section(page):
    lines = page.splitlines()
    for name in target_ids():
        assert f"## {name}" in lines
        for variant in resolve_target(name).variants:
            assert any(line.startswith(f"| `{name}` | `{variant.name}` |") for line in lines)


def test_every_provider_has_a_row_that_says_where_it_is(page):
    for name in provider_names():
        row = next(line for line in page.splitlines() if line.startswith(f"| `{name}` |"))
        assert all(cell.strip() for cell in row.strip("|").split(" | "))


def test_a_phone_is_reported_whole(page):
    rows = [line for line in page.splitlines() if "`snapdragon-8g3`" in line]
    assert any("onnxruntime-android-qnn 2.6.0" in row and "android, `gradle`" in row for row in rows)
    assert (
        "| `snapdragon-8g3` | `htp` | `qnn` | as it is | `static-qnn` "
        "| compiled before shipping | 90%, otherwise an error |" in rows
    )
    section = page.partition("## snapdragon-8g3\n")[2].partition("\n## ")[0]
    assert "Galaxy S24 Ultra" in section
    assert "`batch_size` = 1" in section
    assert "Language models: 1 at once" in section


def test_what_needs_a_runtime_of_ones_own_is_reported(page):
    row = next(line for line in page.splitlines() if line.startswith("| `jetson-orin` | `tensorrt` |"))
    assert "requires a custom build of ONNX Runtime" in row
