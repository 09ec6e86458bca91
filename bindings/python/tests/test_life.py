# SPDX-License-Identifier: MIT
"""Ctrl-C, the end of the interpreter, and fork: each in a program of its own."""
import pytest
from conftest import run_python

START = """
    import gc, os, signal, sys, threading, time
    import sluice
    from sluice import Work

    def pair(domain):
        p, q = sluice.PreparedChannel(domain), sluice.PreparedChannel(domain)
        e, f = p.endpoint, q.endpoint
        return p.handshake(f), q.handshake(e)

    def interrupted(function):
        '''How long after Ctrl-C it ended.'''
        sent = []
        def send():
            time.sleep(0.2)
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=send).start()
        try:
            function()
        except KeyboardInterrupt:
            took = time.monotonic() - sent[0]
            assert took < 10, took
            print("interrupted")
            return
        raise SystemExit("it was not interrupted")

    def nothing_goes_on():
        for thread in threading.enumerate():
            if thread.name == "sluice":
                thread.join(10)
                assert not thread.is_alive()

    context = sluice.Context()
    domain = context.domain()
    memory = domain.allocate(4096, 15)
    a, b = pair(domain)
"""

# Ctrl-C again and again. It is heard in trouble() alone: one that came between two of these would
# end the program. The longer pause is for a busy machine, where nothing is done within the others.
STORM = """
    hits, heard = 0, False
    stop = threading.Event()
    def hear(*_):
        global heard
        if heard:
            heard = False
            raise KeyboardInterrupt
    def trouble(function):
        global hits, heard
        try:
            heard = True
            function()
            heard = False
        except KeyboardInterrupt:
            hits += 1
    def storm():
        while not stop.is_set():
            for pause in (0.002, 0.003, 0.1):
                stop.wait(pause)
                os.kill(os.getpid(), signal.SIGINT)
    signal.signal(signal.SIGINT, hear)
    thread = threading.Thread(target=storm)
    begin = time.monotonic()
    def goes_on(enough):
        passed = time.monotonic() - begin
        return passed < 2 or (passed < 40 and not (hits > 20 and enough))
    def calm():
        stop.set()
        thread.join()
"""

WAITS = {
    "receive": "b.receive(memory, deadline=None)",
    "send": "a.send(memory[:8], deadline=None)",
    "wait": "b.post_receive(memory, deadline=None).wait(None)",
    "next": "(b.post_receive(memory, deadline=None), b.next(None))",
    "list": "b.prepare([Work.receive(memory)]).submit(deadline=1000)",
    "full queue": "b.submit([Work.receive(memory)] * 1000, deadline=None)",
    "connected": "sluice.PreparedChannel(domain).handshake("
    "(kept := sluice.PreparedChannel(domain)).endpoint).wait_connected(None)",
    "accept": "sluice.Listener('127.0.0.1:0', secret_file='').accept(domain, None)",
    "connect": "sluice.connect('127.0.0.1:1', domain, deadline=1000, wait=True, secret_file='')",
    "exchange": "sluice.Exchange(rank=1, ranks=2, root='127.0.0.1:1', deadline=1000)",
}


def test_ctrl_c():
    """One after the other in one program: starting Python takes longer."""
    code = START
    for name, wait in WAITS.items():
        code += f"""
    def wait():
        global kept
        {wait}
    a, b = pair(domain)
    print({name!r}, end=": ", flush=True)
    interrupted(wait)
    """
    out = run_python(code, SLUICE_LOG="error")
    assert out == "".join(f"{name}: interrupted\n" for name in WAITS)


def test_work_goes_on_after_ctrl_c():
    out = run_python(
        START
        + """
    interrupted(lambda: b.receive(memory[:8], deadline=1000))
    gc.collect()
    memory.buffer[100:105] = b"later"
    a.send(memory[100:105], deadline=60)
    b.flush(60)
    print(bytes(memory.buffer[:5]).decode())
    """
    )
    assert out == "interrupted\nlater\n"


