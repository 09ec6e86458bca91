# SPDX-License-Identifier: MIT
"""Prepared lists."""
from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any, Iterable

from ._completion import Completion
from ._engine import completions_of
from ._errors import DeadlineError, check, error_of, last_error, made, wait_error_of
from ._library import Limit, ffi, lib
from ._memory import Piece
from ._object import Object
from ._request import Work, fill_sge, requests_of

if TYPE_CHECKING:
    from ._connection import Connection


class PreparedList(Object):
    """Work that is posted again and again, to the same peers and with the same memory;
    :meth:`Channel.prepare` makes it. It references that memory until it is closed."""

    _what = "the list"

    def __init__(self, connection: Connection, prepare: Any, works: Iterable[Work]):
        self._works = tuple(works)
        self._connection = connection
        array, sges = requests_of(self._works, 0)
        with connection._guard:
            self._pointer = made(prepare(connection._get(), array, len(self._works)))
        del sges
        self._results = ffi.new("struct sluice_completion[]", max(1, len(self._works)))
        self._in_flight = False

    def __len__(self) -> int:
        return len(self._works)

    def aim(self, index: int, *, memory: Piece | None = None, remote_offset: int = 0) -> None:
        """Lets one work use other bytes of its region and of the remote one, with the same length,
        from the next post on."""
        sge = ffi.NULL
        if memory is not None:
            sge = ffi.new("struct sluice_sge *")
            fill_sge(sge, memory)
        with self._connection._guard:
            check(lib.sluice_list_aim(self._get(), index, sge, remote_offset))

    def set_length(self, index: int, length: int) -> None:
        """Sets the number of bytes of one work from the next post on, at most as many as it was
        prepared with."""
        with self._connection._guard:
            check(lib.sluice_list_set_length(self._get(), index, length))

    def submit(self, *, deadline: float | None) -> list[Completion]:
        """Posts the list and waits for all of it, as :meth:`Channel.submit` does."""
        limit = Limit(deadline)
        while True:
            try:
                self.post(deadline=limit.left() / 1e9 if deadline is not None else None)
                break
            except BlockingIOError:
                # Other work is in the queues; polling lets it make progress.
                if limit.left() == 0:
                    raise DeadlineError(errno.ETIMEDOUT, "there was no room for the list") from None
                self._connection._wait_a_little(limit)
        return self.wait(None)

    def post(self, *, deadline: float | None) -> None:
        """Posts all of it without waiting. Raises :exc:`WouldBlockError` if there is no room."""
        limit = Limit(deadline)
        with self._connection._guard:
            before, self._in_flight = self._in_flight, True  # Ctrl-C may come behind the call
            result = lib.sluice_list_post(self._get(), limit.left(), self._results)
            if result < 0:
                self._in_flight = before
            check(result)

    def wait(self, timeout: float | None) -> list[Completion]:
        """Returns how all of it ended. Raises :exc:`WaitTimeout` after ``timeout`` seconds, and
        the list goes on; or the first failure, with all in its ``completions``."""
        limit = Limit(timeout)
        while True:
            with self._connection._guard:
                result = lib.sluice_list_wait(self._get(), limit.slice())
                text = last_error() if result < 0 else ""
            if result == 0:
                return self._ended()
            if result != -errno.EINTR and (result != -errno.ETIMEDOUT or limit.left() == 0):
                raise wait_error_of(result, text)

    def results(self) -> list[Completion]:
        """Returns as :meth:`wait` if all of it has ended. Raises :exc:`BusyError` if it is in
        flight."""
        with self._connection._guard:
            result = lib.sluice_list_result(self._get())
            text = last_error() if result < 0 else ""
            ended = result == 0 or lib.sluice_list_wait(self._get(), 0) == 0
        if not ended:
            raise error_of(result, text)
        return self._ended()

    def _ended(self) -> list[Completion]:
        self._in_flight = False
        return self._connection._gather(completions_of(self._results, self._works))

    def close(self) -> None:
        """Ends the list. First waits for its work in flight; if that does not end within a second,
        closes its connection."""
        if self._pointer is None:
            return
        connection = self._connection
        with connection._guard:
            pointer, self._pointer = self._pointer, None
            if self._in_flight and not connection.closed:
                # The results are written as work completes, so they must be kept until then.
                if lib.sluice_list_wait(pointer, 1_000_000_000) == -errno.ETIMEDOUT:
                    connection.close()
            lib.sluice_list_free(pointer)
