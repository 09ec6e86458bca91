# SPDX-License-Identifier: MIT
"""Agents: messages without a receive, and memory of peers on request."""
import asyncio
import gc
import linecache
import os
import sys
import threading
import time

import pytest
from conftest import ALL_RIGHTS, PATIENCE, Turns, run_python

import sluice
from sluice import Work

RIGHTS = sluice.REMOTE_READ | sluice.REMOTE_WRITE


@pytest.fixture
def agents(sides):
    """Both sides, with an agent each: a.agent has connected to b.agent, a.peer and b.peer."""
    a, b = sides
    b.agent = sluice.Agent(b.context.domain(), quota=1 << 20, secret_file="", eager=4096)
    b.agent.listen("127.0.0.1:0")
    a.own = a.context.domain()
    a.agent = sluice.Agent(a.own, secret_file="", eager=4096)
    a.local = a.own.allocate(65536)
    a.peer = a.agent.connect(f"127.0.0.1:{b.agent.port}", deadline=PATIENCE)
    b.peer = b.agent.next_peer(PATIENCE)
    yield a, b
    a.agent.close()
    b.agent.close()


def test_messages(agents):
    a, b = agents
    assert b.agent.address.startswith("127.0.0.1:")
    a.peer.send(b"hello", deadline=PATIENCE)
    a.peer.flush(PATIENCE)
    message = b.agent.receive(PATIENCE)
    assert bytes(message) == b"hello" and len(message) == 5 and message.peer is b.peer
    message.buffer[:1] = b"j"
    assert bytes(message) == b"jello"
    b.peer.send(b"", deadline=PATIENCE)
    assert bytes(a.agent.receive(PATIENCE, a.peer)) == b""
    with pytest.raises(sluice.WaitTimeout):
        a.agent.receive(0.01)
    with pytest.raises(sluice.WaitTimeout):
        a.agent.next_peer(0)
    assert a.agent.info.messages_sent == 1 and b.agent.info.messages_sent == 1


def test_long_messages(agents):
    a, b = agents
    data = bytes(range(256)) * 4096
    thread = threading.Thread(target=a.peer.send, args=(data,), kwargs={"deadline": PATIENCE})
    thread.start()
    message = b.agent.receive(PATIENCE)
    thread.join()
    view = message.buffer
    del message
    gc.collect()
    assert view == data


def test_memory_on_request(agents):
    a, b = agents
    with a.peer.request(8192, RIGHTS, deadline=PATIENCE, lease=30) as region:
        assert region.peer is a.peer and 0 < region.info.lease <= 30
        assert region.info.access == RIGHTS and len(region.info.remote) == 8192
        a.local.buffer[:5] = b"hello"
        region.write(a.local[:5], offset=100, deadline=PATIENCE)
        region.read([a.local[10:12], a.local[20:23]], offset=100, deadline=PATIENCE)
        assert bytes(a.local.buffer[10:12]) + bytes(a.local.buffer[20:23]) == b"hello"
        region.renew(40, deadline=PATIENCE)
        assert 30 < region.info.lease <= 40
        ended = a.peer.submit(
            [Work.read(a.local[30:35], region.info.remote[100:105], user="read")], deadline=PATIENCE
        )
        assert ended[0].user == "read" and bytes(a.local.buffer[30:35]) == b"hello"
        with pytest.raises(sluice.ArgumentError):
            region.read(a.local[:5], offset=8190, deadline=PATIENCE)
        with pytest.raises(sluice.AccessError):
            region.fetch_add(a.local[:8], 1, deadline=PATIENCE)
        assert b.agent.info.regions == 1 and a.agent.info.held == 1
    assert region.closed and b.agent.info.regions == 0
    with pytest.raises(sluice.ClosedError):
        region.read(a.local[:5], deadline=PATIENCE)
    with pytest.raises(sluice.Error) as caught:
        a.peer.request(1 << 30, RIGHTS, deadline=PATIENCE)
    assert "quota" in str(caught.value)


def test_atomics(agents):
    a, _ = agents
    if a.context.info.atomics == sluice.Atomics.NONE:
        pytest.skip("the device has no atomics")
    rights = RIGHTS | sluice.REMOTE_ATOMIC
    with a.peer.request(4096, rights, deadline=PATIENCE) as region:
        assert region.fetch_add(a.local[:8], 5, deadline=PATIENCE) == 0
        assert region.compare_swap(a.local[:8], 5, 9, deadline=PATIENCE) == 5
        assert region.fetch_add(a.local[:8], 1, deadline=PATIENCE) == 9


def test_a_region_is_sent_back(agents):
    a, b = agents
    region = a.peer.request(4096, RIGHTS, deadline=PATIENCE)
    a.local.buffer[:4] = b"data"
    region.write(a.local[:4], deadline=PATIENCE)
    region.send_back(deadline=PATIENCE)
    assert region.closed
    came = b.agent.receive_local(PATIENCE)
    assert came.peer is b.peer and bytes(came.region.buffer[:4]) == b"data"
    assert len(came.memory) == 4096
    came.region.close()


