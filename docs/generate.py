"""Writes the generated parts of `architecture.md`: the layers and the spine.

`python docs/generate.py` rewrites them; with `--check` it says whether they are current, by its
exit code. Layers come from the import contract in `pyproject.toml`, what a package holds from
the first line of its docstring, the spine from its file.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "architecture.md"
SPINE = "harness/loop/run.py"


def layers() -> list[list[str]]:
    """Rows of the contract, top first. A name in parentheses is planned, not there yet."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = config["tool"]["importlinter"]["contracts"]
    contract = next(c for c in contracts if c["id"] == "layers")
    return [[name.strip() for name in row.split("|")] for row in contract["layers"]]


def purpose(name: str) -> str:
    """First line of a package's or module's docstring."""
    package = ROOT / "harness" / name / "__init__.py"
    path = package if package.exists() else ROOT / "harness" / f"{name}.py"
    if not path.exists():
        return ""
    words = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return words.splitlines()[0] if words else ""


def layer_table() -> str:
    rows = ["| row | package | holds |", "|---|---|---|"]
    contract = layers()
    for number, names in zip(range(len(contract), 0, -1), contract, strict=True):
        for name in names:
            bare = name.strip("()")
            there = purpose(bare)
            shown = f"`{bare}`" if there else f"*{bare}*"
            rows.append(f"| {number} | {shown} | {there or 'to come'} |")
    return "\n".join(rows)


def layer_diagram() -> str:
    """The same rows as a picture: each may import what stands below it, never its neighbours."""
    texts = [" | ".join(n for n in row if not n.startswith("(")) for row in layers()]
    texts = [text for text in texts if text]
    width = max(map(len, texts)) + 4
    edge = "+" + "-" * width + "+"
    lines = [edge]
    for text in texts:
        lines += ["|" + text.center(width) + "|", edge]
    return "```text\n" + "\n".join(lines) + "\n```"


def spine() -> str:
    return f"```python\n{(ROOT / SPINE).read_text(encoding='utf-8')}```"


def between(text: str, name: str, content: str) -> str:
    """The page with what stands between the markers of `name` replaced."""
    pattern = re.compile(f"(<!-- {name} -->\n).*?(\n<!-- /{name} -->)", re.DOTALL)
    text, count = pattern.subn(lambda m: m[1] + content + m[2], text)
    if count != 1:
        raise SystemExit(f"the page needs one pair of markers named `{name}`")
    return text


def generated(text: str) -> str:
    """The page with every generated part made anew."""
    parts = {"diagram": layer_diagram, "layers": layer_table, "spine": spine}
    for name, make in parts.items():
        text = between(text, name, make())
    return text


def main() -> int:
    current = PAGE.read_text(encoding="utf-8")
    wanted = generated(current)
    if "--check" in sys.argv[1:]:
        if current != wanted:
            print(f"{PAGE.relative_to(ROOT)} is out of date; run `python docs/generate.py`")
        return int(current != wanted)
    PAGE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
