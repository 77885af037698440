"""Every row of the corpus, with one file of those that are known to fail."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from harness.policy.fixtures import Case, read_cases, run_case
from tests.policy.build import built_in, surroundings

CORPUS = Path(__file__).resolve().parents[1] / "corpus" / "policy"
KNOWN = CORPUS / "expected-failures.yaml"
GAPS: dict[str, str] = yaml.safe_load(KNOWN.read_text())


def _cases() -> list[tuple[str, Case]]:
    files = sorted(path for path in CORPUS.glob("*.yaml") if path != KNOWN)
    return [
        (f"{path.stem}/{case.row.id}", case)
        for path in files
        for case in read_cases(path.read_bytes(), path.name)
    ]


CASES = _cases()


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case,
            id=name,
            marks=[pytest.mark.xfail(strict=True, reason=GAPS[name])] if name in GAPS else [],
        )
        for name, case in CASES
    ],
)
def test_row_gets_its_verdict(case: Case) -> None:
    outcome = run_case(case, surroundings(), built_in())
    assert outcome.ok, (outcome.decision.effect.word, outcome.decision.matches)


def test_no_known_failure_is_about_a_row_that_does_not_exist() -> None:
    assert set(GAPS) <= {name for name, _ in CASES}


def test_no_known_failure_is_among_rows_that_need_no_shell_grammar() -> None:
    assert not {name for name in GAPS if name.split("/")[0] in {"paths", "layers", "full-auto"}}


def test_no_known_failure_admits_what_must_not_run() -> None:
    """A gap may stop too much; it never lets a denied or asked row run."""
    for name, case in CASES:
        if name in GAPS and case.row.expect != "allow":
            outcome = run_case(case, surroundings(), built_in())
            assert outcome.decision.effect.word != "allow", name
