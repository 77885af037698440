from __future__ import annotations

import pytest

from harness.operations.paths import absolute, below, climbs, normal
from harness.operations.places import Places, riskier
from harness.values.operations import Access, Op

HOME = "/home/agent"
PLACES = Places()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a/b", "/workspace/a/b"),
        ("./a//b/", "/workspace/a/b"),
        ("..", "/"),
        ("../../../etc", "/etc"),
        ("~", HOME),
        ("~/x", f"{HOME}/x"),
        ("~root/x", "/workspace/~root/x"),
        ("/", "/"),
        ("//etc//passwd", "/etc/passwd"),
    ],
)
def test_typed_paths_become_absolute_and_normal(text: str, expected: str) -> None:
    spelled = absolute(text, "/workspace", HOME)
    assert spelled is not None
    assert normal(spelled) == expected


@pytest.mark.parametrize("text", ["", "a\0b", "x" * 5000])
def test_what_is_no_path_is_none(text: str) -> None:
    assert absolute(text, "/workspace", HOME) is None


def test_a_sibling_with_the_same_prefix_is_not_below() -> None:
    assert not below("/workspace-evil/x", "/workspace")
    assert below("/workspace", "/workspace")
    assert below("/anything", "/")


def test_a_climb_behind_a_name_is_kept_as_spelled() -> None:
    assert climbs("/workspace/link/../x")
    assert not climbs("/../x")
    use = PLACES.use("link/../x", Access.READ)
    assert use is not None
    assert (use.path, use.spelled) == ("/workspace/x", "/workspace/link/../x")


@pytest.mark.parametrize(
    ("path", "access", "tree", "op"),
    [
        ("src/a.py", Access.READ, False, Op.READ_WORKSPACE),
        ("/workspace", Access.READ, False, Op.READ_WORKSPACE),
        ("/workspace-evil/x", Access.READ, False, Op.READ_OUTSIDE),
        ("/etc/hostname", Access.READ, False, Op.READ_OUTSIDE),
        (".env", Access.READ, False, Op.READ_SECRET),
        ("~/.ssh/id_rsa", Access.READ, False, Op.READ_SECRET),
        ("/proc/1/environ", Access.READ, False, Op.READ_SECRET),
        ("/dev/null", Access.WRITE, False, Op.INSPECT),
        ("/dev/sda", Access.WRITE, False, Op.WRITE_OUTSIDE),
        ("src/a.py", Access.WRITE, False, Op.WRITE_WORKSPACE),
        (".env", Access.WRITE, False, Op.WRITE_WORKSPACE),
        ("/tmp/x", Access.WRITE, False, Op.WRITE_OUTSIDE),
        ("~/.ssh/authorized_keys", Access.WRITE, False, Op.WRITE_CONTROL),
        (".harness/policy.yaml", Access.WRITE, False, Op.POLICY_CHANGE),
        ("~/.config/harness/policy.yaml", Access.WRITE, False, Op.POLICY_CHANGE),
        ("build", Access.DELETE, True, Op.WRITE_WORKSPACE),
        (".git", Access.DELETE, True, Op.DESTROY_DATA),
        ("sub/.GIT", Access.DELETE, True, Op.DESTROY_DATA),
        (".", Access.DELETE, True, Op.DESTROY_DATA),
        ("/", Access.DELETE, True, Op.DESTROY_DATA),
        ("/home/agent/x", Access.DELETE, True, Op.DESTROY_DATA),
        ("/tmp/x", Access.DELETE, True, Op.WRITE_OUTSIDE),
        ("/home/agent/x", Access.DELETE, False, Op.WRITE_OUTSIDE),
    ],
)
def test_a_path_has_the_class_of_where_it_lies(
    path: str, access: Access, tree: bool, op: Op
) -> None:
    use = PLACES.use(path, access, tree=tree)
    assert use is not None
    assert PLACES.classify(use.path, use) is op


def test_a_named_policy_file_is_policy_wherever_it_lies() -> None:
    places = Places(policy_files=frozenset({"/workspace/rules.yaml"}))
    use = places.use("Rules.YAML", Access.WRITE)
    assert use is not None
    assert places.classify(use.path, use) is Op.POLICY_CHANGE


def test_the_riskier_class_wins_by_level() -> None:
    assert riskier(Op.READ_WORKSPACE, Op.READ_SECRET) is Op.READ_SECRET
    assert riskier(Op.WRITE_CONTROL, Op.OPAQUE) is Op.WRITE_CONTROL
