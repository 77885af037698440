"""Images of boxes: found, missing, built once, and failing in words."""

from __future__ import annotations

import asyncio
import io
import json
import tarfile
from pathlib import Path

import pytest

from harness.errors import ImageMissing, SandboxError
from harness.sandbox.delivery import ensure_volume, supervisor_tar, volume_name
from harness.sandbox.engine import Engine
from harness.sandbox.images import Image, Images, base_reference, recipes_folder
from tests.sandbox.engines import Answers, TableEngine, serving

GONE = (404, {"message": "No such image: x"})


def recipe(folder: Path, text: str = "ARG BASE\nFROM ${BASE}\n") -> Path:
    (folder / "base").mkdir(exist_ok=True)
    (folder / "base" / "Dockerfile").write_text(text)
    return folder


def resolve(
    folder: Path, answers: Answers, reference: str | None
) -> tuple[Image | SandboxError, TableEngine, list[str]]:
    lines: list[str] = []

    async def go() -> tuple[Image | SandboxError, TableEngine]:
        async with serving(folder, answers) as (fake, endpoint):
            engine = Engine(endpoint)
            images = Images(engine, recipe(folder), lines.append)
            try:
                return await images.resolve(reference), fake
            except SandboxError as fault:
                return fault, fake
            finally:
                await engine.close()

    found, fake = asyncio.run(go())
    return found, fake, lines


def test_a_reference_becomes_a_digest(tmp_path: Path) -> None:
    answers = {"GET /images/debian:12/json": (200, {"Id": "sha256:abc", "Config": {}})}
    found, _, _ = resolve(tmp_path, answers, "debian:12")
    assert isinstance(found, Image)
    assert found.digest == "sha256:abc"


def test_a_missing_image_names_the_next_step_and_is_not_pulled(tmp_path: Path) -> None:
    found, fake, _ = resolve(tmp_path, {"GET /images/x/json": GONE}, "x")
    assert isinstance(found, ImageMissing)
    assert "docker pull x" in str(found)
    assert not any("create" in s for s in fake.seen)


def test_the_base_image_is_not_built_when_it_is_there(tmp_path: Path) -> None:
    reference = base_reference(recipe(tmp_path))
    answers = {f"GET /images/{reference}/json": (200, {"Id": "sha256:base"})}
    found, fake, lines = resolve(tmp_path, answers, None)
    assert isinstance(found, Image)
    assert not lines
    assert "POST /build" not in fake.seen


def test_the_base_image_is_built_on_first_use(tmp_path: Path) -> None:
    reference = base_reference(recipe(tmp_path))
    looks = iter([GONE, (200, {"Id": "sha256:made"})])
    answers = {
        f"GET /images/{reference}/json": lambda: next(looks),
        "GET /images/sandbox-harness/debian:bookworm/json": GONE,
        "POST /build": (200, {"stream": "Step 1"}),
    }
    found, fake, lines = resolve(tmp_path, answers, None)
    assert isinstance(found, Image)
    assert found.digest == "sha256:made"
    assert lines == ["building the base image on the public Debian image; this happens once"]
    assert fake.seen.count("POST /build") == 1


def test_a_build_that_fails_says_why_and_what_to_do(tmp_path: Path) -> None:
    reference = base_reference(recipe(tmp_path))
    answers = {
        f"GET /images/{reference}/json": GONE,
        "GET /images/sandbox-harness/debian:bookworm/json": (200, {"Id": "sha256:d"}),
        "POST /build": (200, {"error": "pull access denied"}),
    }
    found, _, lines = resolve(tmp_path, answers, None)
    assert isinstance(found, ImageMissing)
    assert "pull access denied" in str(found)
    assert "make setup" in str(found)
    assert "sandbox-harness/debian:bookworm" in lines[0]


def test_another_recipe_is_another_image(tmp_path: Path) -> None:
    first = base_reference(recipe(tmp_path))
    assert base_reference(recipe(tmp_path)) == first
    assert base_reference(recipe(tmp_path, "FROM scratch\n")) != first


def test_a_missing_recipe_is_told(tmp_path: Path) -> None:
    with pytest.raises(ImageMissing, match="no recipe"):
        base_reference(tmp_path)


def test_this_checkout_has_a_recipe() -> None:
    assert base_reference(recipes_folder()).startswith("sandbox-harness/base:")


def test_a_supervisors_archive_holds_one_program() -> None:
    with tarfile.open(fileobj=io.BytesIO(supervisor_tar(b"\x7fELF"))) as archive:
        entry = archive.getmember(".harness/supervisor")
    assert (entry.mode, entry.size, entry.uid) == (0o555, 4, 0)
    assert supervisor_tar(b"a") == supervisor_tar(b"a")


def deliver(folder: Path, answers: Answers) -> tuple[str, TableEngine]:
    async def go() -> tuple[str, TableEngine]:
        async with serving(folder, answers) as (fake, endpoint):
            engine = Engine(endpoint)
            try:
                return await ensure_volume(engine, b"program"), fake
            finally:
                await engine.close()

    return asyncio.run(go())


def test_a_delivered_supervisor_is_not_delivered_again(tmp_path: Path) -> None:
    name = volume_name(b"program")
    made, fake = deliver(tmp_path, {f"GET /volumes/{name}": (200, {"Name": name})})
    assert made == name
    assert fake.seen[-1] == f"GET /volumes/{name}"


def test_a_missing_volume_is_filled_by_a_container_that_never_starts(tmp_path: Path) -> None:
    answers = {
        "POST /images/create": (200, {"status": "sha256:one"}),
        "POST /volumes/create": (201, {"Name": "v"}),
        "POST /containers/create": (201, {"Id": "c1"}),
        "DELETE /containers/c1": (204, None),
    }
    _, fake = deliver(tmp_path, answers)
    body = next(json.loads(b) for b in fake.bodies if b.startswith(b'{"Image"'))
    assert body["Image"] == "sha256:one"
    assert body["HostConfig"]["Mounts"][0]["Target"] == "/.harness"
    assert not any(s.endswith("/start") for s in fake.seen)
    assert "DELETE /containers/c1" in fake.seen


def test_an_import_that_answers_nonsense_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="did not import"):
        deliver(tmp_path, {"POST /images/create": (200, {"status": "maybe"})})
