"""Recordings become what the record says, and what cannot is named."""

from __future__ import annotations

import contextlib
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto

from bundler.stages.prepare_data.dataset import UnreadableError
from bundler.stages.prepare_data.recordings import open_recording
from bundler.stages.prepare_data.resampling import needed_frames, resample
from tests.support import models
from tests.support.data_folders import prepare, refuse, write_wave

GUID = bytes.fromhex("0000000010008000 00aa00389b71")
"""What follows the code in the extensible form, the same for all codings."""


def tone(rate: int, seconds: float, hertz: float = 440.0) -> np.ndarray:
    values: np.ndarray = 0.5 * np.sin(2 * np.pi * hertz * np.arange(round(rate * seconds)) / rate).astype(np.float32)
    return values


def audio_model(folder: Path, shape: list[Any] | None = None) -> Path:
    return models.save(models.passing(TensorProto.FLOAT, shape or [1, "samples"]), folder)


def declared(**changes: Any) -> dict[str, Any]:
    return {"kind": "audio", "preprocessing": {"kind": "audio", "sample_rate": 16000, **changes}}


def one(tmp_path: Path, values: np.ndarray, rate: int = 16000, **changes: Any) -> np.ndarray:
    write_wave(tmp_path / "data" / "a.wav", values, rate)
    shape = changes.pop("shape", None)
    _, found = prepare(tmp_path / "out", audio_model(tmp_path, shape), tmp_path / "data", **declared(**changes))
    made: np.ndarray = found.sample(0).inputs["x"]
    return made


@pytest.mark.parametrize(("bits", "coding", "error"), [(8, 1, 1e-2), (16, 1, 1e-4), (24, 1, 1e-6), (32, 1, 1e-6)])
def test_whole_numbers_of_every_size(tmp_path: Path, bits: int, coding: int, error: float) -> None:
    path = write_wave(tmp_path / "a.wav", tone(8000, 0.1), 8000, bits=bits, coding=coding)
    np.testing.assert_allclose(open_recording(path).read(800)[:, 0], tone(8000, 0.1), atol=error)


@pytest.mark.parametrize("bits", [32, 64])
def test_floating_point_numbers(tmp_path: Path, bits: int) -> None:
    path = write_wave(tmp_path / "a.wav", tone(8000, 0.1), 8000, bits=bits, coding=3)
    assert np.array_equal(open_recording(path).read(150)[:, 0], tone(8000, 0.1)[:150])


@pytest.mark.parametrize(
    ("frames", "why"), [(100, "declares 100 samples, and it has more"), (15_999, "more"), (16_001, "cannot be decoded")]
)
def test_a_flac_file_with_another_length_than_its_header_declares_is_refused(
    tmp_path: Path, frames: int, why: str
) -> None:
    path = tmp_path / "a.flac"
    soundfile.write(path, tone(16000, 1), 16000)
    assert len(open_recording(path).read(16_000)) == 16_000
    content = bytearray(path.read_bytes())
    content[21:26] = (int.from_bytes(content[21:26]) >> 36 << 36 | frames).to_bytes(5)
    path.write_bytes(content)
    with pytest.raises(UnreadableError, match=why):
        open_recording(path).read(frames)
    if frames < 16_000:
        assert len(open_recording(path).read(90)) == 90  # of a model with a declared length


@pytest.mark.parametrize("between", [b"", b"ID3\x04\0\0\0\0\0\x0a0123456789"], ids=["joined", "with-its-tag"])
def test_mp3_files_that_were_joined_are_refused(tmp_path: Path, between: bytes) -> None:
    path = tmp_path / "a.mp3"
    soundfile.write(path, tone(16000, 4), 16000)
    content = path.read_bytes()
    path.write_bytes(between + content + b"TAG" + bytes(125))
    assert len(open_recording(path).read(64_000)) == 64_000
    path.write_bytes(content + between + content)
    with pytest.raises(UnreadableError, match="declares 64,000 samples, and it has more: write it again"):
        open_recording(path).read(64_000)


@pytest.mark.parametrize(
    ("name", "coding", "error"),
    [("a.flac", "PCM_16", 1e-4), ("a.ogg", "VORBIS", 0.1), ("a.mp3", "MPEG_LAYER_III", 0.1)],
)
def test_other_forms_than_wav(tmp_path: Path, name: str, coding: str, error: float) -> None:
    soundfile.write(tmp_path / name, tone(16000, 0.5), 16000, subtype=coding)
    found = open_recording(tmp_path / name)
    assert (found.rate, found.channels, found.frames) == (16000, 1, 8000)
    np.testing.assert_allclose(found.read(8000)[1000:7000, 0], tone(16000, 0.5)[1000:7000], atol=error)
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:-400])
    with pytest.raises(UnreadableError, match=r"truncated|cannot be decoded"):
        open_recording(tmp_path / name).read(8000)


