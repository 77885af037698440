"""Documents that no longer say what is so."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.meta.source import ROOT, relative, tracked

LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)?(#[^)\s]*)?\)")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)


def prose(text: str) -> str:
    return FENCE.sub("", text)


def anchors(text: str) -> set[str]:
    """How GitHub names headings: lower case, words joined by hyphens, no punctuation."""
    titles = HEADING.findall(prose(text))
    return {"#" + re.sub(r"[^\w\- ]", "", t.strip().lower()).replace(" ", "-") for t in titles}


@pytest.mark.parametrize("page", tracked("*.md"), ids=relative)
def test_links_resolve(page) -> None:
    text = page.read_text(encoding="utf-8")
    for target, anchor in LINK.findall(prose(text)):
        if "://" in target:
            continue
        file = (page.parent / target) if target else page
        assert file.exists(), f"{target} does not exist"
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file.read_text(encoding="utf-8")), f"no heading {anchor}"


def test_generated_parts_are_current() -> None:
    """The spine, the layers and the diagram in `docs/architecture.md`."""
    script = ROOT / "docs" / "generate.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_agents_guide_stays_short() -> None:
    assert len((ROOT / "AGENTS.md").read_text(encoding="utf-8").splitlines()) <= 60


def test_each_decision_is_listed_and_has_its_three_parts() -> None:
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    pages = sorted(folder.glob("[0-9]*.md"))
    assert pages
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert f"({page.name})" in index
        assert all(f"**{part}.**" in text for part in ("Context", "Choice", "Cost"))