def test_memory_is_lent(agents):
    a, b = agents
    a.local.buffer[64:70] = b"column"
    name = a.peer.lend(a.local[64:128], RIGHTS, lease=None, deadline=PATIENCE)
    region = b.agent.receive_remote(PATIENCE)
    assert region.peer is b.peer and region.info.lease is None
    memory = b.agent._domain.allocate(64)
    region.read(memory, deadline=PATIENCE)
    assert bytes(memory.buffer[:6]) == b"column"
    # The memory stays, whatever the program drops or closes.
    with pytest.raises(BufferError):
        a.local.close()
    region.send_back(deadline=PATIENCE)
    came = a.agent.receive_local(PATIENCE)
    assert (came.id, came.region, came.memory.region) == (name, None, a.local)
    assert not a.peer._lent
    a.local.close()


def test_lent_memory_is_taken_back(agents):
    a, b = agents
    array = bytearray(b"x" * 4096)
    owned = a.own.register(array)
    name = a.peer.lend(owned, RIGHTS, lease=PATIENCE, deadline=PATIENCE)
    owned.close()
    del owned
    with pytest.raises(BufferError):
        array.append(1)  # the loan keeps it
    region = b.agent.receive_remote(PATIENCE)
    a.peer.revoke(name)
    array.append(1)
    memory = b.agent._domain.allocate(64)
    with pytest.raises(sluice.AccessError):
        region.read(memory, deadline=PATIENCE)
    with pytest.raises(sluice.Error):
        a.peer.revoke(name)
    region.close()


def test_close_and_loss(agents):
    a, b = agents
    assert b.peer.info.state is sluice.AgentState.CONNECTED
    assert isinstance(b.peer.info.level, sluice.Level) and a.peer.info.quota == 1 << 20
    region = a.peer.request(4096, RIGHTS, deadline=PATIENCE)
    a.peer.send(b"last words", deadline=PATIENCE)
    a.peer.close()
    a.peer.close()
    with pytest.raises(sluice.ClosedError):
        a.peer.send(b"x", deadline=PATIENCE)
    with pytest.raises(sluice.Error):
        region.read(a.local[:5], deadline=PATIENCE)
    message = b.agent.receive(PATIENCE)
    assert bytes(message) == b"last words"
    with pytest.raises(sluice.NotConnectedError):
        b.agent.receive(PATIENCE, b.peer)
    assert b.peer.info.state is sluice.AgentState.LOST
    b.agent.close()
    assert b.peer.closed and bytes(message) == b"last words"
    with pytest.raises(sluice.ClosedError):
        b.agent.receive(PATIENCE)


def test_a_sender_that_was_not_taken(agents):
    a, b = agents
    late = a.agent.connect(f"127.0.0.1:{b.agent.port}", deadline=PATIENCE)
    late.send(b"early", deadline=PATIENCE)
    message = b.agent.receive(PATIENCE)
    sender = message.peer
    sender.send(b"back", deadline=PATIENCE)
    assert bytes(a.agent.receive(PATIENCE, late)) == b"back"
    assert b.agent.next_peer(PATIENCE) is sender
    del message
    sender.close()


def test_waits_end(agents):
    a, b = agents
    errors = []

    def wait(function):
        try:
            function()
        except sluice.Error as error:
            errors.append(type(error))

    thread = threading.Thread(target=wait, args=(lambda: b.agent.receive(None),))
    thread.start()
    time.sleep(0.05)
    b.agent.wake()
    thread.join(PATIENCE)
    assert errors == [sluice.InterruptedWait]
    # A long message that no program receives, and a wait: close() ends both.
    threads = [
        threading.Thread(target=wait, args=(call,))
        for call in (
            lambda: a.peer.send(bytes(1 << 20), deadline=None),
            lambda: a.agent.receive(None),
        )
    ]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    begun = time.monotonic()
    a.agent.close()
    assert time.monotonic() - begun < 5
    for thread in threads:
        thread.join(PATIENCE)
    assert len(errors) == 3


def test_asyncio(agents):
    a, b = agents

    async def both():
        waits = [asyncio.ensure_future(b.agent.receive_async(PATIENCE, b.peer)) for _ in range(3)]
        answer = asyncio.ensure_future(a.agent.receive_async(PATIENCE))
        await asyncio.sleep(0.01)
        for i in range(3):
            await a.peer.send_async(bytes([i]), deadline=PATIENCE)
        came = [bytes(each) for each in await asyncio.gather(*waits)]
        await b.peer.send_async(b"x" * 100000, deadline=PATIENCE)
        return came, len(await answer)

    came, length = asyncio.run(both())
    assert sorted(came) == [b"\0", b"\1", b"\2"] and length == 100000

    async def late():
        await b.agent.receive_async(0.05)

    with pytest.raises(sluice.WaitTimeout):
        asyncio.run(late())


