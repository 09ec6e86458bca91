# SPDX-License-Identifier: MIT
"""Connecting by address."""
from __future__ import annotations

import asyncio
import errno
import itertools
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Callable, Iterator

from ._channel import Channel
from ._context import ProtectionDomain
from ._errors import WaitTimeout, check, error_of, last_error, made, wait_error_of
from ._library import FOREVER, SLICE, Limit, c_text, ffi, lib, text_of
from ._multichannel import MultiChannel
from ._object import Guard, Object, call, remember
from ._options import Options, attr_of


def _private(data: bytes) -> Any:
    if len(data) > lib.SLUICE_PRIVATE_DATA_BYTES:
        raise ValueError(f"private data are at most {lib.SLUICE_PRIVATE_DATA_BYTES} bytes")
    struct = ffi.new("struct sluice_private_data *")
    struct.bytes = len(data)
    ffi.memmove(struct.data, bytes(data), len(data))
    return struct


def _data(struct: Any) -> bytes:
    return bytes(ffi.buffer(struct.data, struct.bytes))


@dataclass(frozen=True)
class IncomingInfo:
    """Information about a client that wants to connect."""

    address: str
    channels: int
    proven: bool
    version: int
    private_data: bytes


class Incoming(Object):
    """A client that wants to connect. Accept or refuse it; closing refuses it."""

    _what = "the incoming connection"

    def __init__(self, listener: Listener, pointer: Any):
        self._listener = listener
        self._pointer = pointer

    def _end(self, pointer: Any) -> None:
        # If the listener has ended, the incoming connection has ended with it.
        if not self._listener.closed:
            with self._listener._guard:
                lib.sluice_incoming_refuse(pointer, ffi.NULL)

    @property
    def info(self) -> IncomingInfo:
        """Returns information about the client."""
        info = ffi.new("struct sluice_incoming_info *")
        info.size = ffi.sizeof("struct sluice_incoming_info")
        check(lib.sluice_incoming_query(self._get(), info))
        return IncomingInfo(
            text_of(info.address),
            info.channels,
            bool(info.proven),
            info.version,
            _data(info.private_data),
        )

    def refuse(self, reason: str = "") -> None:
        """Refuses the client; its error has the reason."""
        pointer = self._get()
        self._pointer = None
        with self._listener._guard:
            lib.sluice_incoming_refuse(pointer, c_text(reason) if reason else ffi.NULL)

    def _admit(
        self, into: ProtectionDomain | MultiChannel, options: Options | None, data: bytes, limit: Limit
    ) -> int:
        """Begins to accept it, and returns the number of the result."""
        listener, attr = self._listener, attr_of(options)
        own = _private(data)  # kept until the call returns
        greeting = ffi.new("struct sluice_accept_attr *")
        greeting.size, greeting.own = ffi.sizeof("struct sluice_accept_attr"), own
        many = into if isinstance(into, MultiChannel) else None
        pointer = self._get()
        self._pointer = None
        with listener._guards(many):
            number = next(listener._numbers)
            if many is not None:
                check(
                    lib.sluice_incoming_admit_into(
                        pointer, many._get(), greeting, limit.left(), number
                    )
                )
                listener._into[number] = many
            else:
                check(
                    lib.sluice_incoming_admit(
                        pointer, into._get(), attr, greeting, limit.left(), number
                    )
                )
        return number

    def accept(
        self,
        domain: ProtectionDomain,
        *,
        deadline: float | None,
        options: Options | None = None,
        private_data: bytes = b"",
    ) -> Channel:
        """Accepts it with one channel on each side, and returns once both ends are connected."""
        number = self._admit(domain, options, private_data, Limit(deadline))
        return Channel._of(self._listener._await(number).channel)

    def accept_into(
        self, multichannel: MultiChannel, *, deadline: float | None, private_data: bytes = b""
    ) -> list[int]:
        """Accepts it with new peers of a multichannel, as many as it requests; returns their
        indexes."""
        number = self._admit(multichannel, None, private_data, Limit(deadline))
        return self._listener._await(number).peers

    async def accept_async(
        self,
        domain: ProtectionDomain,
        *,
        deadline: float | None,
        options: Options | None = None,
        private_data: bytes = b"",
    ) -> Channel:
        """As :meth:`accept`, for asyncio. Any number of tasks may use it at a time; none waits for
        another."""
        number = self._admit(domain, options, private_data, Limit(deadline))
        return Channel._of((await self._listener._await_async(number)).channel)

    async def accept_into_async(
        self, multichannel: MultiChannel, *, deadline: float | None, private_data: bytes = b""
    ) -> list[int]:
        """As :meth:`accept_into`, for asyncio."""
        number = self._admit(multichannel, None, private_data, Limit(deadline))
        return (await self._listener._await_async(number)).peers


@dataclass
class _Admitted:
    """The result of an admission."""

    error: int
    text: str
    channel: Any
    peers: list[int]


def _close_channel(pointer: Any) -> None:
    if pointer != ffi.NULL:
        lib.sluice_channel_close(pointer)


