# SPDX-License-Identifier: MIT
"""Writes and reads of many blocks, whose indices are arrays of numpy."""
import array
import gc
import mmap
import sys

import numpy
import pytest
from conftest import ALL_RIGHTS, PATIENCE

import sluice
from sluice import Layout, Work


def test_paged_write_and_read(pair):
    a, b = pair
    pages = a.memory.array("uint8", (16, 64))
    pages[:] = numpy.arange(16, dtype="uint8")[:, None]
    indices = numpy.array([3, 1, 15], dtype="uint32")
    work = Work.write(a.memory[:1024], b.memory.remote(0, 192), layout=Layout.paged(indices, 64))
    (done,) = a.channel.submit([work], deadline=PATIENCE)
    assert done.bytes == 192
    there = b.memory.array("uint8", (16, 64))
    assert list(there[:3, 63]) == [3, 1, 15]
    # The array itself is read: what it has now is posted now.
    indices[:] = [2, 4, 6]
    a.channel.submit([work], deadline=PATIENCE)
    assert list(there[:3, 0]) == [2, 4, 6]

    back = Work.read(
        a.memory[32768:33792],
        b.memory.remote(0, 1024),
        layout=Layout.paged([5, 0, 9], 64),
        remote_layout=Layout.strided(3, 64, 64),
    )
    a.channel.post([back], deadline=PATIENCE)[0].result(PATIENCE)
    into = a.memory.array("uint8", (16, 64), 32768)
    assert [into[i, 7] for i in (5, 0, 9)] == [2, 4, 6]


def test_strided_in_a_prepared_list(pair):
    a, b = pair
    matrix = a.memory.array("uint8", (8, 8))
    matrix[:] = numpy.arange(64).reshape(8, 8)
    column = Work.write(
        a.memory[:64], b.memory.remote(0, 8), layout=Layout.strided(8, 1, 8), user="column"
    )
    with a.channel.prepare([column]) as prepared:
        (done,) = prepared.submit(deadline=PATIENCE)
    assert done.user == "column" and done.bytes == 8
    assert bytes(b.memory.buffer[:8]) == bytes(range(0, 64, 8))


@pytest.mark.parametrize(
    "indices",
    [
        [2, 0],
        (2, 0),
        range(2, -1, -2),
        numpy.array([2, 0]),
        numpy.array([2, 9, 0, 9], dtype="uint32")[::2],
        numpy.array([2, 0], dtype="int16"),
    ],
    ids=["list", "tuple", "range", "int64", "every other", "int16"],
)
def test_indices_of_other_kinds_are_copied(side, indices):
    a, b = side.connect(side)
    side.memory.array("uint8", (4, 8))[:] = numpy.arange(4)[:, None]
    layout = Layout.paged(indices, 8)
    a.submit(
        [Work.write(side.memory[:32], side.memory.remote(64, 16), layout=layout)], deadline=PATIENCE
    )
    assert bytes(side.memory.buffer[64:80]) == b"\2" * 8 + b"\0" * 8


def test_indices_stay_as_long_as_the_work(side):
    """A work and its layout hold the array, and let go of it with the last of them."""
    numbers, fixed = numpy.zeros(4, dtype="uint32"), array.array("I", range(4))
    a, b = side.connect(side)
    before = sys.getrefcount(numbers)
    layouts = Layout.paged(numbers, 8), Layout.paged(fixed, 8)
    works = [Work.write(side.memory[:32], side.memory.remote(64, 32), layout=e) for e in layouts]
    del layouts
    gc.collect()
    assert sys.getrefcount(numbers) > before
    with pytest.raises(BufferError):
        fixed.append(4)
    a.submit(works, deadline=PATIENCE)
    works.clear()
    gc.collect()
    assert sys.getrefcount(numbers) == before
    fixed.append(4)


