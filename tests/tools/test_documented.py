"""The page for authors of scripts names other tools or arguments than there are."""

from __future__ import annotations

import re

import jsonschema
import yaml

from harness.tools import builtin_tools
from harness.wires.scripted import ScriptedReply, ScriptedUsage, load_script
from tests.meta.source import ROOT

PAGE = (ROOT / "docs" / "scripted.md").read_text(encoding="utf-8")
EXAMPLE = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def rows(heading):
    part = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_example_loads_and_every_call_of_it_is_valid():
    (text,) = EXAMPLE
    tools = builtin_tools()
    script = load_script(text, "docs/scripted.md", tuple(tools))
    calls = [call for reply in script.replies for call in reply.calls]
    assert {call.tool for call in calls} == set(tools)
    for call in calls:
        jsonschema.validate(call.args, dict(tools[call.tool].spec.schema))
    assert yaml.safe_load(text)["replies"][-1] == {"text": "Done."}


def test_the_table_of_arguments_is_the_tools_own():
    documented, required, tool = {}, {}, ""
    for first, argument, words in rows("The tools and their arguments"):
        tool = first.strip("`") or tool
        documented.setdefault(tool, set()).add(argument.strip("`"))
        if words.startswith("required"):
            required.setdefault(tool, set()).add(argument.strip("`"))
    schemas = {name: tool.spec.schema for name, tool in builtin_tools().items()}
    assert documented == {name: set(schema["properties"]) for name, schema in schemas.items()}
    needed = {name: set(schema.get("required", ())) for name, schema in schemas.items()}
    assert required == {name: keys for name, keys in needed.items() if keys}


def test_the_table_of_a_reply_is_the_reply():
    table = {key.strip("`"): words for key, words, _ in rows("A reply")}
    assert set(table) == set(ScriptedReply.model_fields)
    assert set(ScriptedUsage.model_fields) == set(re.findall(r"`(\w+)`", table["usage"]))
    stops = ScriptedReply.model_fields["stop"].annotation
    literal = next(each for each in stops.__args__ if hasattr(each, "__args__"))
    assert set(literal.__args__) == set(re.findall(r"`(\w+)`", table["stop"]))
