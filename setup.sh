#!/usr/bin/env bash
# Makes this checkout ready to use: a virtual environment, a container engine, the box's image.
# Run it as often as you like; it does only what is missing, and says what that is.
#
#   PYTHON=python3.12           the interpreter for .venv (3.11 or newer)
#   HARNESS_INSTALL_ENGINE=0    never install or start a container engine
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

readonly VENV=.venv
readonly PY=$VENV/bin/python
readonly ENGINE_LOG=/var/log/harness-dockerd.log

say()  { printf 'setup: %s\n' "$*"; }
stop() { printf 'setup: %s\n' "$@" >&2; exit 1; }

# step WHAT COMMAND…: runs it, says how long it took, shows its output only when it fails
step() {
  local what=$1 log started=$SECONDS
  shift
  log=$(mktemp)
  printf 'setup: %s … ' "$what"
  if "$@" >"$log" 2>&1; then
    printf 'done (%d s)\n' $((SECONDS - started))
    rm -f "$log"
  else
    printf 'failed\n'
    tail -n 40 "$log" >&2
    rm -f "$log"
    exit 1
  fi
}

is_root_on_debian() {
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && grep -qiE '^(ID|ID_LIKE)=.*(debian|ubuntu)' /etc/os-release
}

apt_install() {
  apt-get -q update || return
  DEBIAN_FRONTEND=noninteractive apt-get -qy install --no-install-recommends "$@"
}

# ---- Python -------------------------------------------------------------------------------

find_python() {
  local candidate
  for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
    if command -v "$candidate" >/dev/null &&
       "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
      printf '%s' "$candidate"
      return
    fi
  done
  stop "no Python 3.11 or newer found; name one with PYTHON=…"
}

make_venv() {
  local python
  python=$(find_python)
  if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    # Debian splits venv from Python; the package is named for the minor version
    local package
    package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    is_root_on_debian || stop "\`$python\` cannot make virtual environments; run: sudo apt-get install $package"
    step "installing $package" apt_install "$package"
  fi
  step "virtual environment in $VENV ($("$python" -V))" "$python" -m venv --clear "$VENV"
}

# PID 1 of every box is compiled here. Without a compiler of the system's, the build takes one
# from the package index, which works as well and is slower.
ready_compiler() {
  command -v "${CC:-cc}" >/dev/null && return
  if is_root_on_debian; then
    step "C compiler for the supervisor" apt_install gcc libc6-dev
  else
    say "no C compiler; the supervisor's build takes one from the package index"
  fi
}

install_harness() {
  "$PY" -m pip install -q --disable-pip-version-check --upgrade 'pip>=25.1'   # the first with --group
  "$PY" -m pip install -q --disable-pip-version-check --editable . --group dev
}

# what an installation depends on; its digest stands in a stamp file beside it
fingerprint() {
  {
    "$PY" -V
    find . -maxdepth 3 \( -path ./pyproject.toml -o -path './hatch_build.py' -o -path './sandbox_images/supervisor/*.[chp]*' \) \
      -print0 | sort -z | xargs -0 cat
  } | sha256sum | cut -d' ' -f1
}

ready_python() {
  [ -x "$PY" ] && "$PY" -c 'import pip' 2>/dev/null || make_venv
  local stamp=$VENV/.setup-stamp
  if [ ! -x "$VENV/bin/harness" ] || [ "$(cat "$stamp" 2>/dev/null)" != "$(fingerprint)" ]; then
    ready_compiler
    step "harness and its development tools into $VENV" install_harness
    fingerprint >"$stamp"
  fi
}

# ---- container engine -----------------------------------------------------------------------

# 0 when an engine answers where the harness looks for one; else 3, having printed why not
ask_engine() {
  "$PY" - <<'PYTHON'
import asyncio, os, pathlib, sys
from harness.errors import SandboxError
from harness.sandbox.endpoint import discover
from harness.sandbox.engine import Engine

async def ask() -> None:
    engine = Engine(discover(os.environ, pathlib.Path.home()))
    try:
        await engine.version()
    finally:
        await engine.close()

try:
    asyncio.run(ask())
except SandboxError as fault:
    print(fault)
    sys.exit(3)
PYTHON
}

engine_answers() { ask_engine >/dev/null 2>&1; }

wait_for_engine() {
  local tries
  for tries in $(seq 60); do
    engine_answers && return
    sleep 0.5
  done
  echo "no answer after 30 s; the end of $ENGINE_LOG:"
  tail -n 20 "$ENGINE_LOG"
  return 1
}

start_engine() {
  if [ -d /run/systemd/system ]; then
    systemctl start docker
  else
    setsid --fork dockerd >>"$ENGINE_LOG" 2>&1 </dev/null
  fi
  wait_for_engine
}

ready_engine() {
  local reason status=0
  reason=$(ask_engine 2>&1) || status=$?
  [ "$status" != 0 ] || return 0
  [ "$status" = 3 ] || stop "$reason"
  [ -z "${DOCKER_HOST:-}" ] || stop "$reason" "DOCKER_HOST is set to \`$DOCKER_HOST\`; start that engine, or unset it"
  if [ "${HARNESS_INSTALL_ENGINE:-1}" = 0 ]; then
    stop "$reason" "HARNESS_INSTALL_ENGINE=0 forbids installing one; run: sudo apt-get install docker.io && sudo systemctl start docker"
  fi
  if command -v dockerd >/dev/null; then
    [ "$(id -u)" = 0 ] || stop "$reason" "to start it, run: sudo systemctl start docker" "to use it as this user, run: sudo usermod -aG docker $(id -un), then log in again"
  else
    is_root_on_debian || stop "$reason" "to install one, run: sudo apt-get install docker.io    (elsewhere: your system's Docker packages)"
    step "Docker Engine from docker.io" apt_install docker.io iptables
  fi
  step "starting the engine (log: $ENGINE_LOG)" start_engine
}

# ---- the box's image -------------------------------------------------------------------------

images() { "$PY" -m harness.sandbox.images "$@"; }

import_debian() {
  command -v mmdebstrap >/dev/null || apt_install mmdebstrap || return
  local archive status=0
  archive=$(mktemp)   # a whole one or none: half a tar would import too
  sandbox_images/debian-rootfs.sh >"$archive" && images import <"$archive" || status=1
  rm -f "$archive"
  return "$status"
}

ready_image() {
  images check >/dev/null 2>&1 && return
  local started=$SECONDS
  printf 'setup: base image on the public Debian image … '
  if images >/dev/null 2>&1; then
    printf 'done (%d s)\n' $((SECONDS - started))
    return
  fi
  printf 'not to be had here (%d s)\n' $((SECONDS - started))
  is_root_on_debian || { images || stop "see sandbox_images/README.md for machines without a registry"; }
  step "a minimal Debian from packages instead" import_debian
  step "base image on it" images
}

main() {
  local started=$SECONDS
  ready_python
  ready_engine
  ready_image
  say "ready: $VENV/bin/harness ($((SECONDS - started)) s)"
}

main
