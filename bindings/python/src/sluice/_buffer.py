# SPDX-License-Identifier: MIT
"""Remote buffers by name."""
from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass
from typing import Any, Iterable, Sequence

from . import _forked
from ._batch import BufferBatch, array_of
from ._channel import ChannelInfo, query
from ._completion import Completion, completion_of, gather
from ._context import ProtectionDomain
from ._errors import NotConnectedError, check, last_error, made
from ._library import Limit, c_text, ffi, lib, text_of
from ._memory import REMOTE_READ, REMOTE_WRITE, MemoryRegion, Piece, RemoteRegion
from ._numbers import Access, Level
from ._object import Object, call, remember
from ._options import Options, attr_of
from ._request import READ, WRITE, Layout, blocks_of


def _handle(handle: bytes) -> Any:
    if len(handle) != lib.SLUICE_BUFFER_HANDLE_BYTES:
        raise ValueError(f"a handle has {lib.SLUICE_BUFFER_HANDLE_BYTES} bytes, not {len(handle)}")
    struct = ffi.new("struct sluice_buffer_handle *")
    ffi.memmove(struct.bytes, bytes(handle), len(handle))
    return struct


@dataclass(frozen=True)
class BufferInfo:
    """The contents of a handle."""

    access: Access
    id: int
    length: int
    owner: bytes
    address: str
    transports: str


def buffer_info(handle: bytes) -> BufferInfo:
    """Decodes a handle, without any communication. Raises :exc:`ProtocolError` if it is not a
    handle."""
    info = ffi.new("struct sluice_buffer_info *")
    info.size = ffi.sizeof("struct sluice_buffer_info")
    check(lib.sluice_buffer_handle_query(_handle(handle), info))
    return BufferInfo(
        Access(info.access),
        info.id,
        info.length,
        bytes(ffi.buffer(info.owner)),
        text_of(info.address),
        text_of(info.transports),
    )


def _region_of(memory: MemoryRegion | Piece) -> MemoryRegion:
    return memory.region if isinstance(memory, Piece) else memory


class Action:
    """One read or write of a buffer, for :meth:`BufferService.submit`: by :meth:`read` and
    :meth:`write`. The memory is a writable buffer of any kind for a read, any buffer for a write,
    or a region of a domain of the service, or a :class:`Piece` of one.

    With ``layout`` or ``remote_layout`` it moves many blocks, which are laid out like this in the
    memory, or in the buffer from ``offset`` on. A side without a layout is contiguous."""

    def __init__(
        self,
        opcode: int,
        handle: bytes,
        memory: Any,
        offset: int,
        user: Any,
        layout: Layout | None = None,
        remote_layout: Layout | None = None,
    ):
        self.opcode, self.offset, self.user = opcode, offset, user
        self.handle = _handle(handle)
        self.memory = memory
        self.blocks: tuple[Any, ...] = (ffi.NULL,)
        if layout is not None or remote_layout is not None:
            self.blocks = blocks_of(layout, remote_layout)
        if isinstance(memory, (MemoryRegion, Piece)):
            region, self.length = _region_of(memory), len(memory)
            self.region, self.address = region._get(), ffi.cast("void *", memory.address)
        else:
            self.region = ffi.NULL
            self.kept = ffi.from_buffer(memory, require_writable=opcode == READ)
            self.address, self.length = ffi.cast("void *", self.kept), len(self.kept)

    @classmethod
    def read(
        cls,
        handle: bytes,
        memory: Any,
        offset: int = 0,
        user: Any = None,
        *,
        layout: Layout | None = None,
        remote_layout: Layout | None = None,
    ) -> Action:
        """Makes a read of as many bytes as the memory has, from ``offset`` on."""
        return cls(READ, handle, memory, offset, user, layout, remote_layout)

    @classmethod
    def write(
        cls,
        handle: bytes,
        memory: Any,
        offset: int = 0,
        user: Any = None,
        *,
        layout: Layout | None = None,
        remote_layout: Layout | None = None,
    ) -> Action:
        """Makes a write of the memory, from ``offset`` on."""
        return cls(WRITE, handle, memory, offset, user, layout, remote_layout)


