"""One simple command with known words, to operations, by its specification."""

from __future__ import annotations

from dataclasses import dataclass, replace

from harness.operations.control import held_control
from harness.operations.hosts import HostFault, parse_host, parse_port, parse_url, split_port
from harness.operations.options import Parsed, UnknownOption, parse
from harness.operations.places import Places
from harness.operations.specifications import Command, Commands, Does
from harness.values.operations import Access, HostUse, Op, Operation, Origin, PathUse

_SYSTEM_FOLDERS = frozenset(
    {"/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin"}
)
_ACCESS = {Does.READS: Access.READ, Does.WRITES: Access.WRITE, Does.DELETES: Access.DELETE}


class NotUnderstood(Exception):
    """The specification does not cover this use; the message says what it lacks."""


@dataclass(slots=True)
class _Effects:
    """What options and operands were found to do, in order, without repeats."""

    places: Places
    ops: dict[Op, str]
    paths: list[PathUse]
    hosts: list[HostUse]

    def take(self, does: Does, text: str, *, tree: bool) -> None:
        if does is Does.CODE or (does is Does.GOAL and any(c in text for c in "=$`")):
            self.ops.setdefault(Op.EXEC_CODE, f"runs `{text[:60]}`")
        elif does is Does.URL or does is Does.HOST:
            self.hosts.append(_host(does, text))
        elif does is Does.REVISION:
            for path in _in_revision(text):
                self._path(Does.READS, path, tree=tree)
        elif does in _ACCESS:
            self._path(does, text, tree=tree)

    def _path(self, does: Does, text: str, *, tree: bool) -> None:
        if text == "-":
            return
        if text.startswith("~"):
            text = f"./{text}"  # the shell has expanded what it expands
        use = self.places.use(text, _ACCESS[does], tree=tree)
        if use is None:
            raise NotUnderstood(f"`{text[:60]}` where a path stands")
        self.paths.append(use)


def _in_revision(text: str) -> tuple[str, ...]:
    """What may be a path in an operand of git: all of it, and what follows a revision and a
    colon or the magic of a pathspec (gitrevisions(7), gitglossary(7)), which begins at the
    top of the repository."""
    found = [text, *(text.split(":", 1)[1:]), *(text.rsplit(":", 1)[1:])]
    if text.startswith(":("):
        found.append(text.partition(")")[2])
    return tuple(
        dict.fromkeys(part if part is text else part.lstrip("/!^") for part in found if part)
    )


def _host(does: Does, text: str) -> HostUse:
    try:
        if does is Does.URL:
            return parse_url(text if "://" in text else f"http://{text}")
        name, port = split_port(text.rpartition("@")[2])
        return HostUse(parse_host(name), int(parse_port(port)) if port else None)
    except HostFault as fault:
        raise NotUnderstood(str(fault)) from None


def base_name(word: str) -> str:
    """The name a program is known by, if it lies where the system keeps programs; else the
    word itself: `./ls` is no `ls`."""
    folder, slash, name = word.rpartition("/")
    return name if slash and folder in _SYSTEM_FOLDERS else word


def classify(argv: tuple[str, ...], commands: Commands, places: Places) -> tuple[Operation, ...]:
    """The operations of one command. Raises `NotUnderstood` for what must be opaque."""
    program = argv[0]
    command = commands.by_name.get(base_name(program))
    if command is None:
        reason = f"no specification of `{program[:60]}` says what it does"
        return (_own(Op.EXEC_CODE, reason, argv, None),)
    if command.unread:
        raise NotUnderstood(f"`{program[:60]}` runs other programs")
    parsed = Parsed()
    try:
        command = _descend(command, argv, parsed)
    except UnknownOption as unknown:
        raise NotUnderstood(f"`{program[:60]}` with the unknown option `{unknown}`") from None
    effects = _Effects(places, {command.op: ""}, [], [])
    _options(parsed, effects)
    _operands(command, parsed, effects)
    return _operations(argv, parsed, effects)


def _descend(command: Command, argv: tuple[str, ...], parsed: Parsed) -> Command:
    at = 1
    while command.subcommands:
        pair = " ".join(argv[at : at + 2])
        if pair in command.subcommands:
            command, at = command.subcommands[pair], at + 2
            if command.unread:
                raise NotUnderstood(f"`{argv[0]} {pair}` runs other programs")
            continue
        if command.stops:
            break
        found = parse(command, argv, at, parsed)
        if found is None:
            if command.lists and not parsed.operands:
                return command
            raise NotUnderstood(f"`{argv[0]}` without a known subcommand")
        sub = command.subcommands.get(argv[found])
        if sub is None:
            raise NotUnderstood(f"`{argv[0]}` with the unknown subcommand `{argv[found][:60]}`")
        command, at = sub, found + 1
        if command.unread:
            raise NotUnderstood(f"`{argv[0]} {argv[found]}` runs other programs")
    parse(command, argv, at, parsed)
    return command


