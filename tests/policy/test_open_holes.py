"""What is still let through although it should not be. Each is a strict expected failure: when
one is closed, its line moves to the corpus."""

from __future__ import annotations

from typing import Any

import pytest

from tests.policy.build import effect, gate, source

MIGRATIONS: dict[str, Any] = {"deny": {"path": "migrations/**"}}
PRIVATE: dict[str, Any] = {"deny": {"path": "private/**"}}


@pytest.mark.parametrize(
    ("text", "row"),
    [
        pytest.param(text, row, marks=pytest.mark.xfail(strict=True, reason=reason))
        for text, row, reason in [
            ("cp -rT /tmp/a .", None, "what a copied tree holds is not in the text"),
            ("find . -name '.gi*' -delete", None, "actions of find are not read yet"),
            ("find / -delete", None, "actions of find are not read yet"),
            ("git stash pop", MIGRATIONS, "which files a stash changes is not in the text"),
            ("git switch other", MIGRATIONS, "which files a branch changes is not in the text"),
            ("git log -p", PRIVATE, "without a path git shows every file"),
            ("cat .en[v] | head", None, "a bracket glob is not matched with secret names"),
            ("cat .en? | head", None, "a glob is not matched with secret names"),
            ("a=.e; cat ${a}nv", None, "values of variables are not followed yet"),
            ("true; find . | xargs rm -rf", None, "what xargs is given is not followed yet"),
        ]
    ],
)
def test_nothing_is_let_through(text: str, row: dict[str, Any] | None) -> None:
    found = gate("full-auto", *([source(rules=[dict(row)])] if row else []), attended=False)
    assert effect(found, text) == "deny"
