# SPDX-License-Identifier: MIT
"""Connecting by address, buffers by name, and the ranks of a job."""
import multiprocessing
import os
import threading

import numpy
import pytest
from conftest import DEVICE, PATIENCE

import sluice


def in_thread(function, *arguments, **options):
    """A thread, and where its result or error will be."""
    box = []

    def work():
        try:
            box.append(function(*arguments, **options))
        except Exception as error:
            box.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    return thread, box


def test_listen_and_connect(side):
    with sluice.Listener("127.0.0.1:0", secret_file="") as listener:
        address = f"127.0.0.1:{listener.port}"
        assert listener.address == address
        with pytest.raises(TimeoutError):
            listener.next(0.01)
        thread, box = in_thread(
            sluice.connect,
            address,
            side.domain,
            deadline=PATIENCE,
            secret_file="",
            private_data=b"who I am",
        )
        incoming = listener.next(PATIENCE)
        assert incoming.info.private_data == b"who I am" and not incoming.info.proven
        channel = incoming.accept(side.domain, deadline=PATIENCE, private_data=b"welcome")
        thread.join(PATIENCE)
        assert box[0].peer_data == b"welcome"
        request = channel.post_receive(side.memory, deadline=PATIENCE)
        box[0].send(side.memory[:4], deadline=PATIENCE)
        assert request.wait(PATIENCE).bytes == 4


def test_refused_and_nobody(side, tmp_path):
    with sluice.Listener("127.0.0.1:0", secret_file="") as listener:
        address = f"127.0.0.1:{listener.port}"
        thread, box = in_thread(
            sluice.connect, address, side.domain, deadline=PATIENCE, secret_file=""
        )
        listener.next(PATIENCE).refuse("not today")
        thread.join(PATIENCE)
        assert isinstance(box[0], sluice.PeerLostError) and "not today" in str(box[0])
    with pytest.raises(sluice.PeerLostError):
        sluice.connect(address, side.domain, deadline=PATIENCE, secret_file="")
    with pytest.raises(sluice.ArgumentError):
        sluice.connect("nowhere", side.domain, deadline=PATIENCE)
    with pytest.raises(ValueError):
        sluice.Listener("127.0.0.1:notaport")
    with pytest.raises(sluice.Error):
        sluice.Listener("127.0.0.1:0", secret_file=str(tmp_path / "none"))


def test_accept_and_multichannels(side):
    every = sluice.PreparedMultiChannel(side.domain, 0).handshake([])
    other = sluice.PreparedMultiChannel(side.domain, 0).handshake([])
    with sluice.Listener("127.0.0.1:0", secret_file="") as listener:
        address = f"127.0.0.1:{listener.port}"
        thread, box = in_thread(
            sluice.connect_into, address, other, 2, deadline=PATIENCE, secret_file=""
        )
        peers = listener.next(PATIENCE).accept_into(every, deadline=PATIENCE)
        thread.join(PATIENCE)
        assert box[0] == [0, 1] and peers == [0, 1]
        thread, box = in_thread(
            sluice.connect, address, side.domain, deadline=PATIENCE, secret_file=""
        )
        channel = listener.accept(side.domain, PATIENCE)
        thread.join(PATIENCE)
        assert channel.ready and box[0].ready
    request = every.post_receive(1, side.memory, deadline=PATIENCE)
    other.send(1, side.memory[:6], deadline=PATIENCE)
    assert request.wait(PATIENCE).peer == 1


def test_buffers_by_name(side):
    user_side = sluice.Context(DEVICE).domain()
    with sluice.BufferService(side.domain, address="127.0.0.1:0") as owner, sluice.BufferService(
        user_side, address="127.0.0.1:0"
    ) as user:
        array = numpy.arange(100, dtype="int64")
        with owner.publish(array) as buffer:
            handle = buffer.handle
            info = sluice.buffer_info(handle)
            assert info.length == 800 and info.address.startswith("127.0.0.1:")
            into = numpy.zeros(10, dtype="int64")
            user.read(handle, into, offset=80, deadline=PATIENCE)
            assert list(into) == list(range(10, 20))
            user.write(handle, numpy.full(5, 7, dtype="int64"), deadline=PATIENCE)
            assert list(array[:6]) == [7] * 5 + [5]
            region = user_side.allocate(64)
            user.submit(
                [
                    sluice.Action.read(handle, region[:8], 792, user="last"),
                    sluice.Action.write(handle, b"\1" * 8, 8),
                ],
                deadline=PATIENCE,
            )
            assert region.array("int64")[0] == 99 and array[1] == 0x0101010101010101
            with pytest.raises(ValueError):
                user.read(handle, into, offset=760, deadline=PATIENCE)
            with pytest.raises((TypeError, BufferError)):
                user.read(handle, b"not writable", deadline=PATIENCE)
            assert user.level(handle) > 0
        with pytest.raises(sluice.AccessError) as caught:
            user.read(handle, into, deadline=PATIENCE)
        assert len(caught.value.completions) == 1
        own = owner.publish(length=64)
        view = own.memory
        view[:3] = b"abc"
        got = bytearray(3)
        user.read(own.handle, got, deadline=PATIENCE)
        assert got == b"abc"
        with pytest.raises(BufferError):
            own.close()
        del view
        own.close()
    with pytest.raises(sluice.ProtocolError):
        sluice.buffer_info(bytes(256))


