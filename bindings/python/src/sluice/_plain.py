# SPDX-License-Identifier: MIT
"""Plain memory: any buffer as the memory of a request, registered by a cache of the library.

A region of a cache must be forgotten before its memory is unmapped, or the device would go on using
the old pages. Memory of numpy is forgotten when the array that owns it is freed; that of any other
buffer when the work that names it is gone, because it could be resized afterwards unnoticed.
"""
from __future__ import annotations

import errno
import threading
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._errors import BusyError, check, error_of, last_error, made
from ._library import ffi, lib
from ._memory import LOCAL_WRITE, Piece, callbacks
from ._object import Object
from ._shared import number_of, struct_of

if TYPE_CHECKING:
    from ._context import ProtectionDomain

_caches: weakref.WeakSet[MemoryCache] = weakref.WeakSet()
# Caches that have ended for the program, and that channels or posted work still use.
_ending: list[Any] = []
# Owners of memory that are observed, by their id().
_owners: dict[int, weakref.ref[Any]] = {}
# Memory that is gone, or may be: address and length. It is forgotten before more is used.
_gone: list[tuple[int, int]] = []
_lock = threading.RLock()


def _note_gone(address: int, length: int) -> None:
    """Forgets memory; later if this is within a call of the library."""
    if length > 0:
        _gone.append((address, length))
    if not callbacks.running and _lock.acquire(blocking=False):
        try:
            _forget_gone()
        finally:
            _lock.release()


def _forget_gone() -> None:
    for each in list(_gone):
        address, length = each
        where = ffi.cast("void *", address)
        results = [
            lib.sluice_mr_cache_forget(pointer, where, length)
            for pointer in [cache._pointer for cache in list(_caches)] + _ending
            if pointer is not None
        ]
        if -errno.EBUSY not in results and each in _gone:
            _gone.remove(each)
    for pointer in list(_ending):
        if lib.sluice_mr_cache_destroy(pointer) != -errno.EBUSY and pointer in _ending:
            _ending.remove(pointer)


def _owner_of(buffer: Any) -> Any:
    """Returns the array of numpy that owns the memory of a buffer, or None."""
    owner = buffer
    while getattr(owner, "base", None) is not None:
        owner = owner.base
    flags = getattr(owner, "flags", None)
    return owner if getattr(flags, "owndata", False) is True else None


def _observe(owner: Any, address: int, length: int) -> None:
    key = id(owner)
    if key in _owners:
        return

    def gone(_: Any) -> None:
        _owners.pop(key, None)
        _note_gone(address, length)

    # numpy resizes no array that has such a reference.
    _owners[key] = weakref.ref(owner, gone)


class PlainBuffer:
    """The buffer of one piece of plain memory, which it keeps; in place of a region."""

    # So that the extension does not take it for a closed region.
    _pointer: Any = True

    def __init__(self, buffer: Any, writable: bool):
        try:
            self._source = ffi.from_buffer(buffer, require_writable=writable)
        except (TypeError, ValueError, BufferError) as error:
            kind = "writable and contiguous" if writable else "contiguous"
            raise TypeError(
                f"memory is a region, pieces of regions, a {kind} buffer or None: {error}"
            ) from None
        self.address, self.length = number_of(self._source), len(self._source)
        owner = _owner_of(buffer)
        self._forgets = owner is None
        with _lock:
            _forget_gone()
            for address, length in _gone:
                if address < self.address + self.length and self.address < address + length:
                    raise BusyError(
                        errno.EBUSY,
                        f"the memory at {self.address:#x} replaces memory that is still registered "
                        "for work in flight beside it: wait for that work first",
                    )
            if owner is not None:
                start = owner.__array_interface__["data"][0]
                _observe(owner, start, owner.nbytes)

    def _get(self) -> Any:
        return self._pointer

    def __del__(self) -> None:
        try:
            if self._forgets:
                address, length = self.address, self.length
                del self._source
                _note_gone(address, length)
        except Exception:  # it was not made, or the interpreter may be half gone
            pass


