# SPDX-License-Identifier: MIT
"""Pairs of connections on each wire of a device: soft, or that of SLUICE_TEST_DEVICE.

As in the tests in C: "self" is one context, "tcp" and "shm" are two, which the wire of soft joins.
"""
import asyncio
import os
import socket
import subprocess
import sys
import textwrap

import pytest

import sluice

DEVICE = os.environ.get("SLUICE_TEST_DEVICE", "soft")
WIRES = ["self", "tcp", "shm"] if DEVICE == "soft" else ["self", "tcp"]

#: Long for what succeeds: machines may be slow.
PATIENCE = 60
ALL_RIGHTS = (
    sluice.LOCAL_WRITE | sluice.REMOTE_READ | sluice.REMOTE_WRITE | sluice.REMOTE_ATOMIC
)


class Side:
    """One end: a context, a domain, memory, and what connects it."""

    def __init__(self, context=None):
        self.context = context or sluice.Context(DEVICE)
        self.domain = self.context.domain()
        self.memory = self.domain.allocate(65536, ALL_RIGHTS)

    def connect(self, other, options=None):
        """A channel on each side."""
        mine = sluice.PreparedChannel(self.domain, options)
        theirs = sluice.PreparedChannel(other.domain, options)
        first, second = mine.endpoint, theirs.endpoint
        return mine.handshake(second), theirs.handshake(first)


@pytest.fixture(params=WIRES)
def sides(request, monkeypatch):
    if DEVICE == "soft" and request.param != "self":
        monkeypatch.setenv("SLUICE_WIRE", request.param)
    first = Side()
    second = Side(first.context if request.param == "self" else None)
    yield first, second


@pytest.fixture
def pair(sides):
    """Both sides, with a channel each: a.channel, b.channel."""
    a, b = sides
    a.channel, b.channel = a.connect(b)
    yield a, b
    a.channel.close()
    b.channel.close()


@pytest.fixture
def side():
    return Side()


@pytest.fixture
def root():
    """Where rank 0 of a test listens. The socket stays until the test has ended: the kernel gives
    its port to nobody else, while a listener that asks to reuse addresses may have it, too."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{holder.getsockname()[1]}"


def pytest_configure(config):
    """With SLUICE_TEST_TAP, what came of each test is written there as well, for the harness."""
    name = os.environ.get("SLUICE_TEST_TAP")
    config.tap = open(name, "w") if name else None
    config.tap_count = 0


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report, config = outcome.get_result(), item.config
    if config.tap is None or (report.when != "call" and report.passed):
        return
    config.tap_count += 1
    name = item.nodeid.split("/")[-1]
    if report.failed:
        for line in str(report.longrepr).splitlines()[-40:]:
            print("#", line, file=config.tap)
    skip = f" # SKIP {report.longrepr[2]}" if report.skipped else ""
    word = "not ok" if report.failed else "ok"
    print(f"{word} {config.tap_count} - {name}{skip}", file=config.tap, flush=True)


def pytest_unconfigure(config):
    if config.tap is not None:
        print(f"1..{config.tap_count}", file=config.tap)
        config.tap.close()


class Turns:
    """Counts the turns that an event loop gives to other tasks, and what is taken in each."""

    def __init__(self):
        self.count = 0
        self.taken = {}

    async def __aenter__(self):
        self._counter = asyncio.create_task(self._count())
        return self

    async def __aexit__(self, *_):
        self._counter.cancel()

    async def _count(self):
        while True:
            self.count += 1
            await asyncio.sleep(0)

    def take(self):
        self.taken[self.count] = self.taken.get(self.count, 0) + 1


def run_python(code, *, timeout=PATIENCE, **environment):
    """Runs a program of its own; what it printed. It must succeed."""
    env = dict(os.environ, SLUICE_DEVICE=DEVICE, **environment)
    env["PYTHONPATH"] = os.path.dirname(os.path.dirname(sluice.__file__))
    result = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env=env,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout
