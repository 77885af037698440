"""Images of boxes: a reference becomes a digest, and the base image is made on first use.

The base image is tagged by the digest of its recipe's files, so an edited recipe is another
image. It is built on the public Debian image, or on one that was imported from packages.

`python -m harness.sandbox.images` builds it, `… check` asks whether it is there, `… import`
takes a root file system as a tar on standard input for the case without a registry.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import sys
import tarfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import HarnessError, ImageMissing, SandboxError
from harness.sandbox.endpoint import discover
from harness.sandbox.engine import Client, Engine, Facts, is_status, text_at

BASE_REPOSITORY = "sandbox-harness/base"
BOOTSTRAP = ("sandbox-harness/debian", "bookworm")
"""A Debian that was imported from packages; used in place of the public one when it is there."""
BUILD_DEADLINE = 900.0
RECIPE_LIMIT = 1 << 20
LOG_KEPT = 12
"""Lines of a failed build that are shown."""

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Image:
    """An image on the engine. `digest` is its id; `facts` what the engine says of it."""

    reference: str
    digest: str
    facts: Facts


def recipes_folder() -> Path:
    """Where the Dockerfiles lie: beside the package when installed, else in the checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "sandbox_images"
    return installed if installed.is_dir() else package.parent / "sandbox_images"


def base_reference(recipes: Path) -> str:
    """Name and tag of the base image. Raises `ImageMissing` without a readable recipe."""
    digest = hashlib.sha256()
    for name, data in _recipe(recipes / "base").items():
        digest.update(f"{name}\0{len(data)}\0".encode())
        digest.update(data)
    return f"{BASE_REPOSITORY}:{digest.hexdigest()[:16]}"


class Images:
    """Images of one engine. `progress` gets one line at a time while an image is made."""

    def __init__(
        self, engine: Engine, recipes: Path | None = None, progress: Progress | None = None
    ) -> None:
        self._engine = engine
        self._recipes = recipes or recipes_folder()
        self._progress = progress
        self._building = asyncio.Lock()

    async def resolve(self, reference: str | None) -> Image:
        """Find an image; None is the base image, made if need be.

        Raises `ImageMissing`. An image that a user names is never pulled here: what runs was
        put there by somebody.
        """
        if reference is not None:
            found = await self.find(reference)
            if found is None:
                raise ImageMissing(
                    f"the engine has no image `{reference}`; get it with "
                    f"`docker pull {reference}`, or leave out the image to use the built-in one"
                )
            return found
        return await self.base()

    async def find(self, reference: str) -> Image | None:
        try:
            facts = await self._engine.call(
                "look at an image", lambda c: c.inspect_image(reference)
            )
        except ImageMissing:
            return None
        except SandboxError as fault:
            if is_status(fault, 400, 404):
                return None
            raise
        digest = text_at(facts, "Id")
        return Image(reference, digest, facts) if digest.startswith("sha256:") else None

    async def base(self) -> Image:
        """The base image, built when the engine lacks it. Raises `ImageMissing`."""
        reference = base_reference(self._recipes)
        async with self._building:
            found = await self.find(reference)
            if found is None:
                await self._build(reference)
                found = await self.find(reference)
        if found is None:
            raise ImageMissing(f"the image `{reference}` was built and is not there")
        return found

    async def import_bootstrap(self, archive: bytes) -> str:
        """Keep a root file system (a tar) as what the base image is built on."""
        repository, tag = BOOTSTRAP
        await self._engine.call(
            "import an image",
            lambda c: c.import_image_from_data(archive, repository, tag),
            deadline=BUILD_DEADLINE,
        )
        return f"{repository}:{tag}"

    def _say(self, line: str) -> None:
        if self._progress is not None:
            self._progress(line)

    async def _build(self, reference: str) -> None:
        bootstrap = ":".join(BOOTSTRAP)
        arguments = {"BASE": bootstrap} if await self.find(bootstrap) else {}
        source = arguments.get("BASE", "the public Debian image")
        self._say(f"building the base image on {source}; this happens once")
        files = _recipe(self._recipes / "base")
        log = await self._engine.call(
            "build the base image",
            lambda c: _built(c, reference, files, arguments),
            deadline=BUILD_DEADLINE,
        )
        failure = next((line for line in log if line.startswith("error: ")), None)
        if failure is not None:
            tail = "; ".join(log[-LOG_KEPT:])[-2000:]
            raise ImageMissing(
                f"the base image could not be built on {source}: {failure[7:]}; without a "
                "registry, run `make setup` in a checkout, or see sandbox_images/README.md; "
                f"last lines: {tail}"
            )


def _recipe(folder: Path) -> dict[str, bytes]:
    """Files of a build context by name, in byte order."""
    try:
        paths = sorted(p for p in folder.rglob("*") if p.is_file() and not p.is_symlink())
        files = {p.relative_to(folder).as_posix(): p.read_bytes() for p in paths}
    except OSError as fault:
        raise ImageMissing(
            f"{folder}: the recipe of the base image is unreadable: {fault}"
        ) from fault
    if "Dockerfile" not in files or sum(map(len, files.values())) > RECIPE_LIMIT:
        raise ImageMissing(f"{folder}: there is no recipe of a base image here")
    return files


def _built(
    client: Client, reference: str, files: Mapping[str, bytes], arguments: dict[str, str]
) -> list[str]:
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    context.seek(0)
    steps = client.build(
        fileobj=context,
        custom_context=True,
        tag=reference,
        rm=True,
        forcerm=True,
        decode=True,
        buildargs=arguments,
        labels={"harness.image": "base"},
        dockerfile="Dockerfile",
    )
    return _lines(steps)


def _lines(steps: Iterable[dict[str, Any]]) -> list[str]:
    """The end of a build's log, one error line among it when it failed."""
    kept: list[str] = []
    for step in steps:
        text = step.get("error") or step.get("stream") or ""
        mark = "error: " if step.get("error") else ""
        if isinstance(text, str) and text.strip():
            kept.append(f"{mark}{' '.join(text.split())[:300]}")
        del kept[: -4 * LOG_KEPT]
    return kept


async def _main(words: list[str]) -> int:
    engine = Engine(discover(os.environ, Path.home()))
    images = Images(engine, progress=_say)
    try:
        if words == ["check"]:
            reference = base_reference(recipes_folder())
            if await images.find(reference) is None:
                raise ImageMissing(f"there is no image `{reference}`")
            _say(reference)
        elif words == ["import"]:
            _say(await images.import_bootstrap(sys.stdin.buffer.read()))
        elif not words:
            _say((await images.base()).reference)
        else:
            _say("usage: python -m harness.sandbox.images [check | import]")
            return 2
    finally:
        await engine.close()
    return 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    try:
        return asyncio.run(_main(sys.argv[1:]))
    except HarnessError as fault:
        sys.stderr.write(f"{fault}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
