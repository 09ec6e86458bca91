# SPDX-License-Identifier: MIT
"""Posting and taking completions: in C if the extension was built, else in Python over cffi.

PYSLUICE=cffi in the environment selects Python even if the extension exists.
"""
from __future__ import annotations

import itertools
import os
from collections import deque
from typing import Any, Sequence

from ._completion import Completion, completion_of
from ._library import ffi, nanoseconds
from ._request import RECEIVE, Request, Work, requests_of


def _explain(works: Sequence[Work]) -> None:
    """Raises the error for works that the extension could not read."""
    for work in works:
        work.opcode
    requests_of(works, 0)


_fast: Any = None
if os.environ.get("PYSLUICE") != "cffi":
    try:
        from . import _fast  # type: ignore[no-redef]

        _fast.set_up(Completion, Request, nanoseconds, _explain)
    except ImportError:
        pass

#: Whether the hot calls are made in C.
compiled: bool = _fast is not None

#: For run() instead of a time to wait: post, and return at once.
POST_ONLY = -1

# Maximum number of completions taken at a time.
POLL_MOST = 64

# Each connection numbers its requests from a first number of its own: a channel that was reset may
# still get results of its former connection, whose numbers must not match new requests.
_engines = itertools.count(1)


def first_number() -> int:
    """Returns the first of many numbers that no other requests have."""
    return (next(_engines) & 0xFFFFFF) << 40


def engine_of(connection: Any) -> Any:
    """Makes the engine of a connection, which posts and takes completions. They share the
    requests."""
    if not compiled:
        return Engine(connection)
    functions = [connection._f(name) for name in ("post", "poll", "next", "wait")]
    count, room = connection._count, connection._room
    addresses = [
        int(ffi.cast("uintptr_t", each)) for each in (connection._pointer, *functions, count, room)
    ]
    lock = connection._guard._lock
    return _fast.Engine(
        tuple(addresses),
        first_number(),
        (count, room),
        connection._posted,
        connection._unseen.append,
        connection._called.append,
        lock.acquire,
        lock.release,
    )


def completions_of(structs: Any, works: tuple[Work, ...]) -> list[Completion]:
    """Returns the completion of each work from an array of C, in the same order."""
    if compiled:
        made: list[Completion] = _fast.completions(int(ffi.cast("uintptr_t", structs)), works)
        return made
    return [completion_of(structs[i], work.user) for i, work in enumerate(works)]


class Engine:
    """The engine in Python. Callers hold the guard of the connection.

    Ctrl-C may arrive after any call of C, whose result is then lost. So a request is recorded
    before it is posted, and completions are read from the array that C writes, at once or by the
    next call.
    """

    def __init__(self, connection: Any):
        self._pointer = connection._pointer
        self._count, self._room = connection._count, connection._room
        self._posted: dict[int, Request] = connection._posted
        self._unseen: deque[Request] = connection._unseen
        self._called: deque[Request] = connection._called
        self._next_number = first_number()
        self._taken = ffi.new("struct sluice_completion[]", POLL_MOST)
        self._clean = bytes(ffi.sizeof(self._taken))
        self._unread = False
        self._post_c, self._poll_c = connection._f("post"), connection._f("poll")
        self._next_c = connection._f("next")

    def end(self) -> None:
        """The connection is closed."""
        self._pointer = None

    def run(
        self,
        connection: Any,
        works: Sequence[Work],
        deadline: float | None,
        slice_: int,
        box: list[Any] | None = None,
    ) -> Any:
        """Posts works, receives first, and waits for them for ``slice_`` nanoseconds at most.

        Returns a list with the completion of each if all succeeded. Returns a tuple if not: for
        each work its completion, its request if it is not complete, or None if it was not posted.
        Returns None if nothing was posted, because another thread has the connection, there is no
        room for all of it, or the library refuses it. The caller then goes step by step.

        The result is appended to ``box`` as well.

        With POST_ONLY it posts in the given order, and returns a list of the requests that were
        posted, a negative errno, or None if there is no room for all of it.
        """
        if slice_ != POST_ONLY or self._pointer is None or not works:
            return None
        limit = nanoseconds(deadline)
        kinds = [work.opcode == RECEIVE for work in works]
        receives = sum(kinds)
        if (
            receives + self._count[1] > self._room[1]
            or len(works) - receives + self._count[0] > self._room[0]
        ):
            return None
        result = self._post(connection, list(works), kinds, limit)
        if box is not None:
            box.append(result)
        return result

    def _post(self, connection: Any, works: list[Work], kinds: list[bool], limit: int) -> Any:
        count, number = len(works), self._next_number
        array, sges = requests_of(works, number)
        handles = ffi.new("struct sluice_handle[]", count)
        self._next_number += count
        requests = [Request(connection, work) for work in works]
        memory = memoryview(ffi.buffer(handles))
        size = ffi.sizeof("struct sluice_handle")
        for i, request in enumerate(requests):
            request._handle = memory[i * size : (i + 1) * size]
            self._count[kinds[i]] += 1
            self._posted[number + i] = request
        result = self._post_c(self._pointer, array, count, limit, handles)
        for i in range(max(result, 0), count):
            self._count[kinds[i]] -= 1
            del self._posted[number + i]
        del sges
        return result if result < 0 else requests[:result]

    def _prepare_to_take(self) -> None:
        if self._unread:
            self._take()
        ffi.memmove(self._taken, self._clean, len(self._clean))
        self._unread = True

    def _take(self) -> int:
        """Reads the completions that the library wrote, and returns how many there were."""
        count = 0
        while count < POLL_MOST and self._taken[count].opcode != 0:
            struct = self._taken[count]
            count += 1
            request = self._posted.get(struct.user_data)
            if request is None:
                continue
            if request._completion is None:
                request._end(completion_of(struct, request.user))
                if request._callbacks:
                    self._called.append(request)
                if not request.seen:
                    self._unseen.append(request)
            self._count[struct.opcode == RECEIVE] -= 1
            del self._posted[struct.user_data]
        self._unread = False
        return count

    def look(self, most: int) -> int:
        """Takes all available completions, or about ``most`` if that is not 0. Returns how many, or
        a negative errno."""
        total = 0
        while True:
            self._prepare_to_take()
            result: int = self._poll_c(self._pointer, self._taken, POLL_MOST)
            count = self._take()
            total += count
            if result < 0 or count < POLL_MOST or 0 < most <= total:
                return result if result < 0 else total

    def next(self, timeout: int) -> int:
        """Waits for one completion. Returns 1 if one was taken, or a negative errno."""
        self._prepare_to_take()
        result: int = self._next_c(self._pointer, timeout, self._taken)
        return 1 if self._take() > 0 else result
