"""Bytes a controller should never send, and a lease that changes hands."""

from __future__ import annotations

import random
import struct
import time

import pytest

from harness.sandbox.frames import CHANNEL_WINDOW, INPUT_WINDOW, TOTAL_WINDOW, FrameType, frame
from harness.sandbox.messages import FileOp, FileRequest, lease
from tests.sandbox.supervising import Raw, alive, exec_payload, raw

pytestmark = pytest.mark.local


def ping(talk: Raw) -> None:
    talk.send(FrameType.PING, 0, b"12345678")
    while talk.until(FrameType.PONG, 0)[-1][2] != b"12345678":
        pass


def test_nothing_is_done_before_a_lease() -> None:
    with raw() as talk:
        talk.send(FrameType.EXEC, 1, exec_payload("true"))
        talk.send(FrameType.PING, 0, b"early")
        talk.lease()
        ping(talk)


def test_another_token_takes_nothing() -> None:
    with raw() as talk:
        talk.lease()
        talk.send(FrameType.EXEC, 1, exec_payload("sleep", "60"))
        assert talk.until(FrameType.STARTED, 1)
        talk.send(FrameType.LEASE, 0, lease(b"x" * 32, b"n" * 16, 15))
        ping(talk)
        talk.send(FrameType.CANCEL, 1, b"\x02")
        assert talk.until(FrameType.EXIT, 1)[-1][2][0] == 2


@pytest.mark.parametrize("left", [b"\x10", frame(FrameType.DATA, 5, bytes(60_000))[:30_000]])
def test_a_new_lease_cuts_through_a_frame_left_half_sent(left: bytes) -> None:
    with raw() as talk:
        talk.lease()
        talk.send(FrameType.EXEC, 1, exec_payload("sleep", "60"))
        keeper = int.from_bytes(talk.until(FrameType.STARTED, 1)[-1][2], "little")
        talk.socket.sendall(left)
        time.sleep(0.05)
        talk.lease()
        ping(talk)
        until = time.monotonic() + 3
        while alive(keeper) and time.monotonic() < until:
            time.sleep(0.01)
        assert not alive(keeper)  # what the old holder ran is gone


def test_what_is_no_frame_is_skipped_until_the_next_lease() -> None:
    with raw() as talk:
        talk.lease()
        talk.socket.sendall(b"\xff" * 300_000)
        talk.send(FrameType.PING, 0, b"lost")
        talk.lease()
        ping(talk)


def test_malformed_requests_are_refused_by_channel() -> None:
    good = exec_payload("true")
    bad = [
        b"",
        good[:10],
        good[:-1],
        good + b"x",
        good[:12] + struct.pack("<H", 9999) + good[14:],
        good[:12] + struct.pack("<H", 0) + good[14:],
        good[:16] + struct.pack("<I", 2**32 - 1) + good[20:],
    ]
    files = [b"", b"\x01" * 20, FileRequest(FileOp.STAT, b"/x").encode()[:-2], b"\xff" * 60]
    with raw() as talk:
        talk.lease()
        for number, payload in enumerate(bad, start=1):
            talk.send(FrameType.EXEC, number, payload)
            assert talk.next()[:2] == (FrameType.REFUSED, number)
        for number, payload in enumerate(files, start=100):
            talk.send(FrameType.FILE, number, payload)
            assert talk.next()[:2] == (FrameType.REFUSED, number)
        ping(talk)


def test_random_frames_never_end_it() -> None:
    chance = random.Random(3)
    kinds = [k for k in range(256) if k not in {FrameType.LEASE, FrameType.SHUTDOWN}]
    with raw() as talk:
        talk.lease()
        for _ in range(2000):
            payload = chance.randbytes(chance.choice((0, 1, 4, 20, 200)))
            talk.socket.sendall(
                struct.pack("<IBI", len(payload), chance.choice(kinds), chance.randrange(4))
                + payload
            )
        ping(talk)


def test_a_request_beyond_its_bound_is_refused_and_forgotten() -> None:
    with raw() as talk:
        talk.lease()
        for _ in range(9):
            talk.send(FrameType.PART, 1, bytes(65_536))
        talk.send(FrameType.EXEC, 1, b"")
        assert talk.until(FrameType.REFUSED, 1)
        talk.send(FrameType.EXEC, 2, exec_payload("true"))
        assert talk.until(FrameType.EXIT, 2)[-1][2][:2] == b"\0\1"