@pytest.mark.parametrize("of_file", [0, 0xFFFFFFFF, None])
@pytest.mark.parametrize("of_samples", [0, 0xFFFFFFFF])
def test_an_unknown_length_is_that_of_the_file(tmp_path: Path, of_file: int | None, of_samples: int) -> None:
    """As programs write that write to a pipe, or that were ended before they could say it."""
    path = write_wave(tmp_path / "a.wav", tone(8000, 0.1), 8000)
    whole = path.read_bytes()
    known = open_recording(path).read(800)
    length = whole[4:8] if of_file is None else struct.pack("<I", of_file)
    path.write_bytes(whole[:4] + length + whole[8:40] + struct.pack("<I", of_samples) + whole[44:])
    found = open_recording(path)
    assert found.frames == 800
    assert np.array_equal(found.read(800), known)


def test_a_recording_without_samples_stays_one(tmp_path: Path) -> None:
    path = write_wave(tmp_path / "a.wav", tone(8000, 0.1), 8000)
    path.write_bytes(path.read_bytes()[:4] + bytes(4) + path.read_bytes()[8:40] + bytes(4))
    assert open_recording(path).frames == 0


def test_the_extensible_form_and_chunks_of_others(tmp_path: Path) -> None:
    plain = write_wave(tmp_path / "a.wav", tone(8000, 0.01), 8000).read_bytes()
    extension = struct.pack("<HHI", 22, 16, 4) + struct.pack("<H", 1) + GUID
    fmt = struct.pack("<HHIIHH", 0xFFFE, 1, 8000, 16000, 2, 16) + extension
    chunks = b"LIST" + struct.pack("<I", 3) + b"abc\0" + b"fmt " + struct.pack("<I", len(fmt)) + fmt + plain[36:]
    (tmp_path / "b.wav").write_bytes(b"RIFF" + struct.pack("<I", len(chunks) + 4) + b"WAVE" + chunks)
    one_file, other = (open_recording(tmp_path / name) for name in ("a.wav", "b.wav"))
    assert np.array_equal(one_file.read(80), other.read(80))


def test_a_recording_goes_in_as_it_is(tmp_path: Path) -> None:
    values = one(tmp_path, tone(16000, 0.1))
    assert values.shape == (1, 1600)
    np.testing.assert_allclose(values[0], tone(16000, 0.1), atol=1e-4)
    assert one(tmp_path / "3", tone(16000, 0.1), shape=["n", 1, "t"]).shape == (1, 1, 1600)


def test_channels_become_one(tmp_path: Path) -> None:
    both = np.stack([tone(16000, 0.1), np.zeros(1600, np.float32)], axis=1)
    np.testing.assert_allclose(one(tmp_path / "mean", both)[0], tone(16000, 0.1) / 2, atol=1e-4)
    np.testing.assert_allclose(one(tmp_path / "first", both, mono="first")[0], tone(16000, 0.1), atol=1e-4)


def test_length_cuts_and_fills(tmp_path: Path) -> None:
    whole = one(tmp_path / "whole", tone(16000, 0.2))
    assert np.array_equal(one(tmp_path / "long", tone(16000, 0.2), length=1000), whole[:, :1000])
    short = one(tmp_path / "short", tone(16000, 0.1), shape=[1, 2000])
    assert short.shape == (1, 2000)
    assert not short[0, 1600:].any()
    assert short[0, :1600].any()


def test_normalising(tmp_path: Path) -> None:
    assert np.abs(one(tmp_path / "peak", tone(16000, 0.1), normalise="peak")).max() == 1
    values = one(tmp_path / "standard", tone(16000, 0.1) + 0.2, normalise="standard", length=2000)[0, :1600]
    assert abs(values.mean()) < 1e-5
    assert abs(values.std() - 1) < 1e-5


