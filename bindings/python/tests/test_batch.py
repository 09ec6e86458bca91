# SPDX-License-Identifier: MIT
"""Reads and writes of buffers by name in flight."""
import asyncio
import os
import signal
import socket
import threading
import time

import numpy
import pytest
from conftest import DEVICE, PATIENCE

import sluice

PAGES = 40
PAGE = 4096


class World:
    def __init__(self, domain):
        self.owner = sluice.BufferService(domain, address="127.0.0.1:0")
        self.user = sluice.BufferService(sluice.Context(DEVICE).domain(), address="127.0.0.1:0")
        self.pages = numpy.repeat(numpy.arange(1, PAGES + 1, dtype="uint8"), PAGE)
        self.buffer = self.owner.publish(self.pages)
        self.into = numpy.zeros(PAGES * PAGE, dtype="uint8")

    def actions(self, handle=None):
        return [
            sluice.Action.read(
                handle or self.buffer.handle, self.into[i * PAGE : (i + 1) * PAGE], i * PAGE, user=i
            )
            for i in range(PAGES)
        ]

    def nowhere(self):
        """A handle whose owner has gone, and a socket at its address that never answers."""
        gone = sluice.BufferService(sluice.Context(DEVICE).domain(), address="127.0.0.1:0")
        handle = gone.publish(length=PAGES * PAGE).handle
        host, port = sluice.buffer_info(handle).address.split(":")
        gone.close()
        return handle, socket.create_server((host, int(port)))

    def check(self, completions):
        assert [each.user for each in completions] == list(range(PAGES))
        assert all(each.ok and each.bytes == PAGE for each in completions)
        assert (self.into == self.pages).all()

    def close(self):
        self.user.close()
        self.buffer.close()
        self.owner.close()


@pytest.fixture
def world(side):
    made = World(side.domain)
    yield made
    made.close()


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, PATIENCE))


def test_waits_and_polls(world):
    with world.user.prepare(world.actions()) as batch:
        with pytest.raises(sluice.Error):
            batch.results()
        for _ in range(3):
            world.into[:] = 0
            batch.post(deadline=PATIENCE)
            world.check(batch.wait())
            assert batch.done()
            assert sorted(each.user for each in batch.poll()) == list(range(PAGES))
            assert batch.poll() == []
        world.into[:] = 0
        batch.post(deadline=PATIENCE)
        assert sorted(batch.next(PATIENCE).user for _ in range(PAGES)) == list(range(PAGES))
        with pytest.raises(sluice.Error):
            batch.next(0)
        world.check(batch.results())


def test_await(world):
    async def main():
        batch = world.user.post(world.actions(), deadline=PATIENCE)
        world.check(await batch)
        seen = []
        batch.post(deadline=PATIENCE)
        async for completion in batch:
            assert (world.into[completion.user * PAGE :][:PAGE] == completion.user + 1).all()
            seen.append(completion.user)
        assert sorted(seen) == list(range(PAGES))
        batch.close()

    run(main())


def test_many_await_many(world):
    async def read(rounds):
        into = bytearray(PAGE)
        for i in range(rounds):
            batch = world.user.post(
                [sluice.Action.read(world.buffer.handle, into, i % PAGES * PAGE)], deadline=PATIENCE
            )
            first, second = await asyncio.gather(_of(batch), _of(batch))
            assert first == second and into[0] == into[-1] == i % PAGES + 1
            batch.close()

    async def _of(batch):
        return [each.bytes for each in await batch]

    async def main():
        await asyncio.gather(*(read(30) for _ in range(8)))

    run(main())


def test_a_cancelled_task_cancels(world):
    handle, silent = world.nowhere()

    async def main():
        batch = world.user.post(world.actions(handle), deadline=None)
        task = asyncio.create_task(_wait(batch))
        await asyncio.sleep(0.05)
        assert not batch.done() and not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert batch.done()
        with pytest.raises(sluice.CancelledError) as caught:
            await batch
        assert len(caught.value.completions) == PAGES

    async def _wait(batch):
        return await batch

    run(main())
    silent.close()


def test_any_thread_cancels(world):
    handle, silent = world.nowhere()
    batch = world.user.post(world.actions(handle), deadline=None)
    with pytest.raises(sluice.WaitTimeout) as late:
        batch.wait(0.01)
    assert late.value.completions is None
    with pytest.raises(sluice.BusyError):
        batch.post(deadline=None)
    timer = threading.Timer(0.1, batch.cancel)
    timer.start()
    with pytest.raises(sluice.CancelledError) as caught:
        batch.wait()
    timer.join()
    assert all(each.error < 0 for each in caught.value.completions)
    batch.close()
    with pytest.raises(sluice.ClosedError):
        batch.wait()
    silent.close()


def test_ctrl_c_cancels(world):
    handle, silent = world.nowhere()
    batch = world.user.post(world.actions(handle), deadline=None)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        batch.wait()
    timer.join()
    assert batch.done()
    with pytest.raises(sluice.CancelledError):
        batch.results()
    silent.close()


def test_memory_stays_until_it_is_closed(world):
    into = bytearray(PAGE)
    batch = world.user.post([sluice.Action.read(world.buffer.handle, into)], deadline=PATIENCE)
    with pytest.raises(BufferError):
        into.extend(b"more")
    batch.close()
    into.extend(b"more")


def test_a_closed_service_ends_its_batches(world):
    handle, silent = world.nowhere()
    batch = world.user.post(world.actions(handle), deadline=None)
    begun = time.monotonic()
    world.user.close()
    assert time.monotonic() - begun < PATIENCE
    with pytest.raises(sluice.CancelledError):
        batch.wait()
    with pytest.raises(sluice.StaleError):
        batch.post(deadline=1)
    batch.close()
    silent.close()
