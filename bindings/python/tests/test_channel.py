# SPDX-License-Identifier: MIT
"""Channels: messages, one-sided work, waits, errors."""
import dataclasses
import errno
import threading
import time

import pytest
from conftest import DEVICE, PATIENCE

import sluice
from sluice import Work
from sluice._library import ffi


def test_options_are_the_attributes():
    ours = {field.name for field in dataclasses.fields(sluice.Options)}
    fields = {name for name, _ in ffi.typeof("struct sluice_channel_attr").fields}
    assert fields - ours == {"size", "flags"}
    assert ours - fields == {"global_route", "drop_long", "histograms"}  # flags


def test_message(pair):
    a, b = pair
    a.memory.buffer[:5] = b"hello"
    request = b.channel.post_receive(b.memory[100:200], deadline=PATIENCE)
    assert not request.done
    a.channel.send(a.memory[:5], deadline=PATIENCE, immediate=42)
    completion = request.wait(PATIENCE)
    assert completion.ok and completion.bytes == 5 and completion.immediate == 42
    assert bytes(b.memory.buffer[100:105]) == b"hello"
    assert request.done and request.result(0) is completion


def test_message_of_no_bytes_and_of_pieces(pair):
    a, b = pair
    first = b.channel.post_receive(None, deadline=PATIENCE)
    second = b.channel.post_receive([b.memory[:2], b.memory[10:14]], deadline=PATIENCE)
    a.channel.send(None, deadline=PATIENCE)
    a.memory.buffer[:6] = b"abcdef"
    a.channel.send([a.memory[3:6], a.memory[:3]], deadline=PATIENCE)
    assert first.wait(PATIENCE).bytes == 0
    assert second.wait(PATIENCE).bytes == 6
    assert bytes(b.memory.buffer[:2]) == b"de" and bytes(b.memory.buffer[10:14]) == b"fabc"


def test_write_and_read(pair):
    a, b = pair
    remote = sluice.RemoteRegion.unpack(bytes(b.memory.remote()))
    a.memory.array("int64")[:4] = [1, 2, 3, 4]
    a.channel.write(a.memory[:32], remote[64:], deadline=PATIENCE)
    assert list(b.memory.array("int64", 4, 64)) == [1, 2, 3, 4]
    b.memory.array("int64")[8] = 77
    a.channel.read(a.memory[1000:1008], remote[64:72], deadline=PATIENCE)
    assert a.memory.array("int64", 1, 1000)[0] == 77


def test_atomics(pair):
    a, b = pair
    if not a.context.info.atomics:
        pytest.skip("the device has no atomic operations")
    word = b.memory.array("uint64", 1)
    word[0] = 5
    remote = b.memory.remote(0, 8)
    assert a.channel.fetch_add(a.memory[8:16], remote, 37, deadline=PATIENCE) == 5
    assert a.channel.compare_swap(a.memory[8:16], remote, 42, 2**64 - 1, deadline=PATIENCE) == 42
    assert word[0] == 2**64 - 1


def test_poll_and_next(pair):
    a, b = pair
    for i in range(4):
        b.channel.post([Work.receive(b.memory[i : i + 1], user=i)], deadline=PATIENCE)
    a.channel.submit([Work.send(a.memory[:1])] * 4, deadline=PATIENCE)
    assert b.channel.next(PATIENCE).user == 0
    b.channel.flush(PATIENCE)
    assert b.channel.pending == 0
    assert [request.user for request in b.channel.poll()] == [1, 2, 3]
    assert b.channel.poll() == []
    with pytest.raises(LookupError):
        b.channel.next(PATIENCE)


def test_timeout_harms_nothing(pair):
    a, b = pair
    request = b.channel.post_receive(b.memory, deadline=PATIENCE)
    begun = time.monotonic()
    with pytest.raises(sluice.WaitTimeout) as caught:
        request.wait(0.05)
    assert time.monotonic() - begun >= 0.05
    assert isinstance(caught.value, TimeoutError) and isinstance(caught.value, OSError)
    assert not isinstance(caught.value, sluice.DeadlineError)
    with pytest.raises(sluice.WaitTimeout):
        b.channel.next(0)
    a.channel.send(a.memory[:1], deadline=PATIENCE)
    assert request.wait(PATIENCE).ok


