"""Settings: which place wins, what a repository may not do, faults with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import ConfigError
from harness.values.limits import GIB, MIB
from harness.values.units import count, number, size, span
from harness.wiring.config import SETTINGS, Config, load_config


def loaded(tmp_path: Path, user: str = "", project: str = "", **options: object) -> Config:
    environ = {"XDG_CONFIG_HOME": str(tmp_path / "cfg"), "XDG_STATE_HOME": str(tmp_path / "state")}
    environ |= {k: str(options.pop(k)) for k in list(options) if k.startswith("HARNESS_")}
    repo = tmp_path / "repo"
    repo.mkdir(exist_ok=True)
    if user:
        (tmp_path / "cfg" / "harness").mkdir(parents=True, exist_ok=True)
        (tmp_path / "cfg" / "harness" / "config.yaml").write_text(user)
    if project:
        (repo / ".harness.yaml").write_text(project)
    return load_config(repo, {k.replace("__", "."): v for k, v in options.items()}, environ)


def test_nothing_written_gives_the_defaults(tmp_path: Path) -> None:
    config = loaded(tmp_path)
    assert config == Config(repo=tmp_path / "repo", state=tmp_path / "state" / "harness")


def test_later_places_win_and_each_value_tells_its_origin(tmp_path: Path) -> None:
    config = loaded(
        tmp_path,
        user="model: a/b\nmode: m\nlimits: {memory: 1GiB, pids: 99}\n",
        HARNESS_MODEL="c/d",
        HARNESS_LIMITS_PIDS="77",
        limits__pids="55",
    )
    assert (config.model, config.mode, config.limits.memory, config.limits.pids) == (
        "c/d",
        "m",
        GIB,
        55,
    )
    assert config.origins["model"] == "HARNESS_MODEL"
    assert config.origins["limits.pids"] == "option"
    assert config.origins["limits.memory"].endswith("config.yaml:3")


def test_a_repository_may_lower_a_limit_and_never_raise_it(tmp_path: Path) -> None:
    project = "limits: {memory: 512MiB, pids: 9999}\nbudgets: {turns: 5, output_tokens: 100}\n"
    config = loaded(tmp_path, user="limits: {pids: 100}\n", project=project)
    assert (config.limits.memory, config.limits.pids) == (512 * MIB, 100)
    assert (config.budgets.turns, config.budgets.output_tokens) == (5, 100)


@pytest.mark.parametrize("name", [n for n in SETTINGS if "." not in n])
def test_a_repository_may_set_nothing_else(tmp_path: Path, name: str) -> None:
    value = {"network": "none", "assume_isolated": "true"}.get(name, "5")
    with pytest.raises(ConfigError, match="may only lower"):
        loaded(tmp_path, project=f"limits: {{pids: 5}}\n{name}: {value}\n")


def test_a_repository_file_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("limits: {pids: 1}")
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / ".harness.yaml").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="may not be a link"):
        loaded(tmp_path)


def test_a_users_file_may_be_a_link_and_is_never_silently_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "cfg" / "harness"
    folder.mkdir(parents=True)
    (tmp_path / "dotfiles.yaml").write_text("policy: read-only\n")
    (folder / "config.yaml").symlink_to(tmp_path / "dotfiles.yaml")
    assert loaded(tmp_path).policy == "read-only"
    (folder / "config.yaml").unlink()
    (folder / "config.yaml").mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        loaded(tmp_path)


def test_a_sparse_file_is_not_read_whole(tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    with (tmp_path / "repo" / ".harness.yaml").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ConfigError, match="larger than 1 MiB"):
        loaded(tmp_path)


def test_a_setting_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no setting `modle`"):
        loaded(tmp_path, modle="x")


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("modle: x\n", 1, "no setting `modle`"),
        ("model: x\nmodel: y\n", 2, "twice"),
        ("limits:\n  memory: lots\n", 2, "no size"),
        ("limits:\n  cpus: 0\n", 2, "above zero"),
        ("limits: 3\n", 1, "mapping"),
        ("model: [a]\n", 1, "one value"),
        ("network: open\n", 1, "not built yet"),
        ("model: {\n", 2, "no valid YAML"),
        ("[" * 5000, None, "valid YAML"),
    ],
)
def test_a_file_at_fault_is_told_by_file_and_line(
    tmp_path: Path, text: str, line: int | None, words: str
) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        loaded(tmp_path, user=text)
    assert str(caught.value.file).endswith("config.yaml")
    assert line is None or caught.value.line == line


def test_bytes_that_are_no_text_are_told(tmp_path: Path) -> None:
    (tmp_path / "cfg" / "harness").mkdir(parents=True)
    (tmp_path / "cfg" / "harness" / "config.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8"):
        loaded(tmp_path)


def test_an_option_at_fault_is_told_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"`--max-turns`|`--turns`"):
        loaded(tmp_path, budgets__turns="many")
    with pytest.raises(ConfigError, match="HARNESS_TIMEOUT"):
        loaded(tmp_path, HARNESS_TIMEOUT="soon")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1000", 1000),
        ("4GiB", 4 * GIB),
        ("512M", 512 * MIB),
        ("1.5k", 1536),
        ("2mb", 2_000_000),
        ("5MB", 5_000_000),
        ("7MiB", 7 * MIB),
        ("3b", 3),
    ],
)
def test_sizes(text: str, value: int) -> None:
    assert size(text) == value


@pytest.mark.parametrize(
    ("text", "value"), [("90", 90), ("30m", 1800), ("1.5h", 5400), ("250ms", 0.25), (7, 7)]
)
def test_durations(text: object, value: float) -> None:
    assert span(text) == value


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (size, "-1"),
        (size, ""),
        (size, True),
        (size, "9" * 400),
        (span, "9" * 400),
        (span, "0s"),
        (span, "1w"),
        (count, "1.5"),
        (count, "-1"),
    ]
    + [(number, x) for x in ("nan", "inf", "-1", "0", True, "x")],
)
def test_what_is_no_quantity_is_refused(read, text: object) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match="`"):
        read(text)