def test_more_input_than_allowed_ends_only_that_command() -> None:
    with raw() as talk:
        talk.lease()
        talk.send(FrameType.EXEC, 1, exec_payload("sleep", "60", flags=1))
        for _ in range(2 * INPUT_WINDOW // 65_536 + 2):
            talk.send(FrameType.DATA, 1, bytes(65_536))
        assert talk.until(FrameType.EXIT, 1)
        ping(talk)


def drain(talk: Raw, seconds: float) -> dict[int, int]:
    """Bytes of output frames by channel until it is quiet."""
    got: dict[int, int] = {}
    talk.socket.settimeout(seconds)
    try:
        while True:
            kind, channel, payload = talk.next()
            if kind in {FrameType.OUT, FrameType.ERR}:
                got[channel] = got.get(channel, 0) + len(payload) + 9
    except TimeoutError:
        return got
    finally:
        talk.socket.settimeout(5)


def test_output_stops_at_its_credit_and_others_go_on() -> None:
    with raw() as talk:
        talk.lease()
        talk.send(FrameType.EXEC, 1, exec_payload("cat", "/dev/zero"))
        held = drain(talk, 0.2)
        assert CHANNEL_WINDOW - 100 <= held[1] <= CHANNEL_WINDOW
        talk.send(FrameType.EXEC, 2, exec_payload("echo", "free"))
        assert (FrameType.OUT, 2, b"free\n") in talk.until(FrameType.EXIT, 2)
        talk.send(FrameType.CREDIT, 1, struct.pack("<I", 1000))
        assert drain(talk, 0.2)[1] <= 1000 + 100
        talk.send(FrameType.CANCEL, 1, b"\x02")
        assert talk.until(FrameType.EXIT, 1)


def test_the_total_bounds_what_all_channels_send() -> None:
    with raw() as talk:
        talk.lease()
        for channel in range(1, 9):
            talk.send(FrameType.EXEC, channel, exec_payload("cat", "/dev/zero"))
        assert sum(drain(talk, 0.25).values()) <= TOTAL_WINDOW
        ping(talk)


def test_small_writes_are_charged_with_their_frames() -> None:
    script = "import os\nwhile 1: os.write(1, b'x')"
    with raw() as talk:
        talk.lease()
        talk.send(FrameType.EXEC, 1, exec_payload("python3", "-c", script))
        assert sum(drain(talk, 0.25).values()) <= CHANNEL_WINDOW


@pytest.mark.slow
def test_unread_output_of_a_finished_command_is_kept_for_its_credit() -> None:
    size = CHANNEL_WINDOW + 40_000
    with raw() as talk:
        talk.lease()
        talk.send(FrameType.EXEC, 1, exec_payload("head", "-c", str(size), "/dev/zero"))
        got = sum(len(f[2]) for f in collect(talk, 2.5))
        talk.send(FrameType.CREDIT, 1, struct.pack("<I", 200_000))
        talk.send(FrameType.CREDIT, 0, struct.pack("<I", 200_000))
        rest = talk.until(FrameType.EXIT, 1)
        got += sum(len(f[2]) for f in rest if f[0] is FrameType.OUT)
        assert got == size


def collect(talk: Raw, seconds: float) -> list[tuple[FrameType, int, bytes]]:
    frames: list[tuple[FrameType, int, bytes]] = []
    talk.socket.settimeout(seconds)
    try:
        while True:
            frames.append(talk.next())
    except TimeoutError:
        return [f for f in frames if f[0] is FrameType.OUT]
    finally:
        talk.socket.settimeout(5)


@pytest.mark.slow
def test_silence_for_the_orphan_time_ends_it_and_its_commands() -> None:
    with raw() as talk:
        talk.lease(orphan=1.0)
        talk.send(FrameType.EXEC, 1, exec_payload("sleep", "60"))
        keeper = int.from_bytes(talk.until(FrameType.STARTED, 1)[-1][2], "little")
        assert alive(keeper)
        began = time.monotonic()
        assert talk.process.wait(5) == 1
        assert 0.8 < time.monotonic() - began < 3
        assert not alive(keeper)


@pytest.mark.slow
def test_pings_keep_it_alive() -> None:
    with raw() as talk:
        talk.lease(orphan=1.0)
        for _ in range(6):
            time.sleep(0.25)
            ping(talk)


def test_a_closed_stream_ends_it_and_its_commands() -> None:
    with raw() as talk:
        talk.lease()
        talk.send(FrameType.EXEC, 1, exec_payload("sleep", "60"))
        keeper = int.from_bytes(talk.until(FrameType.STARTED, 1)[-1][2], "little")
        assert talk.close() == 0
        assert not alive(keeper)


def test_a_killed_supervisor_leaves_no_command() -> None:
    with raw() as talk:
        talk.lease()
        talk.send(FrameType.EXEC, 1, exec_payload("sleep", "60"))
        keeper = int.from_bytes(talk.until(FrameType.STARTED, 1)[-1][2], "little")
        talk.process.kill()
        until = time.monotonic() + 3
        while alive(keeper) and time.monotonic() < until:
            time.sleep(0.01)
        assert not alive(keeper)
