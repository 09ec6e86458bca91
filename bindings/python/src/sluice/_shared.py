# SPDX-License-Identifier: MIT
"""Objects that several threads may use at a time."""
from __future__ import annotations

import threading
import weakref
from typing import Any, Callable

from ._library import ffi
from ._object import Call, Object, call

# Seconds that close() waits for calls of other threads, which it has interrupted.
_ENDS_WITHIN = 5


class _Hold:
    """A ``with`` block in which the object does not end."""

    def __init__(self, owner: Shared):
        self._owner = owner

    def __enter__(self) -> Any:
        owner = self._owner
        with owner._turn:
            pointer = owner._get()
            owner._busy += 1
            return pointer

    def __exit__(self, *exception: object) -> None:
        owner, late = self._owner, None
        with owner._turn:
            owner._busy -= 1
            if owner._busy == 0:
                late, owner._late = owner._late, None
        if late is not None:
            owner._end_last(late)
        owner._used()


class _Guard:
    """In place of a lock, which objects of several threads do not need."""

    def __init__(self, owner: Shared):
        self._owner = weakref.ref(owner)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        pass

    def renew(self) -> None:
        """In a child of fork(2) no call is under way."""
        owner = self._owner()
        if owner is not None:
            owner._turn, owner._busy = threading.Condition(), 0


class Shared(Object):
    """The base of objects that several threads use at a time.

    If an object is closed while other threads are in calls of it, these calls end first, as if
    their deadlines had passed.
    """

    def _set_up(self, pointer: Any) -> None:
        self._pointer = pointer
        self._turn = threading.Condition()
        self._busy = 0
        self._late: Any = None
        self._ended = False
        self._calls: set[Call] = set()
        self._guard = _Guard(self)

    def _hold(self) -> _Hold:
        return _Hold(self)

    def _used(self) -> None:
        """A call has ended, after which event loops may have to arm the object again."""

    def _interrupt(self) -> None:
        """Ends calls of other threads."""
        for each in list(self._calls):
            each.interrupted[0] = 1

    def _blocking(
        self,
        function: Callable[[Any], Any],
        dispose: Callable[[Any], Any] = lambda result: None,
    ) -> Any:
        """Calls a function that waits in C. Ctrl-C ends it as if its deadline had passed."""

        def work() -> Any:
            with self._hold() as pointer:
                return function(pointer)

        self._get()
        return call(work, dispose=dispose, calls=self._calls)

    def _end_last(self, pointer: Any) -> None:
        try:
            self._end(pointer)
        finally:
            with self._turn:
                self._ended = True
                self._turn.notify_all()

    def close(self) -> None:
        """Ends it. A second time does nothing."""
        if self._pointer is None:
            return
        with self._turn:
            pointer, self._pointer = self._pointer, None
            busy = self._busy > 0
            if pointer is None:
                return
            if busy:
                self._late = pointer
        if not busy:
            self._end_last(pointer)
            return
        self._interrupt()
        with self._turn:
            self._turn.wait_for(lambda: self._ended, _ENDS_WITHIN)

    def _close_at_exit(self) -> None:
        self.close()


def number_of(pointer: Any) -> int:
    """Returns the address of an object of the library."""
    return int(ffi.cast("uintptr_t", pointer))


def struct_of(name: str) -> Any:
    """Returns a zeroed struct whose size is set."""
    kind = f"struct {name}"
    struct = ffi.new(kind + " *")
    struct.size = ffi.sizeof(kind)
    return struct
