# SPDX-License-Identifier: MIT
"""Counters, histograms, the log, shared receives, scopes with lists, and what of nodes is new."""
import asyncio
import threading
import time

import numpy
import pytest
from conftest import ALL_RIGHTS, DEVICE, PATIENCE, run_python

import sluice
from sluice import Layout, Work


def test_counters(pair):
    a, b = pair
    request = b.channel.post_receive(b.memory, deadline=PATIENCE)
    a.channel.send(a.memory[:10], deadline=PATIENCE)
    request.result(PATIENCE)
    a.channel.write(a.memory[:100], b.memory.remote(), deadline=PATIENCE)
    counters = a.channel.counters
    assert counters.requests == {sluice.SEND: 1, sluice.WRITE: 1}
    assert counters.bytes == {sluice.SEND: 10, sluice.WRITE: 100} and counters.failed == {}
    with pytest.raises(sluice.DeadlineError):
        b.channel.receive(b.memory, deadline=0.05)
    assert b.channel.counters.failed == {sluice.ErrorClass.TIMEOUT: 1}
    assert b.channel.counters.requests[sluice.Opcode.RECEIVE] == 1


def test_histograms(sides):
    a, b = sides
    one, other = a.connect(b, sluice.Options(histograms=True))
    for _ in range(10):
        one.write(a.memory[:8], b.memory.remote(), deadline=PATIENCE)
    histogram = one.histogram(sluice.WRITE)
    assert histogram.count == 10 and sum(count for _, count in histogram.buckets) == 10
    assert 0 < histogram.min <= histogram.percentile(50) <= histogram.max < PATIENCE
    assert histogram.min <= histogram.mean <= histogram.max
    with pytest.raises(sluice.ArgumentError):
        histogram.percentile(101)
    histogram.merge(one.histogram(sluice.WRITE))
    assert histogram.count == 20
    one.reset_histograms()
    assert one.histogram(sluice.WRITE).count == 0 and one.histogram(sluice.WRITE).mean == 0
    other.close()
    plain, other = a.connect(b)
    with pytest.raises(sluice.UnsupportedError):
        plain.histogram(sluice.WRITE)


@pytest.fixture
def many(sides):
    """Three peers of a.all, each of which is one of b.all; receives of b.all are shared."""
    a, b = sides
    first = sluice.PreparedMultiChannel(a.domain, 3, sluice.Options(histograms=True))
    second = sluice.PreparedMultiChannel(b.domain, 3, sluice.Options(receive_pool=8))
    ours, theirs = first.endpoints, second.endpoints
    a.all, b.all = first.handshake(theirs), second.handshake(ours)
    a.all.wait_connected(PATIENCE)
    yield a, b
    a.all.close()
    b.all.close()


def test_shared_receives(many):
    a, b = many
    if b.context.info.transport != "soft":
        pytest.skip("not every device has shared receives")
    assert b.all.receive_any_room == 8
    posted = b.all.post_receive_any([b.memory[64 * i : 64 * i + 64] for i in range(10)])
    assert len(posted) == 8 and b.all.receive_any_room == 0 and b.all.pending == 8
    with pytest.raises(sluice.WouldBlockError):
        b.all.post_receive_any([b.memory[:8]])
    for i in (2, 0, 1):
        a.memory.buffer[0] = 65 + i
        a.all.send(i, a.memory[:1], deadline=PATIENCE)
    taken = [b.all.next(PATIENCE) for _ in range(3)]
    assert [each.completion.peer for each in taken] == [2, 0, 1]
    assert bytes(b.memory.buffer[0:129:64]) == b"CAB"
    b.all.flush(PATIENCE)  # it does not wait for the pool
    with pytest.raises(sluice.WaitTimeout):
        b.all.next(0.05)
    with pytest.raises(sluice.WaitTimeout):
        posted[3].wait(0.05)
    with pytest.raises(sluice.BusyError):
        b.memory.close()

    async def one():
        request = posted[3]
        await a.all.submit_async([Work.send(a.memory[:1], 1)], deadline=PATIENCE)
        return await request

    assert asyncio.run(one()).peer == 1
    b.all.reset_peer(1)
    assert not posted[4].done
    b.all.close()
    assert posted[7].done and not posted[7].completion.ok


