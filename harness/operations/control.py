"""Files that run later, outside this judgement: `write.control` when they are written.

All tests work on folded names (see `spelling`), at any depth.
"""

from __future__ import annotations

import functools
import re

from harness.operations.spelling import fold_path

_FOLDERS = frozenset(
    {
        ".git", ".ssh", ".circleci", ".buildkite", ".woodpecker", ".teamcity", ".semaphore",
        ".tekton", ".husky", ".vscode", ".idea", ".claude", ".codex", ".cursor", ".gemini",
        ".opencode", ".devcontainer", ".zed", ".fleet", ".continue", ".windsurf", ".kiro",
        ".vim", ".emacs.d", ".direnv", "launchagents", "launchdaemons",
    }
)  # fmt: skip
_NAMES = frozenset(
    {
        ".gitattributes", ".gitmodules", ".gitconfig", ".gitlab-ci.yml", ".travis.yml",
        "jenkinsfile", "azure-pipelines.yml", "bitbucket-pipelines.yml", ".drone.yml",
        ".woodpecker.yml", "appveyor.yml", ".appveyor.yml", ".cirrus.yml", "cloudbuild.yaml",
        ".pre-commit-config.yaml", "lefthook.yml", ".lefthook.yml", ".bashrc", ".bash_profile",
        ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv",
        ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".envrc", ".inputrc",
        ".xprofile", ".xinitrc", ".xsession", ".pam_environment", "pip.conf", "pip.ini", ".npmrc",
        ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".pypirc", ".pydistutils.cfg", ".curlrc",
        ".wgetrc", ".vimrc", ".nvimrc", ".exrc", ".emacs", ".mcp.json", ".cursorrules",
        ".aider.conf.yml", "sitecustomize.py", "usercustomize.py", ".gdbinit", ".lldbinit",
        ".crontab", ".git-credentials",
    }
)  # fmt: skip
_SUFFIXES = (".pth", ".code-workspace")
_SEQUENCES = tuple(
    tuple(text.split("/"))
    for text in (
        ".github/workflows", ".github/actions", ".github/dependabot.yml", ".gitlab/ci",
        ".forgejo/workflows", ".gitea/workflows", ".config/git", ".config/pip", ".config/fish",
        ".config/nvim", ".config/systemd", ".config/autostart", ".config/environment.d",
        ".config/code", ".config/zed", ".cargo/config", ".cargo/config.toml",
        ".local/share/systemd", ".yarn/releases", ".yarn/plugins",
    )
)  # fmt: skip
_SYSTEM = (
    "/etc/cron", "/var/spool/cron", "/etc/systemd", "/lib/systemd", "/usr/lib/systemd",
    "/run/systemd", "/etc/init.d", "/etc/rc", "/etc/profile", "/etc/bash", "/etc/zsh",
    "/etc/environment", "/etc/ld.so", "/etc/sudoers", "/etc/pam.d", "/etc/gitconfig",
    "/etc/pip.conf", "/etc/npmrc", "/etc/ssh", "/etc/passwd", "/etc/shadow", "/etc/group",
    "/etc/apt", "/etc/udev", "/etc/xdg/autostart", "/etc/anacrontab", "/etc/hosts",
)  # fmt: skip
_POLICY_FOLDERS = (".harness", ".harness.yaml")
_POLICY_SEQUENCES = ((".config", "harness"),)

