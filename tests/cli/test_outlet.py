"""A slow or vanished reader never makes the event loop wait, and loses nothing it could read."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import threading
import time

from harness.cli.outlet import Outlet


def stream(fd: int, encoding: str = "utf-8") -> io.TextIOWrapper:
    return io.TextIOWrapper(os.fdopen(fd, "wb", buffering=0), encoding=encoding)


def test_bytes_to_a_pipe_are_not_touched():
    read, write = os.pipe()
    data = bytes(range(256)) + b"\x1b]0;t\x07"
    with stream(write) as out, stream(os.open(os.devnull, os.O_WRONLY)) as err:
        made = Outlet(out, err)
        made.sink("stdout", data)
        made.close()
    assert os.read(read, 1000) == data
    os.close(read)


def test_bytes_to_a_terminal_are_filtered_unless_raw():
    for raw, shown in ((False, b"ab"), (True, b"a\x1b]0;t\x07b")):
        master, slave = pty.openpty()
        with stream(slave) as out, stream(os.open(os.devnull, os.O_WRONLY)) as err:
            made = Outlet(out, err, raw=raw)
            made.sink("stdout", b"a\x1b]0;")
            made.sink("stdout", b"t\x07b")
            made.close()
            assert os.read(master, 100) == shown
        os.close(master)


def test_a_reader_that_does_not_read_keeps_nobody_waiting():
    read, write = os.pipe()
    got = bytearray()
    with stream(write) as out, stream(os.open(os.devnull, os.O_WRONLY)) as err:
        made = Outlet(out, err)
        begun = time.monotonic()
        for _ in range(64):
            made.sink("stdout", b"x" * 65_536)
        assert time.monotonic() - begun < 1.0

        def read_all():
            while piece := os.read(read, 1 << 20):
                got.extend(piece)

        reader = threading.Thread(target=read_all)
        reader.start()
        made.close()
    reader.join()
    os.close(read)
    assert len(got) == 64 * 65_536


def test_a_reader_that_went_away_is_no_fault():
    read, write = os.pipe()
    os.close(read)
    out = stream(write)
    with stream(os.open(os.devnull, os.O_WRONLY)) as err:
        made = Outlet(out, err)
        made.sink("stdout", b"x")
        made.sink("stdout", b"y")
        made.close()
    assert made.fault == ""
    with contextlib.suppress(BrokenPipeError):
        out.close()


def test_a_full_disk_is_a_fault_and_not_silence():
    out = stream(os.open("/dev/full", os.O_WRONLY))
    with stream(os.open(os.devnull, os.O_WRONLY)) as err:
        made = Outlet(out, err)
        made.sink("stdout", b"x")
        made.close()
    assert "No space left" in made.fault
    with contextlib.suppress(OSError):
        out.close()