class Buffer(Object):
    """Published memory; :meth:`BufferService.publish` makes it.

    Send :attr:`handle` to the processes that may use the buffer, by any means. Once the buffer is
    closed, no peer can access the memory any more. Memory that was allocated for it is in
    :attr:`memory`; closing raises :exc:`BufferError` while something still references that.
    """

    _what = "the buffer"

    def __init__(self, service: BufferService, memory: Any, length: int, access: int):
        self._service = service
        self._region: MemoryRegion | None = None
        if isinstance(memory, (MemoryRegion, Piece)):
            self._publish_region(service, memory, access)
            return
        if memory is None:
            source, address = None, ffi.NULL
        else:
            source = ffi.from_buffer(memory, require_writable=True)
            address, length = source, len(source)
        self._source = source
        self._length = length
        self._pointer = made(lib.sluice_buffer_publish(service._get(), address, length, access))
        self._generation = _forked.generation()
        self._key = int(ffi.cast("uintptr_t", self._pointer))
        if source is None:
            where = ffi.cast("uintptr_t", lib.sluice_buffer_addr(self._pointer))
            _forked.note(self._key, int(where), length)

    def _publish_region(
        self, service: BufferService, memory: MemoryRegion | Piece, access: int
    ) -> None:
        self._region = region = _region_of(memory)
        self._source, self._length = None, len(memory)
        self._offset = memory.address - region._base
        self._pointer = made(
            lib.sluice_buffer_publish_mr(
                service._get(), region._get(), self._offset, self._length, access
            )
        )
        self._generation = _forked.generation()
        self._key = int(ffi.cast("uintptr_t", self._pointer))

    def __len__(self) -> int:
        return self._length

    @property
    def handle(self) -> bytes:
        """256 bytes that identify the buffer and its owner, for processes that may use it."""
        struct = ffi.new("struct sluice_buffer_handle *")
        check(lib.sluice_buffer_export(self._get(), struct))
        return bytes(ffi.buffer(struct.bytes))

    @property
    def memory(self) -> memoryview:
        """The memory, as writable bytes. The buffer cannot be closed while something references
        it."""
        pointer = self._get()
        if self._region is not None:
            start = self._offset + self._region._base - self._region.address
            return self._region.buffer[start : start + self._length]
        if self._source is not None:
            return memoryview(ffi.buffer(self._source)).cast("B")
        _forked.check_generation(self._generation, "the buffer")
        # The buffer is released with the last reference to these.
        if self._view is None:
            self._view = ffi.buffer(lib.sluice_buffer_addr(pointer), self._length)
        return memoryview(self._view).cast("B")

    _view: Any = None

    def _end(self, pointer: Any) -> None:
        view, self._view = self._view, None
        watch = None if view is None else weakref.ref(view)
        del view
        if watch is not None and watch() is not None:
            self._pointer, self._view = pointer, watch()
            raise BufferError(
                "the memory of the buffer is still looked at, by an array for example: delete "
                "that first"
            )
        self._release(self._key, pointer)
        self._source = self._region = None

    @staticmethod
    def _release(key: int, pointer: Any) -> None:
        _forked.forget(key)
        lib.sluice_buffer_release(pointer)

    def __exit__(self, *exception: object) -> None:
        self._leave()

    def __del__(self) -> None:
        try:
            self._leave()
        except Exception:
            pass

    def _leave(self) -> None:
        """Ends it now, or with the last reference to memory of the library."""
        pointer, self._pointer = self._pointer, None
        if pointer is None:
            return
        if self._view is None:
            self._release(self._key, pointer)
            self._source = self._region = None
        else:
            view, self._view = self._view, None
            weakref.finalize(view, self._release, self._key, pointer).atexit = False