def test_deadline_ends_the_channel(pair):
    a, b = pair
    with pytest.raises(sluice.DeadlineError) as caught:
        b.channel.receive(b.memory, deadline=0.1)
    assert caught.value.completion.status == 64
    assert not b.channel.ready and b.channel.error.status == 64
    with pytest.raises(sluice.NotConnectedError):
        b.channel.send(b.memory[:1], deadline=PATIENCE)


def test_deadline_of_zero_posts_nothing(pair):
    a, b = pair
    with pytest.raises(TimeoutError):
        a.channel.send(a.memory[:1], deadline=0)
    assert a.channel.ready and a.channel.pending == 0


@pytest.mark.parametrize("wrong", [-1, float("nan"), float("inf"), 1e300])
def test_wrong_durations(side, wrong):
    a, b = side.connect(side)
    with pytest.raises(ValueError):
        a.send(None, deadline=wrong)
    with pytest.raises(TypeError):
        a.send(None)
    with pytest.raises(TypeError):
        a.send(None, deadline="5")


def test_message_longer_than_allowed(sides):
    a, b = sides
    first, second = a.connect(b, sluice.Options(max_message=4096))
    with pytest.raises(sluice.ArgumentError, match="max_message") as caught:
        first.send(a.memory[:4097], deadline=PATIENCE)
    assert caught.value.errno == errno.E2BIG and first.ready
    request = second.post_receive(b.memory[:4096], deadline=PATIENCE)
    first.send(a.memory[:4096], deadline=PATIENCE)
    assert request.result(PATIENCE).bytes == 4096


def test_errors_by_class(sides):
    a, b = sides
    first, second = a.connect(b)
    request = second.post_receive(b.memory[:4], deadline=PATIENCE)
    with pytest.raises(sluice.Error):
        first.send(a.memory[:8], deadline=PATIENCE)
    with pytest.raises(sluice.TruncatedError):
        request.result(PATIENCE)

    first, second = a.connect(b)
    secret = b.domain.allocate(64, sluice.LOCAL_WRITE | sluice.REMOTE_READ)
    with pytest.raises(PermissionError) as caught:
        first.write(a.memory[:8], secret.remote(), deadline=PATIENCE)
    assert isinstance(caught.value, sluice.AccessError)
    assert "remote access error" in str(caught.value)
    assert first.error.error_class == caught.value.completion.error_class
    assert first.error.text

    first, second = a.connect(b)
    second.close()
    with pytest.raises(sluice.Error):
        first.send(a.memory[:8], deadline=3)
    assert not first.ready


def test_mistakes_name_themselves(side):
    a, b = side.connect(side)
    with pytest.raises(sluice.ArgumentError) as caught:
        a.write(side.memory[:8], side.memory.remote(0, 4), deadline=PATIENCE)
    assert caught.value.strerror and "4" in caught.value.strerror
    with pytest.raises(IndexError):
        side.memory.remote().slice(-1)
    with pytest.raises(ValueError):
        side.memory.piece(65536, 1)
    with pytest.raises(sluice.ArgumentError, match="cache"):
        a.send(b"plain bytes", deadline=PATIENCE)
    with pytest.raises(ValueError):
        sluice.PreparedChannel(side.domain).handshake(b"short")
    with pytest.raises(sluice.ProtocolError):
        sluice.PreparedChannel(side.domain).handshake(bytes(384))
    with pytest.raises(sluice.ArgumentError, match="send_depth"):
        sluice.PreparedChannel(side.domain, sluice.Options(send_depth=1 << 20))
    with pytest.raises(TypeError):
        sluice.Channel()
    with pytest.raises(sluice.Error, match="nosuch0"):
        sluice.Context("nosuch0")
    a.close()
    a.close()
    with pytest.raises(sluice.ClosedError):
        a.send(None, deadline=PATIENCE)
    with pytest.raises(ValueError, match="closed"):
        a.fileno()