def test_an_interrupted_receive_has_a_handle():
    """The message that it takes is not lost: neither to who has the exception, nor to polls."""
    out = run_python(
        START
        + """
    def interrupt_after_a_while(function):
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            function()
        except KeyboardInterrupt as error:
            return error.requests
        raise SystemExit("it was not interrupted")
    for _ in range(2):
        request, = interrupt_after_a_while(lambda: b.receive(memory[:8], deadline=1000))
        a.send(memory[100:105], deadline=60)
        print(request.result(60).bytes, b.poll())
    interrupt_after_a_while(lambda: b.receive(memory[:8], deadline=1000))
    a.send(memory[100:106], deadline=60)
    print(b.next(60).completion.bytes)
    works = [Work.receive(memory[i : i + 1], user=i) for i in range(300)]
    requests = interrupt_after_a_while(lambda: b.submit(works, deadline=1000))
    posted = len(requests)
    for _ in requests:
        a.send(memory[100:101], deadline=60)
    print([each.result(60).user for each in requests] == list(range(posted)), b.pending)
    request, = interrupt_after_a_while(lambda: b.receive(memory[:8], deadline=1000))
    print(request.cancel().ok, b.ready)
    """
    )
    assert out == "5 []\n5 []\n6\nTrue 0\nFalse False\n"


def test_no_message_is_lost_to_ctrl_c():
    """Whenever it comes: each message is the result of a call, or that of a request."""
    out = run_python(
        START
        + STORM
        + """
    got, more, sent, over = [], [], 0, False
    def send():
        global sent
        while not over:
            if a.pending == 0:
                a.post_send(memory[8:16], deadline=100, immediate=sent)
                sent += 1
            a.poll()
            time.sleep(0.0005)
    def work():
        try:
            while goes_on(len(got) > 20):
                got.append(b.receive(memory[:8], deadline=100).immediate)
        except KeyboardInterrupt as error:
            more.extend(getattr(error, "requests", ()))
            raise
    sender = threading.Thread(target=send)
    sender.start()
    thread.start()
    while goes_on(len(got) > 20):
        trouble(work)
    calm()
    over = True
    sender.join()
    while a.pending:
        if not b.pending:
            more.append(b.post_receive(memory[:8], deadline=60))
        a.poll(), b.poll()
    b.poll()  # the last one may have come to a request of before
    numbers = got + [each.completion.immediate for each in more if each.done]
    print(hits > 20, sorted(numbers) == list(range(sent)))
    """
    )
    assert out == "True True\n"


def test_a_storm_of_ctrl_c():
    """Whenever it comes, all that was posted is known, and ends."""
    out = run_python(
        START
        + STORM
        + """
    def work():
        while goes_on(True):
            if b.pending < 10:
                b.post_receive(memory[:8], deadline=100)
            a.post_send(memory[8:16], deadline=100) if a.pending < b.pending else a.poll()
            b.poll()
            b._wait_a_little(sluice._library.Limit(0.001))
    thread.start()
    while goes_on(True):
        trouble(work)
    calm()
    # What is posted and not met yet: receives and sends in equal number, one by one.
    while a.pending or b.pending:
        a.poll(), b.poll()
        if b.pending:
            a.send(memory[8:16], deadline=60)
        elif a.pending:
            b.receive(memory[:8], deadline=60)
    print(hits > 20, a.ready, b.ready, a.pending, b.pending)
    """
    )
    assert out == "True True True 0 0\n"


def test_a_storm_of_ctrl_c_on_blocking_calls():
    """No result is lost: nothing is pending, and there is room for as much as before."""
    out = run_python(
        START
        + STORM
        + """
    done = 0
    works = [Work.write(memory[:8], memory.remote(64, 8)) for _ in range(100)]
    def work():
        global done
        while goes_on(done > 20):
            a.write(memory[:8], memory.remote(64, 8), deadline=100)
            b.post_receive(memory[16:24], deadline=100)
            a.send(memory[:8], deadline=100)
            a.submit(works, deadline=100)
            done += 1
    thread.start()
    while goes_on(done > 20):
        trouble(work)
    calm()
    # Receives whose send was interrupted before it was posted are met now.
    a.flush(60)
    b.poll()
    while b.pending:
        a.send(memory[:8], deadline=60)
        b.poll()
    a.poll()
    requests = a.post(works, deadline=60)
    a.flush(60)
    print(hits > 20, done > 20, len(requests), a.ready, b.ready, a.pending, b.pending)
    """
    )
    assert out == "True True 100 True True 0 0\n"


def test_ctrl_c_in_a_barrier(root):
    out = run_python(
        """
    import sys, os
    import sluice
    """
        + START.split("context = ")[0]
        + """
    import multiprocessing
    def other(root, gone):
        node = sluice.Node(exchange=sluice.Exchange(rank=1, ranks=2, root=root, deadline=60), deadline=60)
        gone.wait(60)
        os._exit(0)
    root = os.environ["ROOT"]
    gone = multiprocessing.Event()
    process = multiprocessing.Process(target=other, args=(root, gone))
    process.start()
    node = sluice.Node(exchange=sluice.Exchange(rank=0, ranks=2, root=root, deadline=60), deadline=60)
    with node:
        interrupted(lambda: node.barrier(deadline=1000))
    assert node.closed
    gone.set()
    process.join(60)
    """,
        ROOT=root,
        SLUICE_LOG="error",
    )
    assert out == "interrupted\n"