def test_other_tasks_run_while_messages_come(sides):
    a, b = sides
    many = 600
    server = sluice.Agent(b.context.domain(), secret_file="", max_waiting=many)
    client = sluice.Agent(a.context.domain(), secret_file="")
    server.listen("127.0.0.1:0")
    peer = client.connect(f"127.0.0.1:{server.port}", deadline=PATIENCE)

    async def main():
        async with Turns() as turns:
            for i in range(many):
                assert bytes(await server.receive_async(PATIENCE)) == b"%d" % i
                turns.take()
        return turns.taken

    for i in range(many):
        peer.send(b"%d" % i, deadline=PATIENCE)
    peer.flush(PATIENCE)
    taken = asyncio.run(main())
    assert sum(taken.values()) == many and max(taken.values()) <= 256
    client.close()
    server.close()


def test_event_loop_of_the_program(agents):
    import select

    a, b = agents
    b.agent.arm()
    a.peer.send(b"x", deadline=PATIENCE)
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        due = b.agent.arm()
        if due == 0.0:
            break
        select.select([b.agent.fileno()], [], [], PATIENCE if due is None else due)
    assert bytes(b.agent.receive(0)) == b"x"
    assert b.agent.progress() in (True, False)


def test_ctrl_c():
    out = run_python(
        """
        import os, signal, threading, time
        import sluice

        context = sluice.Context()
        one = sluice.Agent(context.domain(), secret_file="")
        other = sluice.Agent(context.domain(), secret_file="")
        other.listen("127.0.0.1:0")
        peer = one.connect(f"127.0.0.1:{other.port}", deadline=60)
        theirs = other.next_peer(60)

        def interrupted(function):
            timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
            begun = time.monotonic()
            timer.start()
            try:
                function()
            except KeyboardInterrupt:
                print("interrupted", time.monotonic() - begun < 5)
            timer.join()

        interrupted(lambda: one.receive(None))
        interrupted(lambda: one.next_peer(None))
        interrupted(lambda: peer.send(bytes(1 << 20), deadline=None))
        peer.send(b"after", deadline=60)
        print(bytes(other.receive(60)))
        one.close()
        """
    )
    assert out == "interrupted True\n" * 3 + "b'after'\n"


def test_what_ctrl_c_interrupts_is_not_lost(agents, monkeypatch):
    a, b = agents
    interrupts = []

    def interrupt(*arguments):
        interrupts.append(arguments)
        monkeypatch.undo()
        raise KeyboardInterrupt

    a.peer.send(b"first", deadline=PATIENCE)
    a.peer.send(b"second", deadline=PATIENCE)
    monkeypatch.setattr(b.agent, "_peer_of", interrupt)
    with pytest.raises(KeyboardInterrupt):
        b.agent.receive(PATIENCE)
    assert [bytes(b.agent.receive(PATIENCE)) for _ in range(2)] == [b"first", b"second"]
    name = a.peer.lend(a.local[:64], RIGHTS, lease=None, deadline=PATIENCE)
    monkeypatch.setattr(b.agent, "_peer_of", interrupt)
    with pytest.raises(KeyboardInterrupt):
        b.agent.receive_remote(PATIENCE)
    gc.collect()
    b.agent.receive_remote(PATIENCE, b.peer).send_back(deadline=PATIENCE)
    monkeypatch.setattr(a.agent, "_peer_of", interrupt)
    with pytest.raises(KeyboardInterrupt):
        a.agent.receive_local(PATIENCE)
    assert a.agent.receive_local(PATIENCE, None).id == name
    other = a.agent.connect(f"127.0.0.1:{b.agent.port}", deadline=PATIENCE)
    monkeypatch.setattr(b.agent, "_own_peer", interrupt)
    with pytest.raises(KeyboardInterrupt):
        b.agent.next_peer(PATIENCE)
    b.agent.next_peer(PATIENCE).send(b"third", deadline=PATIENCE)
    assert bytes(a.agent.receive(PATIENCE, other)) == b"third"
    other.send(b"left", deadline=PATIENCE)
    monkeypatch.setattr(b.agent, "_peer_of", interrupt)
    with pytest.raises(KeyboardInterrupt):
        b.agent.receive(PATIENCE)
    assert len(interrupts) == 5 and len(b.agent._kept) == 1
    b.agent.close()
    assert b.agent._kept == []