def test_pools_need_an_option(sides):
    a, b = sides
    every = sluice.PreparedMultiChannel(a.domain, 0).handshake([])
    with pytest.raises(sluice.ArgumentError):
        every.post_receive_any([a.memory[:8]])
    with pytest.raises(sluice.ArgumentError):
        every.receive_any_room
    assert every.pending == 0


def test_many_at_a_time(many):
    a, b = many
    remote = b.memory.remote()
    a.memory.buffer[:4] = b"data"
    ended = a.all.multicast_write(
        a.memory[:4], {i: remote[100 * i :] for i in range(3)}, deadline=PATIENCE
    )
    assert [each.opcode for each in ended] == [sluice.WRITE] * 3
    assert [bytes(b.memory.buffer[100 * i : 100 * i + 4]) for i in range(3)] == [b"data"] * 3
    request = a.all.post_fetch_add(1, a.memory[8:16], remote[800:808], 5, deadline=PATIENCE)
    assert request.result(PATIENCE).ok
    request = a.all.post_compare_swap(2, a.memory[8:16], remote[800:808], 5, 6, deadline=PATIENCE)
    assert request.result(PATIENCE).ok and a.memory.array("uint64", 1, 8)[0] == 5
    assert a.all.counters().requests[sluice.WRITE] == 3
    assert a.all.counters(1).requests[sluice.WRITE] == 1
    assert a.all.histogram(sluice.WRITE).count == 3
    assert a.all.histogram(sluice.WRITE, 2).count == 1
    a.all.reset_histograms()
    assert a.all.histogram(sluice.WRITE).count == 0


def test_scopes(pair):
    a, b = pair
    remote = b.memory.remote()
    with a.channel.prepare([Work.write(a.memory[:8], remote[:8], user="listed")]) as prepared:
        a.memory.buffer[:8] = b"prepared"
        with a.channel.scope(deadline=PATIENCE) as scope:
            scope.post_list(prepared)
            added = scope.fetch_add(a.memory[64:72], remote[64:72], 7)
            swapped = scope.compare_swap(a.memory[72:80], remote[64:72], 7, 9)
            found = []
            until = time.monotonic() + PATIENCE
            while len(found) < 2 and time.monotonic() < until:
                found += scope.poll()
            assert found == [added, swapped] and scope.poll() == []
        assert bytes(b.memory.buffer[:8]) == b"prepared"
        assert b.memory.array("uint64", 1, 64)[0] == 9
        assert prepared.results()[0].user == "listed"


def test_failures_of_lists_in_scopes(pair):
    a, b = pair
    bad = sluice.RemoteRegion(b.memory.address, 8, b.memory.remote().key ^ 0x5A5A)
    with a.channel.prepare([Work.write(a.memory[:8], bad)]) as prepared:
        with pytest.raises(sluice.Error) as caught:
            with a.channel.scope(deadline=PATIENCE) as scope:
                scope.post_list(prepared)
        assert caught.value.completion.opcode == sluice.WRITE and len(scope.failures) == 1


def test_posted_atomics(pair):
    a, b = pair
    remote = b.memory.remote(0, 8)
    a.channel.post_fetch_add(a.memory[:8], remote, 3, deadline=PATIENCE).result(PATIENCE)
    a.channel.post_compare_swap(a.memory[:8], remote, 3, 4, deadline=PATIENCE).result(PATIENCE)
    assert b.memory.array("uint64", 1)[0] == 4 and a.memory.array("uint64", 1)[0] == 3


@pytest.mark.parametrize(
    "cut", [numpy.s_[:, 3:5], numpy.s_[2:5], numpy.s_[::2, :], numpy.s_[4, :], numpy.s_[1:3, 7:8]]
)
def test_layouts_of_views(pair, cut):
    a, b = pair
    matrix = a.memory.array("uint16", (10, 12))
    matrix[:] = numpy.arange(120).reshape(10, 12)
    view = matrix[cut]
    work = Work.write(a.memory.of(view), b.memory.remote(), layout=Layout.of(view))
    a.channel.submit([work], deadline=PATIENCE)
    assert (b.memory.array("uint16", view.shape) == view).all()
    b.memory.array()[:] = 0


