"""Split an argv into options and operands by a specification: long, short, clustered,
abbreviated and `=` forms; nothing after `--` is an option."""

from __future__ import annotations

from bisect import bisect_left

from harness.operations.specifications import Command, Option, Takes


class UnknownOption(Exception):
    """An option the specification does not have; the message is its spelling."""


class Parsed:
    """What an argv holds. `aside` are the indexes of options and their values, `flags` all
    spellings of every option given."""

    __slots__ = ("aside", "flags", "given", "operands")

    def __init__(self) -> None:
        self.given: list[tuple[Option, str | None]] = []
        self.operands: list[tuple[int, str]] = []
        self.flags: set[str] = set()
        self.aside: set[int] = set()

    def add(self, option: Option, value: str | None) -> None:
        self.given.append((option, value))
        self.flags |= option.spellings


def parse(command: Command, argv: tuple[str, ...], start: int, parsed: Parsed) -> int | None:
    """Read `argv` from `start` into `parsed`. Raises `UnknownOption`.

    For a command with subcommands, stops at the first operand and returns its index.
    """
    at = start
    while at < len(argv):
        word = argv[at]
        if command.stops and parsed.operands:
            parsed.operands.extend((i, argv[i]) for i in range(at, len(argv)))
            return None
        if word == "--" and not command.words:
            parsed.aside.add(at)
            parsed.operands.extend((i, argv[i]) for i in range(at + 1, len(argv)))
            return None
        if word in command.options or (len(word) > 1 and word.startswith("-")):
            at = _option(command, argv, at, parsed)
            continue
        if command.subcommands and not command.stops:
            return at
        parsed.operands.append((at, word))
        at += 1
    return None


def _option(command: Command, argv: tuple[str, ...], at: int, parsed: Parsed) -> int:
    word = argv[at]
    parsed.aside.add(at)
    exact = command.options.get(word)
    if exact is not None:
        return _value(exact, argv, at, parsed)
    if word.startswith("--") or command.words:
        name, equals, value = word.partition("=")
        option = command.options.get(name) or _abbreviated(command, name)
        if option is None:
            raise UnknownOption(name)
        if not equals:
            return _value(option, argv, at, parsed)
        if option.takes is Takes.NOTHING:
            raise UnknownOption(word)
        parsed.add(option, value)
        return at + 1
    return _cluster(command, argv, at, parsed)


def _abbreviated(command: Command, name: str) -> Option | None:
    if command.words or len(name) < 3:
        return None
    begin = bisect_left(command.long, name)
    found: set[Option] = set()
    for long in command.long[begin:]:
        if not long.startswith(name):
            break
        found.add(command.options[long])
    return found.pop() if len(found) == 1 else None


def _value(option: Option, argv: tuple[str, ...], at: int, parsed: Parsed) -> int:
    if option.takes is not Takes.VALUE:
        parsed.add(option, None)
        return at + 1
    if at + 1 >= len(argv):
        raise UnknownOption(argv[at])
    parsed.aside.add(at + 1)
    parsed.add(option, argv[at + 1])
    return at + 2


def _cluster(command: Command, argv: tuple[str, ...], at: int, parsed: Parsed) -> int:
    letters = argv[at][1:]
    if letters.isdigit() and "-0" in command.options:
        parsed.add(command.options["-0"], None)
        return at + 1
    for index, letter in enumerate(letters):
        option = command.options.get("-" + letter)
        if option is None:
            raise UnknownOption("-" + letter)
        rest = letters[index + 1 :]
        if option.takes is Takes.NOTHING:
            parsed.add(option, None)
        elif rest:
            parsed.add(option, rest)
            return at + 1
        else:
            return _value(option, argv, at, parsed)
    return at + 1