class Listener(Object):
    """Listens at ``"host:port"``, ``"[::1]:port"``, or ``":port"``, which is all addresses.

    :param secret_file: the secret that both sides share; ``None``: that of ``SLUICE_SECRET_FILE``;
    empty: none.
    :param backlog: the number of connections that may wait; 0 is the default.
    """

    _what = "the listener"

    def __init__(self, address: str, *, secret_file: str | None = None, backlog: int = 0):
        attr = ffi.new("struct sluice_listen_attr *")
        attr.size = ffi.sizeof("struct sluice_listen_attr")
        attr.backlog = backlog
        secret = c_text(secret_file)
        attr.secret_file = secret
        self._pointer = made(lib.sluice_listen(c_text(address), attr))
        self._guard = Guard(self._pointer, lib.sluice_listener_wake)
        self._attr: dict[Options | None, Any] = {}
        self._numbers = itertools.count(1)
        self._into: dict[int, MultiChannel] = {}  # of admissions under way
        self._ended: dict[int, _Admitted] = {}
        self._given_up: set[int] = set()
        self._sleepers: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()
        remember(self)

    @contextmanager
    def _guards(self, many: MultiChannel | None = None) -> Iterator[None]:
        """Returns the guards of the listener and of each multichannel that its calls use."""
        with ExitStack() as stack:
            stack.enter_context(self._guard)
            for each in {id(one): one for one in (*self._into.values(), many)}.values():
                if each is not None:
                    stack.enter_context(each._guard)
            yield

    def close(self) -> None:
        """Closes the listener; waiting and later clients are refused."""
        if self._pointer is None:
            return
        with self._guards():
            descriptor = self.fileno()
            for loop, event in self._sleepers:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(event.set)
                    loop.remove_reader(descriptor)
            self._guard.forget()
            super().close()
            for ended in self._ended.values():
                _close_channel(ended.channel)
            self._ended.clear()
            self._into.clear()

    def __del__(self) -> None:
        try:
            Object.close(self)
        except Exception:
            pass

    def _close_at_exit(self) -> None:
        if self._pointer is not None and self._guard.try_for(2):
            try:
                self.close()
            finally:
                self._guard.release()

    def _end(self, pointer: Any) -> None:
        lib.sluice_listener_close(pointer)

    @property
    def address(self) -> str:
        """The address on which it listens, as ``"[::]:7471"``."""
        text = ffi.new("char[]", 64)
        check(lib.sluice_listener_address(self._get(), text, 64))
        return str(ffi.string(text).decode())

    @property
    def port(self) -> int:
        """The port on which it listens."""
        return check(lib.sluice_listener_address(self._get(), ffi.NULL, 0))

    def fileno(self) -> int:
        """Returns the descriptor for event loops: readable when a client may have connected."""
        return check(lib.sluice_listener_fd(self._get()))

    def _in_slices(self, function: Callable[[int], Any], timeout: float | None) -> Any:
        limit = Limit(timeout)
        while True:
            with self._guards():
                result = function(limit.slice())
                number, text = ffi.errno, last_error()
            if result != ffi.NULL:
                return result
            if number in (errno.ETIMEDOUT, errno.EINTR) and limit.left() > 0:
                continue
            raise wait_error_of(number, text)

    def next(self, timeout: float | None) -> Incoming:
        """Returns the next client that wants to connect. Raises :exc:`WaitTimeout` if none
        did."""
        pointer = self._in_slices(
            lambda nanoseconds: lib.sluice_listener_next(self._get(), nanoseconds), timeout
        )
        return Incoming(self, pointer)

    def accept(
        self, domain: ProtectionDomain, timeout: float | None, *, options: Options | None = None
    ) -> Channel:
        """Accepts clients, several at a time, and returns the first channel that is connected."""
        # Use the same attributes each time, so that the next call goes on with the other clients.
        attr = self._attr.setdefault(options, attr_of(options))
        pointer = self._in_slices(
            lambda nanoseconds: lib.sluice_accept(self._get(), domain._get(), attr, nanoseconds),
            timeout,
        )
        return Channel._of(pointer)

    def _keep(self, info: Any, text: str) -> None:
        number, peers = info.user_data, list(info.peers[0 : min(info.peer_count, info.peer_capacity)])
        into = self._into.pop(number, None)
        if number not in self._given_up:
            self._ended[number] = _Admitted(info.error, text, info.channel, peers)
            return
        self._given_up.discard(number)
        _close_channel(info.channel)
        for peer in peers:
            if into is not None and not into.closed:
                lib.sluice_multichannel_peer_remove(into._get(), peer)

    def _take(self, number: int, timeout: int) -> _Admitted | None:
        """Waits for a result, and takes all that are available."""
        info = ffi.new("struct sluice_admitted *")
        info.size = ffi.sizeof("struct sluice_admitted")
        room = ffi.new("uint32_t[]", lib.SLUICE_MAX_CONNECT_CHANNELS)
        info.peers, info.peer_capacity = room, len(room)
        with self._guards():
            while number not in self._ended:
                result = lib.sluice_listener_admitted(self._get(), timeout, info)
                if result in (-errno.ETIMEDOUT, -errno.EINTR):
                    break
                check(result)
                self._keep(info, last_error())
            ended = self._ended.pop(number, None)
            if self._ended:
                self._rouse()
        if ended is not None and ended.error < 0:
            raise error_of(ended.error, ended.text)
        return ended

    def _give_up(self, number: int) -> None:
        """Gives up an admission whose result is not needed any more."""
        if self._pointer is None:
            return
        with self._guards():
            ended = self._ended.pop(number, None)
            if ended is not None:
                _close_channel(ended.channel)
            else:
                self._given_up.add(number)
                lib.sluice_listener_cancel(self._get(), number)
                self._take(number, 0)

    def _await(self, number: int) -> _Admitted:
        try:
            while True:
                ended = self._take(number, SLICE)
                if ended is not None:
                    return ended
        except (KeyboardInterrupt, SystemExit):
            self._give_up(number)
            raise

    async def _await_async(self, number: int) -> _Admitted:
        try:
            while True:
                ended = self._take(number, 0)
                if ended is not None:
                    return ended
                await self._readable(FOREVER)
        except asyncio.CancelledError:
            self._give_up(number)
            raise

    def _rouse(self) -> None:
        for loop, event in self._sleepers:
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)

    async def _readable(self, left: int) -> None:
        """Waits until a call of the listener may have something to do, or that many nanoseconds."""
        loop, event, descriptor = asyncio.get_running_loop(), asyncio.Event(), self.fileno()
        sleeper = (loop, event)
        if not any(each is loop for each, _ in self._sleepers):
            loop.add_reader(descriptor, self._rouse)
        self._sleepers.add(sleeper)
        try:
            await asyncio.wait_for(event.wait(), None if left == FOREVER else left / 1e9)
        except asyncio.TimeoutError:
            pass
        finally:
            self._sleepers.discard(sleeper)
            if not self.closed and not any(each is loop for each, _ in self._sleepers):
                loop.remove_reader(descriptor)

    async def _at_once(self, attempt: Callable[[], Any], limit: Limit) -> Any:
        """Returns the result of a call with timeout 0, once it has one."""
        while True:
            try:
                return attempt()
            except WaitTimeout:
                left = limit.left()
                if left == 0:
                    raise
            await self._readable(left)

    async def next_async(self, timeout: float | None) -> Incoming:
        """As :meth:`next`, for asyncio."""
        incoming: Incoming = await self._at_once(lambda: self.next(0), Limit(timeout))
        return incoming

    async def accept_async(
        self, domain: ProtectionDomain, timeout: float | None, *, options: Options | None = None
    ) -> Channel:
        """As :meth:`accept`, for asyncio. A peer that stops in the middle does not hold up other
        tasks."""
        channel: Channel = await self._at_once(
            lambda: self.accept(domain, 0, options=options), Limit(timeout)
        )
        return channel


