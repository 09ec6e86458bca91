# SPDX-License-Identifier: MIT
"""Scopes: blocks of code that no posted work outlives."""
from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

from ._completion import Completion
from ._errors import BusyError, DeadlineError, Error, closed
from ._library import FOREVER, Limit
from ._memory import Memory, RemoteRegion
from ._request import Request, Work

if TYPE_CHECKING:
    from ._connection import Connection


class Scope:
    """A ``with`` block at whose end all work that was posted in it is complete.

    The ``deadline`` is for all of it. A full queue is not an error here: posting waits for room.
    The end raises the first failure that was not waited for, unless the block itself has raised;
    ``failures`` has all of them. With ``strict``, work that was not waited for is an error.

    It uses posted work instead of the scopes of the library, because no signal can interrupt the
    end of those.
    """

    def __init__(self, connection: Connection, deadline: float | None, strict: bool):
        self._connection, self._deadline, self._strict = connection, deadline, strict
        self._limit: Limit | None = None
        self._requests: list[Request] = []
        self._looked_at: set[int] = set()
        self.failures: list[Completion] = []

    def __enter__(self) -> Scope:
        if self._limit is not None:
            raise BusyError(errno.EBUSY, "a scope is entered once")
        self._limit = Limit(self._deadline)
        return self

    def _begun(self) -> Limit:
        if self._limit is None:
            raise closed("the scope has not begun, or")
        return self._limit

    def post(self, work: Work) -> Request:
        """Posts any work."""
        limit = self._begun()
        connection = self._connection
        while True:
            left = limit.left()
            try:
                request = connection.post([work], deadline=None if left == FOREVER else left / 1e9)[0]
                break
            except Error as error:
                if error.errno != errno.EAGAIN:
                    raise
                if limit.left() == 0:
                    raise DeadlineError(errno.ETIMEDOUT, "there was no room in the queues") from None
                connection._wait_for_room(limit)
        request.seen = True
        self._requests.append(request)
        return request

    def send(self, memory: Memory, peer: int = 0, **options: Any) -> Request:
        """Posts a message."""
        return self.post(Work.send(memory, peer, **options))

    def receive(self, memory: Memory, peer: int = 0, **options: Any) -> Request:
        """Posts a receive."""
        return self.post(Work.receive(memory, peer, **options))

    def write(self, memory: Memory, remote: RemoteRegion, peer: int = 0, **options: Any) -> Request:
        """Posts a write."""
        return self.post(Work.write(memory, remote, peer, **options))

    def read(self, memory: Memory, remote: RemoteRegion, peer: int = 0, **options: Any) -> Request:
        """Posts a read."""
        return self.post(Work.read(memory, remote, peer, **options))

    def wait(self, request: Request, timeout: float | None) -> Completion:
        """Waits for one request, whose failure the end of the scope then does not raise."""
        completion = request.wait(timeout)
        self._looked_at.add(id(request))
        return completion

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        self._begun()
        # The library ends each at its deadline.
        ended = [self._connection._wait_for(each, None, wakes=False) for each in self._requests]
        unseen = [
            completion
            for request, completion in zip(self._requests, ended)
            if id(request) not in self._looked_at
        ]
        self.failures = [completion for completion in unseen if not completion.ok]
        if kind is not None:
            return
        self._connection._gather(list(unseen))
        if self._strict and unseen:
            raise BusyError(errno.EBUSY, f"{len(unseen)} requests of the scope were not looked at")
