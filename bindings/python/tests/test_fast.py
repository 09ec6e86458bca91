# SPDX-License-Identifier: MIT
"""What the extension in C and its stand-in over cffi promise: the same results and errors, no
leaks, other threads that run meanwhile, and few steps of Python for a call.

Steps are counted and not timed, so that a slow machine changes nothing.
"""
import gc
import sys
import threading
import time

import pytest
from conftest import ALL_RIGHTS, PATIENCE, run_python

import sluice
from sluice import Work

compiled = sluice.compiled


def steps_of(function):
    """Calls of functions of Python and of C that it makes."""
    count = 0

    def profile(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    function()
    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count - 1  # that of setprofile()


@pytest.fixture
def ends(side):
    a, b = side.connect(side)
    side.channel, side.other = a, b
    return side


def test_steps_of_a_blocking_call(ends):
    piece, remote = ends.memory[:8], ends.memory.remote(64, 8)
    steps = steps_of(lambda: ends.channel.write(piece, remote, deadline=PATIENCE))
    assert steps <= (10 if compiled else 130), steps


def test_steps_of_a_post_and_a_poll(ends):
    piece, remote = ends.memory[:8], ends.memory.remote(64, 8)

    def both():
        ends.channel.post_write(piece, remote, deadline=PATIENCE)
        while not ends.channel.poll():
            pass

    steps = steps_of(both)
    assert steps <= (30 if compiled else 130), steps


def test_steps_of_a_list(ends):
    """With the extension they do not grow with the list."""
    one = Work.write(ends.memory[:8], ends.memory.remote(64, 8))
    few = steps_of(lambda: ends.channel.submit([one] * 2, deadline=PATIENCE))
    many = steps_of(lambda: ends.channel.submit([one] * 64, deadline=PATIENCE))
    assert many - few <= (0 if compiled else 62 * 40), (few, many)
    prepared = ends.channel.prepare([one] * 2), ends.channel.prepare([one] * 64)
    few, many = (steps_of(lambda: each.submit(deadline=PATIENCE)) for each in prepared)
    # The list of completions is looked through for failures.
    assert many - few <= (4 if compiled else 62 * 40), (few, many)


CALLS = {
    "write": lambda s, w: s.channel.write(s.memory[:8], s.memory.remote(64, 8), deadline=PATIENCE),
    "submit": lambda s, w: s.channel.submit([w] * 20, deadline=PATIENCE),
    "post": lambda s, w: s.channel.post([w], deadline=PATIENCE)[0].wait(PATIENCE),
    "poll": lambda s, w: (s.channel.post([w], deadline=PATIENCE), s.channel.poll()),
    "several pieces": lambda s, w: s.channel.submit(
        [Work.write([s.memory[:8], s.memory[8:16]], s.memory.remote(64, 16))], deadline=PATIENCE
    ),
    "messages": lambda s, w: (
        s.other.post_receive(s.memory[8:16], deadline=PATIENCE),
        s.channel.send(s.memory[:8], deadline=PATIENCE, immediate=7),
        s.other.poll(),
    ),
}

MISTAKES = {
    "no room": lambda s: s.channel.post([Work.send(s.memory[:8])] * 1000, deadline=0),
    "closed region": lambda s: s.channel.submit([s.of_closed], deadline=PATIENCE),
    "large peer": lambda s: s.channel.post([Work(sluice.SEND, s.memory[:8], 1 << 32)], deadline=1),
    "no number": lambda s: s.channel.submit([Work(sluice.SEND, s.memory[:8], "0")], deadline=1),
    "no work": lambda s: s.channel.submit([7], deadline=1),
    "range": lambda s: s.channel.write(s.memory[:16], s.memory.remote(0, 8), deadline=1),
    "operand": lambda s: s.channel.submit(
        [Work(sluice.SEND, s.memory[:8], operand=(1, 2))], deadline=1
    ),
    "negative": lambda s: s.channel.submit(
        [Work.fetch_add(s.memory[:8], s.memory.remote(64, 8), -1)], deadline=1
    ),
    "duration": lambda s: s.channel.send(s.memory[:8], deadline="1"),
    "past": lambda s: s.channel.post([Work.send(s.memory[:8])], deadline=-1),
    "truth": lambda s: s.channel.submit([Work.send(s.memory[:8])], deadline=True),
    "at once": lambda s: s.channel.write(s.memory[:8], s.memory.remote(64, 8), deadline=0),
    "second is wrong": lambda s: s.channel.submit(
        [
            Work.write(s.memory[:8], s.memory.remote(64, 8)),
            Work.write(s.memory[:8], s.memory.remote(64, 4)),
        ],
        deadline=1,
    ),
}


def with_closed_region(ends):
    gone = ends.domain.allocate(64, ALL_RIGHTS)
    ends.of_closed = Work.send(gone[:8])
    gone.close()


def error_of(call, *arguments):
    try:
        call(*arguments)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def all_errors():
    """Of each mistake; also for the same with and without the extension, see below."""
    from conftest import Side

    side = Side()
    side.channel, side.other = side.connect(side)
    with_closed_region(side)
    return [f"{name}: {error_of(call, side)}" for name, call in MISTAKES.items()]


def test_errors_are_the_same_without_the_extension():
    program = f"""
    import sys
    sys.path.insert(0, {__file__.rpartition("/")[0]!r})
    import test_fast
    print("extension", test_fast.compiled)
    print("\\n".join(test_fast.all_errors()))
    """
    plain = run_python(program, PYSLUICE="cffi", SLUICE_LOG="off").splitlines()
    here = run_python(program, SLUICE_LOG="off").splitlines()
    assert plain[0] == "extension False" and here[0] == f"extension {compiled}"
    assert len(plain) == len(MISTAKES) + 1
    assert here[1:] == plain[1:]
    assert not [line for line in plain if line.endswith("no error")]


def leaked(function):
    """Blocks of memory that many calls leave behind. The least of several tries: caches grow."""
    least = None
    for _ in range(5):
        gc.collect()
        before = sys.getallocatedblocks()
        for _ in range(200):
            function()
        gc.collect()
        after = sys.getallocatedblocks() - before
        least = after if least is None else min(least, after)
    return least


@pytest.mark.parametrize("name", CALLS)
def test_calls_leave_nothing_behind(ends, name):
    work = Work.write(ends.memory[:8], ends.memory.remote(64, 8), user=object())
    counted = (None, True, False, work, work.user, ends.memory, ends.channel, sluice.Completion)
    CALLS[name](ends, work)
    gc.collect()
    before = [sys.getrefcount(each) for each in counted]
    assert leaked(lambda: CALLS[name](ends, work)) < 50
    ends.channel.flush(PATIENCE)
    ends.channel.poll()
    ends.other.poll()
    gc.collect()
    after = [sys.getrefcount(each) for each in counted]
    # 1000 calls: one reference too many each would be as many; one too few would crash.
    assert all(now - then < 500 for now, then in zip(after, before)), (before, after)
    assert ends.channel.pending == 0 and ends.other.pending == 0


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_leave_nothing_behind(ends, name):
    with_closed_region(ends)
    call = MISTAKES[name]
    assert leaked(lambda: error_of(call, ends)) < 50
    assert ends.channel.pending == 0


@pytest.mark.parametrize("name", CALLS)
def test_other_threads_run_meanwhile(ends, name):
    """With an interval that never ends a thread runs only when a call lets go of the lock."""
    work = Work.write(ends.memory[:8], ends.memory.remote(64, 8))
    begin, ran = threading.Event(), []

    def other():
        begin.wait()
        ran.append(True)

    thread = threading.Thread(target=other)
    thread.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        begin.set()
        end = time.monotonic() + PATIENCE
        while not ran and time.monotonic() < end:
            CALLS[name](ends, work)
        assert ran
    finally:
        sys.setswitchinterval(interval)
        thread.join()


def test_work_in_flight_keeps_its_memory(ends):
    """Whatever becomes of the objects that named it, until it is complete."""
    buffer = bytearray(64)
    region = ends.domain.register(buffer)
    ends.other.post([Work.receive(region[:8])], deadline=PATIENCE)
    del region
    gc.collect()
    with pytest.raises(BufferError):
        buffer.extend(b"more")
    ends.memory.buffer[:8] = b"8 bytes!"
    ends.channel.send(ends.memory[:8], deadline=PATIENCE)
    ends.other.flush(PATIENCE)
    assert buffer[:8] == b"8 bytes!"
    ends.other.poll()
    gc.collect()
    buffer.extend(b"more")


def test_a_reset_channel_knows_nothing_of_the_former_work(ends):
    former = [ends.other.post_receive(ends.memory[:8], deadline=PATIENCE) for _ in range(20)]
    first, second = ends.channel.reset(), ends.other.reset()
    one, two = first.endpoint, second.endpoint
    a, b = first.handshake(two), second.handshake(one)
    a.wait_connected(PATIENCE)
    requests = [b.post_receive(ends.memory[:8], deadline=PATIENCE) for _ in range(20)]
    for each in requests:
        a.send(ends.memory[8:12], deadline=PATIENCE)
        assert each.result(PATIENCE).bytes == 4
    assert all(each.completion.error_class == former[0].completion.error_class for each in former)
    assert not former[0].completion.ok
    a.close()
    b.close()


def test_a_work_whose_pieces_change_while_it_is_posted(ends):
    """No memory is written that there is no room for."""

    class Growing(Work):
        looks = 0

        @property
        def pieces(self):
            self.looks += 1
            return (ends.memory[:8],) * self.looks

        @pieces.setter
        def pieces(self, value):
            pass

    error = error_of(ends.channel.submit, [Growing(sluice.SEND, None)])
    assert error.startswith(("ValueError", "TypeError", "IndexError", "no error")), error