def test_more_than_the_queues_hold(sides):
    a, b = sides
    first, second = a.connect(b, sluice.Options(send_depth=4, receive_depth=4))
    count = 50
    receives = [Work.receive(b.memory[4 * i : 4 * i + 4], user=i) for i in range(count)]
    numbers = a.memory.array("int32", count)
    numbers[:] = range(count)
    failed = []

    def receive():
        try:
            second.submit(receives, deadline=PATIENCE)
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=receive)
    thread.start()
    completions = first.submit(
        [Work.send(a.memory[4 * i : 4 * i + 4], user=i) for i in range(count)], deadline=PATIENCE
    )
    thread.join(PATIENCE)
    assert not failed
    assert [each.user for each in completions] == list(range(count))
    assert list(b.memory.array("int32", count)) == list(range(count))


def test_no_room(side):
    a, b = side.connect(side, sluice.Options(receive_depth=2))
    posted = b.post([Work.receive(side.memory[:1])] * 5, deadline=PATIENCE)
    assert len(posted) == 2
    with pytest.raises(sluice.WouldBlockError) as caught:
        b.post_receive(side.memory[:1], deadline=PATIENCE)
    assert isinstance(caught.value, BlockingIOError)
    with pytest.raises(TimeoutError):
        b.submit([Work.receive(side.memory[:1])], deadline=0.05)
    assert b.ready
    a.submit([Work.send(None)] * 2, deadline=PATIENCE)
    assert [each.wait(PATIENCE).ok for each in posted] == [True, True]


def test_mistake_in_a_long_list_posts_nothing(side):
    a, b = side.connect(side, sluice.Options(send_depth=2))
    works = [Work.send(side.memory[:1])] * 5
    works.append(Work.write(side.memory[:8], side.memory.remote(0, 4)))
    with pytest.raises(sluice.ArgumentError):
        a.submit(works, deadline=PATIENCE)
    assert a.pending == 0 and a.ready


def test_results_of_a_list_that_failed(pair):
    a, b = pair
    good = b.memory.remote(0, 8)
    bad = b.domain.allocate(64, sluice.LOCAL_WRITE).remote(0, 8)
    works = [Work.write(a.memory[:8], each, user=i) for i, each in enumerate([good, bad, good])]
    with pytest.raises(sluice.AccessError) as caught:
        a.channel.submit(works, deadline=PATIENCE)
    completions = caught.value.completions
    assert [each.user for each in completions] == [0, 1, 2]
    assert completions[0].ok and caught.value.completion is completions[1]
    assert not completions[2].ok


def test_cancel(pair):
    a, b = pair
    request = b.channel.post_receive(b.memory, deadline=PATIENCE)
    completion = request.cancel()
    assert not completion.ok and request.done and b.channel.pending == 0
    assert not b.channel.ready


def test_reset(pair):
    a, b = pair
    request = b.channel.post_receive(b.memory, deadline=PATIENCE)
    first, second = a.channel.reset(), b.channel.reset()
    assert request.done and not request.completion.ok
    one, two = first.endpoint, second.endpoint
    a.channel, b.channel = first.handshake(two), second.handshake(one)
    a.channel.wait_connected(PATIENCE)
    request = b.channel.post_receive(b.memory, deadline=PATIENCE)
    a.channel.send(a.memory[:9], deadline=PATIENCE)
    assert request.wait(PATIENCE).bytes == 9


def test_shutdown(pair):
    a, b = pair
    request = b.channel.post_receive(b.memory, deadline=PATIENCE)
    a.channel.send(a.memory[:1], deadline=PATIENCE)
    request.wait(PATIENCE)
    late = b.channel.post_receive(b.memory, deadline=PATIENCE)
    with pytest.raises(TimeoutError):
        b.channel.shutdown(deadline=0.05)
    assert late.done and not late.completion.ok and not b.channel.ready
    c, d = a.connect(b)
    c.shutdown(deadline=PATIENCE)
    assert not c.ready
    with pytest.raises(sluice.NotConnectedError):
        c.send(None, deadline=PATIENCE)


