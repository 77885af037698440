"""The scripted wire: what a file says, faults with file and line."""

from __future__ import annotations

import asyncio

import pytest

from harness.errors import ConfigError, WireProtocol
from harness.values.calls import Call, Result, Status
from harness.values.items import AssistantTurn, Item, UserText
from harness.values.usage import TokenUsage
from harness.values.wire import Branch, Delta, Prompt, Reply, WireEvent
from harness.wires.scripted import ScriptedWire, load_script

GOOD = """\
replies:
- text: let me look
  calls:
  - tool: shell
    args: {command: ls}
  usage: {input: 3, output: 5}
- calls:
  - {tool: shell, args: '{"command": '}
- text: done
  stop: end
"""


def said(text: str, *items: Item) -> list[WireEvent]:
    wire = ScriptedWire(load_script(text, "s.yaml", ["shell"]), "s")
    request = wire.encode(Prompt("system", (), items))

    async def read() -> list[WireEvent]:
        return [event async for event in wire.stream(request)]

    return asyncio.run(read())


def test_replies_come_in_order_by_what_the_prompt_holds() -> None:
    assert said(GOOD, UserText("hi")) == [
        Delta("let me look"),
        Reply(
            Branch.TOOL_CALLS,
            "let me look",
            (Call("", "shell", {"command": "ls"}, '{"command": "ls"}'),),
            "tool_calls",
            TokenUsage(input=3, output=5),
        ),
    ]
    two = (AssistantTurn("a"), Result("c", "shell", Status.OK, "x"), AssistantTurn("b"))
    assert said(GOOD, *two) == [Delta("done"), Reply(Branch.FINAL, "done", stop="end")]


def test_arguments_that_are_no_object_stay_unparsed() -> None:
    (reply,) = said(GOOD, AssistantTurn("a"))
    assert isinstance(reply, Reply)
    assert reply.calls == (Call("", "shell", None, '{"command": '),)


def test_no_more_replies_is_a_protocol_error() -> None:
    with pytest.raises(WireProtocol, match="has 3 replies and no more"):
        said(GOOD, *[AssistantTurn("x")] * 3)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("replies: [", 1, "no valid YAML"),
        ("replies:\n- text: a\n  tools: []\n", 3, "tools"),
        ("replies:\n- calls:\n  - tool: magic\n", 3, "no tool `magic`"),
        ("replies:\n- text: [1]\n", 2, "text"),
        ("replies:\n- stop: never\n", 2, "stop"),
        ("replies:\n- usage: {input: -1}\n", 2, "input"),
        ("reply: []\n", 1, "replies"),
        ("", None, "replies"),
        ("- a\n", 1, "replies"),
    ],
)
def test_a_script_at_fault_is_told_by_file_and_line(
    text: str, line: int | None, words: str
) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        load_script(text, "s.yaml", ["shell"])
    assert (caught.value.file, caught.value.line) == ("s.yaml", line)


def test_equal_prompts_give_equal_bytes() -> None:
    wire = ScriptedWire(load_script(GOOD, "s", ["shell"]), "s")
    one, two = (wire.encode(Prompt("s", (), (UserText("x"),))) for _ in "ab")
    assert one == two
    assert wire.encode(Prompt("s", (), (UserText("y"),))).digest != one.digest