_RUN_NAMES = frozenset(
    {
        "makefile", "gnumakefile", "conftest.py", "setup.py", "setup.cfg", "pyproject.toml",
        "package.json", "tox.ini", "noxfile.py", "tasks.py", "rakefile", "gemfile", "justfile",
        ".justfile", "taskfile.yml", "taskfile.yaml", "build.rs", "build.gradle",
        "build.gradle.kts", "settings.gradle", "gradlew", "mvnw", "pom.xml", "cmakelists.txt",
        "configure", "configure.ac", "dockerfile", "containerfile", "docker-compose.yml",
        "compose.yaml", "compose.yml", "vagrantfile", "build.xml", "meson.build", "build.zig",
        "hatch_build.py", "pytest.ini", "manage.py", "binding.gyp", "dodo.py", "wscript",
        "sconstruct", "pnpm-lock.yaml", "webpack.config.js", "vite.config.js", "vite.config.ts",
        "jest.config.js", "babel.config.js", "eslint.config.js", ".eslintrc.js", "gulpfile.js",
        "gruntfile.js", "entry_points.txt", "claude.md", "claude.local.md", "agents.md",
        "agent.md", "gemini.md", "qwen.md", "skill.md", "copilot-instructions.md",
        ".windsurfrules", ".clinerules", ".goosehints", ".roorules", "llms.txt",
    }
)  # fmt: skip
_RUN_SUFFIXES = (
    ".sh", ".bash", ".zsh", ".fish", ".bat", ".cmd", ".ps1", ".mk", ".gemspec", ".cmake",
    ".desktop", ".service", ".timer", ".instructions.md", ".prompt.md", ".mdc",
)  # fmt: skip
_RUN_SEQUENCES = tuple(
    tuple(text.split("/"))
    for text in (
        ".github/instructions", ".github/prompts", ".github/skills", ".github/agents",
        ".github/chatmodes", ".agents", ".clinerules", ".roo",
    )
)  # fmt: skip
_DOTENV = re.compile(r"\.env(\..*)?")


def _holds(parts: list[str], sequence: tuple[str, ...]) -> bool:
    first, width = sequence[0], len(sequence)
    return any(
        part == first and tuple(parts[at : at + width]) == sequence for at, part in enumerate(parts)
    )


@functools.lru_cache(maxsize=8192)
def is_control_path(path: str) -> bool:
    """Whether writing this path (relative to a repository, or absolute) plants later execution.

    True for everything below `.git` and `.gitattributes` at any depth, CI files, shell
    start-up files, configuration of git, pip, npm, editors and agents, cron, units, `*.pth`,
    in every spelling that HFS+ or NTFS takes for them.
    """
    folded = fold_path(path)
    parts = [part for part in folded.split("/") if part and part != "."]
    if not parts:
        return False
    if any(part in _FOLDERS for part in parts) or parts[-1] in _NAMES:
        return True
    if parts[-1].endswith(_SUFFIXES):
        return True
    if len(parts) == 1:
        return parts[0] in _POLICY_FOLDERS
    if folded.startswith("/") and folded.startswith(_SYSTEM):
        return True
    return any(_holds(parts, sequence) for sequence in _SEQUENCES) or is_policy_path(path)


def held_control(path: str) -> str | None:
    """A control path just below a folder that is known for holding some (`.github`), or None."""
    parts = [part for part in fold_path(path).split("/") if part and part != "."]
    for sequence in _SEQUENCES:
        for width in range(1, len(sequence)):
            if tuple(parts[-width:]) == sequence[:width]:
                return "/".join((path.rstrip("/"), *sequence[width:]))
    return None


@functools.lru_cache(maxsize=8192)
def is_policy_path(path: str) -> bool:
    """Whether this is a file that policies or the harness's own settings are read from."""
    folded = fold_path(path)
    parts = [part for part in folded.split("/") if part and part != "."]
    if any(part in _POLICY_FOLDERS for part in parts):
        return True
    if folded.startswith("/etc/harness"):
        return True
    return any(_holds(parts, sequence) for sequence in _POLICY_SEQUENCES)


@functools.lru_cache(maxsize=8192)
def is_run_here(path: str) -> bool:
    """Whether a developer's ordinary tools run this file: builds, tests, package scripts, and
    what agents take for their instructions."""
    parts = fold_path(path).split("/")
    name = parts[-1]
    if name in _RUN_NAMES or name.endswith(_RUN_SUFFIXES) or _DOTENV.fullmatch(name):
        return True
    return any(_holds(parts, sequence) for sequence in _RUN_SEQUENCES)
