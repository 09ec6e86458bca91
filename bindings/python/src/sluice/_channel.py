# SPDX-License-Identifier: MIT
"""Channels to one peer, multichannels to many."""
from __future__ import annotations

import errno
from typing import Any, Iterable

from ._completion import Completion, FirstError
from ._connection import Connection
from ._context import ProtectionDomain
from ._errors import check, error_of, last_error, made, wait_error_of
from ._library import Limit, ffi, lib, text_of
from ._list import PreparedList
from ._memory import Memory, RemoteRegion
from ._numbers import Level, PeerState
from ._object import Object
from ._options import Options, attr_of
from ._request import READ, RECEIVE, SEND, WRITE, Request, Work
from ._scope import Scope
from ._statistics import Counters, Histogram, counters_of, histogram_of

READY, PREPARED = PeerState.READY, PeerState.PREPARED
FAILED, REMOVED = PeerState.FAILED, PeerState.REMOVED


def endpoint_struct(endpoint: bytes) -> Any:
    """Returns an endpoint for C."""
    if len(endpoint) != lib.SLUICE_ENDPOINT_BYTES:
        raise ValueError(f"an endpoint has {lib.SLUICE_ENDPOINT_BYTES} bytes, not {len(endpoint)}")
    struct = ffi.new("struct sluice_endpoint *")
    ffi.memmove(struct.bytes, bytes(endpoint), len(endpoint))
    return struct


def endpoint_bytes(struct: Any) -> bytes:
    return bytes(ffi.buffer(struct.bytes))


class ChannelInfo:
    """What a connection uses, and what was negotiated; as ``struct sluice_channel_info``."""

    def __init__(self, struct: Any):
        for name, _ in ffi.typeof("struct sluice_channel_info").fields:
            value = getattr(struct, name)
            setattr(self, name, value if isinstance(value, int) else text_of(value))
        self.level = Level(struct.level)

    level: Level
    send_depth: int
    receive_depth: int
    max_message: int
    address: str
    remote_address: str

    def __repr__(self) -> str:
        return f"<ChannelInfo level {self.level.name}, depths {self.send_depth}, {self.receive_depth}>"


def query(function: Any, *arguments: Any) -> Any:
    """Returns the struct of a connection that a call of the library describes."""
    info = ffi.new("struct sluice_channel_info *")
    info.size = ffi.sizeof("struct sluice_channel_info")
    check(function(*arguments, info))
    return info


def first_error(function: Any, *arguments: Any) -> FirstError | None:
    """Returns the first error of a connection, if there is one."""
    error = ffi.new("struct sluice_error *")
    error.size = ffi.sizeof("struct sluice_error")
    return FirstError.of(error) if check(function(*arguments, error)) == 1 else None


def wait_in_slices(connection: Connection, function: Any, limit: Limit, *arguments: Any) -> None:
    """Makes a wait of the library, which harms nothing on a timeout, as a series of short ones."""
    while True:
        with connection._guard:
            result = function(connection._get(), *arguments, limit.slice())
            text = last_error() if result < 0 else ""
        if result in (-errno.EINTR, -errno.ETIMEDOUT) and limit.left() > 0:
            continue
        if result < 0:
            raise wait_error_of(result, text)
        return


class PreparedChannel(Object):
    """A channel that has an endpoint, and needs that of its peer for the handshake."""

    _what = "the prepared channel"

    def __init__(self, domain: ProtectionDomain, options: Options | None = None):
        self._pointer = made(lib.sluice_channel_prepare(domain._get(), attr_of(options)))

    @classmethod
    def _of(cls, pointer: Any) -> PreparedChannel:
        self = cls.__new__(cls)
        self._pointer = pointer
        return self

    def _end(self, pointer: Any) -> None:
        lib.sluice_prepared_channel_free(pointer)

    @property
    def endpoint(self) -> bytes:
        """384 bytes for the peer, and only for the peer."""
        struct = ffi.new("struct sluice_endpoint *")
        check(lib.sluice_prepared_channel_endpoint(self._get(), struct))
        return endpoint_bytes(struct)

    def handshake(self, endpoint: bytes) -> Channel:
        """Connects this end to the endpoint of the peer, without waiting for the peer. The prepared
        channel is used up, even if this fails."""
        struct = endpoint_struct(endpoint)
        pointer = self._get()
        self._pointer = None
        return Channel._of(made(lib.sluice_prepared_channel_handshake(pointer, struct)))


