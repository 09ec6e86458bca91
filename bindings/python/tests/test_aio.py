# SPDX-License-Identifier: MIT
"""asyncio, by the descriptors of channels and listeners."""
import asyncio
import os
import signal
import subprocess
import sys
import time

import pytest
from conftest import PATIENCE, Turns

import sluice
from sluice import Work


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, PATIENCE))


def test_await_requests(pair):
    a, b = pair

    async def main():
        receives = [b.channel.post_receive(b.memory[i:], deadline=PATIENCE) for i in range(5)]
        waiting = [asyncio.create_task(_result(each)) for each in receives]
        await asyncio.sleep(0.05)
        assert not any(each.done() for each in waiting)
        for i in range(5):
            assert (await a.channel.post_send(a.memory[: i + 1], deadline=PATIENCE)).ok
        return await asyncio.gather(*waiting)

    async def _result(request):
        return (await request).bytes

    assert run(main()) == [1, 2, 3, 4, 5]


def test_both_sides_talk(pair):
    """Each side is a task: 100 messages there and back."""
    a, b = pair

    async def talk(side, first):
        for i in range(100):
            receive = side.channel.post_receive(side.memory[:8], deadline=PATIENCE)
            if first:
                await side.channel.post_send(side.memory[8:16], deadline=PATIENCE)
            (await receive).check()
            if not first:
                await side.channel.post_send(side.memory[8:16], deadline=PATIENCE)
        return True

    async def main():
        return await asyncio.gather(talk(b, False), talk(a, True))

    assert run(main()) == [True, True]


def test_submit(sides):
    a, b = sides
    first, second = a.connect(b, sluice.Options(send_depth=4, receive_depth=4))

    async def main():
        sends = [Work.send(a.memory[:1], user=i) for i in range(40)]
        receives = [Work.receive(b.memory[:1], user=i) for i in range(40)]
        return await asyncio.gather(
            first.submit_async(sends, deadline=PATIENCE),
            second.submit_async(receives, deadline=PATIENCE),
        )

    for completions in run(main()):
        assert [each.user for each in completions] == list(range(40))
    assert first._loop is None and second._loop is None


def test_other_tasks_run_while_much_completes(sides):
    """One turn of the loop takes a bounded number of completions."""
    a, b = sides
    many = 1000
    first, second = a.connect(b, sluice.Options(send_depth=many, receive_depth=many))

    async def main():
        turns = Turns()

        async def take(request):
            assert (await request).ok
            turns.take()

        receives = second.post([Work.receive(b.memory[:1])] * many, deadline=PATIENCE)
        first.post([Work.send(a.memory[:1])] * many, deadline=PATIENCE)
        first.flush(PATIENCE)
        tasks = [asyncio.create_task(take(each)) for each in receives]
        async with turns:
            await asyncio.gather(*tasks)
        return turns.taken

    taken = run(main())
    assert sum(taken.values()) == many and max(taken.values()) <= 320


def test_deadline_acts_while_nobody_else_does(pair):
    a, b = pair

    async def main():
        completion = await b.channel.post_receive(b.memory, deadline=0.2)
        return completion

    begun = time.monotonic()
    assert run(main()).status == 64
    assert time.monotonic() - begun >= 0.2


def test_cancelled_task_leaves_its_work(pair):
    a, b = pair
    request = b.channel.post_receive(b.memory, deadline=PATIENCE)

    async def main():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(_wait(), 0.1)
        a.channel.post_send(a.memory[:7], deadline=PATIENCE)
        return await request

    async def _wait():
        return await request

    assert run(main()).bytes == 7


def test_closing_ends_who_awaits(pair):
    a, b = pair

    async def main():
        task = asyncio.create_task(_wait(b.channel.post_receive(b.memory, deadline=PATIENCE)))
        await asyncio.sleep(0.05)
        b.channel.close()
        return await task

    async def _wait(request):
        return await request

    assert not run(main()).ok