def test_wrong_indices(side):
    a, b = side.connect(side)
    for wrong, error in (
        ([-1], OverflowError),
        ([1 << 32], OverflowError),
        (["1"], TypeError),
        ([1.5], TypeError),
        (7, TypeError),
        (numpy.zeros((2, 2), dtype="uint32"), TypeError),
    ):
        with pytest.raises(error):
            Layout.paged(wrong, 8)
    remote = side.memory.remote(64, 8)
    far = Work.write(side.memory[:32], remote, layout=Layout.paged([4], 8))
    for call in (a.submit, a.post):
        with pytest.raises(sluice.ArgumentError) as caught:
            call([far], deadline=PATIENCE)
        assert caught.value.errno == 34 and a.pending == 0
    message = Work(sluice.SEND, side.memory[:32], remote_layout=Layout.paged([0], 8))
    with pytest.raises(sluice.ArgumentError):
        a.submit([message], deadline=PATIENCE)


def test_messages_of_columns(sides):
    """The column of one matrix comes in another one's, and what is not the column stays."""
    a, b = sides
    few = sluice.Options(max_sge=2)
    a.channel, b.channel = a.connect(b, sluice.Options(max_sge=2, staging=4096))
    ours, theirs = (each.memory.array("int64", (16, 8)) for each in sides)
    ours[:], theirs[:] = numpy.arange(128).reshape(16, 8), -1
    column = Layout.strided(16, 8, 64)
    receive = Work.receive(b.memory[16:1024], layout=column, user="column")
    pending = b.channel.post([receive], deadline=PATIENCE)[0]
    a.channel.submit([Work.send(a.memory[8:1024], layout=column)], deadline=PATIENCE)
    done = pending.result(PATIENCE)
    assert done.bytes == 128 and done.user == "column"
    assert list(theirs[:, 2]) == list(ours[:, 1])
    assert (theirs[:, [0, 1, 3, 4, 5, 6, 7]] == -1).all()
    with pytest.raises(sluice.Error, match="staging"):
        a.connect(b, few)[0].submit([Work.send(a.memory[:1024], layout=column)], deadline=PATIENCE)
    a.channel.close()
    b.channel.close()


def test_a_multichannel_takes_layouts(side):
    prepared = [sluice.PreparedMultiChannel(side.domain, 1) for _ in range(2)]
    first, second = prepared[0].endpoints[0], prepared[1].endpoints[0]
    a, b = prepared[0].handshake([second]), prepared[1].handshake([first])
    memory = side.domain.allocate(256, ALL_RIGHTS)
    memory.buffer[:16] = bytes(range(16))
    layout = Layout.paged(numpy.array([1, 0], dtype="uint32"), 8)
    a.submit(
        [Work.write(memory[:16], memory.remote(64, 16), 0, remote_layout=layout)], deadline=PATIENCE
    )
    assert bytes(memory.buffer[64:80]) == bytes([*range(8, 16), *range(8)])
    a.close()
    b.close()


def test_memory_longer_than_an_element(pair):
    a, b = pair
    if a.context.info.transport != "soft":
        pytest.skip("the memory would be pinned")
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0x4000)
    memory = mmap.mmap(-1, 5 << 30, flags=flags)
    try:
        region = a.domain.register(memory)
    except sluice.Error as error:
        pytest.skip(f"no 5 GiB of address space: {error}")
    last = (5 << 30) - 4096
    memory[last : last + 4] = b"last"
    work = Work.write(
        region[:], b.memory.remote(0, 4096), layout=Layout.paged([last // 4096], 4096)
    )
    assert len(region[:]) == 5 << 30
    a.channel.submit([work], deadline=PATIENCE)
    assert bytes(b.memory.buffer[:4]) == b"last"
    a.channel.write(region[last:], b.memory.remote(4096, 4096), deadline=PATIENCE)
    assert bytes(b.memory.buffer[4096:4100]) == b"last"
    with pytest.raises(sluice.ArgumentError, match="layout"):
        Work.write(region, b.memory.remote())
    region.close()