def _options(parsed: Parsed, effects: _Effects) -> None:
    for option, value in parsed.given:
        if option.op is not None:
            effects.ops.setdefault(option.op, f"option `{min(option.spellings, key=len)}`")
        if value is not None:
            effects.take(option.does, value, tree=option.tree)


def _operands(command: Command, parsed: Parsed, effects: _Effects) -> None:
    shape = command.operands
    tree = shape.tree or any(option.tree for option, _ in parsed.given)
    replaced = next((o.replaces for o, _ in parsed.given if o.replaces is not None), None)
    leading = list(shape.first)
    if leading and any(option.fills for option, _ in parsed.given):
        leading.pop(0)
    words = [word for _, word in parsed.operands]
    if words and shape.op is not None:
        effects.ops.setdefault(shape.op, "its operands")
    if len(words) <= len(leading) and shape.default is not None and shape.rest is not None:
        effects.take(shape.rest, shape.default, tree=tree)
    for index, word in enumerate(words):
        if index < len(leading):
            does: Does | None = leading[index]
        elif index == len(words) - 1 and shape.last is not None and len(words) > 1:
            does = shape.last
        else:
            does = shape.rest
        if does is None:
            raise NotUnderstood(f"the operand `{word[:60]}`")
        effects.take(replaced if replaced is not None else does, word, tree=tree)
    if shape.last is Does.WRITES:
        _landings(words, parsed, effects, tree=tree)


def _landings(words: list[str], parsed: Parsed, effects: _Effects, *, tree: bool) -> None:
    """Copying or moving into a folder writes under the name of what is copied.

    Under which names below that is not known. A tree put in place of a folder that holds
    control files may hold them, so it counts as one; a tree elsewhere does not, or no folder
    could be copied at all: the changes are searched for control files again before a person
    takes them.
    """
    into = [v for o, v in parsed.given if v is not None and "--target-directory" in o.spellings]
    targets, sources = (into, words) if into else (words[-1:], words[:-1])
    parents = "--parents" in parsed.flags
    for target in targets:
        places = [target]
        for source in sources:
            name = source.lstrip("/") if parents else source.rstrip("/").rpartition("/")[2]
            if name not in {"", ".", ".."}:
                places.append(f"{target}/{name}")
        for place in places[1:]:
            effects.take(Does.WRITES, place, tree=tree)
        if tree and target.endswith("/"):
            places = places[1:]
        for place in places if tree else ():
            held = held_control(place)
            if held is not None:
                effects.take(Does.WRITES, held, tree=tree)


def _own(op: Op, reason: str, argv: tuple[str, ...], parsed: Parsed | None) -> Operation:
    return Operation(
        op=op,
        reason=reason,
        program=argv[0],
        argv=argv,
        origin=Origin.COMMAND,
        flags=None if parsed is None else frozenset(parsed.flags),
        aside=frozenset() if parsed is None else frozenset(parsed.aside),
    )


def _operations(argv: tuple[str, ...], parsed: Parsed, effects: _Effects) -> tuple[Operation, ...]:
    made: list[Operation] = []
    for op, why in effects.ops.items():
        own = _own(op, why or f"what `{argv[0]}` does", argv, parsed)
        if op in {Op.NET_READ, Op.NET_SEND, Op.VCS_PUBLISH}:
            own = replace(own, hosts=tuple(effects.hosts), reversible=False, scope="public")
        made.append(own)
    made.extend(path_operations(_own(Op.INSPECT, "", argv, parsed), effects.paths, effects.places))
    return tuple(made)


def path_operations(like: Operation, uses: list[PathUse], places: Places) -> list[Operation]:
    """One operation for each class and kind of access among `uses`, otherwise as `like`."""
    groups: dict[tuple[Op, Access], list[PathUse]] = {}
    for use in uses:
        groups.setdefault((places.classify(use.path, use), use.access), []).append(use)
    return [
        replace(
            like,
            op=op,
            paths=tuple(group),
            reason=f"{access.value}s `{group[0].path[:120]}`",
            reversible=access is Access.READ,
            scope="machine" if op in {Op.WRITE_OUTSIDE, Op.DESTROY_DATA} else "workspace",
        )
        for (op, access), group in groups.items()
    ]


def asked_paths(operations: tuple[Operation, ...]) -> tuple[str, ...]:
    """Every path whose links must be known, each once."""
    found: dict[str, None] = {}
    for operation in operations:
        for use in operation.paths:
            found[use.path] = None
            if use.spelled:
                found[use.spelled] = None
    return tuple(found)