class BufferService(Object):
    """The remote buffers of a process: publishes its own, and reads and writes those of others.

    :param domains: one, or up to four of different transports, the preferred one first.
    :param address: where to listen, ``"host:port"``; ``None``: all addresses, any port.
    """

    _what = "the service"

    def __init__(
        self,
        domains: ProtectionDomain | Sequence[ProtectionDomain],
        *,
        address: str | None = None,
        max_peers: int = 0,
        options: Options | None = None,
    ):
        if isinstance(domains, ProtectionDomain):
            domains = [domains]
        attr = ffi.new("struct sluice_buffer_service_attr *")
        attr.size = ffi.sizeof("struct sluice_buffer_service_attr")
        attr.max_peers = max_peers
        where, of_channels = c_text(address), attr_of(options)
        attr.address, attr.channel = where, of_channels
        pds = ffi.new("struct sluice_pd *[]", [domain._get() for domain in domains])
        self._domains = list(domains)
        self._lock = threading.Lock()
        self._busy = 0
        self._late: Any = None
        self._pointer = made(lib.sluice_buffer_service_open(pds, len(domains), attr))
        remember(self)

    def _end(self, pointer: Any) -> None:
        # If Ctrl-C has left a call to another thread, that thread closes the service after the
        # call.
        with self._lock:
            if self._busy > 0:
                self._late = pointer
                return
        lib.sluice_buffer_service_close(pointer)

    def _close_at_exit(self) -> None:
        self.close()

    def _enter(self) -> Any:
        with self._lock:
            pointer = self._get()
            self._busy += 1
            return pointer

    def _hold(self) -> None:
        """As :meth:`_enter`, but also works after the service was closed, for objects that it made
        before."""
        with self._lock:
            self._busy += 1

    def _leave(self) -> None:
        with self._lock:
            self._busy -= 1
            if self._busy > 0:
                return
            late, self._late = self._late, None
        if late is not None:
            lib.sluice_buffer_service_close(late)

    class _NoGuard:
        def renew(self) -> None:
            pass

    _guard = _NoGuard()

    def publish(
        self, memory: Any = None, *, length: int = 0, access: int = REMOTE_READ | REMOTE_WRITE
    ) -> Buffer:
        """Publishes a writable buffer, which stays referenced until it is closed; or ``length``
        bytes that are allocated here; or a region of a domain of the service, or a slice of one,
        which must have the rights of ``access``. Closing a published region before the buffer
        raises :exc:`BusyError`."""
        return Buffer(self, memory, length, access)

    def read(
        self,
        handle: bytes,
        memory: Any,
        *,
        deadline: float | None,
        offset: int = 0,
        layout: Layout | None = None,
        remote_layout: Layout | None = None,
    ) -> None:
        """Reads as many bytes as the memory has, from ``offset`` of a buffer on."""
        action = Action.read(
            handle, memory, offset, layout=layout, remote_layout=remote_layout
        )
        self.submit([action], deadline=deadline)

    def write(
        self,
        handle: bytes,
        memory: Any,
        *,
        deadline: float | None,
        offset: int = 0,
        layout: Layout | None = None,
        remote_layout: Layout | None = None,
    ) -> None:
        """Writes the memory into a buffer, from ``offset`` on."""
        action = Action.write(
            handle, memory, offset, layout=layout, remote_layout=remote_layout
        )
        self.submit([action], deadline=deadline)

    def submit(self, actions: Iterable[Action], *, deadline: float | None) -> list[Completion]:
        """Performs reads and writes of buffers of any owners concurrently. Returns how each ended
        if all succeeded; otherwise raises the first failure, with all in its ``completions``."""
        every, limit = list(actions), Limit(deadline)
        array = array_of(every)
        results = ffi.new("struct sluice_completion[]", max(1, len(every)))
        pointer, written, said = self._enter(), [False], [""]

        def work() -> Any:
            try:
                # A result of none is that of a mistake, of which nothing was written.
                for i in range(len(every)):
                    results[i].opcode = 0
                result = lib.sluice_buffer_submit(
                    pointer, array, len(every), limit.left(), results
                )
                said[0] = last_error() if result < 0 else ""
                written[0] = len(every) > 0 and results[0].opcode != 0
                return result if not written[0] else 0
            finally:
                self._leave()

        call(work)
        ended = [completion_of(results[i], action.user) for i, action in enumerate(every)]
        return gather(ended if written[0] else [], lambda completion: said[0])

    def post(self, actions: Iterable[Action], *, deadline: float | None) -> BufferBatch:
        """Posts actions without waiting. The batch can be waited for, awaited, polled and
        cancelled."""
        batch = self.prepare(actions)
        batch.post(deadline=deadline)
        return batch

    def prepare(self, actions: Iterable[Action]) -> BufferBatch:
        """Prepares a batch of actions that can be posted later, any number of times."""
        return BufferBatch(self, list(actions))

    def connection(self, handle: bytes) -> ChannelInfo:
        """Returns what the connection to the owner of a buffer uses. Raises
        :exc:`NotConnectedError` if there is none yet."""
        pointer = self._enter()
        try:
            return ChannelInfo(query(lib.sluice_buffer_connection_query, pointer, _handle(handle)))
        finally:
            self._leave()

    def remote(self, handle: bytes, domain: ProtectionDomain | None = None) -> RemoteRegion:
        """Returns the memory of a buffer for requests of the program's own connections to the
        owner, on the transport of a domain of the service, or on the first that both sides have."""
        pd = ffi.NULL if domain is None else domain._get()
        pointer = self._enter()
        struct = ffi.new("struct sluice_remote_mr *")
        try:
            check(lib.sluice_buffer_remote(pointer, _handle(handle), pd, struct))
        finally:
            self._leave()
        return RemoteRegion._of(struct)

    def level(self, handle: bytes) -> Level:
        """Returns the level of the connection to the owner of a buffer; 0: not connected."""
        try:
            return self.connection(handle).level
        except NotConnectedError:
            return Level.NONE