def test_one_rank(side):
    exchange = sluice.Exchange(rank=0, ranks=1, deadline=PATIENCE)
    assert exchange.allgather(b"abc", deadline=PATIENCE) == [b"abc"]
    with sluice.Node(domain=side.domain, exchange=exchange, deadline=PATIENCE) as node:
        assert (node.rank, node.ranks, len(node.all)) == (0, 1, 1)
        node.barrier(deadline=PATIENCE)
        assert node.allgather(b"x", deadline=PATIENCE) == [b"x"]
        assert node.alltoall([b"yz"], deadline=PATIENCE) == [b"yz"]
        with pytest.raises(ValueError, match="as many bytes"):
            node.alltoall([b"a", b"b"], deadline=PATIENCE)
        receive = node.all.post_receive(0, side.memory[:8], deadline=PATIENCE)
        node.all.send(0, side.memory[8:12], deadline=PATIENCE)
        assert receive.wait(PATIENCE).bytes == 4
        with node.connect(
            options=sluice.Options(arrival_tags=1), deadline=PATIENCE
        ) as counting:
            node.reconnect(counting, deadline=PATIENCE)
            remote = node.share(side.memory, deadline=PATIENCE)[0]
            counting.write(0, side.memory[:8], remote[8:16], immediate=0, deadline=PATIENCE)
            counting.wait_arrivals(0, 1, timeout=PATIENCE)
        with pytest.raises(sluice.Error, match="arrival_tags"):
            node.connect(options=sluice.Options(arrival_tags=1 << 31), deadline=PATIENCE)
        every = node.all
    with pytest.raises(sluice.ClosedError):
        every.send(0, side.memory[:1], deadline=PATIENCE)
    with pytest.raises(sluice.Error, match="rank"):
        sluice.Exchange(rank=3, ranks=2, root="127.0.0.1:1", deadline=1)


def test_members(side):
    asked = []

    def ask(own):
        asked.append(own)
        return [first.own_endpoint()]

    with sluice.Node.join(side.domain, 0, 4, lambda own: []) as first:
        assert (first.rank, first.ranks, first.members, first.generation) == (0, 4, [0], 1)
        with sluice.Node.join(side.domain, 2, 4, ask, max_connections=2) as second:
            first.grow(asked)
            assert first.members == second.members == [0, 2]
            assert first.generation == second.generation == 2
            said = []
            thread = threading.Thread(
                target=lambda: said.append(second.allgather(b"two", deadline=PATIENCE))
            )
            thread.start()
            assert first.allgather(b"one", deadline=PATIENCE)[::2] == [b"one", b"two"]
            thread.join()
            assert said[0][::2] == [b"one", b"two"]
        first.shrink([2])
        assert (first.members, first.generation) == ([0], 3)
        with pytest.raises(sluice.Error, match="no member"):
            first.shrink([2])
        with pytest.raises(sluice.Error, match="is a member"):
            first.grow([first.own_endpoint()])
    with pytest.raises(ZeroDivisionError):
        sluice.Node.join(side.domain, 0, 4, lambda own: 1 // 0)


def rank(number, ranks, root, results):
    exchange = sluice.Exchange(rank=number, ranks=ranks, root=root, deadline=PATIENCE)
    with sluice.Node(exchange=exchange, deadline=PATIENCE) as node:
        memory = node.domain.allocate(4096, sluice.LOCAL_WRITE | sluice.REMOTE_READ)
        words = memory.array("int64")
        words[0] = number * 10
        remotes = node.share(memory, deadline=PATIENCE)
        node.all.gather_read(
            {i: (memory[8 * i + 8 : 8 * i + 16], remotes[i][:8]) for i in range(ranks)},
            deadline=PATIENCE,
        )
        said = [int(each) for each in node.allgather(b"%03d" % number, deadline=PATIENCE)]
        traded = node.alltoall([b"%d%d" % (number, i) for i in range(ranks)], deadline=PATIENCE)
        assert traded == [b"%d%d" % (i, number) for i in range(ranks)]
        node.barrier(list(range(ranks)), deadline=PATIENCE)
        results.put((number, list(map(int, words[1 : ranks + 1])), said))
        del words
        node.shutdown(deadline=PATIENCE)


def test_ranks_in_processes(monkeypatch, root):
    monkeypatch.setenv("SLUICE_DEVICE", DEVICE)
    monkeypatch.setenv("SLUICE_LOG", "error")
    spawn = multiprocessing.get_context("spawn")
    results = spawn.Queue()
    processes = [spawn.Process(target=rank, args=(i, 3, root, results)) for i in range(3)]
    for process in processes:
        process.start()
    got = sorted(results.get(timeout=PATIENCE) for _ in range(3))
    for process in processes:
        process.join(PATIENCE)
        assert process.exitcode == 0
    assert got == [(i, [0, 10, 20], [0, 1, 2]) for i in range(3)]
    assert os.environ["SLUICE_DEVICE"] == DEVICE
