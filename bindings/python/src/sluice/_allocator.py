# SPDX-License-Identifier: MIT
"""Blocks of memory of a few registered slabs."""
from __future__ import annotations

import errno
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _forked
from ._errors import ArgumentError, check, error_of, last_error, made
from ._library import ffi, lib
from ._memory import LOCAL_WRITE, MemoryRegion, RemoteRegion, keep_until_released
from ._object import Object
from ._shared import number_of, struct_of

if TYPE_CHECKING:
    from ._context import ProtectionDomain

# Allocators that have ended for the program, and of which posted work still names blocks.
_ending: list[Any] = []


def _destroy_ending() -> None:
    for pointer in list(_ending):
        if lib.sluice_allocator_destroy(pointer) != -errno.EBUSY:
            _ending.remove(pointer)


@dataclass(frozen=True)
class AllocatorInfo:
    """Counts of an allocator; as ``struct sluice_allocator_info``."""

    slabs: int
    regions: int
    released: int
    registered_bytes: int
    blocks: int
    block_bytes: int
    kept_bytes: int
    registrations: int


class Block(MemoryRegion):
    """Memory of an allocator: :meth:`Allocator.allocate` makes it.

    It is used as a :class:`MemoryRegion` is, and ends like one. Peers can access it only if
    :meth:`Allocator.allocate_shared` has made it.
    """

    _what = "the block"
    _allocator: Allocator
    _shared: RemoteRegion | None = None

    @classmethod
    def _of_block(
        cls, allocator: Allocator, address: Any, length: int, shared: RemoteRegion | None
    ) -> Block:
        self = cls.__new__(cls)
        self._pointer, self._allocator, self._shared = address, allocator, shared
        self._allocated, self._length = True, length
        self._lock, self._generation = threading.Lock(), _forked.generation()
        self._address = number_of(address)
        sge = ffi.new("struct sluice_sge *")
        # From now on posted work may name the block.
        check(lib.sluice_allocator_sge(allocator._get(), address, min(length, 0xFFFFFFFF), sge))
        self._key = int(sge.lkey)
        self._mr = made(lib.sluice_allocator_mr(allocator._get(), address))
        self._base = number_of(lib.sluice_mr_addr(self._mr))
        self._source = ffi.buffer(address, length)
        _forked.note(self._address, self._address, length)
        return self

    def _get(self) -> Any:
        super()._get()
        return self._mr

    def remote(self, offset: int = 0, length: int | None = None) -> RemoteRegion:
        """Returns a handle of this memory for peers; of a shared block only."""
        self._get()
        if self._shared is None:
            raise ArgumentError(
                errno.EINVAL, "peers cannot access this block: make it by allocate_shared()"
            )
        return self._shared.slice(offset, length)

    def _memory(self) -> Any:
        return ffi.buffer(self._pointer, self._length)

    def _number(self) -> int:
        return self._address

    def _free(self) -> int:
        return int(lib.sluice_allocator_free(self._allocator._get(), self._pointer))

    def _give_up(self) -> Any:
        return _release, self._pointer, self._allocator

    def __repr__(self) -> str:
        state = " that was closed" if self._pointer is None else ""
        return f"<Block of {self._length} bytes at {self._address:#x}{state}>"


def _release(address: Any, allocator: Allocator) -> None:
    """Ends a block now, or when no posted work names it."""
    _forked.forget(number_of(address))

    def release(callback: Any, argument: Any) -> int:
        return int(
            lib.sluice_allocator_release(allocator._get(), address, callback, argument)
        )

    keep_until_released(release, None)


class Allocator(Object):
    """Hands out blocks of registered memory as ``malloc()`` does: only large slabs are registered.

    :param access: the rights of shared blocks; others have ``LOCAL_WRITE`` at most.
    :param slab_bytes: the size of a slab; 0: 4 MiB.
    :param max_bytes: bytes that are registered at a time; 0: no limit.
    :param thread_blocks: free blocks of each size that a thread keeps; 0: 64.
    :param numa_node: of the memory; ``None``: that of the thread that first touches it.

    Any thread may use it. :meth:`close` raises :exc:`BusyError` while there is a block. Otherwise it
    ends with its last block.
    """

    _what = "the allocator"

    def __init__(
        self,
        domain: ProtectionDomain,
        access: int = LOCAL_WRITE,
        *,
        slab_bytes: int = 0,
        max_bytes: int = 0,
        thread_blocks: int = 0,
        huge_pages: bool = False,
        numa_node: int | None = None,
    ):
        _destroy_ending()
        attr = struct_of("sluice_allocator_attr")
        attr.slab_bytes, attr.max_bytes, attr.thread_blocks = slab_bytes, max_bytes, thread_blocks
        if huge_pages:
            attr.flags |= lib.SLUICE_ALLOCATOR_HUGE_PAGES
        if numa_node is not None:
            attr.flags |= lib.SLUICE_ALLOCATOR_NUMA_NODE
            attr.numa_node = numa_node
        self._pointer = made(lib.sluice_allocator_create(domain._get(), access, attr))
        self._domain = domain

    def allocate(self, size: int, align: int = 0, *, zeroed: bool = False) -> Block:
        """Returns a block of ``size`` bytes at a multiple of ``align``; 0: 64."""
        if size < 0:
            raise ValueError("memory has no negative length")
        function = lib.sluice_allocator_alloc_zeroed if zeroed else lib.sluice_allocator_alloc
        return Block._of_block(self, made(function(self._get(), size, align)), size, None)

    def allocate_shared(self, size: int) -> Block:
        """Returns a block of zeros that peers can access, with a registration of its own:
        ``block.remote()`` is its handle."""
        if size < 0:
            raise ValueError("memory has no negative length")
        remote = ffi.new("struct sluice_remote_mr *")
        address = made(lib.sluice_allocator_alloc_shared(self._get(), size, remote))
        return Block._of_block(self, address, size, RemoteRegion._of(remote))

    def trim(self) -> None:
        """Deregisters slabs without blocks."""
        check(lib.sluice_allocator_trim(self._get()))

    @property
    def info(self) -> AllocatorInfo:
        """What it has registered and handed out."""
        info = struct_of("sluice_allocator_info")
        check(lib.sluice_allocator_query(self._get(), info))
        return AllocatorInfo(*(getattr(info, name) for name in AllocatorInfo.__dataclass_fields__))

    def close(self) -> None:
        """Ends it now, with all its memory, or raises :exc:`BusyError`."""
        if self._pointer is None:
            return
        result, text = lib.sluice_allocator_destroy(self._pointer), last_error()
        if result == -errno.EBUSY:
            raise error_of(result, text)
        self._pointer = None
        check(result)

    def __exit__(self, *exception: object) -> None:
        """Ends it if it has no blocks; otherwise its last block does."""
        try:
            self.close()
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise

    def __del__(self) -> None:
        try:
            pointer, self._pointer = self._pointer, None
            if pointer is not None:
                _ending.append(pointer)
                _destroy_ending()
        except Exception:  # the interpreter may be half gone
            pass