def _connect_attr(
    secret_file: str | None, private_data: bytes, wait: bool
) -> tuple[Any, Any, tuple[Any, ...]]:
    attr = ffi.new("struct sluice_connect_attr *")
    attr.size = ffi.sizeof("struct sluice_connect_attr")
    secret, own = c_text(secret_file), _private(private_data)
    theirs = ffi.new("struct sluice_private_data *")
    attr.secret_file, attr.own, attr.peer = secret, own, theirs
    if wait:
        attr.flags = lib.SLUICE_CONNECT_WAIT
    return attr, theirs, (secret, own)


def connect(
    address: str,
    domain: ProtectionDomain,
    *,
    deadline: float | None,
    options: Options | None = None,
    secret_file: str | None = None,
    private_data: bytes = b"",
    wait: bool = False,
) -> Channel:
    """Connects to a :class:`Listener` at ``"host:port"``. Returns a channel that both ends use.

    With ``wait`` the listener need not exist yet. The private data of the other side is in
    ``peer_data`` of the channel.
    """
    attr, theirs, kept = _connect_attr(secret_file, private_data, wait)
    where, pd, limit, of_channel = c_text(address), domain._get(), Limit(deadline), attr_of(options)

    def connect() -> Any:
        result = lib.sluice_connect(where, pd, of_channel, attr, limit.left())
        assert kept is not None
        return result

    channel = Channel._of(call(connect, dispose=_close_channel))
    channel.peer_data = _data(theirs)
    return channel


def connect_into(
    address: str,
    multichannel: MultiChannel,
    count: int = 1,
    *,
    deadline: float | None,
    secret_file: str | None = None,
    private_data: bytes = b"",
    wait: bool = False,
) -> list[int]:
    """Connects new peers of a multichannel; returns their indexes."""
    attr, _, kept = _connect_attr(secret_file, private_data, wait)
    peers = ffi.new("uint32_t[]", max(1, count))
    where, limit = c_text(address), Limit(deadline)

    def connect() -> Any:
        with multichannel._guard:
            result = lib.sluice_connect_into(
                where, multichannel._get(), attr, limit.left(), peers, count
            )
        assert kept is not None
        return result

    call(connect)
    return list(peers)[:count]