@pytest.mark.parametrize(
    ("old", "new"), [(44100, 16000), (8000, 16000), (48000, 16000), (22050, 16000), (16001, 16000)]
)
def test_a_tone_keeps_its_pitch_and_strength(old: int, new: int) -> None:
    made = resample(tone(old, 0.5), old, new, "sinc")
    assert len(made) == -(-len(tone(old, 0.5)) * new // old)
    middle = slice(200, 4000)
    assert np.abs(made - tone(new, 1)[: len(made)])[middle].max() < 2e-3
    assert np.abs(resample(tone(old, 0.5), old, new, "linear") - tone(new, 1)[: len(made)])[middle].max() < 2e-2


def test_what_the_new_rate_cannot_carry_is_gone() -> None:
    assert np.abs(resample(tone(48000, 0.5, 15000), 48000, 16000, "sinc"))[200:-200].max() < 1e-2


@settings(max_examples=40, deadline=None)
@given(old=st.integers(100, 60000), new=st.integers(100, 60000), count=st.integers(1, 500), length=st.integers(1, 300))
def test_only_the_frames_that_count_need_be_read(old: int, new: int, count: int, length: int) -> None:
    values = np.random.default_rng(0).standard_normal(count).astype(np.float32)
    for method in ("sinc", "linear"):
        whole = resample(values, old, new, method)[:length]
        part = resample(values[: needed_frames(length, old, new)], old, new, method)[:length]
        assert np.array_equal(whole[: len(part)], part)
        assert len(part) == len(whole)


def test_a_wrong_rate_is_refused_where_resampling_is_off(tmp_path: Path) -> None:
    write_wave(tmp_path / "data" / "a.wav", tone(8000, 0.1), 8000)
    error = refuse(tmp_path / "out", audio_model(tmp_path), tmp_path / "data", **declared(resample="none"))
    assert error.details == ("a.wav: it has 8000 Hz, and the model requires 16000 Hz (resample is none)",)


def test_every_damaged_recording_is_named(tmp_path: Path) -> None:
    data = tmp_path / "data"
    whole = write_wave(data / "good.wav", tone(16000, 0.1)).read_bytes()
    write_wave(data / "silent.wav", np.zeros((0, 1), np.float32))
    (data / "cut.wav").write_bytes(whole[:-100])
    (data / "empty.wav").write_bytes(b"")
    (data / "flac.wav").write_bytes(b"fLaC" + bytes(40))
    (data / "song.wav").write_bytes(b"FORM" + struct.pack(">I", 4) + b"AIFF")
    error = refuse(tmp_path / "out", audio_model(tmp_path), data, **declared())
    assert [line.partition(":")[0] for line in error.details] == [
        "cut.wav",
        "empty.wav",
        "flac.wav",
        "silent.wav",
        "song.wav",
    ]
    assert error.details[0].startswith("cut.wav: it is truncated")
    assert "ffmpeg" in error.details[2]


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_no_header_makes_the_reader_fail_otherwise(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("wave")
    whole = bytearray(write_wave(folder / "a.wav", tone(8000, 0.01), 8000).read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        whole[data.draw(st.integers(0, 60))] = data.draw(st.integers(0, 255))
    (folder / "a.wav").write_bytes(bytes(whole[: data.draw(st.integers(0, len(whole)))]))
    with contextlib.suppress(UnreadableError):
        found = open_recording(folder / "a.wav")
        assert found.read(found.frames).shape == (found.frames, found.channels)


@pytest.mark.parametrize(
    ("shape", "changes", "words"),
    [
        ([1, 2, "t"], {}, "audio is one row of samples"),
        ([1, 500], {"length": 600}, "length is 600"),
        ([1, "t"], {"input": "y"}, "which does not exist"),
    ],
)
def test_incompatible_declarations_are_reported(tmp_path: Path, shape: list[Any], changes: Any, words: str) -> None:
    write_wave(tmp_path / "data" / "a.wav", tone(16000, 0.1))
    error = refuse(tmp_path / "out", audio_model(tmp_path, shape), tmp_path / "data", **declared(**changes))
    assert words in error.message


def torchaudio_resample(values: np.ndarray, old: int, new: int) -> np.ndarray:
    """`torchaudio.functional.resample` with its defaults, written after its source in NumPy and float64."""
    divisor = math.gcd(old, new)
    old, new, crossings = old // divisor, new // divisor, 6
    base = min(old, new) * 0.99
    width = math.ceil(crossings * old / base)
    times = (np.arange(0, -new, -1)[:, None] / new + np.arange(-width, width + old) / old) * base
    times = times.clip(-crossings, crossings)
    kernels = np.sinc(times) * np.cos(times * math.pi / crossings / 2) ** 2 * base / old
    padded = np.pad(values.astype(np.float64), (width, width + old))
    windows = np.lib.stride_tricks.sliding_window_view(padded, kernels.shape[1])[::old]
    made: np.ndarray = (windows @ kernels.T).reshape(-1)[: -(-new * len(values) // old)]
    return made


@pytest.mark.parametrize(("old", "new"), [(44100, 16000), (8000, 16000), (48000, 16000), (16000, 22050), (11025, 8000)])
def test_resampling_is_that_of_torchaudio(old: int, new: int) -> None:
    values = np.random.default_rng(0).standard_normal(3000).astype(np.float32)
    np.testing.assert_allclose(resample(values, old, new, "sinc"), torchaudio_resample(values, old, new), atol=2e-6)
