from __future__ import annotations

import contextlib
import itertools
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import SandboxLost
from harness.sandbox.capture import Capture
from harness.sandbox.frames import FROM_SUPERVISOR, MAX_PAYLOAD, FrameDecoder, FrameType, frame
from harness.sandbox.messages import (
    read_exit,
    read_hello,
    read_paths,
    read_reply,
    read_stats,
    upload_stream,
)
from harness.values.commands import FileKind, Upload

KINDS = st.sampled_from(sorted(FROM_SUPERVISOR))
FRAMES = st.lists(st.tuples(KINDS, st.integers(0, 2**32 - 1), st.binary(max_size=200)), max_size=8)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    marks = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(marks)]


@given(FRAMES, st.lists(st.integers(0, 10_000), max_size=10))
def test_frames_come_whole_wherever_the_stream_is_cut(
    frames: list[tuple[FrameType, int, bytes]], places: list[int]
) -> None:
    stream = b"".join(frame(*one) for one in frames)
    decoder = FrameDecoder()
    got = [one for piece in cut(stream, places) for one in decoder.feed(piece)]
    assert got == frames


@given(st.binary(max_size=400), st.lists(st.integers(0, 400), max_size=5))
def test_garbage_is_a_lost_box_or_frames_and_nothing_else(data: bytes, places: list[int]) -> None:
    decoder = FrameDecoder()
    try:
        got = [one for piece in cut(data, places) for one in decoder.feed(piece)]
    except SandboxLost:
        return
    used = b"".join(frame(*one) for one in got)
    assert data.startswith(used)


@pytest.mark.parametrize(
    "header",
    [
        struct.pack("<IBI", MAX_PAYLOAD + 1, FrameType.OUT, 1),
        struct.pack("<IBI", 2**32 - 1, FrameType.OUT, 1),
        struct.pack("<IBI", 0, 200, 1),
        struct.pack("<IBI", 0, FrameType.EXEC, 1),
    ],
)
def test_oversized_and_foreign_frames_are_refused_by_their_header(header: bytes) -> None:
    with pytest.raises(SandboxLost, match="supervisor sent"):
        list(FrameDecoder().feed(header))


def test_a_frame_to_send_is_bounded() -> None:
    with pytest.raises(ValueError, match="64 KiB"):
        frame(FrameType.DATA, 1, bytes(MAX_PAYLOAD + 1))


@given(st.binary(max_size=300), st.lists(st.integers(0, 1000), max_size=6))
def test_stale_bytes_before_the_echoed_nonce_are_skipped(stale: bytes, places: list[int]) -> None:
    nonce = b"\x01nonce-of-16-byte"[:16]
    wanted = (FrameType.HELLO, 0, nonce + b"rest")
    decoder = FrameDecoder()
    decoder.expect(nonce)
    stream = stale + frame(*wanted) + frame(FrameType.PONG, 0, b"1")
    got = [one for piece in cut(stream, places) for one in decoder.feed(piece)]
    assert got == [wanted, (FrameType.PONG, 0, b"1")]


def test_waiting_for_a_nonce_holds_almost_nothing() -> None:
    decoder = FrameDecoder()
    decoder.expect(b"n" * 16)
    for _ in range(50):
        assert not list(decoder.feed(bytes(100_000)))
    assert len(decoder._buffer) < 100


@given(st.binary(max_size=300))
def test_malformed_payloads_are_a_lost_box(data: bytes) -> None:
    for read in (
        lambda: read_exit(data),
        lambda: read_reply(data),
        lambda: list(read_stats(data, 10_000)),
        lambda: read_paths(data, 1),
        lambda: read_hello(data, data[:16]),
    ):
        with contextlib.suppress(SandboxLost):
            read()


@given(st.binary(min_size=72, max_size=72))
def test_an_exit_is_never_a_code_and_a_signal(data: bytes) -> None:
    try:
        end = read_exit(data)
    except SandboxLost:
        return
    assert (end.code is None) != (end.signal is None) or end.reason == "keeper_lost"
    assert end.reason != "keeper_lost" or (end.code is None and end.signal is None)


@given(st.lists(st.binary(max_size=40), max_size=30), st.integers(0, 50), st.integers(0, 50))
def test_head_and_tail_are_those_of_the_whole(chunks: list[bytes], head: int, tail: int) -> None:
    capture = Capture(head, tail)
    for chunk in chunks:
        capture.add(chunk)
    whole = b"".join(chunks)
    got = capture.captured()
    assert got.total == len(whole)
    assert got.head == whole[:head]
    rest = whole[head:]
    assert got.tail == (rest[-tail:] if tail else b"")
    assert got.dropped == max(len(whole) - head - tail, 0)


@given(st.lists(st.binary(max_size=90_000), max_size=4))
def test_an_upload_is_cut_into_frames_and_nothing_is_lost(files: list[bytes]) -> None:
    entries = [Upload(b"f%d" % i, FileKind.FILE, 0o644, data) for i, data in enumerate(files)]
    pieces = list(upload_stream(entries))
    assert all(0 < len(piece) <= MAX_PAYLOAD for piece in pieces)
    assert sum(map(len, pieces)) == sum(20 + len(e.path) + len(e.data) for e in entries)
