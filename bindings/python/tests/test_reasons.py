# SPDX-License-Identifier: MIT
"""The error of a posted request whose peer was killed says so, in the words of the library."""
import asyncio
import os
import subprocess
import sys

import pytest
from conftest import DEVICE, PATIENCE

import sluice
from sluice._completion import _FIELDS

WIRES = ["shm", "tcp"] if DEVICE == "soft" else [""]

PEER = f"""
import sys, time
import sluice
domain = sluice.Context("{DEVICE}").domain()
channel = sluice.connect(
    "127.0.0.1:" + sys.argv[1], domain, deadline={PATIENCE}, secret_file=""
)
memory = domain.allocate(64)
channel.send(memory, deadline={PATIENCE})
time.sleep(10 * {PATIENCE})
"""


@pytest.fixture(params=WIRES)
def domain(request, monkeypatch):
    if request.param:
        monkeypatch.setenv("SLUICE_WIRE", request.param)
    return sluice.Context(DEVICE).domain()


def killed_peer_of(domain, accept):
    """What accept() makes of a process, which has sent a message; and what kills it."""
    path = os.path.dirname(os.path.dirname(sluice.__file__))
    with sluice.Listener("127.0.0.1:0", secret_file="") as listener:
        process = subprocess.Popen(
            [sys.executable, "-c", PEER, str(listener.port)], env=dict(os.environ, PYTHONPATH=path)
        )

        def kill():
            process.kill()
            process.wait()

        try:
            return accept(listener.next(PATIENCE)), kill
        except BaseException:
            kill()
            raise


def test_of_a_channel(domain):
    memory = domain.allocate(64)
    channel, kill = killed_peer_of(domain, lambda each: each.accept(domain, deadline=PATIENCE))
    try:
        channel.receive(memory, deadline=PATIENCE)
        request, later = (channel.post_receive(memory, deadline=None) for _ in range(2))
    finally:
        kill()

    async def end():
        return await request

    ended = asyncio.run(end())
    with pytest.raises(sluice.PeerLostError) as caught:
        ended.check()
    assert channel.error.text and channel.error.text in str(caught.value)
    assert "retry counter" not in str(caught.value)
    # That of a request which ended because of it has both.
    said = str(later.wait(PATIENCE).exception())
    assert channel.error.text in said and (later.completion.status == ended.status or ": " in said)
    # It is kept where the connection is not.
    text = str(ended.exception())
    channel.close()
    assert str(request.completion.exception()) == text
    assert ended == request.completion and not ended.ok


def test_of_a_multichannel(domain):
    memory = domain.allocate(128)
    every = sluice.PreparedMultiChannel(domain, 0).handshake([])
    peer, kill = killed_peer_of(
        domain, lambda each: each.accept_into(every, deadline=PATIENCE)[0]
    )
    try:
        every.receive(peer, memory[:64], deadline=PATIENCE)
        every.post_receive(peer, memory[:64], deadline=None)
        listed = [sluice.Work.receive(memory[64 * i : 64 * i + 64], peer) for i in range(2)]
    finally:
        kill()
    completion = every.next(PATIENCE).completion
    assert every.error(peer).text in str(completion.exception())
    assert "retry counter" not in str(completion.exception())
    with pytest.raises(sluice.Error) as caught:
        every.submit(listed, deadline=PATIENCE)
    assert every.error(peer).text in str(caught.value)
    # A connection that was made anew has not failed.
    every.reset_peer(peer)
    again = sluice.Completion(**{name: getattr(completion, name) for name in _FIELDS})
    assert every._explained(again)._reason == ""
    every.close()