@pytest.mark.skipif(DEVICE != "soft", reason="no peer of a device is told")
def test_peer_that_closes_and_one_that_gives_up(pair):
    a, b = pair
    for end, closed in (
        (lambda: a.channel.close(), True),
        (lambda: a.channel.post_receive(None, deadline=PATIENCE).cancel(), False),
    ):
        request = b.channel.post_receive(b.memory, deadline=PATIENCE)
        a.channel.wait_connected(PATIENCE)
        b.channel.wait_connected(PATIENCE)
        end()
        with pytest.raises(sluice.PeerLostError) as caught:
            request.result(PATIENCE)
        assert caught.value.closed is closed
        a.channel.close()
        b.channel.close()
        a.channel, b.channel = a.connect(b)


def test_long_messages_that_are_dropped(sides):
    a, b = sides
    options = sluice.Options(drop_long=True)
    if DEVICE != "soft":
        with pytest.raises(sluice.UnsupportedError):
            a.connect(b, options)
        return
    c, d = a.connect(b, options)
    request = d.post_receive(b.memory[:10], deadline=PATIENCE)
    c.send(a.memory[:1000], deadline=PATIENCE)
    with pytest.raises(sluice.TruncatedError, match="truncated") as caught:
        request.result(PATIENCE)
    assert caught.value.completion.bytes == 1000 and d.ready
    request = d.post_receive(b.memory[:10], deadline=PATIENCE)
    c.send(a.memory[:10], deadline=PATIENCE)
    assert request.result(PATIENCE).bytes == 10


def test_scope(pair):
    a, b = pair
    with b.channel.scope(deadline=PATIENCE) as receives:
        posted = [receives.receive(b.memory[i : i + 1]) for i in range(100)]
        with a.channel.scope(deadline=PATIENCE) as sends:
            for i in range(100):
                posted.append(sends.send(a.memory[i : i + 1]))
    assert all(each.done for each in posted) and a.channel.pending == b.channel.pending == 0


def test_scope_tells_of_failures(pair):
    a, b = pair
    bad = b.domain.allocate(64, sluice.LOCAL_WRITE).remote()
    with pytest.raises(sluice.AccessError):
        with a.channel.scope(deadline=PATIENCE) as scope:
            scope.write(a.memory[:8], bad)
    assert len(scope.failures) == 1
    c, d = a.connect(b)
    with pytest.raises(sluice.BusyError, match="not looked at"):
        with c.scope(deadline=PATIENCE, strict=True) as scope:
            scope.write(a.memory[:8], b.memory.remote())
    with c.scope(deadline=PATIENCE, strict=True) as scope:
        request = scope.write(a.memory[:8], b.memory.remote())
        assert scope.wait(request, PATIENCE).ok
    with pytest.raises(ZeroDivisionError):
        with c.scope(deadline=PATIENCE) as scope:
            request = scope.write(a.memory[:8], bad)
            1 // 0
    assert request.done and not request.completion.ok