def plain_piece(buffer: Any, writable: bool) -> Piece:
    """Returns a piece of plain memory."""
    source = PlainBuffer(buffer, writable)
    return Piece(source, source.address, source.length, 0)  # type: ignore[arg-type]


@dataclass(frozen=True)
class MemoryCacheInfo:
    """Counts of a cache; as ``struct sluice_mr_cache_info``."""

    regions: int
    used: int
    retired: int
    bytes: int
    hits: int
    misses: int
    evictions: int


class CachedRegion(Object):
    """A region of a cache, which the end of a ``with`` block puts back."""

    _what = "the region of the cache"

    def __init__(self, cache: MemoryCache, plain: PlainBuffer):
        self._cache, self._source = cache, plain
        pointer = lib.sluice_mr_cache_get(cache._get(), plain._source, plain.length)
        self._pointer = made(pointer)
        self.address = self._base = number_of(lib.sluice_mr_addr(pointer))
        self._key = int(lib.sluice_mr_lkey(pointer))

    @property
    def piece(self) -> Piece:
        """The piece that the buffer is."""
        self._get()
        return Piece(
            self, self._source.address, self._source.length, self._key  # type: ignore[arg-type]
        )

    def _end(self, pointer: Any) -> None:
        if not self._cache.closed:
            lib.sluice_mr_cache_put(self._cache._get(), pointer)

    def __enter__(self) -> Piece:  # type: ignore[override]
        return self.piece


class MemoryCache(Object):
    """Registrations of buffers of the program, which are kept for their next use.

    With ``Options(mr_cache=cache)`` each memory that a request takes may be any buffer, such as an
    array of numpy. :meth:`get` is for other uses.

    :param access: the rights of all regions; receives and reads need ``LOCAL_WRITE``.
    :param max_regions: regions at a time; 0: 1024.
    :param max_bytes: bytes of these; 0: no limit.

    :meth:`close` raises :exc:`BusyError` while a channel has the cache. The end of a ``with`` block
    lets it end once none does.
    """

    _what = "the cache"

    def __init__(
        self,
        domain: ProtectionDomain,
        access: int = LOCAL_WRITE,
        *,
        max_regions: int = 0,
        max_bytes: int = 0,
    ):
        attr = struct_of("sluice_mr_cache_attr")
        attr.max_regions, attr.max_bytes = max_regions, max_bytes
        self._pointer = made(lib.sluice_mr_cache_create(domain._get(), access, attr))
        self._domain = domain
        _caches.add(self)

    def get(self, buffer: Any) -> CachedRegion:
        """Registers a contiguous buffer, or finds its registration::

            with cache.get(array) as piece:
                channel.send(piece, deadline=30)
        """
        return CachedRegion(self, PlainBuffer(buffer, False))

    def forget(self, buffer: Any) -> None:
        """Deregisters the memory of a buffer, which is needed only for memory that the program
        unmaps by itself. Raises :exc:`BusyError` while it is in use."""
        source = ffi.from_buffer(buffer)
        check(lib.sluice_mr_cache_forget(self._get(), source, len(source)))

    @property
    def info(self) -> MemoryCacheInfo:
        """What it has registered, and how often it was used."""
        info = struct_of("sluice_mr_cache_info")
        check(lib.sluice_mr_cache_query(self._get(), info))
        names = MemoryCacheInfo.__dataclass_fields__
        return MemoryCacheInfo(*(getattr(info, name) for name in names))

    def close(self) -> None:
        """Ends it now, or raises :exc:`BusyError`."""
        with _lock:
            if self._pointer is None:
                return
            result = lib.sluice_mr_cache_destroy(self._pointer)
            text = last_error()
            if result == -errno.EBUSY:
                raise error_of(result, text)
            self._pointer = None
            check(result)

    def __exit__(self, *exception: object) -> None:
        self._leave()

    def __del__(self) -> None:
        try:
            self._leave()
        except Exception:  # the interpreter may be half gone
            pass

    def _leave(self) -> None:
        pointer, self._pointer = self._pointer, None
        if pointer is not None:
            _ending.append(pointer)
            _note_gone(0, 0)