#: Rank 1 of a node of two, in a process of its own, until ``gone`` is set.
RANK_1 = (
    START.split("context = ")[0]
    + """
    import multiprocessing
    gone = multiprocessing.Event()
    def begin_rank_1(before=lambda node: None, after=lambda node: None):
        def run():
            root = os.environ["SLUICE_ROOT"]
            exchange = sluice.Exchange(rank=1, ranks=2, root=root, deadline=60)
            node = sluice.Node(exchange=exchange, deadline=60)
            before(node)
            gone.wait(60)
            after(node)
            os._exit(0)
        process = multiprocessing.Process(target=run)
        process.start()
        return process
    """
)


def test_nothing_waits_for_an_interrupted_call(root):
    """It ends in the library, too: its port is free, and what follows takes its own time."""
    out = run_python(
        RANK_1
        + """
    def quick(function):
        begin = time.monotonic()
        result = function()
        assert time.monotonic() - begin < 10, time.monotonic() - begin
        return result
    for _ in range(2):
        interrupted(lambda: sluice.Node(deadline=1000))
        interrupted(lambda: sluice.Exchange(deadline=1000))
    interrupted(lambda: sluice.connect("127.0.0.1:1", context.domain(), deadline=1000, wait=True))
    process = begin_rank_1(
        before=lambda node: node.all.receive(0, node.domain.allocate(64, 15), deadline=60))
    node = sluice.Node(deadline=60)
    memory = node.domain.allocate(64, 15)
    for call in (
        lambda: node.barrier(deadline=1000),
        lambda: node.allgather(b"1", deadline=1000),
        lambda: node.share(memory, deadline=1000),
    ):
        interrupted(call)
        node.reset_barriers()
    quick(lambda: node.all.scatter({1: memory[:8]}, deadline=60))
    print(quick(node.all.poll))
    interrupted(lambda: node.barrier(deadline=1000))
    try:
        quick(lambda: node.barrier(deadline=60))
    except sluice.NotConnectedError as error:
        print("broken before" in str(error))
    nothing_goes_on()
    gone.set()
    process.join(60)
    """.replace("context.domain()", "sluice.Context().domain()"),
        SLUICE_RANK="0",
        SLUICE_RANKS="2",
        SLUICE_ROOT=root,
        SLUICE_LOG="error",
    )
    assert out == "interrupted\n" * 8 + "[]\ninterrupted\nTrue\n"


def test_a_call_waits_for_another_thread_until_its_deadline(root):
    out = run_python(
        RANK_1
        + """
    process = begin_rank_1(after=lambda node: node.barrier(deadline=60))
    node = sluice.Node(deadline=60)
    thread = threading.Thread(target=node.barrier, kwargs={"deadline": 60})
    thread.start()
    while node._guard._lock.acquire(blocking=False):
        node._guard._lock.release()
    try:
        node.barrier(deadline=0.2)
    except sluice.DeadlineError as error:
        print(error.strerror)
    gone.set()
    thread.join()
    process.join()
    print(process.exitcode)
    """,
        SLUICE_RANK="0",
        SLUICE_RANKS="2",
        SLUICE_ROOT=root,
        SLUICE_LOG="error",
    )
    assert out == "another thread's call on the node did not end before the deadline\n0\n"


@pytest.mark.parametrize("connected", [False, True])
def test_ctrl_c_while_an_owner_is_silent(connected):
    """The read ends, and the service can be closed."""
    out = run_python(
        START.split("context = ")[0]
        + """
    import multiprocessing
    def owner(pipe):
        service = sluice.BufferService(sluice.Context().domain(), address="127.0.0.1:0")
        buffer = service.publish(length=64)
        pipe.send_bytes(buffer.handle)
        pipe.recv_bytes()
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=owner, args=(theirs,))
    process.start()
    handle = ours.recv_bytes()
    place = bytearray(64)
    with sluice.BufferService(sluice.Context().domain(), address="127.0.0.1:0") as service:
        if "CONNECTED" in os.environ:
            service.read(handle, place, deadline=60)
        os.kill(process.pid, signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        interrupted(lambda: service.read(handle, place, deadline=1000))
        nothing_goes_on()
    assert service.closed
    del service, place
    gc.collect()
    os.kill(process.pid, signal.SIGCONT)
    process.kill()
    process.join(60)
    """,
        SLUICE_LOG="error",
        SLUICE_WIRE="tcp",
        **({"CONNECTED": "1"} if connected else {}),
    )
    assert out == "interrupted\n"


