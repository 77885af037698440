"""The main job on real input, watched from outside.

A released package with a documented bug is fetched and made a repository; an agent fixes it in
a box; the result is reviewed and applied. Everything goes through the `harness` command, as a
user would do it, and everything claimed at the end is checked here from what it printed.

The agent replays `agent.yaml`, unless HARNESS_MODEL names a model (`provider/model`).
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
HARNESS = Path(sys.executable).with_name("harness")
TASK = (
    "unparse() lets a key of its input end the tag it should only name (issue 377). "
    "Make tests/test_names.py pass without breaking the package's own tests."
)
FAILING_TEST = ["python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_names.py"]

Record = dict[str, Any]


class Unmet(Exception):
    """Something that was to be observed was not."""


def main() -> int:
    os.environ["PYTHONUNBUFFERED"] = "1"
    with tempfile.TemporaryDirectory(prefix="harness-demo-") as scratch:
        os.environ["HARNESS_STATE"] = f"{scratch}/state"  # sessions of a demo are not kept
        try:
            demonstrate(Path(scratch))
        except Unmet as fault:
            print(f"demo: failed: {fault}")
            return 1
    print("demo: passed")
    return 0


def demonstrate(scratch: Path) -> None:
    repo = make_repository(fetch(), scratch)
    before = digest(repo)
    model = os.environ.get("HARNESS_MODEL") or f"scripted:{HERE / 'agent.yaml'}"
    scripted = model.startswith("scripted:")
    if scripted:
        say("The agent is SCRIPTED: it replays demo/agent.yaml. The loop that runs its calls,")
        say(
            "the policy, the box, the tests and the patch are real. (HARNESS_MODEL=… runs a model.)"
        )
    else:
        say(f"The agent is {model}.")

    records = run_agent(repo, model)
    check_run(records)
    if scripted:
        check_script(records)
    require(digest(repo) == before, "the host's copy changed during the run")
    say("\nThe repository on this machine is byte for byte what it was.")

    review_and_apply(repo, records[0]["session"])
    require(digest(repo) != before, "`harness apply` changed nothing")
    check_fixed(repo)


# ---- the package ----------------------------------------------------------------------------


def fetch() -> Path:
    """The pinned source distribution, from the package index or an earlier download."""
    pin = next(x for x in (HERE / "requirements.txt").read_text().splitlines() if "==" in x)
    release, sha256 = pin.split(" --hash=sha256:")
    name, version = release.split("==")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sandbox-harness"
    archive = cache / "demo" / f"{name}-{version}.tar.gz"
    if not archive.exists() or hashlib.sha256(archive.read_bytes()).hexdigest() != sha256:
        archive.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary"]
        command += [name, "--require-hashes", "--requirement", str(HERE / "requirements.txt")]
        done = subprocess.run([*command, "--dest", str(archive.parent)], check=False)
        require(done.returncode == 0, f"{release} could not be fetched from the package index")
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    require(found == sha256, f"{archive} is not the pinned release")
    say(f"{release}: the released source distribution, sha256 {sha256[:12]}…")
    return archive


def make_repository(archive: Path, scratch: Path) -> Path:
    """Unpack the release, add the test that shows the bug, and commit."""
    repo = scratch / archive.name.removesuffix(".tar.gz")
    with tarfile.open(archive) as tar:
        for member in tar:
            target = (scratch / member.name).resolve()
            require(target.is_relative_to(repo), f"the archive holds `{member.name}`")
            if member.isfile() and (content := tar.extractfile(member)) is not None:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content.read())
    (repo / "tests" / "test_names.py").write_bytes((HERE / "test_names.py").read_bytes())
    # the release ships a compiled file, which each test run writes anew
    (repo / ".gitignore").write_text("__pycache__/\n")
    git = ["git", "-C", str(repo), "-c", "user.name=demo", "-c", "user.email=demo@demo.example"]
    git += ["-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "As released"]):
        subprocess.run([*git, *words], check=True)
    return repo


def digest(folder: Path) -> str:
    """Every name, mode and byte below a folder, `.git` included."""
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        total.update(f"{path.relative_to(folder)}\0{mode:o}\0".encode())
        if path.is_symlink():
            total.update(str(path.readlink()).encode())
        elif path.is_file():
            total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


# ---- the run --------------------------------------------------------------------------------


def run_agent(repo: Path, model: str) -> list[Record]:
    """`harness run --json`: every record, told as it comes."""
    command = ["run", TASK, "--repo", str(repo), "--model", model, "--policy", "full-auto"]
    say(f'\n$ harness run "…" --repo {repo.name} --model {model.split("/")[-1]} --policy full-auto')
    process = subprocess.Popen(
        [str(HARNESS), *command, "--json"], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    assert process.stdout is not None
    records: list[Record] = []
    for line in process.stdout:
        records.append(json.loads(line))
        tell(records[-1])
    code = process.wait()
    require(code == 0, f"`harness run` ended with exit code {code}")
    require(bool(records), "`harness run --json` printed no record")
    return records


def tell(record: Record) -> None:
    """One record as a line or two of the story."""
    match record["kind"]:
        case "message":
            if record["text"]:
                say("\nagent: " + record["text"].strip())
            for call in record["calls"]:
                say(f"  calls {call['tool']} {shown(call)}")
        case "tool.resolved" if record["effect"] == "deny":
            say("  REFUSED " + "; ".join(r["source"] for r in record["reasons"]))
        case "tool.completed":
            lines = record["text"].strip().splitlines() or ["(nothing)"]
            told = lines if record["status"] == "denied" else lines[-3:]
            for line in told:
                say(textwrap.indent(textwrap.fill(line, 96), "    | "))
        case _:
            pass


def shown(call: Record) -> str:
    args: Record = call["args"] or {}
    return str(args.get("command") or args.get("pattern") or args.get("path") or "")


def of_kind(records: list[Record], kind: str) -> Iterator[Record]:
    return (r for r in records if r["kind"] == kind)


# ---- what must have been seen -----------------------------------------------------------------


def check_run(records: list[Record]) -> None:
    """What holds for any agent: a completed run, and one result for each call."""
    stops = [r["stop"] for r in of_kind(records, "finished")]
    require(stops == ["completed"], f"the run stopped with {stops}, not `completed`")
    require(records[-1]["kind"] == "finished", "`finished` is not the last record")
    asked = [c["id"] for r in of_kind(records, "message") for c in r["calls"]]
    answered = [r["call_id"] for r in of_kind(records, "tool.completed")]
    require(sorted(asked) == sorted(answered), "calls and results do not match one to one")
    for record in of_kind(records, "tool.started"):
        judged = [r for r in of_kind(records, "tool.resolved") if r["call_id"] == record["call_id"]]
        require(bool(judged), f"call {record['call_id']} ran without a decision in the log")


def check_script(records: list[Record]) -> None:
    """What this script must have met: three refusals with reasons, and its tests' exit codes."""
    calls = {c["id"]: c for r in of_kind(records, "message") for c in r["calls"]}
    results = {r["call_id"]: r for r in of_kind(records, "tool.completed")}
    started = {r["call_id"] for r in of_kind(records, "tool.started")}
    attempts = {
        "read the SSH key": (".ssh/id_ed25519", "read.secret"),
        "reach a web host": ("curl", "net.send"),
        "write a git hook": (".git/hooks/pre-commit", "write.control"),
    }
    for what, (mark, op) in attempts.items():
        call_id = next(i for i, c in calls.items() if mark in shown(c))
        text = results[call_id]["text"]
        require(results[call_id]["status"] == "denied", f"the attempt to {what} was not refused")
        require(call_id not in started, f"the attempt to {what} was started")
        require(op in text, f"the refusal to {what} does not name `{op}`: {text}")
        reasons = next(
            r["reasons"] for r in of_kind(records, "tool.resolved") if r["call_id"] == call_id
        )
        require(any(r["effect"] == "deny" for r in reasons), f"no reason on record to {what}")
    tests = [results[i]["facts"].get("code") for i, c in calls.items() if "pytest" in shown(c)]
    require(tests == [1, 0, 0], f"the test commands ended with {tests}, not [1, 0, 0]")
    say("\nRefused, each with its reason and another way: to " + ", to ".join(attempts) + ".")
    say("Test commands in the box: exit code 1 before the edit, 0 and 0 after it.")


def review_and_apply(repo: Path, session: str) -> None:
    say(f"\n$ harness diff {session}")
    patch = harness("diff", session)
    say(patch.rstrip())
    require("xmltodict.py" in patch, "the diff does not show `xmltodict.py`")
    say(f"\n$ harness apply {session}")
    say(harness("apply", session).rstrip())
    require(not (repo / ".git/hooks/pre-commit").exists(), "a git hook reached the host")


def check_fixed(repo: Path) -> None:
    """The test, in a fresh box on the applied repository: still nothing of it runs here."""
    say("\n$ harness exec --repo … -- " + " ".join(FAILING_TEST))
    command = [str(HARNESS), "exec", "--repo", str(repo), "--", *FAILING_TEST]
    done = called(command)
    say(done.stdout.rstrip())
    require(done.returncode == 0, f"the test fails after `harness apply`: {done.stderr[-500:]}")


def called(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


def harness(*words: str) -> str:
    done = called([str(HARNESS), *words])
    if done.returncode != 0:
        raise Unmet(f"`harness {words[0]}` ended with {done.returncode}: {done.stderr[-1000:]}")
    return done.stdout


def require(seen: bool, otherwise: str) -> None:
    if not seen:
        raise Unmet(otherwise)


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
