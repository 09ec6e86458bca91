# SPDX-License-Identifier: MIT
"""Reads and writes of remote buffers in flight."""
from __future__ import annotations

import asyncio
import errno
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Callable, Generator

from ._completion import Completion, completion_of, gather
from ._errors import WaitTimeout, check, error_of, last_error, made
from ._library import FOREVER, Limit, ffi, lib
from ._object import Object

if TYPE_CHECKING:
    from ._buffer import Action, BufferService

# Maximum number of completions taken by one call.
_ROOM = 64
_IN_FLIGHT = "the batch is still in flight"


def array_of(actions: list[Action]) -> Any:
    """Returns the actions for C; the index of each is its user data."""
    array = ffi.new("struct sluice_buffer_action[]", max(1, len(actions)))
    for i, action in enumerate(actions):
        struct = array[i]
        struct.opcode, struct.handle = action.opcode, action.handle
        struct.offset, struct.length = action.offset, action.length
        struct.addr, struct.mr, struct.user_data = action.address, action.region, i
        struct.blocks = action.blocks[0]
    return array


class BufferBatch(Object):
    """Reads and writes in flight: :meth:`BufferService.post` and :meth:`BufferService.prepare`
    make it.

    ``await batch`` and :meth:`wait` return all completions once all actions have ended, and raise
    the first failure. ``async for completion in batch``, :meth:`next` and :meth:`poll` return each
    as it arrives. Ctrl-C in a wait, or a task that is cancelled in an ``await``, cancels the batch.
    The batch holds the memory of its actions until it is closed, which cancels actions in flight.
    """

    _what = "the batch"

    def __init__(self, service: BufferService, actions: list[Action]):
        self._service, self._actions = service, actions
        # One thread at a time uses the batch, except for cancelling, for which closing has to wait.
        self._lock, self._ending = threading.RLock(), threading.Lock()
        self._came: deque[Completion] = deque()
        self._sleepers: list[asyncio.Future[None]] = []
        self._room = ffi.new("struct sluice_completion[]", _ROOM)
        array = array_of(actions)
        pointer = service._enter()
        try:
            self._pointer = made(lib.sluice_buffer_batch_prepare(pointer, array, len(actions)))
        finally:
            service._leave()

    def _end(self, pointer: Any) -> None:
        with self._lock, self._ending:
            self._service._hold()
            try:
                lib.sluice_buffer_batch_free(pointer)
            finally:
                self._service._leave()
            self._actions = []
        self._wake()

    def _call(self, function: Callable[..., int], *arguments: Any) -> int:
        """Makes a C call with one thread at a time; keeps the service open meanwhile."""
        with self._lock:
            pointer = self._get()
            self._service._hold()
            try:
                return function(pointer, *arguments)
            finally:
                self._service._leave()

    def post(self, *, deadline: float | None) -> None:
        """Posts the batch, for the first time or again after it has ended; otherwise raises
        :exc:`BusyError`."""
        limit = Limit(deadline)
        with self._lock:
            check(self._call(lib.sluice_buffer_batch_post, limit.left()))
            self._came.clear()

    def _pump(self) -> bool:
        """Takes all new completions. Returns whether there were any."""
        count = _ROOM
        before = len(self._came)
        with self._lock:
            while count == _ROOM:
                count = check(self._call(lib.sluice_buffer_batch_poll, self._room, _ROOM))
                self._came.extend(self._completion(self._room[i]) for i in range(count))
            return len(self._came) > before

    def _completion(self, struct: Any) -> Completion:
        return completion_of(struct, self._actions[struct.user_data].user)

    def _ended(self) -> bool:
        return self._call(lib.sluice_buffer_batch_wait, 0) == 0

    def done(self) -> bool:
        """Returns whether all actions have ended, with any result. Makes progress without
        waiting."""
        self._pump()
        done = self._ended()
        self._wake()
        return done

    def poll(self) -> list[Completion]:
        """Returns the new completions that were not taken yet, without waiting."""
        self._pump()
        self._wake()
        came = []
        while self._came:
            came.append(self._came.popleft())
        return came

    def next(self, timeout: float | None) -> Completion:
        """Waits for the next completion. Raises :exc:`WaitTimeout` if there was none, and the
        batch goes on; :exc:`Error` with ``ENOENT`` if all were taken."""
        taken: list[Completion] = []

        def take(left: int) -> int:
            with self._lock:
                result = 0
                if not self._came:
                    result = self._call(lib.sluice_buffer_batch_next, left, self._room)
                    if result == 0:
                        self._came.append(self._completion(self._room[0]))
                if result == 0:
                    taken.append(self._came.popleft())
                return result

        self._wait_for(take, Limit(timeout))
        return taken[0]

    def wait(self, timeout: float | None = None) -> list[Completion]:
        """Waits until all actions have ended. Returns the completions in the order of the actions
        if all succeeded; otherwise raises the first failure, with all in its ``completions``. A
        Raises :exc:`WaitTimeout` while the batch is still in flight."""
        self._wait_for(
            lambda left: self._call(lib.sluice_buffer_batch_wait, left), Limit(timeout)
        )
        return self.results()

    def _wait_for(self, attempt: Callable[[int], int], limit: Limit) -> None:
        """Waits in slices, and serves signals after each."""
        try:
            while True:
                result = attempt(limit.slice())
                if result not in (-errno.ETIMEDOUT, -errno.EINTR):
                    check(result)
                    break
                if limit.left() == 0:
                    raise WaitTimeout(errno.ETIMEDOUT, _IN_FLIGHT)
        except KeyboardInterrupt:
            self.cancel()
            raise
        finally:
            self._wake()

    def results(self) -> list[Completion]:
        """Returns as :meth:`wait` if all actions have ended. Raises :exc:`BusyError` if it is in
        flight."""
        results = ffi.new("struct sluice_completion[]", max(1, len(self._actions)))
        with self._lock:
            # A zero result means a wrong argument, for which C wrote no completion.
            results[0].opcode = 0
            result = self._call(lib.sluice_buffer_batch_results, results)
            said = last_error() if result < 0 else ""
        if result < 0 and results[0].opcode == 0:
            raise error_of(result, said)
        ended = [completion_of(results[i], each.user) for i, each in enumerate(self._actions)]
        return gather(ended, lambda completion: said)

    def cancel(self) -> None:
        """Cancels all actions that have not ended; any thread may call it. Afterwards no action
        accesses its memory any more: those that were done have succeeded, the others have failed
        with ``ECANCELED``."""
        with self._ending:
            pointer = self._pointer
            if pointer is not None:
                self._service._hold()
                try:
                    check(lib.sluice_buffer_batch_cancel(pointer))
                finally:
                    self._service._leave()
        self._wake()

    # asyncio

    def fileno(self) -> int:
        """Returns a descriptor that is readable when there is something to do, once armed: see
        sluice_buffer_batch_fd(3). Never read or close it."""
        return check(self._call(lib.sluice_buffer_batch_fd))

    def _wake(self) -> None:
        """Wakes sleeping tasks: they may have to arm the batch again."""
        for future in list(self._sleepers):
            try:
                future.get_loop().call_soon_threadsafe(_set, future)
            except RuntimeError:  # the loop was closed
                pass

    async def _sleep(self) -> None:
        """Sleeps until there may be something to do."""
        due = ffi.new("int64_t *")
        loop = asyncio.get_running_loop()
        if check(self._call(lib.sluice_buffer_batch_arm, due)) == 1:
            await asyncio.sleep(0)
            return
        future, descriptor = loop.create_future(), self.fileno()
        self._sleepers.append(future)
        loop.add_reader(descriptor, self._wake)
        timer = None if due[0] == FOREVER else loop.call_later(due[0] / 1e9, _set, future)
        try:
            await future
        finally:
            if timer is not None:
                timer.cancel()
            self._sleepers.remove(future)
            if not any(each.get_loop() is loop for each in self._sleepers):
                loop.remove_reader(descriptor)

    async def _until(self, enough: Callable[[], bool]) -> None:
        try:
            while True:
                if self._pump():
                    self._wake()
                if enough():
                    self._wake()
                    return
                await self._sleep()
        except (asyncio.CancelledError, KeyboardInterrupt):
            self.cancel()
            raise

    async def _await(self) -> list[Completion]:
        await self._until(self._ended)
        return self.results()

    def __await__(self) -> Generator[Any, None, list[Completion]]:
        return self._await().__await__()

    def __aiter__(self) -> BufferBatch:
        return self

    async def __anext__(self) -> Completion:
        await self._until(lambda: bool(self._came) or self._ended())
        self._pump()
        if not self._came:
            raise StopAsyncIteration
        return self._came.popleft()


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