@pytest.mark.parametrize("holder", ["globals", "cycle", "thread", "nobody"])
def test_exit_with_work_in_flight(holder):
    """Nothing crashes, and nothing hangs."""
    out = run_python(
        START
        + f"""
    holder = {holder!r}
    numpy_like = bytearray(1 << 16)
    region = domain.register(numpy_like)
    if holder == "cycle":
        class Cycle: pass
        cycle = Cycle()
        cycle.self, cycle.all = cycle, (b, region, b.post_receive(region, deadline=None))
        del cycle, b, region, numpy_like
    elif holder == "nobody":
        b.post_receive(region, deadline=None)
        a.post_send(memory[:8], deadline=None)
        del a, b, region, numpy_like, memory, domain, context
    elif holder == "thread":
        def wait():
            b.receive(region, deadline=None)
        threading.Thread(target=wait, daemon=True).start()
        time.sleep(0.2)
    else:
        view = memory.array()
        requests = [b.post_receive(region, deadline=None) for _ in range(50)]
    print("end")
    """
    )
    assert out == "end\n"


def test_exit_by_an_error():
    out = run_python(
        """
    import subprocess, sys
    code = "; ".join([
        "import sluice",
        "domain = sluice.Context().domain()",
        "p, q = sluice.PreparedChannel(domain), sluice.PreparedChannel(domain)",
        "e, f = p.endpoint, q.endpoint",
        "a, b = p.handshake(f), q.handshake(e)",
        "keep = b.post_receive(domain.register(bytearray(100)), deadline=None)",
        "raise SystemExit(7)",
    ])
    print(subprocess.run([sys.executable, "-X", "faulthandler", "-c", code]).returncode)
    """
    )
    assert out == "7\n"


def test_fork():
    """In a child the objects of its parent fail, and touch nothing; its own work."""
    out = run_python(
        START
        + """
    if sys.stdout: sys.stdout.flush()
    lock_held = b._guard
    with b._guard:
        child = os.fork()
        if child == 0:
            try:
                a.send(memory[:8], deadline=5)
            except sluice.Error as error:
                text = str(error)
                assert error.strerror, text
            else:
                os._exit(3)
            for each in (a, b, memory, domain, context):
                try:
                    each.close()
                except sluice.Error:
                    pass
            own = sluice.Context().domain()
            c, d = pair(own)
            mine = own.allocate(64)
            request = d.post_receive(mine, deadline=60)
            c.send(mine[:4], deadline=60)
            os._exit(0 if request.wait(60).bytes == 4 else 4)
    _, status = os.waitpid(child, 0)
    request = b.post_receive(memory[:8], deadline=60)
    a.send(memory[8:16], deadline=60)
    print(status, request.wait(60).bytes)
    """
    )
    assert out == "0 8\n"


def test_memory_in_a_child():
    """That of the library is the parent's. Arrays of it are zeros in the child, and its own."""
    out = run_python(
        START.replace("context = sluice", "import multiprocessing, numpy\n    context = sluice")
        + """
    huge = domain.allocate(3 << 20, 15, huge_pages=True)
    own = numpy.ones(5000, dtype="uint8")
    registered = domain.register(own)
    service = sluice.BufferService(domain, address="127.0.0.1:0")
    published = service.publish(length=5000)
    closed = domain.allocate(4096)
    closed.close()
    arrays = [memory.array(), huge.array("float64"), numpy.frombuffer(published.memory, "uint8")]
    left = domain.allocate(64)
    arrays.append(left.array())
    del left
    for array in arrays:
        array[:] = 7
    def refused(function):
        try:
            function()
        except sluice.ArgumentError as error:
            assert "before fork() is the parent's" in str(error), error
            return True
    def child():
        assert all(refused(each) for each in (
            lambda: memory.buffer, memory.array, lambda: memory[:8], lambda: published.memory))
        assert registered.array().sum() == 5000
        for array in arrays:
            assert not array.any()
            array[:] = 9
            assert (array == 9).all()
        registered.array()[:] = 0
        grandchild = multiprocessing.get_context("fork").Process(target=lambda: arrays[0].fill(1))
        grandchild.start()
        grandchild.join(60)
        assert grandchild.exitcode == 0 and (arrays[0] == 9).all()
        mine = sluice.Context().domain().allocate(64)
        mine.array()[:] = 1
    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join(60)
    print(process.exitcode, all((array == 7).all() for array in arrays), own.sum())
    """
    )
    assert out == "0 True 5000\n"