def test_a_second_loop(pair):
    a, b = pair

    async def once():
        request = b.channel.post_receive(b.memory, deadline=PATIENCE)
        await a.channel.submit_async([Work.send(a.memory[:3])], deadline=PATIENCE)
        return (await request).bytes

    assert [run(once()), run(once())] == [3, 3]


def test_accept(side):
    async def main():
        with sluice.Listener("127.0.0.1:0", secret_file="") as listener:
            with pytest.raises(TimeoutError):
                await listener.accept_async(side.domain, 0.05)
            task = asyncio.create_task(listener.accept_async(side.domain, PATIENCE))
            channel = await asyncio.to_thread(
                sluice.connect,
                f"127.0.0.1:{listener.port}",
                side.domain,
                deadline=PATIENCE,
                secret_file="",
            )
            other = await task
            request = other.post_receive(side.memory, deadline=PATIENCE)
            await channel.post_send(side.memory[:11], deadline=PATIENCE)
            return (await request).bytes

    assert run(main()) == 11


CLIENT = """
import os, sys
import sluice
with sluice.Context(sys.argv[2] or None) as context, context.domain() as domain:
    sluice.connect(
        f"127.0.0.1:{sys.argv[1]}", domain, deadline=PATIENCE, secret_file="",
        private_data=str(os.getpid()).encode(),
    )
"""


def _start_client(port):
    code = CLIENT.replace("PATIENCE", str(PATIENCE))
    device = os.environ.get("SLUICE_TEST_DEVICE", "")
    return subprocess.Popen([sys.executable, "-c", code, str(port), device])


@pytest.mark.parametrize("into", [False, True])
def test_a_stopped_client_holds_up_nobody(side, into):
    """Each is let in by a task of its own; those that are stopped are waited for by theirs alone."""

    async def let_in(incoming, multichannel):
        if into:
            return await incoming.accept_into_async(multichannel, deadline=None)
        return await incoming.accept_async(side.domain, deadline=None)

    async def main(listener, multichannel, clients):
        stopped, running = [], []
        for _ in clients:
            incoming = await listener.next_async(PATIENCE)
            pid = int(incoming.info.private_data)
            index = [each.pid for each in clients].index(pid)
            if index % 2 == 0:
                os.kill(pid, signal.SIGSTOP)
            task = asyncio.create_task(let_in(incoming, multichannel))
            (stopped if index % 2 == 0 else running).append(task)
            await asyncio.sleep(0)
        done = await asyncio.gather(*running)
        assert not any(each.done() for each in stopped)
        for each in stopped:
            each.cancel()
            with pytest.raises(asyncio.CancelledError):
                await each
        with pytest.raises(TimeoutError):
            await listener.next_async(0.05)
        return done

    with sluice.Listener("127.0.0.1:0", secret_file="") as listener:
        multichannel = sluice.PreparedMultiChannel(side.domain, 0).handshake([])
        clients = [_start_client(listener.port) for _ in range(4)]
        try:
            assert len(run(main(listener, multichannel, clients))) == 2
        finally:
            for each in clients:
                each.kill()
                each.wait()
        multichannel.close()


def test_tasks_share_a_listener(side):
    """Some wait for who comes, one for a channel; each gets its own."""

    async def main():
        with sluice.Listener("127.0.0.1:0", secret_file="") as listener:

            async def serve():
                incoming = await listener.next_async(PATIENCE)
                return await incoming.accept_async(side.domain, deadline=PATIENCE)

            servers = [asyncio.create_task(serve()) for _ in range(3)]
            late = asyncio.create_task(listener.next_async(0.05))
            with pytest.raises(TimeoutError):
                await late
            connects = [
                asyncio.to_thread(
                    sluice.connect,
                    f"127.0.0.1:{listener.port}",
                    side.domain,
                    deadline=PATIENCE,
                    secret_file="",
                )
                for _ in range(3)
            ]
            channels = await asyncio.gather(*servers, *connects)
            for each in channels:
                each.close()
            return len(channels)

    assert run(main()) == 6