def test_layouts_of_many_dimensions(pair):
    a, b = pair
    cube = a.memory.array("uint8", (4, 6, 8))
    cube[:] = numpy.arange(192).reshape(4, 6, 8)
    for view in (cube[::2, ::3, :4], cube[1:3], cube[:, :, 2:3], cube[:, 1:2, 0:8]):
        work = Work.write(a.memory.of(view), b.memory.remote(), layout=Layout.of(view))
        a.channel.submit([work], deadline=PATIENCE)
        assert (b.memory.array("uint8", view.shape) == view).all()
    with pytest.raises(ValueError):
        Layout.of(cube[::2, ::3, :5])
    with pytest.raises(ValueError):
        Layout.of(cube[::-1])
    with pytest.raises((ValueError, BufferError)):
        a.memory.of(cube[::-1])
    with pytest.raises(sluice.ArgumentError):
        b.memory.of(cube[:, 0])


# The log.


def test_log():
    out = run_python(
        """
        import logging
        import sluice

        lines = []
        sluice.set_log(sluice.LogLevel.DEBUG, lambda level, line: lines.append((level, line)))
        with sluice.Context() as context, context.domain() as domain:
            one, other = sluice.PreparedChannel(domain), sluice.PreparedChannel(domain)
            first, second = one.endpoint, other.endpoint
            channel = one.handshake(second), other.handshake(first)
        sluice.set_log(sluice.LogLevel.ERROR)
        print(len(lines) > 0, all(isinstance(each, sluice.LogLevel) for each, _ in lines))
        logger = logging.getLogger("sluice")
        records = []
        logger.addHandler(logging.Handler())
        logger.handlers[0].emit = records.append
        logger.setLevel(logging.DEBUG)
        sluice.log_to(logger, sluice.LogLevel.DEBUG)
        sluice.Context().close()
        sluice.PreparedChannel(sluice.Context().domain())
        sluice.set_log(sluice.LogLevel.ERROR)
        print(len(records) > 0, {each.levelno for each in records} <= {10, 20, 30, 40})
        sluice.log_to(logger, sluice.LogLevel.DEBUG)  # it ends with the interpreter
        """
    )
    assert out == "True True\nTrue True\n"


def test_no_such_level():
    with pytest.raises(sluice.ArgumentError):
        sluice.set_log(77)


# Nodes, exchanges, and the environment.


def test_launch(monkeypatch):
    for name in ("SLUICE_RANK", "SLUICE_RANKS"):
        monkeypatch.delenv(name, raising=False)
    out = run_python(
        """
        import sluice
        info = sluice.launch_info()
        print(info.rank, info.ranks, info.root, isinstance(info.kind, sluice.ExchangeKind))
        """,
        SLUICE_RANK="1",
        SLUICE_RANKS="3",
        SLUICE_ROOT="127.0.0.1:7471",
    )
    assert out == "1 3 127.0.0.1:7471 True\n"


def test_environment(monkeypatch):
    out = run_python(
        """
        import sluice
        found = {each.name: each for each in sluice.environment()}
        print(found["SLUICE_LOG"].state.name, found["SLUICE_LOG"].value)
        print(found["SLUICE_LOGG"].state.name, found["SLUICE_LOGG"].nearest)
        """,
        SLUICE_LOG="error",
        SLUICE_LOGG="1",
    )
    assert out == "SET error\nNOT_KNOWN SLUICE_LOG\n"


class Threads:
    """Carries the bytes of an exchange between threads."""

    def __init__(self, ranks):
        self.values = [None] * ranks
        self.meeting = threading.Barrier(ranks)

    def of(self, rank):
        return OfRank(self, rank)


class OfRank:
    def __init__(self, shared, rank):
        self.shared, self.rank = shared, rank

    def allgather(self, own, deadline):
        self.shared.values[self.rank] = own
        self.barrier(deadline)
        every = list(self.shared.values)
        self.barrier(deadline)
        return every

    def barrier(self, deadline):
        self.shared.meeting.wait(deadline)


