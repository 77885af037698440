"""A session is looked for where the user stands, not only where it was started."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.local


@pytest.fixture
def changed(harness, repo):
    (repo / "src" / "deep").mkdir(parents=True)
    (repo / "src" / "b").write_text("one\n")
    done = harness("exec", "--json", "--", "sh", "-c", "echo two > src/b")
    return done.session


def test_a_folder_of_the_repository_finds_its_session(harness, repo, changed, monkeypatch):
    monkeypatch.chdir(repo / "src" / "deep")
    assert "+two" in harness("diff").out
    done = harness("apply", "--repo", "..")
    assert (done.code, (repo / "src" / "b").read_text()) == (0, "two\n")


def test_the_folders_own_session_comes_first(harness, repo, changed):
    own = harness("exec", "--json", "--repo", "src", "--", "sh", "-c", "echo three > b").session
    later = harness("exec", "--json", "--", "sh", "-c", "echo four > src/b").session
    assert len({changed, own, later}) == 3
    assert "+three" in harness("diff", "--repo", "src").out
    assert "+four" in harness("diff").out


def test_a_folder_without_sessions_is_named_in_full(harness, repo, changed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = harness("diff")
    assert done.code == 2
    assert f"no session has changes for `{tmp_path}`" in done.err
