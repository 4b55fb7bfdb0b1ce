"""What was verified stands in the README of the bundle, and only there, when the bundle is whole."""

from pathlib import Path

import pytest

from bundler.emitters.rendering import load_template
from bundler.emitters.verified import POINTER, README, write_verification
from bundler.model.digests import digest_file
from bundler.support.data import data_root


def test_what_was_verified_takes_the_place_of_the_pointer(tmp_path: Path) -> None:
    (tmp_path / README).write_text(f"# x\n\n## What was verified\n\n{POINTER}\n\n## More\n", "utf-8")
    record = write_verification(tmp_path, ["Verified: cpu on the host that built it.", "Not run: gpu (*no* <GPU>)."])
    text = (tmp_path / README).read_text("utf-8")
    assert "- Verified: cpu on the host that built it.\n- Not run: gpu (\\*no\\* \\<GPU\\>).\n\n## More" in text
    assert POINTER not in text
    assert (record.path, record.size, record.sha256) == (README, len(text.encode()), digest_file(tmp_path / README))


def test_a_model_whose_name_is_the_pointer_cannot_take_its_place(tmp_path: Path) -> None:
    """Names are escaped, so the pointer's back quotes are its own."""
    from bundler.support.text import markdown_text  # noqa: PLC0415

    (tmp_path / README).write_text(f"# {markdown_text(POINTER)}\n\n{POINTER}\n", "utf-8")
    write_verification(tmp_path, ["Verified: cpu."])
    assert (tmp_path / README).read_text("utf-8").endswith("\n\n- Verified: cpu.\n")


@pytest.mark.parametrize("text", [None, "# x\n"])
def test_a_bundle_of_another_makers_emitter_stays_as_it_is(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / README).write_text(text, "utf-8")
    assert write_verification(tmp_path, ["Verified: cpu."]) is None
    assert [path.read_text("utf-8") for path in tmp_path.iterdir()] == ([text] if text else [])


@pytest.mark.parametrize("name", ["python", "web", "neutral"])
def test_every_template_has_the_place_once(name: str) -> None:
    text = (load_template(name).folder / "README.md.j2").read_text("utf-8")
    assert text.count("{{ verification }}") == 1


PROMISES = ("proven for", "and proven", "tuned", "everything that it", "no network")


@pytest.mark.parametrize("name", ["python", "web", "neutral"])
def test_no_template_claims_what_nobody_did(name: str) -> None:
    """A README is written before anything is run: what was done there is not for a fixed sentence."""
    folder = data_root("templates") / name
    for path in (*folder.glob("*.j2"), *folder.glob("package/_loader/*.py"), *folder.glob("package/loader/*.js")):
        text = path.read_text("utf-8").lower()
        assert not [words for words in PROMISES if words in text], path
