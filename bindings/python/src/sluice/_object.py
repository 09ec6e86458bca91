# SPDX-License-Identifier: MIT
"""The common part of all objects: they end once, and one thread at a time uses them."""
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

# Objects with connections are closed before the interpreter ends, while their memory still exists.
_connected: weakref.WeakSet[Any] = weakref.WeakSet()


class Guard:
    """The lock of an object. A thread that wants it wakes the holder if that waits.

    The library allows one thread at a time to use a channel. This enforces it for all threads of
    the program, and ends waits before the interpreter ends.
    """

    def __init__(self, pointer: Any = None, wake: Callable[[Any], Any] | None = None):
        self._pointer, self._wake = pointer, wake
        self.renew()

    def renew(self) -> None:
        """Makes a new lock, as in a child of fork(2), where its holder does not exist."""
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
        """Takes the lock within a limit, or raises :exc:`DeadlineError`."""
        if self._lock.acquire(blocking=False):
            return
        left = limit.seconds()
        if not self.try_for(-1 if left is None else min(left, threading.TIMEOUT_MAX)):
            raise DeadlineError(
                errno.ETIMEDOUT, f"another thread's call on {what} did not end before the deadline"
            )

    def wake(self) -> None:
        """Ends a wait of the library, if the object still exists."""
        with self._waking:
            if self._pointer is not None and self._wake is not None:
                self._wake(self._pointer)

    def forget(self) -> None:
        """The object ends: no thread may wake it any more."""
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
    """Has the object closed before the interpreter ends."""
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


# An interrupted call soon ends in C as well; the interrupted thread waits up to this many seconds
# for that.
_ENDS_WITHIN = 5


def _nothing() -> None:
    pass


class Call:
    """A call that blocks in C, with its result."""

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        calls: set[Call] | None = None,
    ):
        self.function: Callable[..., Any] = function
        self.arguments = arguments
        self.calls: set[Call] = set() if calls is None else calls
        self.done = threading.Event()
        self.result: Any = None
        self.error: BaseException | None = None
        self.number = 0
        self.text = ""
        #: Whether the call must end as if its deadline had passed: see sluice_interrupt_set().
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
            # Before the caller goes on, which may want the memory that these keep.
            self.function, self.arguments = _nothing, ()
            with self.lock:
                left_alone = self.left_alone
                self.done.set()
            if left_alone is not None and not self.has_failed():
                left_alone(self.result)

    def run_apart(self) -> None:
        """Runs the call so that other threads can interrupt it."""
        self.calls.add(self)
        lib.sluice_interrupt_set(self.interrupted)
        try:
            self.run()
        finally:
            lib.sluice_interrupt_set(ffi.NULL)
            self.calls.discard(self)

    def has_failed(self) -> bool:
        """Returns whether the call has ended with an error."""
        if self.error is not None:
            return True
        return bool(self.result < 0 if isinstance(self.result, int) else self.result == ffi.NULL)

    def outcome(self) -> Any:
        """Returns the result of a call that has ended, or raises its error."""
        if self.error is not None:
            raise self.error
        if self.has_failed():
            number = self.result if isinstance(self.result, int) else self.number
            raise error_of(number, self.text)
        return self.result

    def interrupt(self) -> None:
        """Makes the call end now, and waits for that."""
        self.interrupted[0] = 1
        self.done.wait(_ENDS_WITHIN)


def call(
    function: Callable[..., Any],
    *arguments: Any,
    dispose: Callable[[Any], Any] = lambda result: None,
    calls: set[Call] | None = None,
) -> Any:
    """Calls a function of the library that blocks.

    Only the main thread serves signals. So that Ctrl-C does not wait for C, the main thread lets
    another thread make the call. If it is interrupted, the call ends as if its deadline had passed;
    if it has made an object nevertheless, that is passed to ``dispose``. While the call is under way,
    it is in ``calls``, so that another thread can interrupt it.
    """
    work = Call(function, arguments, calls)
    if threading.current_thread() is not threading.main_thread():
        work.run() if calls is None else work.run_apart()
    else:
        threading.Thread(target=work.run_apart, name="sluice", daemon=True).start()
        try:
            # The kernel may deliver a signal to any thread, but only this one serves it.
            while not work.done.wait(SLICE / 1e9):
                pass
            return work.outcome()
        except BaseException:
            try:
                work.interrupt()
            finally:  # a second Ctrl-C does not wait
                with work.lock:
                    ended = work.done.is_set()
                    if not ended:
                        work.left_alone = dispose
                if ended and not work.has_failed():
                    dispose(work.result)
            raise
    return work.outcome()
