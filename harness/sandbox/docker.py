"""Boxes in containers of a Docker engine."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import time
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from pathlib import Path

from harness.errors import SandboxError
from harness.sandbox import hardening, reaper
from harness.sandbox.admission import admit, docker_capabilities
from harness.sandbox.attach import AttachPipe, attach
from harness.sandbox.binary import supervisor_binary
from harness.sandbox.delivery import ensure_volume, lacks_supervisor, refill
from harness.sandbox.endpoint import Endpoint, discover
from harness.sandbox.engine import Engine, flag_at, mapping_at, number_at, text_at
from harness.sandbox.hardening import BoxPlan
from harness.sandbox.images import Image, Images, Progress
from harness.sandbox.link import Link
from harness.sandbox.owner import Lease, Leases, Owner
from harness.sandbox.reaper import BoxRow, Reaped
from harness.sandbox.running import expiry
from harness.sandbox.supervised import SupervisedSandbox
from harness.sandbox.watch import EventWatch, Sightings
from harness.values.limits import WORKSPACE, BoxSpec, Capabilities

ORPHAN_SECONDS = 20.0
"""A box without a word from its controller for this long ends itself."""
REAP_EVERY = 60.0
DEADLINE_SLACK = 60.0
"""Seconds past a box's wall limit after which anybody's reaper may take it."""
FOR_EVER = 10 * 365 * 86400.0
"""The deadline of a box without a limit, in seconds. Its owner's death ends it, and its own
orphan clock."""


class DockerBackend:
    """Boxes on one engine. Connects when the first box is made."""

    def __init__(
        self,
        *,
        supervisor: bytes | None = None,
        endpoint: Endpoint | None = None,
        recipes: Path | None = None,
        progress: Progress | None = None,
        leases: Leases | None = None,
        orphan_seconds: float = ORPHAN_SECONDS,
    ) -> None:
        """Without an endpoint it is discovered. `supervisor` is the binary for PID 1, by default
        this installation's for the engine's machine."""
        self._supervisor = supervisor
        self._engine = Engine(endpoint or discover(os.environ, Path.home()))
        self._images = Images(self._engine, recipes, progress)
        self._leases = leases or Leases()
        self._here = Owner.current()
        self._orphan_seconds = orphan_seconds
        self._watch: EventWatch | None = None
        self._starting = asyncio.Lock()
        self._delivering = asyncio.Lock()
        self._reaping: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def engine(self) -> Engine:
        return self._engine

    @property
    def images(self) -> Images:
        return self._images

    async def create(self, spec: BoxSpec, *, run: str) -> SupervisedSandbox:
        """See `backends.Backend`."""
        info = await self._engine.info()
        capabilities = docker_capabilities(info, spec)
        admit(info, spec, capabilities, 0)
        program = await self._program(text_at(info, "Architecture"))
        image, volume = await asyncio.gather(
            self._images.resolve(spec.image), self._delivered(program)
        )
        admit(info, spec, capabilities, len(hardening.image_volumes(image.facts)))
        watch = await self._watching()
        plan = self._plan(spec, image, volume, run)
        try:
            return await self._open(plan, watch, capabilities)
        except SandboxError as fault:
            if not lacks_supervisor(fault):
                raise
        # the volume exists and lacks the program: whoever made it died half-way
        async with self._delivering:
            await refill(self._engine, program)
        return await self._open(self._plan(spec, image, volume, run), watch, capabilities)

    async def list_boxes(self) -> tuple[BoxRow, ...]:
        return await reaper.list_boxes(self._engine, self._leases, self._here)

    async def reap(self) -> tuple[Reaped, ...]:
        """Remove boxes that nobody ends any more, of any controller."""
        return await reaper.reap(self._engine, self._leases, self._here, time.time())

    async def close(self) -> None:
        """See `backends.Backend`."""
        self._closed = True
        if self._reaping is not None:
            self._reaping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reaping
        if self._watch is not None:
            await self._watch.close()
        await self._engine.close()

    def _plan(self, spec: BoxSpec, image: Image, volume: str, run: str) -> BoxPlan:
        labels = {
            reaper.OWNER: str(self._here),
            reaper.RUN: run,
            reaper.BOX: secrets.token_hex(16),
            reaper.SPEC: hardening.spec_digest(spec, image.digest),
            reaper.DEADLINE: str(
                int(time.time() + min(spec.limits.wall, FOR_EVER) + DEADLINE_SLACK)
            ),
        }
        command = hardening.supervisor_command(self._orphan_seconds)
        return BoxPlan(spec, image.digest, image.facts, volume, command, labels)

    async def _delivered(self, program: bytes) -> str:
        async with self._delivering:
            return await ensure_volume(self._engine, program)

    async def _program(self, machine: str) -> bytes:
        if self._supervisor is None:
            path = supervisor_binary(machine)
            self._supervisor = await asyncio.to_thread(path.read_bytes)
        return self._supervisor

    async def _watching(self) -> EventWatch:
        async with self._starting:
            if self._watch is None:
                api = await self._engine.api_version()
                dialled = await self._engine.dialled()
                self._watch = EventWatch(dialled, api, str(self._here))
            await self._watch.start()
            if self._reaping is None and not self._closed:
                self._reaping = asyncio.create_task(self._reap_regularly())
        return self._watch

    async def _reap_regularly(self) -> None:
        while not self._closed:
            with contextlib.suppress(SandboxError):
                await self.reap()
            await asyncio.sleep(REAP_EVERY)

    async def _open(
        self, plan: BoxPlan, watch: EventWatch, capabilities: Capabilities
    ) -> SupervisedSandbox:
        lease = self._leases.take(plan.labels[reaper.BOX])
        box = _Box(self._engine, replace(plan, held=capabilities.limits), watch, lease)
        async with contextlib.AsyncExitStack() as undo:
            undo.push_async_callback(box.end)
            opened = await box.open(capabilities, self._orphan_seconds)
            undo.pop_all()
        return opened


class _Box:
    """One container, from its creation until it is certainly gone."""

    def __init__(self, engine: Engine, plan: BoxPlan, watch: EventWatch, lease: Lease) -> None:
        self._engine = engine
        self._plan = plan
        self._watch = watch
        self._lease = lease
        self._name = f"harness-{plan.labels[reaper.BOX]}"
        self._container = ""
        self._making: asyncio.Task[Mapping[str, object]] | None = None
        self._pipe: AttachPipe | None = None
        self._link: Link | None = None
        self._seen = Sightings()
        self._expiry: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._ending: asyncio.Task[None] | None = None

    async def open(self, capabilities: Capabilities, orphan_seconds: float) -> SupervisedSandbox:
        await self._create()
        api = await self._engine.api_version()
        dialled = await self._engine.dialled()
        pipe = self._pipe = await attach(dialled, api, self._container)
        link = self._link = Link(pipe)
        pipe.listen(link.feed, self._stream_ended)
        self._seen = self._watch.of(self._container)
        await self._start()
        hello = await link.open(token=secrets.token_bytes(32), orphan_seconds=orphan_seconds)
        self._expiry = expiry(self._plan.spec.limits.wall, self._expired)
        return SupervisedSandbox(
            link,
            root=WORKSPACE,
            capabilities=replace(
                capabilities, features={**hello.features, **capabilities.features}
            ),
            image=self._plan.image,
            on_close=self.end,
            env=hardening.environment(self._plan.image_facts, self._plan.spec),
            output_limit=self._plan.spec.limits.output,
        )

    async def end(self) -> None:
        """Close the stream, remove the container, see that it is gone. Bounded; never raises.

        Without an engine the container cannot be removed: its supervisor ends it.
        """
        if self._ending is None:
            self._ending = asyncio.create_task(self._end())
        await asyncio.shield(self._ending)

    async def _create(self) -> None:
        body = hardening.create_body(self._plan)
        self._making = asyncio.create_task(
            self._engine.call(
                "create a box", lambda c: c.create_container_from_config(body, self._name)
            )
        )
        made = await asyncio.shield(self._making)
        self._container = text_at(made, "Id")

    async def _start(self) -> None:
        """Start it and look at its walls meanwhile: nothing but our supervisor runs so far."""
        container = self._container
        _, facts = await asyncio.gather(
            self._engine.call("start a box", lambda c: c.start(container)),
            self._engine.call("look at a box", lambda c: c.inspect_container(container)),
        )
        hardening.verify_created(facts, self._plan)

    async def _end(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
        if self._making is not None:
            # a create that was given up may still take effect, and then has a name only
            await asyncio.wait({self._making})
            if not self._making.cancelled():
                self._making.exception()
        if self._pipe is not None:
            self._pipe.close()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(2):
                    await self._pipe.closed()
        if self._making is not None:
            await reaper.remove(self._engine, self._container or self._name)
        self._watch.forget(self._container)
        self._lease.release()

    def _spawn(self, job: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(job)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _stream_ended(self, reason: str) -> None:
        if self._ending is None:
            self._spawn(self._bury(reason))
        elif self._link is not None:
            self._link.lost("the box was closed")

    def _expired(self) -> None:
        self._spawn(self._expire())

    async def _expire(self) -> None:
        wall = self._plan.spec.limits.wall
        if self._link is not None:
            self._link.lost(f"the box reached its limit of {wall:g} s", ("wall limit",))
        await self.end()

    async def _bury(self, reason: str) -> None:
        """Gather what the host can tell, before and after the engine forgets the box."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2):
                await self._seen.died.wait()
        evidence = [reason, *self._seen.words()]
        try:
            facts = await self._engine.call(
                "look at a box", lambda c: c.inspect_container(self._container), deadline=5
            )
        except SandboxError as fault:
            evidence.append(str(fault))
        else:
            state = mapping_at(facts, "State")
            code = number_at(state, "ExitCode")
            evidence.append(f"container state {text_at(state, 'Status')}, exit code {code}")
            if flag_at(state, "OOMKilled"):
                evidence.append("the engine marks the container as killed for want of memory")
        if self._pipe is not None and self._pipe.diagnostics:
            evidence.append(f"last words of the supervisor: {self._pipe.diagnostics[-1000:]}")
        if self._link is not None:
            self._link.lost("the box is gone", tuple(evidence))
