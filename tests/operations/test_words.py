from __future__ import annotations

import shutil
import subprocess

import pytest

from harness.operations.guards import MAX_TEXT, fault_in
from harness.operations.words import NotPlain, plain_words

HOME = "/home/agent"
PLAIN = [
    "ls -la src",
    "  ls\t-a  ",
    "\nls\n",
    "'a b' \"c d\" e\\ f",
    "r''m -rf x",
    "$'\\x72\\x6d' -rf /",
    "$'a\\tb\\n' $'\\'q\\'' $'\\101'",
    'echo "a\\$b\\`c\\"d\\\\e\\f"',
    "git commit -m 'fix: a (b) | c > d'",
    'echo "!important" a=b',
    "echo ''",
    "grep -n 'x$' \\$HOME",
    "echo ~ ~/x a~b \\~ '~'",
]


@pytest.mark.parametrize("text", PLAIN)
def test_words_are_those_of_bash(text: str) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash here")
    script = "set -f; f() { for w; do printf '%s\\0' \"$w\"; done; }; f " + text.strip()
    ran = subprocess.run([bash, "-c", script], capture_output=True, env={"HOME": HOME}, check=True)
    assert plain_words(text, HOME) == tuple(ran.stdout.decode().split("\0")[:-1])


@pytest.mark.parametrize(
    "text",
    ["a; b", "a && b", "a | b", "a & b", "a > b", "a < b", "a $X", "a ${X}", "a $(b)", "a `b`",
     'a "$X"', 'a "`b`"', "a *.py", "a [x]", "a ?", "a {b,c}", "X=1 a", "if a", "! a", "[[ a ]]",
     "a # b", "a\nb", "a 'b", 'a "b', "a\\\nb", 'a "b\\\nc"', "a \\", "a ~root/x", "a --x=~/y",
     "", "  ", "''", "(a)", "a=(b)", "f() { a; }", "a <<E\nE", "$'\\u00e9'", "$'\\cx' a", "time a",
     "a\rb", '"" x'],
)  # fmt: skip
def test_what_is_more_than_one_plain_command_is_not_read(text: str) -> None:
    with pytest.raises(NotPlain):
        plain_words(text, HOME)


@pytest.mark.parametrize(
    "text",
    ["a\0b", "a\rb", "a\x1b[1m", "a\x7f", "a\x85b", "a\ud800", "a\u202eb", "'a\u202eb'",
     "a\u200bb", "a\u00a0b", "a\u3000b", "a \ufeff", "\u2066x"],
)  # fmt: skip
def test_characters_that_hide_what_runs_are_refused(text: str) -> None:
    assert fault_in(text)


@pytest.mark.parametrize("text", ["ls\t-a\nb", "echo 'a\u00a0b'", "echo é 日本", 'echo "\u200d"'])
def test_text_that_shows_what_runs_is_not_refused(text: str) -> None:
    assert fault_in(text) is None


def test_text_without_end_is_refused() -> None:
    assert fault_in("a" * (MAX_TEXT + 1))
