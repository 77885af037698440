"""The page of settings names others than there are, or other defaults."""

from __future__ import annotations

import re

import pytest
import yaml

from harness.cli.doctor import settings
from harness.library import SETTINGS, load_config
from harness.wiring.config import PROJECT_FILE
from tests.meta.source import ROOT

PAGE = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.split("## All of them\n")[1].splitlines()
    if line.startswith("| `")
]
DERIVED = {"policy", "mode", "image", "runtime", "state"}
"""Their defaults follow from something else, and stand in words."""


def test_every_setting_stands_there_once_and_in_order():
    assert [row[0].strip("`") for row in ROWS] == list(SETTINGS)


@pytest.mark.parametrize(
    ("name", "default"),
    [(r[0].strip("`"), r[1].strip("`")) for r in ROWS if r[0].strip("`") not in DERIVED],
)
def test_the_defaults_are_what_is_taken(name, default, tmp_path):
    value, origin = settings(load_config(tmp_path, {}, {"XDG_CONFIG_HOME": str(tmp_path)}))[name]
    assert origin == "default"
    assert value.casefold() == default.casefold()


def test_the_repositorys_own_file_is_named():
    assert f"`{PROJECT_FILE}` in the repository" in PAGE


def test_the_example_is_taken_as_it_stands(tmp_path):
    (text,) = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    folder = tmp_path / "harness"
    folder.mkdir()
    (folder / "config.yaml").write_text(text)
    config = load_config(tmp_path, {}, {"XDG_CONFIG_HOME": str(tmp_path)})
    wanted = yaml.safe_load(text)
    assert (config.policy, config.timeout, config.limits.memory) == (wanted["policy"], 300, 1 << 30)
    assert len(config.origins) == 6
