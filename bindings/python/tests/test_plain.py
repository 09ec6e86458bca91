# SPDX-License-Identifier: MIT
"""Any buffer as memory of a request, registered by a cache; and blocks of an allocator."""
import array
import asyncio
import gc

import numpy
import pytest
from conftest import ALL_RIGHTS, PATIENCE, run_python

import sluice
from sluice import Work


@pytest.fixture
def plain(sides):
    """A channel of each side, with a cache."""
    a, b = sides
    for each in sides:
        each.cache = sluice.MemoryCache(each.domain)
    mine = sluice.PreparedChannel(a.domain, sluice.Options(mr_cache=a.cache))
    theirs = sluice.PreparedChannel(b.domain, sluice.Options(mr_cache=b.cache))
    first, second = mine.endpoint, theirs.endpoint
    a.channel, b.channel = mine.handshake(second), theirs.handshake(first)
    yield a, b
    a.channel.close()
    b.channel.close()
    gc.collect()
    a.cache.close()
    b.cache.close()


def test_arrays_are_memory(plain):
    a, b = plain
    source = numpy.arange(1000.0)
    target = numpy.zeros(1000)
    request = b.channel.post_receive(target, deadline=PATIENCE)
    a.channel.send(source, deadline=PATIENCE)
    assert request.result(PATIENCE).bytes == 8000 and (target == source).all()
    a.channel.write(source[10:20], b.memory.remote(0, 80), deadline=PATIENCE)
    assert (b.memory.array("float64", 10) == source[10:20]).all()
    a.channel.read(source[:10], b.memory.remote(0, 80), deadline=PATIENCE)
    assert (source[:10] == numpy.arange(10.0, 20.0)).all()
    hits = a.cache.info.hits
    for _ in range(3):
        a.channel.write(source, b.memory.remote(0, 8000), deadline=PATIENCE)
    assert a.cache.info.hits == hits + 3 and a.cache.info.regions > 0


@pytest.mark.parametrize("kind", [bytes, bytearray, lambda data: array.array("b", data)])
def test_buffers_of_other_kinds(plain, kind):
    a, b = plain
    target = bytearray(8)
    request = b.channel.post_receive(target, deadline=PATIENCE)
    a.channel.send([kind(b"some"), kind(b"text")], deadline=PATIENCE)
    assert request.result(PATIENCE).ok and target == b"sometext"
    # It can be resized once no work names it; then it is not registered any more.
    del request
    gc.collect()
    target.extend(b"more")
    assert a.cache.info.regions == 0


def test_memory_is_forgotten_with_its_array(plain):
    a, b = plain
    source = numpy.ones(1 << 16, dtype="uint8")
    view = source[100:200]
    a.channel.write(view, b.memory.remote(0, 100), deadline=PATIENCE)
    del source
    assert a.cache.info.regions == 1
    with pytest.raises(ValueError):
        view.base.resize(1 << 20)
    del view
    gc.collect()
    assert a.cache.info.regions == 0


def test_memory_in_flight_stays(plain):
    a, b = plain
    target = numpy.zeros(100, dtype="uint8")
    request = b.channel.post_receive(target, deadline=PATIENCE)
    grown = bytearray(100)
    other = b.channel.post_receive(grown, deadline=PATIENCE)
    with pytest.raises(BufferError):
        grown.append(1)
    address = target.__array_interface__["data"][0]
    del target
    gc.collect()
    assert address == request._work.pieces[0].address
    with pytest.raises(sluice.BusyError):
        b.cache.close()
    a.channel.send(b"x" * 100, deadline=PATIENCE)
    a.channel.send(b"y" * 100, deadline=PATIENCE)
    assert request.result(PATIENCE).ok and other.result(PATIENCE).ok and grown == b"y" * 100


def test_lists_scopes_and_tasks(plain):
    a, b = plain
    numbers = numpy.zeros(4, dtype="uint8")
    with b.channel.scope(deadline=PATIENCE) as scope:
        scope.receive(numbers[:2])
        scope.receive(numbers[2:])
        a.channel.submit([Work.send(b"ab"), Work.send(b"cd")], deadline=PATIENCE)
    assert bytes(numbers) == b"abcd"

    async def both():
        request = b.channel.post_receive(numbers, deadline=PATIENCE)
        await a.channel.submit_async([Work.send(b"wxyz")], deadline=PATIENCE)
        return await request

    assert asyncio.run(both()).ok and bytes(numbers) == b"wxyz"
    with a.channel.prepare([Work.write(numbers, b.memory.remote(0, 4))]) as prepared:
        prepared.submit(deadline=PATIENCE)
    assert bytes(b.memory.buffer[:4]) == b"wxyz"


def test_mistakes(plain, pair):
    a, b = plain
    with pytest.raises(TypeError, match="writable"):
        a.channel.receive(b"constant", deadline=PATIENCE)
    with pytest.raises(TypeError, match="contiguous"):
        a.channel.send(numpy.zeros((4, 4))[:, 0], deadline=PATIENCE)
    with pytest.raises(TypeError):
        a.channel.send([a.memory[:1], b"x"], deadline=PATIENCE)
    with pytest.raises(TypeError):
        a.channel.send(5, deadline=PATIENCE)
    bare, _ = a.connect(b)
    with pytest.raises(sluice.ArgumentError, match="no cache"):
        bare.send(b"x", deadline=PATIENCE)


