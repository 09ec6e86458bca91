# SPDX-License-Identifier: MIT
"""Memory: what Python sees of it, and how long it stays."""
import errno
import gc
import pickle
import weakref

import numpy

import pytest
from conftest import PATIENCE

import sluice


def test_allocated_memory_is_a_buffer(side):
    region = side.domain.allocate(4096)
    assert len(region) == 4096 and not any(region.buffer)
    view = region.buffer
    view[10] = 7
    array = region.array("uint8")
    assert array[10] == 7 and array.ctypes.data == region.address
    assert numpy.asarray(region)[10] == 7
    wide = region.array("float64", (4, 8), 64)
    wide[:] = 1.5
    assert bytes(region.buffer[64:72]) == numpy.float64(1.5).tobytes()
    with pytest.raises(ValueError):
        region.array("float64", 600)
    with pytest.raises(IndexError):
        region.array("uint8", 1, 5000)
    with pytest.raises(ValueError):
        region[0:10:2]
    with pytest.raises(TypeError):
        region[3]


def test_registered_buffers(side):
    array = numpy.arange(10, dtype="int64")
    region = side.domain.register(array, sluice.LOCAL_WRITE | sluice.REMOTE_READ)
    assert len(region) == 80 and region.address == array.ctypes.data
    region.array("int64")[3] = 33
    assert array[3] == 33
    assert region.of(array[2:4]).address == array[2:4].ctypes.data
    with pytest.raises(ValueError):
        region.of(numpy.zeros(4))
    plain = bytearray(100)
    with side.domain.register(plain) as held:
        assert len(held) == 100
        with pytest.raises(BufferError):
            plain.extend(b"more")
    gc.collect()
    plain.extend(b"more")
    for wrong in (b"bytes", numpy.zeros((4, 4))[:, 1], "text", 7):
        with pytest.raises(TypeError):
            side.domain.register(wrong)
    with pytest.raises(ValueError):
        side.domain.register(bytearray(0))
    with pytest.raises(sluice.ArgumentError):
        side.domain.register(array, sluice.REMOTE_WRITE)
    with pytest.raises(ValueError):
        side.domain.allocate(-1)


def test_close_is_at_once_or_refused(side):
    region = side.domain.allocate(4096)
    array = region.array("int32")
    with pytest.raises(BufferError):
        region.close()
    array[0] = 1
    del array
    region.close()
    region.close()
    assert region.closed
    for use in (lambda: region.buffer, lambda: region[0:4], lambda: region.remote()):
        with pytest.raises(sluice.ClosedError):
            use()


def test_views_outlive_the_block(side):
    with side.domain.allocate(4096) as region:
        array = region.array("int64")
        array[:] = 5
    assert region.closed and array.sum() == 512 * 5
    array[:] = 6
    assert array.sum() == 512 * 6


def test_views_outlive_the_region_and_its_parents():
    context = sluice.Context("soft")
    domain = context.domain()
    array = domain.allocate(1 << 20).array("int64")
    domain.close()
    context.close()
    gc.collect()
    array[:] = 3
    assert array.sum() == 3 << 17


def test_close_while_work_is_posted(pair):
    a, b = pair
    region = b.domain.allocate(64)
    request = b.channel.post_receive(region, deadline=PATIENCE)
    with pytest.raises(sluice.BusyError):
        region.close()
    region.leave()
    a.channel.send(a.memory[:8], deadline=PATIENCE)
    assert request.wait(PATIENCE).bytes == 8


def test_last_reference_while_posted(pair):
    """Nobody has the array, the region or the request any more, and the bytes still have a place."""
    a, b = pair
    array = numpy.zeros(1024, dtype="int64")
    watch = weakref.ref(array)
    region = b.domain.register(array)
    b.channel.post_receive(region, deadline=PATIENCE)
    del array, region
    gc.collect()
    assert watch() is not None
    filler = [numpy.ones(1024, dtype="int64") for _ in range(100)]
    a.memory.array("int64", 1024)[:] = 9
    a.channel.send(a.memory[:8192], deadline=PATIENCE)
    request = b.channel.next(PATIENCE)
    assert request.completion.bytes == 8192
    assert all(each.sum() == 1024 for each in filler)
    del request
    gc.collect()
    assert watch() is None