def test_prepared_list(pair):
    a, b = pair
    remote = b.memory.remote()
    works = [Work.write(a.memory[8 * i : 8 * i + 8], remote[8 * i :], user=i) for i in range(3)]
    with a.channel.prepare(works) as prepared:
        assert len(prepared) == 3
        with pytest.raises(sluice.Error) as caught:
            prepared.results()
        assert caught.value.errno == errno.ENOENT
        for turn in range(3):
            a.memory.array("int64", 3)[:] = [turn, turn + 1, turn + 2]
            completions = prepared.submit(deadline=PATIENCE)
            assert [each.user for each in completions] == [0, 1, 2]
            assert list(b.memory.array("int64", 3)) == [turn, turn + 1, turn + 2]
        prepared.aim(0, memory=a.memory[16:24], remote_offset=800)
        prepared.post(deadline=PATIENCE)
        prepared.wait(PATIENCE)
        assert [each.user for each in prepared.results()] == [0, 1, 2]
        assert b.memory.array("int64", 1, 800)[0] == 4
        prepared.set_length(0, 4)
        prepared.aim(0, memory=a.memory[8:12], remote_offset=804)
        assert prepared.submit(deadline=PATIENCE)[0].bytes == 4
        assert b.memory.array("int32", 2, 800).tolist() == [4, 3]
        with pytest.raises(sluice.Error, match="prepared with 8 bytes"):
            prepared.set_length(0, 9)
        assert prepared.wait(0) == prepared.results()
        a.channel.close()
        with pytest.raises(sluice.StaleError):
            prepared.post(deadline=PATIENCE)


def test_prepared_list_in_flight(pair):
    a, _ = pair
    with a.channel.prepare([Work.receive(a.memory[:8])]) as prepared:
        prepared.post(deadline=0.3)
        with pytest.raises(sluice.BusyError):
            prepared.results()
        with pytest.raises(sluice.WaitTimeout) as caught:
            prepared.wait(0)
        assert not caught.value.completions
        for ended in (lambda: prepared.wait(PATIENCE), prepared.results):
            with pytest.raises(sluice.DeadlineError) as caught:
                ended()
            assert len(caught.value.completions) == 1


def test_arrivals(sides):
    a, b = sides
    first, second = a.connect(b, sluice.Options(arrival_tags=4))
    first.wait_connected(PATIENCE)
    for _ in range(3):
        first.write(a.memory[:8], b.memory.remote(), deadline=PATIENCE, immediate=2)
    second.wait_arrivals(2, 3, PATIENCE)
    assert second.arrivals(2) == 3 and second.arrivals(0) == 0
    with pytest.raises(TimeoutError):
        second.wait_arrivals(2, 4, 0.1)
    second.wake()
    with pytest.raises(sluice.ArgumentError):
        second.arrivals(9)


def test_wake(side):
    a, b = side.connect(side)
    request = b.post_receive(side.memory, deadline=PATIENCE)
    caught = []

    def wait():
        try:
            request.wait(PATIENCE)
        except InterruptedError as error:
            caught.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    while thread.is_alive():
        b.wake()
        thread.join(0.05)
    assert isinstance(caught[0], sluice.InterruptedWait)
    b._woken = False
    a.send(side.memory[:3], deadline=PATIENCE)
    assert request.wait(PATIENCE).bytes == 3


def test_threads_share_a_channel(pair):
    """One waits for a message, others send over the same channel meanwhile."""
    a, b = pair
    request = a.channel.post_receive(a.memory[:8], deadline=PATIENCE)
    waiting = threading.Thread(target=lambda: request.wait(PATIENCE))
    waiting.start()
    count, threads = 20, []
    posted = [b.channel.post_receive(b.memory, deadline=PATIENCE) for _ in range(3 * count)]

    def send():
        for _ in range(count):
            a.channel.send(a.memory[8:16], deadline=PATIENCE)

    begun = time.monotonic()
    for _ in range(3):
        threads.append(threading.Thread(target=send))
        threads[-1].start()
    for thread in threads:
        thread.join(PATIENCE)
    assert all(each.wait(PATIENCE).ok for each in posted)
    assert time.monotonic() - begun < PATIENCE
    b.channel.send(b.memory[:8], deadline=PATIENCE)
    waiting.join(PATIENCE)
    assert request.completion.ok


def test_information(pair):
    a, b = pair
    assert a.context.info.device == DEVICE
    assert a.channel.info.send_depth == 128 and a.channel.info.level in list(sluice.Level)
    assert a.channel.error is None and a.channel.ready
    assert sluice.devices()[-1].name == "soft"
    assert sluice.version().startswith("1.0.")
