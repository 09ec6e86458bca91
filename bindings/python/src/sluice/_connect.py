# SPDX-License-Identifier: MIT
"""Connecting by address."""
from __future__ import annotations

import asyncio
import errno
from dataclasses import dataclass
from typing import Any, Callable

from ._channel import Channel, MultiChannel
from ._context import ProtectionDomain
from ._errors import DeadlineError, PeerLostError, ProtocolError, check, error_of, last_error, made
from ._library import FOREVER, Limit, c_text, ffi, lib, text_of
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
    """Who wants to connect."""

    address: str
    channels: int
    proven: bool
    version: int
    private_data: bytes


class Incoming(Object):
    """Somebody who wants to connect: accept or refuse it; closing it refuses it."""

    _what = "the incoming connection"

    def __init__(self, listener: Listener, pointer: Any):
        self._listener = listener
        self._pointer = pointer

    def _end(self, pointer: Any) -> None:
        # What is left of one whose listener has ended is nothing.
        if not self._listener.closed:
            with self._listener._guard:
                lib.sluice_incoming_refuse(pointer, ffi.NULL)

    @property
    def info(self) -> IncomingInfo:
        """Who it is."""
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
        """Ends it; the other side's error has the reason."""
        pointer = self._get()
        self._pointer = None
        with self._listener._guard:
            lib.sluice_incoming_refuse(pointer, c_text(reason) if reason else ffi.NULL)

    def accept(
        self,
        domain: ProtectionDomain,
        *,
        deadline: float | None,
        options: Options | None = None,
        private_data: bytes = b"",
    ) -> Channel:
        """Lets it in, with one channel on each side, and returns when both have heard each other."""
        pd, own, limit = domain._get(), _private(private_data), Limit(deadline)
        pointer = self._get()
        self._pointer = None

        def accept() -> Any:
            with self._listener._guard:
                return lib.sluice_incoming_accept(
                    pointer, pd, attr_of(options), own, limit.left()
                )

        return Channel._of(call(accept, dispose=_close_channel))

    def accept_into(
        self, multichannel: MultiChannel, *, deadline: float | None, private_data: bytes = b""
    ) -> list[int]:
        """The same with new peers of a multichannel, as many as it wants; their indexes."""
        count, own, limit = self.info.channels, _private(private_data), Limit(deadline)
        peers = ffi.new("uint32_t[]", count)
        pointer = self._get()
        self._pointer = None

        def accept() -> Any:
            with self._listener._guard, multichannel._guard:
                return lib.sluice_incoming_accept_into(
                    pointer, multichannel._get(), own, limit.left(), peers, count
                )

        call(accept)
        return list(peers)


def _close_channel(pointer: Any) -> None:
    if pointer != ffi.NULL:
        lib.sluice_channel_close(pointer)


class Listener(Object):
    """Listens at ``"host:port"``, ``"[::1]:port"``, or ``":port"``, which is all addresses.

    :param secret_file: what both sides know; ``None``: that of ``SLUICE_SECRET_FILE``; empty: none.
    :param backlog: how many may wait; 0 is the default.
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
        remember(self)

    def close(self) -> None:
        """Ends it: who waits, or comes later, is refused."""
        if self._pointer is None:
            return
        with self._guard:
            self._guard.forget()
            super().close()

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
        """Where it listens, as ``"[::]:7471"``."""
        text = ffi.new("char[]", 64)
        check(lib.sluice_listener_address(self._get(), text, 64))
        return str(ffi.string(text).decode())

    @property
    def port(self) -> int:
        """At which port."""
        return check(lib.sluice_listener_address(self._get(), ffi.NULL, 0))

    def fileno(self) -> int:
        """The descriptor for event loops: readable when somebody may have come."""
        return check(lib.sluice_listener_fd(self._get()))

    def _in_slices(self, function: Callable[[int], Any], timeout: float | None) -> Any:
        limit = Limit(timeout)
        while True:
            with self._guard:
                result = function(limit.slice())
                number, text = ffi.errno, last_error()
            if result != ffi.NULL:
                return result
            if number in (errno.ETIMEDOUT, errno.EINTR) and limit.left() > 0:
                continue
            raise error_of(number, text)

    def next(self, timeout: float | None) -> Incoming:
        """The next one that wants to connect. :exc:`DeadlineError`: nobody has come."""
        pointer = self._in_slices(
            lambda nanoseconds: lib.sluice_listener_next(self._get(), nanoseconds), timeout
        )
        return Incoming(self, pointer)

    def accept(
        self, domain: ProtectionDomain, timeout: float | None, *, options: Options | None = None
    ) -> Channel:
        """Lets in who comes, several at a time, and returns the first that is connected."""
        # The same attributes each time: the next call then goes on with the others.
        attr = self._attr.setdefault(options, attr_of(options))
        pointer = self._in_slices(
            lambda nanoseconds: lib.sluice_accept(self._get(), domain._get(), attr, nanoseconds),
            timeout,
        )
        return Channel._of(pointer)

    async def next_async(self, timeout: float | None) -> Incoming:
        """As :meth:`next`, for asyncio."""
        limit, loop = Limit(timeout), asyncio.get_running_loop()
        while True:
            try:
                return self.next(0)
            except DeadlineError:
                left = limit.left()
                if left == 0:
                    raise
            ready = asyncio.Event()
            descriptor = self.fileno()
            loop.add_reader(descriptor, ready.set)
            try:
                await asyncio.wait_for(ready.wait(), None if left == FOREVER else left / 1e9)
            except asyncio.TimeoutError:
                pass
            finally:
                loop.remove_reader(descriptor)

    async def accept_async(
        self, domain: ProtectionDomain, timeout: float | None, *, options: Options | None = None
    ) -> Channel:
        """As :meth:`accept`, for asyncio. Who falls silent amid it holds up this task alone."""
        limit = Limit(timeout)
        while True:
            left = limit.left()
            incoming = await self.next_async(None if left == FOREVER else left / 1e9)
            left = limit.left()
            try:
                return await asyncio.to_thread(
                    incoming.accept,
                    domain,
                    deadline=None if left == FOREVER else left / 1e9,
                    options=options,
                )
            except (PeerLostError, ProtocolError):
                continue  # that one has left, or is none of ours

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
    """Connects to a :class:`Listener` at ``"host:port"``; a channel that both sides have heard of.

    With ``wait`` the listener need not be there yet. What the other side said of itself is in
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
    """The same with new peers of a multichannel; their indexes."""
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
