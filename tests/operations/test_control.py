from __future__ import annotations

import pytest

from harness.operations.control import is_control_path, is_policy_path, is_run_here
from harness.operations.secrets import is_secret_path
from harness.operations.spelling import fold_name, fold_path


@pytest.mark.parametrize(
    "path",
    [
        ".git/hooks/pre-commit",
        ".git/config",
        "sub/deep/.git/config",
        ".git",
        ".GIT/hooks/x",
        ".g\u200cit/config",
        "git~1/config",
        ".git ./config",
        ".git::$INDEX_ALLOCATION/config",
        ".git\\hooks\\x",
        ".gitattributes",
        "a/.gitattributes",
        ".GitAttributes",
        ".gitmodules",
        ".github/workflows/ci.yml",
        "x/.GitHub/Workflows/ci.yml",
        ".gitlab-ci.yml",
        ".circleci/config.yml",
        "Jenkinsfile",
        ".pre-commit-config.yaml",
        ".husky/pre-commit",
        "/home/agent/.ssh/authorized_keys",
        "/home/agent/.bashrc",
        ".zshenv",
        ".envrc",
        "/etc/cron.d/x",
        "/etc/systemd/system/x.service",
        "/home/agent/.config/systemd/user/x.service",
        "/home/agent/.gitconfig",
        "/home/agent/.config/git/config",
        "pip.conf",
        ".npmrc",
        ".pypirc",
        ".vscode/tasks.json",
        ".idea/workspace.xml",
        ".claude/settings.json",
        ".cursor/mcp.json",
        ".mcp.json",
        "lib/python3/site-packages/evil.pth",
        "sitecustomize.py",
        "/etc/profile.d/x.sh",
        "/etc/ld.so.preload",
        ".harness/policy.yaml",
    ],
)
def test_control_files_are_known_in_every_spelling(path: str) -> None:
    assert is_control_path(path)


@pytest.mark.parametrize(
    "path",
    ["src/a.py", ".gitignore", "README.md", "docs/git/config.md", ".github/ISSUE_TEMPLATE.md",
     "widget.git.py", "gitconfig.py", "", ".", "a.path", "/etc/hostname"],
)  # fmt: skip
def test_ordinary_files_are_no_control_files(path: str) -> None:
    assert not is_control_path(path)


@pytest.mark.parametrize(
    "path",
    [".env", "a/.env", ".ENV", ".env.local", "prod.env", "~/.ssh/id_ed25519", "id_rsa",
     ".aws/credentials", ".netrc", "server.key", "tls.pem", ".kube/config",
     ".docker/config.json", "/etc/shadow", "/proc/self/environ", "/proc/12/environ",
     ".config/gcloud/x", "/run/secrets/a", ".git-credentials", ".npmrc", ".pgpass",
     ".gnupg/secring.gpg", ".mozilla/firefox/x/logins.json", "secrets.yaml"],
)  # fmt: skip
def test_secrets_are_known(path: str) -> None:
    assert is_secret_path(path)


@pytest.mark.parametrize(
    "path",
    [".env.example", ".env.sample", "id_rsa.pub", "known_hosts", "cacert.pem", "environment.py",
     "src/keys.py", "/proc/self/status", "README.md", "environ"],
)  # fmt: skip
def test_ordinary_files_are_no_secrets(path: str) -> None:
    assert not is_secret_path(path)


@pytest.mark.parametrize(
    "path",
    ["Makefile", "conftest.py", "tests/conftest.py", "package.json", "setup.py",
     "pyproject.toml", "run.sh", "Dockerfile", "build.rs"],
)  # fmt: skip
def test_files_that_ordinary_tools_run_are_flagged(path: str) -> None:
    assert is_run_here(path)


def test_files_that_nothing_runs_are_not_flagged() -> None:
    assert not is_run_here("src/a.py")
    assert not is_run_here("notes.txt")


def test_policy_files_are_known_by_place() -> None:
    assert is_policy_path("/etc/harness/policy.yaml")
    assert not is_policy_path("src/policy.yaml")


def test_folding_keeps_the_dots_that_mean_folders() -> None:
    assert [fold_name(name) for name in ("", ".", "..", "...")] == ["", ".", "..", "..."]
    assert fold_path("A/..\\B") == "a/../b"
