# SPDX-License-Identifier: MIT
"""What all objects have in common: they end once, and one thread at a time uses them."""
from __future__ import annotations

import atexit
import errno
import os
import threading
import weakref
from typing import Any, Callable, TypeVar

from ._errors import DeadlineError, closed, error_of, last_error
from ._library import SLICE, Limit, ffi, lib

T = TypeVar("T")
Self = TypeVar("Self", bound="Object")

# What has connections is ended before the interpreter is, while memory of its work is there.
_connected: weakref.WeakSet[Any] = weakref.WeakSet()


class Guard:
    """A lock of one object, whose holder in a wait is woken by those who want it too.

    The library has one thread at a time use a channel. This makes it so, whatever the threads of
    the program do, and so that the end of the interpreter does not meet a thread in a wait.
    """

    def __init__(self, pointer: Any = None, wake: Callable[[Any], Any] | None = None):
        self._pointer, self._wake = pointer, wake
        self.renew()

    def renew(self) -> None:
        """In a child of fork(2), too: whoever held it is not there."""
        self._lock = threading.RLock()
        self._waking = threading.Lock()
        self.wanted = 0

    def __enter__(self) -> Guard:
        if not self._lock.acquire(blocking=False):
            self.wanted += 1
            try:
                self.wake()
                self._lock.acquire()
            finally:
                self.wanted -= 1
        return self

    def __exit__(self, *exception: object) -> None:
        self._lock.release()

    def enter(self, limit: Limit, what: str) -> None:
        """Takes it within a limit, or raises :exc:`DeadlineError`."""
        if self._lock.acquire(blocking=False):
            return
        left = limit.seconds()
        if not self.try_for(-1 if left is None else min(left, threading.TIMEOUT_MAX)):
            raise DeadlineError(
                errno.ETIMEDOUT, f"another thread's call on {what} did not end before the deadline"
            )

    def wake(self) -> None:
        """Ends a wait of the library, if the object is still there."""
        with self._waking:
            if self._pointer is not None and self._wake is not None:
                self._wake(self._pointer)

    def forget(self) -> None:
        """The object ends: nobody is to wake it any more."""
        with self._waking:
            self._pointer = None

    def try_for(self, seconds: float) -> bool:
        self.wanted += 1
        try:
            self.wake()
            return self._lock.acquire(timeout=seconds)
        finally:
            self.wanted -= 1

    def release(self) -> None:
        self._lock.release()


class Object:
    """One object of the library. Use it in a ``with`` statement, or call :meth:`close`."""

    _pointer: Any = None
    _what = "the object"

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._pointer is None

    def _get(self) -> Any:
        if self._pointer is None:
            raise closed(self._what)
        return self._pointer

    def close(self) -> None:
        """Ends it. A second time does nothing."""
        pointer, self._pointer = self._pointer, None
        if pointer is not None:
            self._end(pointer)

    def _end(self, pointer: Any) -> None:
        raise NotImplementedError

    def __enter__(self: Self) -> Self:
        self._get()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:  # the interpreter may be half gone
            pass


def remember(connected: Any) -> None:
    """It is closed before the interpreter ends."""
    _connected.add(connected)


@atexit.register
def _close_all() -> None:
    for each in list(_connected):
        try:
            each._close_at_exit()
        except Exception:
            pass


def _renew_all() -> None:
    for each in list(_connected):
        each._guard.renew()


os.register_at_fork(after_in_child=_renew_all)


# An interrupted call ends in C as well, and soon; the thread that was interrupted waits for that
# as long as this, in seconds.
_ENDS_WITHIN = 5


class Call:
    """A call that blocks in C, with its result."""

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]):
        self.function, self.arguments = function, arguments
        self.done = threading.Event()
        self.result: Any = None
        self.error: BaseException | None = None
        self.number = 0
        self.text = ""
        #: Whether it is to end as if its deadline had passed: see sluice_interrupt_set().
        self.interrupted = ffi.new("int *")
        self.left_alone: Callable[[Any], Any] | None = None
        self.lock = threading.Lock()

    def run(self) -> None:
        try:
            self.result = self.function(*self.arguments)
            self.number = ffi.errno
            self.text = last_error()
        except BaseException as error:
            self.error = error
        finally:
            with self.lock:
                left_alone = self.left_alone
                self.done.set()
            if left_alone is not None and self.error is None:
                left_alone(self.result)

    def run_apart(self) -> None:
        """The same in a thread of its own, which can be interrupted."""
        lib.sluice_interrupt_set(self.interrupted)
        self.run()
        lib.sluice_interrupt_set(ffi.NULL)

    def interrupt(self) -> None:
        """Has it end now, and waits for that."""
        self.interrupted[0] = 1
        self.done.wait(_ENDS_WITHIN)


def call(
    function: Callable[..., Any],
    *arguments: Any,
    dispose: Callable[[Any], Any] = lambda result: None,
) -> Any:
    """Calls a function of the library that blocks.

    Signals are served by the main thread alone. So that Ctrl-C need not wait for C, the main
    thread has another one make the call. If it is interrupted, the call ends as if its deadline
    had passed, and what it has made nevertheless is given to ``dispose``.
    """
    work = Call(function, arguments)
    if threading.current_thread() is not threading.main_thread():
        work.run()
    else:
        threading.Thread(target=work.run_apart, name="sluice", daemon=True).start()
        try:
            # The kernel may give a signal to any thread, and only what this one runs serves it.
            while not work.done.wait(SLICE / 1e9):
                pass
        except BaseException:
            try:
                work.interrupt()
            finally:  # a second Ctrl-C does not wait
                with work.lock:
                    ended = work.done.is_set()
                    if not ended:
                        work.left_alone = dispose
                if ended and work.error is None:
                    dispose(work.result)
            raise
    if work.error is not None:
        raise work.error
    if isinstance(work.result, int):
        if work.result < 0:
            raise error_of(work.result, work.text)
    elif work.result == ffi.NULL:
        raise error_of(work.number, work.text)
    return work.result