class Channel(Connection):
    """One reliable connection to one peer.

    Calls that wait take a ``deadline`` in seconds, or ``None`` for no limit. A deadline is
    destructive: when it passes, the channel fails. A ``timeout`` harms nothing.
    """

    _what = "the channel"
    _prefix = "sluice_channel"

    #: The private data of the listener, if :func:`connect` made the channel.
    peer_data: bytes = b""

    def __init__(self) -> None:
        raise TypeError("channels come of PreparedChannel.handshake(), connect() and Listener.accept()")

    @classmethod
    def _of(cls, pointer: Any) -> Channel:
        self = cls.__new__(cls)
        info = query(lib.sluice_channel_query, pointer)
        self._set_up(pointer, (info.send_depth, info.receive_depth))
        return self

    def _end(self, pointer: Any) -> None:
        lib.sluice_channel_close(pointer)

    def reset(self) -> PreparedChannel:
        """Ends the connection, and returns a prepared channel with a new endpoint. The channel is
        used up; its work ends cancelled."""
        with self._guard:
            pointer = self._get()
            self._forget()
            self._pointer = None
            prepared = lib.sluice_channel_reset(pointer)
            number, text = ffi.errno, last_error()
            self._drop_all()
        if prepared == ffi.NULL:
            raise error_of(number, text)
        return PreparedChannel._of(prepared)

    @property
    def ready(self) -> bool:
        """Whether the channel takes work; otherwise it has failed, and :attr:`error` has the
        reason."""
        with self._guard:
            return check(lib.sluice_channel_state(self._get())) == READY

    def _first_error(self, peer: int) -> FirstError | None:
        return self.error

    @property
    def error(self) -> FirstError | None:
        """The first error, which caused the later ones."""
        with self._guard:
            return first_error(lib.sluice_channel_error, self._get())

    @property
    def info(self) -> ChannelInfo:
        """What it uses."""
        with self._guard:
            return ChannelInfo(query(lib.sluice_channel_query, self._get()))

    def wait_connected(self, timeout: float | None) -> None:
        """Waits until the peer has done its handshake as well."""
        wait_in_slices(self, lib.sluice_channel_wait_connected, Limit(timeout))

    @property
    def counters(self) -> Counters:
        """What it has done so far."""
        with self._guard:
            return counters_of(lib.sluice_channel_counters, self._get())

    def histogram(self, opcode: int) -> Histogram:
        """How long requests of this kind took, with ``Options(histograms=True)``."""
        with self._guard:
            return histogram_of(lib.sluice_channel_histogram, self._get(), opcode)

    def reset_histograms(self) -> None:
        """Lets all histograms begin anew."""
        with self._guard:
            check(lib.sluice_channel_histogram_reset(self._get()))

    # To the end.

    def send(self, memory: Memory, *, deadline: float | None, immediate: int | None = None) -> None:
        """Sends a message, and returns when the peer has received it."""
        self._do(Work(SEND, memory, 0, None, immediate), deadline)

    def receive(self, memory: Memory, *, deadline: float | None) -> Completion:
        """Receives a message; ``bytes`` of the completion is its length."""
        return self._do(Work(RECEIVE, memory), deadline)

    def write(
        self,
        memory: Memory,
        remote: RemoteRegion,
        *,
        deadline: float | None,
        immediate: int | None = None,
    ) -> None:
        """Writes into memory of the peer."""
        self._do(Work(WRITE, memory, 0, remote, immediate), deadline)

    def read(self, memory: Memory, remote: RemoteRegion, *, deadline: float | None) -> None:
        """Reads memory of the peer."""
        self._do(Work(READ, memory, 0, remote), deadline)

    def compare_swap(
        self,
        memory: Memory,
        remote: RemoteRegion,
        expected: int,
        desired: int,
        *,
        deadline: float | None,
    ) -> int:
        """Replaces 8 bytes of the peer if they are as expected. Returns the old number, which is
        also written to ``memory``."""
        return word(self, Work.compare_swap(memory, remote, expected, desired), deadline)

    def fetch_add(
        self, memory: Memory, remote: RemoteRegion, addend: int, *, deadline: float | None
    ) -> int:
        """Adds to a number of 8 bytes of the peer. Returns the old number, which is also written to
        ``memory``."""
        return word(self, Work.fetch_add(memory, remote, addend), deadline)

    # Without waiting.

    def post_send(
        self, memory: Memory, *, deadline: float | None, immediate: int | None = None
    ) -> Request:
        """As :meth:`send`, but returns at once. :exc:`WouldBlockError`: there is no room."""
        return self._post_one(Work(SEND, memory, 0, None, immediate), deadline)

    def post_receive(self, memory: Memory, *, deadline: float | None) -> Request:
        """As :meth:`receive`, but returns at once."""
        return self._post_one(Work(RECEIVE, memory), deadline)

    def post_write(
        self,
        memory: Memory,
        remote: RemoteRegion,
        *,
        deadline: float | None,
        immediate: int | None = None,
    ) -> Request:
        """As :meth:`write`, but returns at once."""
        return self._post_one(Work(WRITE, memory, 0, remote, immediate), deadline)

    def post_read(
        self, memory: Memory, remote: RemoteRegion, *, deadline: float | None
    ) -> Request:
        """As :meth:`read`, but returns at once."""
        return self._post_one(Work(READ, memory, 0, remote), deadline)

    def post_compare_swap(
        self,
        memory: Memory,
        remote: RemoteRegion,
        expected: int,
        desired: int,
        *,
        deadline: float | None,
    ) -> Request:
        """As :meth:`compare_swap`, but returns at once."""
        return self._post_one(Work.compare_swap(memory, remote, expected, desired), deadline)

    def post_fetch_add(
        self, memory: Memory, remote: RemoteRegion, addend: int, *, deadline: float | None
    ) -> Request:
        """As :meth:`fetch_add`, but returns at once."""
        return self._post_one(Work.fetch_add(memory, remote, addend), deadline)

    def scope(self, *, deadline: float | None, strict: bool = False) -> Scope:
        """A ``with`` block at whose end all work that was posted in it is complete."""
        return Scope(self, deadline, strict)

    def prepare(self, works: Iterable[Work]) -> PreparedList:
        """A list of work that is posted again and again, laid out once."""
        return PreparedList(self, lib.sluice_channel_list_prepare, works)

    def arrivals(self, tag: int) -> int:
        """How many immediates of a tag have come, with ``arrival_tags`` of the options."""
        count = ffi.new("uint64_t *")
        with self._guard:
            check(lib.sluice_channel_arrivals(self._get(), tag, count))
        return int(count[0])

    def wait_arrivals(self, tag: int, count: int, timeout: float | None) -> None:
        """Waits until at least so many have come."""
        wait_in_slices(self, lib.sluice_channel_wait_arrivals, Limit(timeout), tag, count)


def word(connection: Connection, work: Work, deadline: float | None) -> int:
    """Performs an atomic operation, and returns the old number."""
    connection._do(work, deadline)
    return int(ffi.cast("uint64_t *", work.pieces[0].address)[0])
