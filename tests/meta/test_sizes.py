"""Files and functions that outgrow a reader. The lists of exceptions only shrink."""

from __future__ import annotations

import ast

from tests.meta.source import functions, parsed, python_files, relative, tracked

SPLIT_SOON = 400
END = 500
FUNCTION = 60
SPINE = 80

PAST_400: frozenset[str] = frozenset()
LONG_FUNCTIONS: frozenset[str] = frozenset()


def test_no_file_is_past_the_end() -> None:
    sources = (*python_files("harness", "tests", "bench", "demo", "docs"), *tracked("*.c", "*.h"))
    assert len(sources) > 40
    sizes = {relative(path): len(path.read_text(encoding="utf-8").splitlines()) for path in sources}
    assert {name: size for name, size in sizes.items() if size > END} == {}
    ours = {name for name in sizes if name.startswith("harness/")}
    assert {name for name in ours if sizes[name] > SPLIT_SOON} == PAST_400


def test_no_function_is_longer_than_a_screen() -> None:
    long: set[str] = set()
    for path in python_files("harness", "tests", "bench", "demo", "docs"):
        for node in functions(parsed(path)):
            assert node.end_lineno is not None
            if node.end_lineno - node.lineno + 1 > FUNCTION:
                long.add(f"{relative(path)}:{node.name}")
    assert long == LONG_FUNCTIONS


def test_the_spine_fits_on_a_page() -> None:
    (spine,) = tracked("harness/loop/run.py")
    text = spine.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= SPINE
    assert not [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Try)]
