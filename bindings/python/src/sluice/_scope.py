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
    from ._list import PreparedList


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
        self._lists: list[PreparedList] = []
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

    def compare_swap(
        self,
        memory: Memory,
        remote: RemoteRegion,
        expected: int,
        desired: int,
        peer: int = 0,
        **options: Any,
    ) -> Request:
        """Posts a compare and swap of 8 bytes."""
        return self.post(Work.compare_swap(memory, remote, expected, desired, peer, **options))

    def fetch_add(
        self, memory: Memory, remote: RemoteRegion, addend: int, peer: int = 0, **options: Any
    ) -> Request:
        """Posts a fetch and add of 8 bytes."""
        return self.post(Work.fetch_add(memory, remote, addend, peer, **options))

    def post_list(self, prepared: PreparedList) -> None:
        """Posts a prepared list of the connection. Its :meth:`PreparedList.wait` has the results;
        the end of the scope waits for it as well, and raises its first failure."""
        limit = self._begun()
        while True:
            left = limit.left()
            try:
                prepared.post(deadline=None if left == FOREVER else left / 1e9)
                break
            except BlockingIOError:
                if left == 0:
                    raise DeadlineError(errno.ETIMEDOUT, "there was no room in the queues") from None
                self._connection._wait_a_little(limit)
        self._lists.append(prepared)

    def poll(self) -> list[Request]:
        """Returns the requests of the scope that are complete and that no call has returned yet.
        The end of the scope does not raise their failures."""
        with self._connection._guard:
            self._connection._look()
        found = [each for each in self._requests if each.done and id(each) not in self._looked_at]
        self._looked_at.update(id(each) for each in found)
        return found

    def wait(self, request: Request, timeout: float | None) -> Completion:
        """Waits for one request, whose failure the end of the scope then does not raise."""
        completion = request.wait(timeout)
        self._looked_at.add(id(request))
        return completion

    @staticmethod
    def _end_of_list(prepared: PreparedList) -> list[Completion]:
        """Returns how a list has ended, unless the program has closed it, which waits as well."""
        if prepared.closed:
            return []
        try:
            return prepared.wait(None)
        except Error as error:
            return error.completions or []

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        self._begun()
        # The library ends each at its deadline.
        ended = [self._connection._wait_for(each, None, wakes=False) for each in self._requests]
        of_lists = [each for prepared in self._lists for each in self._end_of_list(prepared)]
        unseen = [
            completion
            for request, completion in zip(self._requests, ended)
            if id(request) not in self._looked_at
        ] + [each for each in of_lists if not each.ok]
        self.failures = [completion for completion in unseen if not completion.ok]
        if kind is not None:
            return
        self._connection._gather(list(unseen))
        if self._strict and unseen:
            raise BusyError(errno.EBUSY, f"{len(unseen)} requests of the scope were not looked at")