def test_cached_regions(sides):
    a, b = sides
    one, two = a.connect(b)
    cache = sluice.MemoryCache(a.domain, max_regions=8)
    data = numpy.arange(100, dtype="uint8")
    request = two.post_receive(b.memory, deadline=PATIENCE)
    with cache.get(data) as piece:
        assert len(piece) == 100 and cache.info.used == 1
        one.send(piece, deadline=PATIENCE)
        with pytest.raises(sluice.BusyError):
            cache.close()
    assert request.result(PATIENCE).bytes == 100 and cache.info.used == 0
    cache.forget(data)
    assert cache.info.regions == 0
    cache.close()
    with pytest.raises(sluice.ClosedError):
        cache.get(data)


def test_a_cache_ends_after_its_channels(sides):
    a, b = sides
    with sluice.MemoryCache(a.domain) as cache:
        mine = sluice.PreparedChannel(a.domain, sluice.Options(mr_cache=cache))
        theirs = sluice.PreparedChannel(b.domain)
        first, second = mine.endpoint, theirs.endpoint
        one, two = mine.handshake(second), theirs.handshake(first)
        with pytest.raises(sluice.BusyError):
            cache.close()
    assert cache.closed
    request = two.post_receive(b.memory, deadline=PATIENCE)
    one.send(numpy.ones(10), deadline=PATIENCE)
    assert request.result(PATIENCE).ok
    before = len(sluice._plain._ending)
    one.close()
    with sluice.MemoryCache(a.domain):
        pass
    assert len(sluice._plain._ending) < before


# Allocators.


def test_blocks(pair):
    a, b = pair
    allocator = sluice.Allocator(a.domain, ALL_RIGHTS)
    block = allocator.allocate(1000, 4096, zeroed=True)
    assert len(block) == 1000 and block.address % 4096 == 0 and bytes(block.buffer) == bytes(1000)
    block.array("float64")[:] = 2.5
    request = b.channel.post_receive(b.memory, deadline=PATIENCE)
    a.channel.send(block[8:24], deadline=PATIENCE)
    assert request.result(PATIENCE).bytes == 16
    assert list(b.memory.array("float64", 2)) == [2.5, 2.5]
    assert allocator.info.blocks == 1 and allocator.info.slabs == 1
    with pytest.raises(sluice.ArgumentError):
        block.remote()
    with pytest.raises(sluice.BusyError):
        allocator.close()
    block.close()
    with pytest.raises(sluice.ClosedError):
        block[:8]
    assert allocator.info.blocks == 0
    allocator.trim()
    assert allocator.info.slabs == 0
    allocator.close()
    with pytest.raises(sluice.ClosedError):
        allocator.allocate(10)


def test_shared_blocks(pair):
    a, b = pair
    with sluice.Allocator(b.domain, ALL_RIGHTS) as allocator:
        with allocator.allocate_shared(8192) as block:
            a.memory.buffer[:5] = b"hello"
            a.channel.write(a.memory[:5], block.remote(100, 5), deadline=PATIENCE)
            assert bytes(block.buffer[100:105]) == b"hello"
            assert allocator.info.regions == 1
        assert allocator.info.regions == 0
    assert allocator.closed


def test_a_block_in_flight_stays(pair):
    a, b = pair
    allocator = sluice.Allocator(b.domain)
    block = allocator.allocate(100)
    request = b.channel.post_receive(block[:50], deadline=PATIENCE)
    with pytest.raises(sluice.BusyError):
        block.close()
    with block:
        pass
    assert block.closed and allocator.info.released == 1
    numbers = allocator.allocate(80).array("float64")
    numbers[:] = 1  # keeps its block
    assert allocator.info.blocks == 1
    a.channel.send(a.memory[:50], deadline=PATIENCE)
    assert request.result(PATIENCE).ok
    b.channel.poll()
    assert allocator.info.released == 0
    left = allocator.allocate(16)
    view = left.array()
    with pytest.raises(BufferError):
        left.close()
    del view
    left.close()
    del numbers
    gc.collect()
    assert allocator.info.blocks == 0
    allocator.close()


def test_an_allocator_ends_with_its_last_block(side):
    allocator = sluice.Allocator(side.domain)
    block = allocator.allocate(100)
    with allocator:
        pass
    assert not allocator.closed
    del allocator
    block.buffer[:3] = b"abc"
    block.close()
    del block
    gc.collect()
    assert sluice._allocator._ending == []


def test_blocks_are_published_and_lent(side):
    service = sluice.BufferService(side.domain, address="127.0.0.1:0")
    allocator = sluice.Allocator(side.domain, ALL_RIGHTS)
    block = allocator.allocate_shared(4096)
    with service.publish(block[100:200]) as buffer:
        service.write(buffer.handle, b"published", deadline=PATIENCE)
        assert bytes(block.buffer[100:109]) == b"published"
        assert bytes(buffer.memory[:9]) == b"published"
    block.close()
    with pytest.raises(ValueError):
        allocator.allocate(-1)
    service.close()


def test_a_child_does_not_touch_blocks():
    out = run_python(
        """
        import os
        import sluice

        allocator = sluice.Allocator(sluice.Context().domain())
        block = allocator.allocate(100, zeroed=True)
        view = block.array()
        view[:] = 7
        child = os.fork()
        if child == 0:
            code = 0 if not view.any() else 1
            try:
                block.buffer
                code = 2
            except sluice.ArgumentError:
                pass
            os._exit(code)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), view[0])
        """
    )
    assert out == "0 7\n"