def in_threads(ranks, function):
    """Calls a function for each rank; its results."""
    results = [None] * ranks

    def run(rank):
        try:
            results[rank] = function(rank)
        except BaseException as error:
            results[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    return results


def test_an_exchange_of_the_program(side):
    shared = Threads(3)

    def rank(number):
        with sluice.Exchange.wrap(shared.of(number), number, 3) as exchange:
            assert (exchange.rank, exchange.ranks) == (number, 3)
            every = exchange.allgather(b"%d" % number, deadline=PATIENCE)
            traded = exchange.alltoall([b"%d%d" % (number, i) for i in range(3)], deadline=PATIENCE)
            exchange.barrier(deadline=PATIENCE)
            local = exchange.locality(deadline=PATIENCE)
            with sluice.Node(
                exchange=exchange, domain=side.context.domain(), deadline=PATIENCE
            ) as node:
                assert node.exchange is None
                node.barrier(deadline=PATIENCE)
                node.shutdown(deadline=PATIENCE)
            return every, traded, local

    for number, result in enumerate(in_threads(3, rank)):
        expected = [b"0", b"1", b"2"], [b"%d%d" % (i, number) for i in range(3)], (number, 3)
        assert result == expected


def test_an_exchange_that_fails():
    class Broken:
        def allgather(self, own, deadline):
            raise KeyError("nothing")

        def barrier(self, deadline):
            raise TimeoutError("late")

    with sluice.Exchange.wrap(Broken(), 0, 2) as exchange:
        with pytest.raises(sluice.Error) as caught:
            exchange.allgather(b"x", deadline=PATIENCE)
        assert isinstance(caught.value.__cause__, KeyError)
    with sluice.Exchange.wrap(Broken(), 0, 2) as exchange:
        with pytest.raises(TimeoutError) as caught:
            exchange.barrier(deadline=PATIENCE)
        assert "late" in str(caught.value.__cause__)


def test_a_lost_rank_comes_back(side):
    domains = [sluice.Context(DEVICE).domain() for _ in range(2)]
    prepared = [sluice.PreparedNode(domains[i], i, 2) for i in range(2)]
    endpoints = [each.endpoints for each in prepared]
    nodes = [prepared[i].handshake([endpoints[j][i] for j in range(2)]) for i in range(2)]

    def meet():
        return in_threads(2, lambda i: nodes[i].barrier(deadline=PATIENCE))

    assert meet() == [None, None]
    assert prepared[0].closed and nodes[0].exchange is None
    nodes[1].close()
    # A new process in place of rank 1.
    again = sluice.PreparedNode(domains[1], 1, 2)
    theirs = again.endpoints
    nodes[0].reset_barriers()
    mine = nodes[0].reset_rank(1)
    nodes[1] = again.handshake([mine, theirs[1]])
    nodes[0].handshake_rank(1, theirs[0])
    for node in nodes:
        node.reset_barriers()
    assert meet() == [None, None]
    with pytest.raises(ValueError):
        nodes[0].handshake_rank(1, b"short")
    with pytest.raises(sluice.ArgumentError):
        nodes[0].reset_rank(0)
    for node in nodes:
        node.close()


def test_the_exchange_of_a_node(root):
    out = run_python(
        """
        import sluice
        with sluice.Node(deadline=60) as node:
            exchange = node.exchange
            print(exchange.ranks, exchange.allgather(b"x", deadline=60))
            exchange.close()
            print(node.exchange.rank)
        try:
            exchange.rank
        except sluice.ClosedError:
            print("closed")
        """,
        SLUICE_RANK="0",
        SLUICE_RANKS="1",
        SLUICE_ROOT=root,
    )
    assert out == "1 [b'x']\n0\nclosed\n"


def test_buffers_tell_of_their_owner(side):
    with sluice.BufferService(side.domain, address="127.0.0.1:0") as service:
        with sluice.BufferService(side.context.domain(), address="127.0.0.1:0") as other:
            with service.publish(length=4096) as buffer:
                with pytest.raises(sluice.NotConnectedError):
                    other.connection(buffer.handle)
                other.write(buffer.handle, b"x", deadline=PATIENCE)
                assert isinstance(other.connection(buffer.handle).level, sluice.Level)
                remote = other.remote(buffer.handle)
                assert len(remote) == 4096 and remote.key != 0


def test_pages(side):
    assert side.memory.page_size > 0 and side.memory.page_size % 4096 == 0
    assert side.domain.allocate(100, ALL_RIGHTS).page_size >= 4096


