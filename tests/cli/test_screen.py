"""What a person reads of a run: complete, bounded, honest about what is not known, escaped."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.cli.screen import Screen
from harness.cli.words import duration, many, moment, size
from harness.values.calls import Call
from harness.values.events import (
    ApprovalResolved,
    BoxStarted,
    BudgetNotice,
    ChangedFile,
    Failed,
    Finished,
    Message,
    OperationSeen,
    Reason,
    Record,
    RunStarted,
    ToolCompleted,
    ToolResolved,
    TurnRetried,
    Warned,
    WorkspaceChanged,
    WorkspaceLoaded,
)
from harness.values.usage import TokenUsage


def show(*events, width=80, colour=False, turn=1) -> str:
    written: list[str] = []
    screen = Screen(written.append, width=width, colour=colour)
    for i, event in enumerate(events):
        screen.observe(Record(i, 0.0, "s-1", turn, event, ""))
    screen.end()
    return "".join(written)


def finished(**given):
    values = {
        "stop": "completed", "text": "", "turns": 3, "requests": 3, "unknown_requests": 0,
        "input_tokens": 1200, "output_tokens": 34, "tool_calls": 5, "denied": 1, "seconds": 12.34,
    } | given  # fmt: skip
    return Finished(**values)


def started(text="x", policy="full-auto"):
    limits = {"cpus": 2.0, "memory": 2 << 30, "pids": 512, "wall": 3600.0}
    return RunStarted(
        "0.1", text, text, text, policy, policy, False, "docker", "", (), limits, {}
    )  # fmt: skip


def message(*calls, text=""):
    return Message("tool_calls", text, calls, "", TokenUsage())


DENIED = (
    message(Call("c", "read_file", {"path": "~/.ssh/id_rsa"})),
    ToolResolved(
        "c",
        "read_file",
        "deny",
        (OperationSeen("read.secret", "high"),),
        (
            Reason("deny", "table:full-auto/read.secret", "secrets stay", "p.yaml", 7),
            Reason("allow", "rule:user/reads"),
        ),
        "work without it",
    ),
    ToolCompleted("c", "read_file", "denied", "denied by policy. a long text for the model"),
)


def test_a_refusal_shows_the_operation_the_row_and_what_to_do_instead():
    lines = show(*DENIED).split("\n")
    assert "  → read_file  ~/.ssh/id_rsa" in lines
    assert "    ✗ refused: read.secret [high]" in lines
    assert "      table:full-auto/read.secret (p.yaml:7): secrets stay" in lines
    assert "      work without it" in lines
    assert not [line for line in lines if "for the model" in line or "rule:user" in line]


def test_the_tail_of_output_is_shown_and_the_rest_counted():
    text = "\n".join(f"line {i}" for i in range(20)) + "\nexit code 0"
    shown = show(
        message(Call("c", "shell", {"command": "make\nmake test"})),
        ToolResolved("c", "shell", "allow"),
        ToolCompleted("c", "shell", "ok", text),
    )
    assert "  → shell  make\n      make test\n    │ … 15 lines above\n    │ line 15\n" in shown
    assert "    │ exit code 0\n" in shown


def test_results_of_calls_made_together_are_told_apart():
    shown = show(
        message(
            Call("a", "shell", {"command": "make\nmake test"}),
            Call("b", "read_file", {"path": "x\x1b.py"}),
            Call("c", "search", {"pattern": "y"}),
        ),
        ToolResolved("a", "shell", "allow"),
        ToolResolved("b", "read_file", "allow"),
        ToolResolved("c", "search", "allow"),
        ToolCompleted("c", "search", "ok", "none"),
        ToolCompleted("a", "shell", "ok", "made"),
        ToolCompleted("b", "read_file", "ok", "text"),
    )
    assert "  → search  y\n    │ none\n  ← shell  make\n    │ made\n  ← read_file  x" in shown
    assert shown.count("←") == 2
    assert "\x1b" not in shown


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (finished(), ["completed  after 3 turns in 12 s", "calls    5, 1 refused", "1,200 in, 34"]),
        (finished(unknown_requests=3), ["unknown (3 requests reported none)"]),
        (finished(unknown_requests=1), ["at least 1,200 in, 34 out (1 request reported none)"]),
        (finished(stop="max_turns", denied=0), ["max_turns", "calls    5\n"]),
        (Failed("sandbox_unavailable", "the box is gone", ("exited 137",)),
         ["failed  sandbox_unavailable", "the box is gone", "exited 137"]),
    ],
)  # fmt: skip
def test_the_card_tells_the_end(end, words):
    shown = show(started(), end)
    for word in words:
        assert word in shown, word


def test_the_card_lists_changes_with_their_flags_and_the_next_commands():
    files = (
        ChangedFile("a.py", "modified", 2, 1),
        ChangedFile(".git/hooks/x", "added", 3, 0, ("control",)),
        ChangedFile("logo.png", "deleted"),
    )
    shown = show(WorkspaceChanged("d", files), finished())
    assert "3 files, +5 -1 lines" in shown
    assert "    M a.py          +2 -1\n" in shown
    assert "    A .git/hooks/x  +3 -0\n      ! held back" in shown
    assert "    D logo.png      binary\n" in shown
    assert "  next     harness diff s-1\n           harness apply s-1\n" in shown


def test_what_the_patch_does_not_hold_is_said():
    shown = show(WorkspaceChanged("d", (), 2, ("`x` is too large",)), finished())
    assert "    2 new files left out, by the repository's .gitignore, or as what builds" in shown
    assert "    ! `x` is too large\n" in shown


def test_a_run_that_changed_nothing_points_to_its_record():
    shown = show(finished())
    assert "changes  none" in shown
    assert "harness sessions show s-1" in shown


def test_what_weakens_a_box_is_said():
    shown = show(
        started(), BoxStarted("local", "local", False, {"cpus": "none", "memory": "hard"}, {})
    )
    assert "nothing keeps this box from the host" in shown
    assert "does not enforce: cpus" in shown


WORDS = st.text(
    st.characters() | st.sampled_from("\x1b\r\n\x9b\u202e\u200b\ufeff\u2028"), max_size=60
)


@settings(max_examples=30)
@given(WORDS, WORDS, st.integers(40, 120))
def test_nothing_from_elsewhere_reaches_the_terminal_unescaped(a, b, width):
    shown = show(
        started(a, b),
        BoxStarted(a, b, False, {a: "none"}, {}),
        WorkspaceLoaded(a, (a, b)),
        message(Call("c", a, {"command": b}), Call("d", b, None, raw=a), text=a),
        ToolResolved("c", a, "deny", (OperationSeen(a, b),), (Reason("deny", a, b, a, 1),), b),
        ApprovalResolved("c", False, a),
        ToolResolved("d", b, "allow"),
        ToolCompleted("d", b, "ok", a + b),
        TurnRetried(a, 1.0),
        BudgetNotice(a, 50),
        Warned(a, b),
        WorkspaceChanged("x", (ChangedFile(a, b, 1, 1, (a,)),), 1, (a, b)),
        Failed(a, b, (a,)),
        width=width,
    )
    for char in shown:
        assert char == "\n" or unicodedata.category(char)[0] != "C"
        assert unicodedata.category(char) not in ("Zl", "Zp")


def test_long_text_and_many_files_are_bounded():
    files = tuple(ChangedFile(f"f{i}", "added", 1, 0) for i in range(100))
    shown = show(message(text="word " * 100_000), WorkspaceChanged("d", files), finished())
    assert len(shown) < 10_000
    assert "… and 70 more" in shown


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (size(512), "512 B"), (size(2 << 30), "2 GiB"), (size(1536 << 10), "1.5 MiB"),
        (duration(0.04), "0 s"), (duration(9.96), "10 s"), (duration(3600), "1 h"),
        (duration(200), "3 m 20 s"), (many(1, "file"), "1 file"),
        (many(0, "process", "processes"), "0 processes"), (moment(1e300), "?"),
    ],
)  # fmt: skip
def test_words(said, words):
    assert said == words
