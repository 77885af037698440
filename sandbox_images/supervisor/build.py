"""Builds the supervisor from its C sources into `harness/sandbox/bin/`.

Uses `$CC`, or `cc`, where that can link statically for the wanted machine; else the compiler in
the `ziglang` package. Does nothing when neither sources nor compiler have changed.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
OUTPUT = HERE.parent.parent / "harness" / "sandbox" / "bin"
TARGETS = ("x86_64", "aarch64")
FLAGS = (
    "-std=c11",
    "-D_GNU_SOURCE",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-O2",
    "-static",
    "-fstack-protector-strong",
    "-ffunction-sections",
    "-Wl,--gc-sections",
    "-Wl,--build-id=none",
    "-s",
)
_NAMES = {"amd64": "x86_64", "arm64": "aarch64"}


class BuildError(Exception):
    """No compiler, or one that failed."""


def this_machine() -> str:
    machine = platform.machine().lower()
    return _NAMES.get(machine, machine)


def sources() -> list[Path]:
    return sorted(HERE.glob("*.c"))


def _compiles(command: list[str]) -> bool:
    """Whether a compiler is there and has a libc to link statically."""
    if shutil.which(command[0]) is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "probe.c"
        program.write_text('#include <stdio.h>\nint main(void) { return puts("") < 0; }\n')
        built = subprocess.run(  # noqa: S603 - the compiler the user has set
            [*command, "-static", "-o", str(Path(folder) / "probe"), str(program)],
            check=False,
            capture_output=True,
        )
    return built.returncode == 0


def system_compiler() -> list[str] | None:
    """`$CC` or `cc` for this machine, when it can link statically on Linux."""
    if sys.platform != "linux":
        return None
    command = shlex.split(os.environ.get("CC", "")) or ["cc"]
    return command if _compiles(command) else None


def compiler(target: str) -> list[str]:
    """The command that compiles for `target`. Raises `BuildError` when there is none."""
    if target == this_machine() and (command := system_compiler()) is not None:
        return command
    if importlib.util.find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc", "-target", f"{target}-linux-musl"]
    raise BuildError(
        f"no C compiler that links statically for {target}: "
        "install gcc and the static C library (Debian: `apt install gcc libc6-dev`), "
        "or `pip install ziglang`"
    )


def _digest(command: list[str]) -> str:
    version = subprocess.run(  # noqa: S603 - the compiler the user has set
        [*command, "--version"], check=False, capture_output=True
    ).stdout
    total = hashlib.sha256(repr((FLAGS, command)).encode() + version)
    for path in (*sources(), *sorted(HERE.glob("*.h"))):
        total.update(path.name.encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


def build(target: str, output: Path = OUTPUT, extra: tuple[str, ...] = ()) -> Path:
    """The binary for `target`, made if it is not there or no longer fits its sources."""
    command = compiler(target)
    output.mkdir(parents=True, exist_ok=True)
    binary = output / f"harness-supervisor-{target}"
    stamp = output / f".{binary.name}.stamp"
    digest = _digest([*command, *extra])
    if binary.exists() and stamp.exists() and stamp.read_text() == digest:
        return binary
    fresh = output / f".{binary.name}.{os.getpid()}"
    names = [path.name for path in sources()]
    result = subprocess.run(  # noqa: S603 - the compiler the user has set
        [*command, *FLAGS, *extra, "-o", str(fresh), *names],
        check=False,
        capture_output=True,
        text=True,
        cwd=HERE,
    )
    if result.returncode != 0:
        fresh.unlink(missing_ok=True)
        raise BuildError(f"compiling the supervisor failed:\n{result.stderr}")
    fresh.chmod(0o755)
    fresh.replace(binary)
    stamp.write_text(digest)
    return binary


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", choices=TARGETS, action="append")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    given = parser.parse_args()
    try:
        for target in given.target or [this_machine()]:
            sys.stdout.write(f"{build(target, given.output)}\n")
    except BuildError as error:
        sys.stderr.write(f"build.py: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