def test_given_up_while_posted(pair):
    """A with block ends, and so does the array, before the message comes."""
    a, b = pair
    array = numpy.zeros(1024, dtype="int64")
    watch = weakref.ref(array)
    with b.domain.register(array) as region:
        b.channel.post_receive(region, deadline=PATIENCE)
    del array, region
    gc.collect()
    assert watch() is not None
    a.channel.send(a.memory[:8192], deadline=PATIENCE)
    b.channel.next(PATIENCE)
    for _ in range(3):
        b.channel.poll()
    gc.collect()
    assert watch() is None


def test_everything_is_dropped_at_once(sides):
    a, b = sides
    first, second = a.connect(b)
    array = numpy.zeros(1 << 16, dtype="uint8")
    watch = weakref.ref(array)
    requests = [second.post_receive(b.domain.register(array), deadline=PATIENCE) for _ in range(9)]
    del array, second, requests
    gc.collect()
    assert watch() is None
    with pytest.raises(sluice.Error):
        first.send(a.memory[:8], deadline=3)


@pytest.mark.parametrize("order", ["context", "domain", "memory", "channel"])
def test_closing_in_any_order(sides, order):
    a, b = sides
    a.channel, b.channel = a.connect(b)
    b.channel.post_receive(b.memory, deadline=PATIENCE)
    names = ["context", "domain", "memory", "channel"]
    at = names.index(order)
    for name in names[at:] + names[:at]:
        each = getattr(b, name)
        if name == "memory" and not b.channel.closed:
            with pytest.raises(sluice.BusyError):
                each.close()
            each.leave()
        else:
            each.close()
        gc.collect()


def test_remote_regions(side):
    remote = side.memory.remote()
    copy = pickle.loads(pickle.dumps(remote))
    assert bytes(copy) == bytes(remote) and len(remote.pack()) == 32
    assert len(remote[100:300]) == 200 and remote[100:300].address == remote.address + 100
    with pytest.raises(ValueError):
        remote.slice(65530, 10)
    with pytest.raises(sluice.ProtocolError):
        sluice.RemoteRegion.unpack(bytes(32))
    with pytest.raises(ValueError):
        sluice.RemoteRegion.unpack(b"short")


@pytest.mark.parametrize(
    "index", [slice(0, 65537), slice(65537, None), slice(-65537, None), slice(None, 10**30)]
)
def test_a_slice_is_not_cut(side, index):
    for region in (side.memory, side.memory.remote()):
        with pytest.raises(sluice.ArgumentError, match="outside the region of 65536 bytes") as caught:
            region[index]
        assert caught.value.errno == errno.ERANGE
        assert len(region[:]) == len(region[-65536:65536]) == 65536
        assert len(region[65536:]) == 0


def test_a_view_of_other_memory(side):
    with pytest.raises(sluice.ArgumentError, match="of 8 bytes at 0x[0-9a-f]* is not within") as caught:
        side.memory.of(bytearray(8))
    assert caught.value.errno == errno.ERANGE and "-" not in str(caught.value)


def test_read_only_buffers(pair):
    a, b = pair
    with a.domain.register(b"constant", 0) as region:
        request = b.channel.post_receive(b.memory, deadline=PATIENCE)
        a.channel.send(region[:5], deadline=PATIENCE)
        assert request.result(PATIENCE).bytes == 5 and bytes(b.memory.buffer[:5]) == b"const"
        assert region.buffer.readonly and bytes(region.buffer) == b"constant"
        with pytest.raises(TypeError):
            region.buffer[0] = 1
    with pytest.raises(TypeError, match="writable"):
        a.domain.register(b"constant")
    with a.domain.register(bytearray(8), 0) as region:
        assert not region.buffer.readonly
