# SPDX-License-Identifier: MIT
"""Multichannels: many peers, here those of a second multichannel."""
import pytest
from conftest import PATIENCE

import sluice
from sluice import Work

PEERS = 3


@pytest.fixture
def many(sides):
    a, b = sides
    first = sluice.PreparedMultiChannel(a.domain, PEERS)
    second = sluice.PreparedMultiChannel(b.domain, PEERS)
    ours, theirs = first.endpoints, second.endpoints
    a.all, b.all = first.handshake(theirs), second.handshake(ours)
    a.all.wait_connected(PATIENCE)
    yield a, b
    a.all.close()
    b.all.close()


def part(side, i, size=64):
    return side.memory[size * i : size * i + size]


def test_scatter_and_gather(many):
    a, b = many
    posted = [b.all.post_receive(i, part(b, i), deadline=PATIENCE) for i in range(PEERS)]
    for i in range(PEERS):
        a.memory.buffer[64 * i] = i + 1
    completions = a.all.scatter({i: part(a, i) for i in range(PEERS)}, deadline=PATIENCE)
    assert [each.peer for each in completions] == [0, 1, 2]
    assert [each.wait(PATIENCE).bytes for each in posted] == [64] * PEERS
    assert [b.memory.buffer[64 * i] for i in range(PEERS)] == [1, 2, 3]
    with b.all.scope(deadline=PATIENCE) as scope:
        for i in range(PEERS):
            scope.send(part(b, i), i)
        a.all.gather({i: part(a, 10 + i) for i in range(PEERS)}, deadline=PATIENCE)
    assert [a.memory.buffer[64 * (10 + i)] for i in range(PEERS)] == [1, 2, 3]


def test_scatter_gather_to_itself(side):
    prepared = sluice.PreparedMultiChannel(side.domain, 2)
    one, two = prepared.endpoints
    every = prepared.handshake([two, one])
    side.memory.buffer[:2] = b"xy"
    completions = every.scatter_gather(
        {0: side.memory[0:1], 1: side.memory[1:2]},
        {0: side.memory[8:9], 1: side.memory[9:10]},
        deadline=PATIENCE,
    )
    assert bytes(side.memory.buffer[8:10]) == b"yx"
    assert [each.opcode for each in completions] == [sluice.SEND] * 2 + [sluice.RECEIVE] * 2
    with pytest.raises(sluice.BusyError):
        side.domain.register(bytearray(8)), every.post_receive(0, side.memory, deadline=PATIENCE)
        side.memory.close()


def test_one_sided(many):
    a, b = many
    remote = b.memory.remote()
    a.memory.array("int64", 24)[:] = range(24)
    a.all.scatter_write(
        {i: (part(a, i), remote[64 * i :]) for i in range(PEERS)}, deadline=PATIENCE
    )
    assert list(b.memory.array("int64", 24)) == list(range(24))
    a.all.gather_read(
        {i: (part(a, 20 + i), remote[64 * (2 - i) :]) for i in range(PEERS)}, deadline=PATIENCE
    )
    assert a.memory.array("int64", 1, 64 * 20)[0] == 16


def test_multicast_and_receive_from_any(many):
    a, b = many
    for i in range(PEERS):
        b.all.post([Work.receive(part(b, i), i, user=f"peer {i}")], deadline=PATIENCE)
    a.all.multicast_send(part(a, 0), range(PEERS), deadline=PATIENCE)
    users = {b.all.next(PATIENCE).user for _ in range(PEERS)}
    assert users == {"peer 0", "peer 1", "peer 2"}


def test_one_broken_peer(many):
    a, b = many
    endpoint = b.all.reset_peer(1)
    for i in (0, 2):
        b.all.post_receive(i, part(b, i), deadline=PATIENCE)
    with pytest.raises(sluice.Error) as caught:
        a.all.scatter({i: part(a, i) for i in range(PEERS)}, deadline=3)
    assert [each.ok for each in caught.value.completions] == [True, False, True]
    assert a.all.state(1) == sluice.FAILED and a.all.error(1).peer == 1
    assert a.all.state(0) == sluice.READY and a.all.error(0) is None
    mine = a.all.reset_peer(1)
    a.all.handshake_peer(1, endpoint)
    b.all.handshake_peer(1, mine)
    a.all.wait_connected(PATIENCE, 1)
    request = b.all.post_receive(1, part(b, 1), deadline=PATIENCE)
    a.all.send(1, part(a, 1), deadline=PATIENCE)
    assert request.wait(PATIENCE).ok


def test_peers_come_and_go(sides):
    a, b = sides
    first = sluice.PreparedMultiChannel(a.domain, 0).handshake([])
    second = sluice.PreparedMultiChannel(b.domain, 1)
    theirs = second.endpoints[0]
    index, mine = first.add_peer()
    assert index == 0 and len(first) == 1
    first.handshake_peer(index, theirs)
    second = second.handshake([mine])
    request = second.post_receive(0, b.memory, deadline=PATIENCE)
    first.send(0, a.memory[:5], deadline=PATIENCE)
    assert request.wait(PATIENCE).bytes == 5
    first.remove_peer(0)
    assert first.state(0) == sluice.REMOVED
    with pytest.raises(sluice.NotConnectedError):
        first.send(0, a.memory[:5], deadline=PATIENCE)


def test_prepared_list_of_many(many):
    a, b = many
    remote = b.memory.remote()
    works = [Work.write(part(a, i), remote[64 * i :], i, user=i) for i in range(PEERS)]
    prepared = a.all.prepare(works)
    for turn in range(5):
        a.memory.buffer[0] = turn
        assert [each.user for each in prepared.submit(deadline=PATIENCE)] == [0, 1, 2]
        assert b.memory.buffer[0] == turn
    prepared.close()


def test_a_full_queue_of_one_holds_up_no_other(side):
    options = sluice.Options(send_depth=2, receive_depth=2)
    prepared = sluice.PreparedMultiChannel(side.domain, 4, options)
    e = prepared.endpoints
    every = prepared.handshake([e[1], e[0], e[3], e[2]])
    receive = every.post_receive(3, side.memory[:1], deadline=PATIENCE)
    # Peer 1 takes nothing of peer 0; what is for peer 3 is behind that in the list.
    works = [Work.send(None, 0)] * 5 + [Work.send(side.memory[:1], 2)]
    with pytest.raises(TimeoutError) as caught:
        every.submit(works, deadline=1)
    assert receive.wait(PATIENCE).ok
    assert caught.value.completions[5].ok
