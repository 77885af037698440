"""Records as lines of JSON, and back.

A line is one object: `{v, seq, ts, session, turn, attempt?, kind, …fields, prev}`, ASCII only,
so no raw line separator and no lone surrogate can stand in it. RFC 8259.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from hashlib import sha256
from typing import cast, get_args

from pydantic import TypeAdapter, ValidationError

from harness.errors import SessionCorrupt
from harness.values.calls import Json
from harness.values.events import SCHEMA, Event, Record, Unknown

KINDS: Mapping[str, type[Event]] = {each.kind: each for each in get_args(Event)}

_ENVELOPE = frozenset({"v", "seq", "ts", "session", "turn", "attempt", "kind", "prev"})


def encode(record: Record) -> bytes:
    """One line with its LF. Lone surrogates become `?`."""
    event = record.event
    head: dict[str, object] = {
        "v": SCHEMA,
        "seq": record.seq,
        "ts": round(record.ts, 6),
        "session": record.session,
        "turn": record.turn,
    }
    if record.attempt is not None:
        head["attempt"] = record.attempt
    if isinstance(event, Unknown):
        head |= {"kind": event.name, **event.fields}
    else:
        head |= {"kind": event.kind, **_fields(event)}
    head["prev"] = record.prev
    return json.dumps(_clean(head), separators=(",", ":"), allow_nan=False).encode() + b"\n"


def decode(line: bytes) -> Record:
    """Raises `SessionCorrupt` for what is no record of schema 1. Unknown kinds are kept."""
    try:
        parsed: object = json.loads(line)
        if not isinstance(parsed, dict):
            raise SessionCorrupt("a record is no object")
        data = cast("dict[str, Json]", parsed)
        if data.get("v") != SCHEMA:
            raise SessionCorrupt("a record is not of schema 1")
        body = {key: value for key, value in data.items() if key not in _ENVELOPE}
        kind = str(data["kind"])
        known = KINDS.get(kind)
        event = (
            Unknown(kind, body)
            if known is None or known is Unknown
            else _adapter(kind).validate_python(body)
        )
        return _record().validate_python(
            {name: data.get(name) for name in ("seq", "ts", "session", "turn", "prev", "attempt")}
            | {"event": event}
        )
    except (ValueError, KeyError, RecursionError, ValidationError) as fault:
        raise SessionCorrupt(f"a record cannot be read: {_first_line(fault)}") from fault


def digest(line: bytes) -> str:
    """What the next record's `prev` must be: SHA-256 of the line without its LF, in hex."""
    return sha256(line.rstrip(b"\n")).hexdigest()


@cache
def _adapter(kind: str) -> TypeAdapter[Event]:
    return TypeAdapter(KINDS[kind])


@cache
def _record() -> TypeAdapter[Record]:
    return TypeAdapter(Record)


def _first_line(fault: Exception) -> str:
    return (str(fault).splitlines() or [type(fault).__name__])[0][:200]


def _fields(value: object) -> dict[str, object]:
    assert is_dataclass(value)
    return {f.name: getattr(value, f.name) for f in fields(value)}


def _clean(value: object) -> object:
    """Down to what JSON has; dataclasses become objects."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        mapping = cast("Mapping[object, object]", value)
        return {_clean(str(key)): _clean(each) for key, each in mapping.items()}
    if isinstance(value, tuple | list | set | frozenset):
        return [_clean(each) for each in cast("list[object]", value)]
    if is_dataclass(value):
        return _clean(_fields(value))
    raise TypeError(f"no JSON for `{type(value).__name__}`")
