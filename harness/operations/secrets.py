"""Files that hold credentials: `read.secret` when they are read."""

from __future__ import annotations

import functools
import re

from harness.operations.spelling import fold_path

_FOLDERS = frozenset(
    {
        ".ssh", ".aws", ".azure", ".gnupg", ".password-store", ".mozilla", ".oci", ".kube",
        ".terraform.d", "keychains", "keyrings", ".thunderbird",
    }
)  # fmt: skip
_SEQUENCES = (
    ("config", "gcloud"), (".config", "gcloud"), (".config", "gh"), (".config", "hub"),
    (".config", "google-chrome"), (".config", "chromium"), (".config", "rclone"),
    (".config", "op"), (".docker", "config.json"), (".claude", ".credentials.json"),
    (".codex", "auth.json"), (".cargo", "credentials"), (".cargo", "credentials.toml"),
    (".gem", "credentials"), (".config", "doctl"), ("run", "secrets"),
    ("var", "run", "docker.sock"), ("run", "docker.sock"),
)  # fmt: skip
_NAMES = frozenset(
    {
        ".netrc", "_netrc", ".pgpass", ".my.cnf", ".npmrc", ".pypirc", ".git-credentials",
        ".terraformrc", "credentials.tfrc.json", ".vault-token", ".htpasswd", "credentials.json",
        "secrets.yml", "secrets.yaml", "secrets.json", "secrets.toml", ".bash_history",
        ".zsh_history", ".python_history", ".psql_history", ".mysql_history", ".s3cfg", ".boto",
        "id_rsa", "id_dsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk",
        "kubeconfig", ".dockercfg", "master.key", "auth.json", ".envrc",
    }
)  # fmt: skip
_SUFFIXES = (
    ".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk", ".tfstate", ".env",
)  # fmt: skip
_PUBLIC = re.compile(
    r"known_hosts(\.old)?|.*\.pub|\.env\.(example|sample|template|dist|defaults)"
    r"|(ca|cacert|cacerts|chain|fullchain|cert|certs)\.pem|ca-[a-z-]*\.pem"
)
_SYSTEM = re.compile(r"/etc/(g?shadow-?|sudoers.*|ssl/private/.*)|/proc/.+/(environ|mem)")


@functools.lru_cache(maxsize=8192)
def is_secret_path(path: str) -> bool:
    """Whether reading this path, relative or absolute, in any spelling, may show a credential."""
    folded = fold_path(path)
    parts = [part for part in folded.split("/") if part and part != "."]
    if not parts:
        return False
    name = parts[-1]
    if _PUBLIC.fullmatch(name):
        return False
    if name in _NAMES or name.startswith(".env.") or name.endswith(_SUFFIXES):
        return True
    if any(part in _FOLDERS for part in parts) or _SYSTEM.fullmatch(folded):
        return True
    return any(
        tuple(parts[at : at + len(sequence)]) == sequence
        for sequence in _SEQUENCES
        for at in range(len(parts) - len(sequence) + 1)
    )