def interrupted_before(line, function):
    """Calls a function as if Ctrl-C came before that line of what runs of agents. Returns whether
    it came, and what was returned. Blocks are entered and left whole: Python itself lets Ctrl-C
    come between the end of a block and its __exit__()."""
    lines = 0

    def trace(frame, event, argument):
        nonlocal lines
        if os.path.basename(frame.f_code.co_filename) not in ("_agent.py", "_agent_peer.py"):
            return None
        text = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        if event == "line" and not text.lstrip().startswith("with "):
            lines += 1
            if lines == line:
                raise KeyboardInterrupt
        return trace

    outer = sys.gettrace()
    sys.settrace(trace)
    try:
        return False, function()
    except KeyboardInterrupt:
        return True, None
    finally:
        sys.settrace(outer)


def each_interrupt(begin, call, end):
    """Interrupts a call before each of its lines, once. begin() is called before, and end() with
    the result of another call after an interrupt."""
    for line in range(1, 1000):
        begin()
        came, result = interrupted_before(line, call)
        gc.collect(0)
        end(call() if came else result)
        if not came:
            return line
    raise AssertionError("the call does not end")


def test_ctrl_c_before_any_line_loses_no_message(agents):
    a, b = agents

    def send():
        a.peer.send(b"first", deadline=PATIENCE)
        a.peer.send(b"second", deadline=PATIENCE)

    def check(first):
        gc.collect(0)
        assert [bytes(first), bytes(b.agent.receive(PATIENCE))] == [b"first", b"second"]

    assert each_interrupt(send, lambda: b.agent.receive(PATIENCE), check) > 20
    assert each_interrupt(send, lambda: b.agent.receive(PATIENCE, b.peer), check) > 20
    assert b.agent._kept == []


def test_ctrl_c_before_any_line_loses_no_memory(agents):
    a, b = agents
    names = []

    def lend():
        names.append(a.peer.lend(a.local[:64], RIGHTS, lease=None, deadline=PATIENCE))

    def lend_and_return():
        lend()
        b.agent.receive_remote(PATIENCE).send_back(deadline=PATIENCE)

    def check_lent(region):
        gc.collect(0)
        region.send_back(deadline=PATIENCE)
        assert a.agent.receive_local(PATIENCE).id == names[-1]

    def check_returned(returned):
        assert returned.id == names[-1] and returned.memory.length == 64

    def request():
        return a.peer.request(100, RIGHTS, deadline=PATIENCE)

    def request_and_return():
        with request() as region:
            region.write(a.local[:64], offset=0, deadline=PATIENCE)
            region.send_back(deadline=PATIENCE)

    def check_allocated(returned):
        gc.collect(0)
        assert bytes(returned.region.buffer[:64]) == bytes(a.local.buffer[:64])
        returned.region.close()

    a.local.buffer[:64] = bytes(range(64))
    assert each_interrupt(lend, lambda: b.agent.receive_remote(PATIENCE), check_lent) > 20
    take = lambda: a.agent.receive_local(PATIENCE)  # noqa: E731
    assert each_interrupt(lend_and_return, take, check_returned) > 20
    take = lambda: b.agent.receive_local(PATIENCE)  # noqa: E731
    assert each_interrupt(request_and_return, take, check_allocated) > 20
    each_interrupt(lambda: None, request, lambda region: region.release(deadline=PATIENCE))
    gc.collect(0)
    until = time.monotonic() + PATIENCE
    while b.agent.info.bytes > 0 and time.monotonic() < until:
        time.sleep(0.01)
    assert b.agent.info.bytes == 0 and a.agent._kept == b.agent._kept == []


def test_ctrl_c_before_any_line_loses_no_peer(agents):
    a, b = agents
    others = []

    def connect():
        others.append(a.agent.connect(f"127.0.0.1:{b.agent.port}", deadline=PATIENCE))

    def check(peer):
        peer.send(b"hello", deadline=PATIENCE)
        assert bytes(a.agent.receive(PATIENCE, others[-1])) == b"hello"
        peer.close()
        others.pop().close()

    assert each_interrupt(connect, lambda: b.agent.next_peer(PATIENCE), check) > 20


def test_agents_end_with_the_interpreter():
    out = run_python(
        """
        import sluice

        domain = sluice.Context().domain()
        agent = sluice.Agent(domain, quota=1 << 20, secret_file="")
        agent.listen("127.0.0.1:0")
        user = sluice.Agent(sluice.Context().domain(), secret_file="")
        peer = user.connect(f"127.0.0.1:{agent.port}", deadline=60)
        region = peer.request(4096, sluice.REMOTE_READ, deadline=60)
        peer.send(b"x", deadline=60)
        message = agent.receive(60)
        print("done")
        """
    )
    assert out == "done\n"


def test_attributes(side):
    with pytest.raises(sluice.ArgumentError):
        sluice.Agent(side.domain, eager=1)
    with sluice.Agent(side.domain, max_lease=5, thread=False, access=ALL_RIGHTS & ~1) as agent:
        with pytest.raises(sluice.Error):
            agent.port
