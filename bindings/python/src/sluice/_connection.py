# SPDX-License-Identifier: MIT
"""The common part of channels and multichannels: posting, and taking completions.

All work is posted without waiting, and waits are a series of short ones, so that Ctrl-C is served
meanwhile; the library itself would wait for a whole deadline. Each request is kept here under a
number until its completion was taken, and its memory is referenced until then.
"""
from __future__ import annotations

import asyncio
import errno
import time
from collections import deque
from typing import Any, Callable, Iterable, Sequence, TypeVar

from ._completion import (
    ERROR,
    Completion,
    ExplainedCompletion,
    FirstError,
    completion_of,
    gather,
    unposted,
)
from ._errors import Error, WaitTimeout, check, error_of, last_error
from ._engine import POST_ONLY, engine_of
from ._library import FOREVER, SLICE, Limit, ffi, lib
from ._memory import released
from ._object import Guard, Object, remember
from ._pump import Pump
from ._request import RECEIVE, Request, Work, requests_of

T = TypeVar("T")

# Maximum number of completions that are kept for later polls.
KEPT = 65536


class Connection(Object):
    """The base of :class:`Channel` and :class:`MultiChannel`. Any thread may use one."""

    # Functions of the library, by the name of the object; set by the classes.
    _prefix = ""

    def _set_up(self, pointer: Any, depths: tuple[int, int]) -> None:
        self._pointer = pointer
        self._guard = Guard(pointer, self._f("wake"))
        self._woken = False
        self._posted: dict[int, Request] = {}
        self._unseen: deque[Request] = deque(maxlen=KEPT)
        # Requests whose callbacks are due.
        self._called: deque[Request] = deque()
        # Requests in flight or not taken, and the limit of these: for all but receives, and for receives.
        self._count = ffi.new("int64_t[2]")
        self._room = ffi.new("int64_t[2]", list(depths))
        self._depths = depths
        self._engine = engine_of(self)
        self._loop: Pump | None = None
        remember(self)

    def _f(self, name: str) -> Any:
        """Returns the function of the library with this name, for objects of this class."""
        return getattr(lib, f"{self._prefix}_{name}")

    def _places(self, kind: int) -> int:
        return self._depths[kind]

    # The end.

    def close(self) -> None:
        """Ends the connection at once: work that is in flight is drained, for at most a second,
        and ends cancelled. No memory of it is touched afterwards."""
        if self._pointer is None:
            return
        with self._guard:
            pointer, self._pointer = self._pointer, None
            if pointer is None:
                return
            self._forget()
            self._end(pointer)
            self._drop_all()

    def _forget(self) -> None:
        """The object of the library ends: no call may use it any more."""
        self._guard.forget()
        self._engine.end()

    def _close_at_exit(self) -> None:
        if self._pointer is not None and self._guard.try_for(2):
            try:
                self.close()
            finally:
                self._guard.release()

    def __del__(self) -> None:
        # No other reference exists, so no other thread can be waiting for it.
        try:
            if self._pointer is not None:
                pointer, self._pointer = self._pointer, None
                self._engine.end()
                self._end(pointer)
                self._drop_all()
        except Exception:
            pass

    def _drop_all(self) -> None:
        """Drops all requests: they ended with their connection, and cannot be taken any more."""
        posted = list(self._posted.values())
        self._posted.clear()
        self._count[0] = self._count[1] = 0
        for request in posted:
            if request._work is not None:
                request._complete(unposted(request._work, -errno.ECANCELED))
        if self._loop is not None:
            self._loop.stop()

    # Completions.

    def _look(self, most: int = 0) -> int:
        """Takes all completions, or about ``most`` if that is not 0, without waiting. The caller has
        the guard."""
        self._get()
        total = check(self._engine.look(most))
        if total > 0 or self._called:  # Ctrl-C may have left some
            self._taken()
        return total

    def _taken(self) -> None:
        """Runs what is due after completions were taken."""
        while self._called:
            self._called.popleft()._call_back()
        if released:
            # End released regions here, and not some polls later.
            with self._guard:
                if self._pointer is not None:
                    self._f("arm")(self._pointer, ffi.NULL)

    def _wait_a_little(self, limit: Limit) -> bool:
        """Waits for any completion, for a slice at most. Returns whether one arrived, or may
        have."""
        with self._guard:
            if self._look() > 0:
                return True
            result = self._engine.next(limit.slice())
            if result > 0:
                self._taken()
                return True
            if result == -errno.ENOENT:
                self._find_lost()
                return False
            if result not in (-errno.ETIMEDOUT, -errno.EINTR):
                check(result)
        if self._guard.wanted:
            time.sleep(0.0005)  # let other threads take the lock
        return False

    def _find_lost(self) -> None:
        """No more completions can arrive, so end all requests that are left, but receives of a pool,
        which wait for peers that come later."""
        for number in list(self._posted):
            if self._posted[number].pooled:
                time.sleep(0.0005)  # rather than a loop of empty waits
                continue
            request = self._posted.pop(number)
            if request._work is not None:
                self._count[request._work.opcode == RECEIVE] -= 1
                request._complete(unposted(request._work, -errno.ESTALE))

    def _until(
        self, condition: Callable[[], T | None], limit: Limit, wakes: bool = False
    ) -> T | None:
        """Waits until the condition is not None, and returns it. Returns None if the limit has
        passed."""
        with self._guard:
            self._look()
        while True:
            result = condition()
            if result is not None:
                return result
            if wakes and self._woken:
                self._woken = False
                raise error_of(errno.EINTR, "the wait was ended by wake()")
            if limit.left() == 0:
                return None
            if not self._wait_a_little(limit) and not self._posted and condition() is None:
                # No completion can arrive: the wait is for another kind, or for another thread.
                return None

    def _wait_for(
        self, request: Request, timeout: float | None, wakes: bool = True
    ) -> Completion:
        request.seen = True
        if request._completion is None:
            self._until(lambda: request._completion, Limit(timeout), wakes)
        if request._completion is None:
            raise WaitTimeout(errno.ETIMEDOUT, "the request is not complete yet")
        return self._end_of_request(request)

    @staticmethod
    def _end_of_request(request: Request) -> Completion:
        """Returns how a request that is complete has ended, with the reason of a failure."""
        completion = request.completion
        assert completion is not None
        return completion

    def _cancel(self, request: Request) -> Completion:
        request.seen = True
        with self._guard:
            self._look()
            if request._completion is None:
                struct = ffi.new("struct sluice_completion *")
                handle = ffi.new("struct sluice_handle *")
                ffi.memmove(handle, request._handle, ffi.sizeof("struct sluice_handle"))
                check(self._f("cancel")(self._get(), handle, struct))
                for number, each in list(self._posted.items()):
                    if each is request:
                        del self._posted[number]
                        self._count[struct.opcode == RECEIVE] -= 1
                request._complete(completion_of(struct, request.user))
                self._look()
        return self._end_of_request(request)

    def poll(self) -> list[Request]:
        """Returns complete requests whose results were not requested otherwise, oldest first."""
        with self._guard:
            self._look()
        result = []
        while self._unseen:
            request = self._unseen.popleft()
            if not request.seen:
                request.seen = True
                result.append(request)
        return result

    def next(self, timeout: float | None) -> Request:
        """Waits for the next such request, for example a receive from any peer.

        Raises :exc:`WaitTimeout` after ``timeout`` seconds, and :exc:`LookupError` if no posted
        request could complete.
        """
        found = self._until(self._pop_unseen, Limit(timeout), wakes=True)
        if found is not None:
            return found
        if not self._posted:
            raise LookupError("nothing is posted that could end")
        raise WaitTimeout(errno.ETIMEDOUT, "no request is complete yet")

    def _pop_unseen(self) -> Request | None:
        while self._unseen:
            request = self._unseen.popleft()
            if not request.seen:
                request.seen = True
                return request
        return None

    def flush(self, timeout: float | None) -> None:
        """Waits until all posted work is complete. Its results can still be taken."""
        self._until(self._all_done, Limit(timeout), wakes=True)
        if self._all_done() is None:
            raise WaitTimeout(errno.ETIMEDOUT, f"{len(self._posted)} requests are not complete yet")

    def _all_done(self) -> bool | None:
        return None if any(not each.pooled for each in list(self._posted.values())) else True

    @property
    def pending(self) -> int:
        """The requests that are posted and not complete, as far as is known."""
        return len(self._posted)

    # Posting.

    def _post_some(self, works: Sequence[Work], deadline: float | None) -> list[Request]:
        """Posts as many of the first works as there is room for; under the guard. Posts none on an
        error."""
        self._get()
        result = self._engine.run(self, works, deadline, POST_ONLY)
        if result is None:
            works = works[: self._that_fit(works)]
            result = self._engine.run(self, works, deadline, POST_ONLY)
        if result is None:
            raise error_of(errno.EAGAIN, "there is no room in the queues now")
        if isinstance(result, int):
            raise error_of(result, last_error())
        if self._loop is not None:
            self._loop.soon()
        return list(result)

    def _that_fit(self, works: Sequence[Work]) -> int:
        """Returns how many of the first works there is room for. The library reserves a place for
        the result of each."""
        self._look()
        if not self._posted:
            self._count[0] = self._count[1] = 0
        self._room[0], self._room[1] = self._places(0), self._places(1)
        count, room = 0, [self._room[0] - self._count[0], self._room[1] - self._count[1]]
        while count < len(works) and room[works[count].opcode == RECEIVE] > 0:
            room[works[count].opcode == RECEIVE] -= 1
            count += 1
        return count

    def post(self, works: Iterable[Work], *, deadline: float | None) -> list[Request]:
        """Posts as many of the first works as there is room for, without waiting.

        Raises :exc:`WouldBlockError` if there is no room for the first. On any other error nothing
        was posted.
        """
        works = list(works)
        if not works:
            return []
        with self._guard:
            return self._post_some(works, deadline)

    def _post_one(self, work: Work, deadline: float | None) -> Request:
        return self.post([work], deadline=deadline)[0]

    def _start(self, left: list[tuple[int, Work]], ended: dict[int, Any], limit: Limit) -> None:
        """Posts what there is room for now, separately for each peer, and removes it from the works
        that are left. ended gets a Request of each, or a Completion of works that could not be
        posted."""
        full: set[tuple[int, bool]] = set()
        while True:
            now = [each for each in left if (each[1].peer, each[1].opcode == RECEIVE) not in full]
            if not now:
                return
            index, first = now[0]
            try:
                with self._guard:
                    requests = self._post_some([work for _, work in now], limit.seconds())
            except Error as error:
                if error.errno == errno.EAGAIN:
                    full.add((first.peer, first.opcode == RECEIVE))
                    continue
                if error.errno not in (errno.ENOTCONN, errno.ETIMEDOUT) and not ended:
                    raise
                ended[index] = unposted(first, -(error.errno or errno.EIO))
                left.remove(now[0])
                continue
            for (index, _), request in zip(now, requests):
                request.seen = True
                ended[index] = request
            left[:] = [each for each in left if each[0] not in ended]

    def _begin(self, works: Iterable[Work]) -> list[tuple[int, Work]]:
        """Returns checked works with their indexes, receives first."""
        ordered = self._in_order(works)
        if len(ordered) > 1:
            self._check_all([work for _, work in ordered])
        return ordered

    @staticmethod
    def _in_order(works: Iterable[Work]) -> list[tuple[int, Work]]:
        every = list(enumerate(works))
        ordered = [each for each in every if each[1].opcode == RECEIVE]
        return ordered + [each for each in every if each[1].opcode != RECEIVE]

    def submit(self, works: Iterable[Work], *, deadline: float | None) -> list[Completion]:
        """Performs a list of work of any kind, and waits for all of it. Receives are posted first.

        Returns how each ended, in the order of ``works``, if all succeeded. Otherwise raises the
        first failure that is not a mere consequence, with all in its ``completions``. Wrong
        arguments are detected before anything is posted.

        Ctrl-C is served in between: the work then goes on until the deadline, and its memory
        stays referenced until it ends. ``requests`` of the exception has a :class:`Request` of all
        that was posted, by which it is waited for or cancelled; :meth:`poll` and :meth:`next`
        return it, too, when it is complete.
        """
        every = tuple(works)
        self._get()
        # Also has the result, in case a signal keeps it from being returned.
        box: list[Any] = []
        ended: dict[int, Any] = {}
        try:
            known = self._engine.run(self, every, deadline, SLICE, box)
            if self._loop is not None:
                self._loop.soon()
            if type(known) is list:
                if released:
                    self._taken()
                return known
            return self._submit_the_rest(every, known, Limit(deadline), ended)
        except BaseException as error:
            if not isinstance(error, Error):
                self._hand_over(error, every, box, ended)
            raise

    def _hand_over(
        self, error: BaseException, works: Sequence[Work], box: list[Any], ended: dict[int, Any]
    ) -> None:
        """Hands the program the requests of a call that has ended before they have."""
        known = dict(enumerate(box[0])) if box and box[0] is not None else {}
        own = {id(work) for work in works}
        with self._guard:
            found = {id(each): each for each in self._posted.values() if id(each._work) in own}
            for index, each in {**known, **ended}.items():
                if isinstance(each, Completion):
                    completion, each = each, Request(self, works[index])
                    each._end(completion)
                if each is not None:
                    found[id(each)] = each
            for each in found.values():
                each.seen = False
                if each.done and each not in self._unseen:
                    self._unseen.append(each)
        if found:
            error.requests = tuple(found.values())  # type: ignore[attr-defined]

    def _submit_the_rest(
        self,
        works: Sequence[Work],
        known: tuple[Any, ...] | None,
        limit: Limit,
        ended: dict[int, Any],
    ) -> list[Completion]:
        """Goes on step by step with a list that the engine has tried to post at once; ``known`` is
        the engine's result."""
        if known is None:
            left = self._begin(works)
        else:
            ended.update((i, each) for i, each in enumerate(known) if each is not None)
            left = [each for each in self._in_order(works) if each[0] not in ended]
        while left:
            self._start(left, ended, limit)
            if not left or self._too_late(left, ended, limit):
                break
            self._wait_for_room(limit)
        return self._gather([self._end_of(ended[i]) for i in range(len(ended))])

    def _wait_for_room(self, limit: Limit) -> None:
        """Waits until some work is complete; prepared lists may use the room as well."""
        before = len(self._posted)
        if before == 0:
            with self._guard:
                self._look()
            time.sleep(0.0005)
        else:
            self._until(lambda: True if len(self._posted) < before else None, limit)

    @staticmethod
    def _too_late(left: list[tuple[int, Work]], ended: dict[int, Any], limit: Limit) -> bool:
        """Fails works for which there was no room before the deadline."""
        if limit.left() > 0:
            return False
        for index, work in left:
            ended[index] = unposted(work, -errno.ETIMEDOUT)
        left.clear()
        return True

    def _end_of(self, each: Any) -> Completion:
        if isinstance(each, Completion):
            return each
        # Its own deadline ends it; the library does so within a second.
        return self._wait_for(each, None, wakes=False)

    def _check_all(self, works: list[Work]) -> None:
        """Checks a list that is posted in several parts, before the first one: with a deadline of 0
        the library checks all of it, and posts nothing."""
        with self._guard:
            self._look()
            receives = sum(work.opcode == RECEIVE for work in works)
            if (
                receives + self._count[1] <= self._places(1)
                and len(works) - receives + self._count[0] <= self._places(0)
            ):
                return  # it looks at all of it when it posts
            array, sges = requests_of(works, 0)
            result = self._f("post")(self._get(), array, len(works), 0, ffi.NULL)
            if result < 0 and result not in (-errno.ETIMEDOUT, -errno.EAGAIN, -errno.ENOTCONN):
                raise error_of(result, last_error())
            del sges

    def _gather(self, completions: list[Completion]) -> list[Completion]:
        every = [
            self._explained(each) if each._values[ERROR] != 0 else each for each in completions
        ]
        return gather(every, self._reason)

    def _first_error(self, peer: int) -> FirstError | None:
        raise NotImplementedError

    def _first_known(self, peer: int) -> FirstError | None:
        """Returns the first error of a peer, if there is one, and the library still has it."""
        if self._pointer is None:
            return None
        try:
            return self._first_error(peer)
        except Error:
            return None

    def _reason(self, completion: Completion) -> str:
        """Returns the text of the first error of the connection."""
        first = self._first_known(completion.peer)
        return first.text if first is not None else ""

    def _explained(self, completion: Completion) -> Completion:
        """Returns a failed completion with the text of the first error of its peer, if that is the
        cause: the peer may have been connected again, and failed again, since."""
        if completion._reason:
            return completion
        first = self._first_known(completion.peer)
        if first is None or (first.peer, first.status) != (completion.peer, completion.cause):
            return completion
        return ExplainedCompletion.of(completion, first.text)

    def _do(self, work: Work, deadline: float | None) -> Completion:
        """One request, to its end."""
        try:
            return self.submit((work,), deadline=deadline)[0]
        except Error as error:
            error.completions = None
            raise

    # asyncio

    def _pump(self) -> Pump:
        loop = asyncio.get_running_loop()
        if self._loop is None or self._loop.loop is not loop:
            if self._loop is not None:
                self._loop.stop()
            self._loop = Pump(self, loop)
        return self._loop

    async def _await(self, request: Request) -> Completion:
        request.seen = True
        if request._completion is None:
            future = asyncio.get_running_loop().create_future()

            def tell() -> None:
                loop = future.get_loop()

                def set_result() -> None:
                    if not future.done():
                        future.set_result(None)

                if not loop.is_closed():
                    loop.call_soon_threadsafe(set_result)

            with self._guard:  # completions are taken under it
                if request._completion is None:
                    request._callbacks += (tell,)
                else:
                    future.set_result(None)
            with self._pump():
                await future
        return self._end_of_request(request)

    async def submit_async(
        self, works: Iterable[Work], *, deadline: float | None
    ) -> list[Completion]:
        """As :meth:`submit`, for asyncio: other tasks run while it waits.

        If the task is cancelled, its work goes on until the deadline; ``requests`` of the exception
        has it, as with :meth:`submit`.
        """
        every, limit = tuple(works), Limit(deadline)
        ended: dict[int, Any] = {}
        try:
            return await self._submit_async(every, limit, ended)
        except BaseException as error:
            if not isinstance(error, Error):
                self._hand_over(error, every, [], ended)
            raise

    async def _submit_async(
        self, works: Sequence[Work], limit: Limit, ended: dict[int, Any]
    ) -> list[Completion]:
        left = self._begin(works)
        while True:
            self._start(left, ended, limit)
            if not left or self._too_late(left, ended, limit):
                break
            pending = next(iter(list(self._posted.values())), None)
            if pending is None:
                await asyncio.sleep(0)
            else:
                await self._await_any(pending, limit)
        ends = [
            await self._await(ended[i]) if isinstance(ended[i], Request) else ended[i]
            for i in range(len(ended))
        ]
        return self._gather(ends)

    async def _await_any(self, pending: Request, limit: Limit) -> None:
        """Waits until this request is complete, which makes room, or the limit has passed."""
        seen = pending.seen
        left = limit.left()
        try:
            await asyncio.wait_for(
                asyncio.shield(self._await(pending)), None if left == FOREVER else left / 1e9
            )
        except asyncio.TimeoutError:
            pass
        pending.seen = seen
        if not seen and pending.done:
            self._unseen.append(pending)

    # Descriptions.

    def fileno(self) -> int:
        """The descriptor for event loops of other kinds: see :meth:`arm`."""
        with self._guard:
            return check(self._f("fd")(self._get()))

    def arm(self) -> float | None:
        """Call this before each sleep on :meth:`fileno`. Returns the seconds after which to poll
        even without an event, or ``None``; 0: poll at once, as there are completions already."""
        due = ffi.new("int64_t *")
        with self._guard:
            if check(self._f("arm")(self._get(), due)) == 1:
                return 0.0
        return None if due[0] == FOREVER else due[0] / 1e9

    def wake(self) -> None:
        """Ends a wait of another thread, such as :meth:`next` or :meth:`flush`, or else the next
        wait, with :exc:`InterruptedWait`; and makes the descriptor readable. Any thread may call
        it."""
        self._get()
        self._woken = True
        self._guard.wake()

    def shutdown(self, *, deadline: float | None) -> None:
        """Shuts down in order: waits for posted work, refuses more, and ends the connection.

        Raises :exc:`DeadlineError` if work was not complete after ``deadline`` seconds, and was
        cancelled.
        """
        limit = Limit(deadline)
        self._until(self._all_done, limit)
        with self._guard:
            left = 0 if self._all_done() is None else min(limit.left(), 10**9)
            result = self._f("shutdown")(self._get(), left)
            self._look()
            check(result)
