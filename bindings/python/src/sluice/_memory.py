# SPDX-License-Identifier: MIT
"""Local memory, and handles of memory of peers."""
from __future__ import annotations

import builtins
import gc
import itertools
import operator
import threading
import weakref
from typing import TYPE_CHECKING, Any, Callable, Iterable, Sequence, Union

from . import _forked
from ._errors import ArgumentError, BusyError, check, last_error, made
from ._library import ffi, lib
from ._numbers import Access
from ._object import Object

if TYPE_CHECKING:
    import numpy

LOCAL_WRITE, REMOTE_WRITE = Access.LOCAL_WRITE, Access.REMOTE_WRITE
REMOTE_READ, REMOTE_ATOMIC = Access.REMOTE_READ, Access.REMOTE_ATOMIC

# The memory of released regions, until posted work does not use it any more: the library then calls
# back with its number here.
released: dict[int, Any] = {}
_numbers = itertools.count(1)


class _Callbacks(threading.local):
    """Whether this thread is in a callback of the library, which must not call the library."""

    running = False


callbacks = _Callbacks()


@ffi.callback("void(*)(void *)")  # type: ignore[misc]
def _on_released(argument: Any) -> None:
    callbacks.running = True
    try:
        released.pop(int(ffi.cast("uintptr_t", argument)), None)
    finally:
        callbacks.running = False


def keep_until_released(release: Callable[[Any, Any], int], kept: Any) -> None:
    """Releases memory by a call of the library, and keeps an object until that has ended it."""
    number = next(_numbers)
    released[number] = kept
    if release(_on_released, ffi.cast("void *", number)) < 0:
        released.pop(number, None)


def _key_of(pointer: Any) -> int:
    return int(ffi.cast("uintptr_t", pointer))


def _give_up(pointer: Any, kept: Any) -> None:
    """Ends a region now, or when no posted work uses it; keeps its memory until then."""
    _forked.forget(_key_of(pointer))
    keep_until_released(
        lambda callback, argument: lib.sluice_mr_release(pointer, callback, argument), kept
    )


class RemoteRegion:
    """Memory of a peer, by the handle that its owner has sent.

    ``bytes(remote)`` is its form for the wire, and :meth:`unpack` reads it back.
    """

    __slots__ = ("address", "length", "key")

    def __init__(self, address: int, length: int, key: int):
        #: Its address at the owner.
        self.address = address
        self.length, self.key = length, key

    @classmethod
    def _of(cls, struct: Any) -> RemoteRegion:
        return cls(struct.addr, struct.length, struct.rkey)

    def _fill(self, struct: Any) -> None:
        struct.addr, struct.length, struct.rkey = self.address, self.length, self.key

    def _struct(self) -> Any:
        struct = ffi.new("struct sluice_remote_mr *")
        self._fill(struct)
        return struct

    @classmethod
    def unpack(cls, packed: bytes) -> RemoteRegion:
        """Decodes ``bytes()`` of a region; raises :exc:`ProtocolError` if it is not one."""
        if len(packed) != lib.SLUICE_REMOTE_MR_BYTES:
            raise ValueError(f"a packed region has {lib.SLUICE_REMOTE_MR_BYTES} bytes")
        struct = ffi.new("struct sluice_remote_mr *")
        check(lib.sluice_remote_mr_unpack(bytes(packed), struct))
        return cls._of(struct)

    def __bytes__(self) -> bytes:
        packed = ffi.new("uint8_t[]", lib.SLUICE_REMOTE_MR_BYTES)
        check(lib.sluice_remote_mr_pack(self._struct(), packed))
        return bytes(ffi.buffer(packed))

    def pack(self) -> bytes:
        """The same as ``bytes(self)``."""
        return bytes(self)

    def __reduce__(self) -> Any:
        return RemoteRegion.unpack, (bytes(self),)

    def __len__(self) -> int:
        return self.length

    def slice(self, offset: int, length: int | None = None) -> RemoteRegion:
        """Returns ``length`` bytes from ``offset`` on; without a length, all that follow."""
        length = self.length - offset if length is None else length
        if offset < 0 or length < 0:
            raise IndexError(f"no {length} bytes from {offset} on are in a region of {len(self)}")
        if offset + length > self.length:
            whole, part = self._struct(), ffi.new("struct sluice_remote_mr *")
            check(lib.sluice_remote_mr_slice(whole, offset, length, part))
        return RemoteRegion(self.address + offset, length, self.key)

    def __getitem__(self, index: builtins.slice) -> RemoteRegion:
        start, stop = _bounds(index, self.length)
        return RemoteRegion(self.address + start, stop - start, self.key)

    def __repr__(self) -> str:
        return f"<RemoteRegion of {len(self)} bytes at {self.address:#x}>"


class Piece:
    """Some bytes of a local region, which it keeps alive."""

    __slots__ = ("region", "address", "length", "key")

    def __init__(self, region: MemoryRegion, address: int, length: int, key: int):
        self.region, self.address, self.length, self.key = region, address, length, key

    def __len__(self) -> int:
        return self.length

    def __repr__(self) -> str:
        return f"<Piece of {self.length} bytes at {self.address:#x}>"


#: Local memory: a region, pieces of regions, or ``None``, which is no bytes; or any buffer, if the
#: connection has a cache of registrations.
Memory = Union["MemoryRegion", Piece, Sequence[Union["MemoryRegion", Piece]], None, Any]


def pieces_of(memory: Memory, writable: bool = False) -> tuple[Piece, ...]:
    """Returns all pieces; those of plain memory must be writable if work writes to them."""
    if isinstance(memory, Piece):
        return (memory,)
    if memory is None:
        return ()
    if isinstance(memory, MemoryRegion):
        return (memory.piece(),)
    if isinstance(memory, (list, tuple)):
        return tuple(piece for each in memory for piece in pieces_of(each, writable))
    from ._plain import plain_piece

    return (plain_piece(memory, writable),)


def registered_pieces_of(memory: Memory) -> tuple[Piece, ...]:
    """Returns all pieces for a use that takes no plain memory."""
    pieces = pieces_of(memory)
    for each in pieces:
        if each.region._pointer is True:
            raise TypeError(
                "memory is a region or pieces of regions here: register the buffer first, by "
                "ProtectionDomain.register(), and name a view of it by MemoryRegion.of()"
            )
    return pieces


def _bounds(index: slice, length: int) -> tuple[int, int]:
    if not isinstance(index, slice):
        raise TypeError("a region is sliced, as in region[0:8]; its bytes are in region.buffer")
    start, stop, step = index.indices(length)
    if step != 1:
        raise ValueError("bytes of a piece are next to each other: the step is 1")
    for given in (index.start, index.stop):
        # Python slices may extend beyond the end, but a transfer must not be shortened silently.
        if given is not None and not -length <= operator.index(given) <= length:
            raise ArgumentError(34, f"byte {given} is outside the region of {length} bytes")
    return start, max(start, stop)


def _extent_of(view: Any) -> tuple[int, int]:
    """Returns the address of the first byte of a view, and the bytes up to its last."""
    try:
        raw = ffi.from_buffer(view)
        return int(ffi.cast("uintptr_t", raw)), len(raw)
    except (ValueError, BufferError):
        shape, strides = getattr(view, "shape", ()), getattr(view, "strides", ())
        described = getattr(view, "__array_interface__", None)
        if described is None or any(stride < 0 for stride in strides):
            raise
    length = sum((count - 1) * stride for count, stride in zip(shape, strides)) + view.itemsize
    return described["data"][0], 0 if 0 in shape else length


class MemoryRegion(Object):
    """Registered memory. :meth:`ProtectionDomain.allocate` and ``register`` make it.

    Calls take a whole region, or a :class:`Piece` of it such as ``region[0:64]``. ``region.buffer``
    and ``region.array()`` are the memory itself, without a copy.

    :meth:`close` ends it, so that peers cannot access it any more. It raises :exc:`BusyError` while
    posted work uses the region, or :meth:`BufferService.publish` has published it, and
    :exc:`BufferError` while a Python object, such as an array, still references memory that was
    allocated here. The end of a ``with`` block, and of the last reference, instead let the region
    end as soon as none of this holds.

    Memory of :meth:`ProtectionDomain.allocate` belongs to its process. After ``fork()`` the child
    cannot use the region, and objects that reference its memory, such as an array, see zeroed
    memory of the child.
    """

    _what = "the region"
    _source: Any = None
    _read_only = False
    _allocated: bool
    _lock: threading.Lock
    _length: int
    _address: int
    # The address of the first byte of the region of the library.
    _base: int
    _key: int
    _generation: int

    def __init__(self) -> None:
        raise TypeError("regions are made by ProtectionDomain.allocate() and .register()")

    @classmethod
    def _of(
        cls, pointer: Any, source: Any, allocated: bool, owns: bool = True
    ) -> MemoryRegion:
        """Without ``owns``, the caller sets ``_pointer`` of the region once it is to own it."""
        self = cls.__new__(cls)
        if owns:
            self._pointer = pointer
        self._allocated = allocated
        self._lock = threading.Lock()
        self._length = int(lib.sluice_mr_length(pointer))
        self._address = self._base = int(ffi.cast("uintptr_t", lib.sluice_mr_addr(pointer)))
        self._key = int(lib.sluice_mr_lkey(pointer))
        self._source = ffi.buffer(lib.sluice_mr_addr(pointer), self._length) if allocated else source
        self._generation = _forked.generation()
        if allocated:
            _forked.note(_key_of(pointer), self._address, self._length)
        return self

    @classmethod
    def _allocate(cls, pd: Any, length: int, access: int, huge_pages: bool) -> MemoryRegion:
        if length < 0:
            raise ValueError("memory has no negative length")
        if huge_pages:
            access |= lib.SLUICE_MR_HUGE_PAGES
        return cls._of(made(lib.sluice_mr_alloc(pd, length, access)), None, True)

    @classmethod
    def _register(cls, pd: Any, buffer: Any, access: int) -> MemoryRegion:
        # The buffer cannot be resized or freed while this exists.
        writes = access & (LOCAL_WRITE | REMOTE_WRITE | REMOTE_ATOMIC) != 0
        try:
            source = ffi.from_buffer(buffer, require_writable=writes)
        except (TypeError, ValueError, BufferError) as error:
            kind = "writable and contiguous" if writes else "contiguous"
            raise TypeError(f"only a {kind} buffer can be registered: {error}") from None
        region = made(lib.sluice_mr_register(pd, source, len(source), access))
        self = cls._of(region, source, False)
        self._read_only = memoryview(buffer).readonly
        return self

    def _get(self) -> Any:
        pointer = super()._get()
        if self._allocated:
            _forked.check_generation(self._generation, "the region")
        return pointer

    # What differs for blocks of an allocator.

    def _memory(self) -> Any:
        return ffi.buffer(lib.sluice_mr_addr(self._pointer), self._length)

    def _number(self) -> int:
        return _key_of(self._pointer)

    def _free(self) -> int:
        return int(lib.sluice_mr_deregister(self._pointer))

    def _give_up(self) -> Any:
        """Returns what to call to end it without waiting, and the arguments."""
        return _give_up, self._pointer, None if self._allocated else self._source

    def __len__(self) -> int:
        return self._length

    @property
    def address(self) -> int:
        """The address of its first byte."""
        return self._address

    @property
    def page_size(self) -> int:
        """The bytes of its smallest page now; 0 if that is not known. Not for loops: it reads a list
        of all memory of the process."""
        return int(lib.sluice_mr_page_size(self._get()))

    @property
    def buffer(self) -> memoryview:
        """All of it, as bytes, writable unless a read-only buffer was registered. References to it
        keep allocated memory alive."""
        self._get()
        view = memoryview(self._source if self._allocated else ffi.buffer(self._source)).cast("B")
        return view.toreadonly() if self._read_only else view

    def __buffer__(self, flags: int) -> memoryview:
        return self.buffer

    def array(
        self, dtype: Any = "uint8", shape: Any = None, offset: int = 0
    ) -> numpy.ndarray[Any, Any]:
        """Returns a numpy array of this memory, from ``offset`` on, with ``shape``, or as many
        whole elements as there are."""
        import numpy

        dtype = numpy.dtype(dtype)
        if not 0 <= offset <= self._length:
            raise IndexError(f"offset {offset} is not in a region of {self._length} bytes")
        room = (self._length - offset) // dtype.itemsize
        shape = (room,) if shape is None else ((shape,) if isinstance(shape, int) else tuple(shape))
        count = 1
        for each in shape:
            count *= int(each)
        if count > room or count < 0:
            raise ValueError(f"{count} elements are more than there is room for: {room}")
        return numpy.frombuffer(self.buffer, dtype, count, offset).reshape(shape)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        plain = self.array()
        return plain if dtype is None else plain.astype(dtype)

    def piece(self, offset: int = 0, length: int | None = None) -> Piece:
        """Returns ``length`` bytes from ``offset`` on, or all that follow."""
        self._get()
        length = self._length - offset if length is None else length
        if offset < 0 or length < 0 or offset + length > self._length:
            raise ArgumentError(
                34, f"bytes {offset} to {offset} + {length} are outside the region of {self._length}"
            )
        return Piece(self, self._address + offset, length, self._key)

    def __getitem__(self, index: slice) -> Piece:
        start, stop = _bounds(index, self._length)
        return self.piece(start, stop - start)

    def of(self, view: Any) -> Piece:
        """Returns the piece of this region that a view, such as a slice of an array, covers. If the
        view is not contiguous, that is from its first byte to its last: see :meth:`Layout.of`."""
        address, length = _extent_of(view)
        offset = address - self._address
        if not 0 <= offset <= self._length - length:
            raise ArgumentError(
                34,
                f"the view of {length} bytes at {address:#x} is not within the region of "
                f"{self._length} bytes at {self._address:#x}",
            )
        return self.piece(offset, length)

    def remote(self, offset: int = 0, length: int | None = None) -> RemoteRegion:
        """Returns a handle of this memory for peers, which may access it as ``access`` allows."""
        struct = ffi.new("struct sluice_remote_mr *")
        check(lib.sluice_mr_remote(self._get(), struct))
        whole = RemoteRegion._of(struct)
        return whole if offset == 0 and length is None else whole.slice(offset, length)

    def close(self) -> None:
        """Ends it now; or raises :exc:`BusyError` or :exc:`BufferError`, and keeps it."""
        with self._lock:
            if self._pointer is None:
                return
            if self._allocated and self._looked_at():
                raise BufferError(
                    "the memory of the region is still looked at, by an array for example: "
                    "delete that first"
                )
            _forked.forget(self._number())
            result = self._free()
            said = last_error()
            if result == -16:
                if self._allocated:
                    _forked.note(self._number(), self._address, self._length)
                if "published" in said:
                    raise BusyError(16, said)
                raise BusyError(16, "posted work names the region: wait for it, or close its channel")
            self._pointer = self._source = None
            check(result)

    def _looked_at(self) -> bool:
        """Returns whether other objects reference the buffer of allocated memory."""
        for attempt in range(2):
            watch = weakref.ref(self._source)
            self._source = None
            left = watch()
            if left is None:
                # It was the only reference and is gone: replace it while the region exists.
                self._source = self._memory()
                return False
            self._source = left
            del left
            if attempt == 0:
                gc.collect()
        return True

    def leave(self) -> None:
        """Releases it: it ends as soon as no posted work uses it and no object references it."""
        lock = getattr(self, "_lock", None)
        if lock is None:
            return
        with lock:
            if self._pointer is None:
                return
            source, (give_up, *arguments) = self._source, self._give_up()
            self._pointer = self._source = None
            if self._allocated:
                # Without other references, this is at once.
                finalizer = weakref.finalize(source, give_up, *arguments)
                finalizer.atexit = False
                del source
            else:
                give_up(*arguments)

    def __exit__(self, *exception: object) -> None:
        self.leave()

    def __del__(self) -> None:
        try:
            self.leave()
        except Exception:  # the interpreter may be half gone
            pass

    def __repr__(self) -> str:
        state = " that was closed" if self._pointer is None else ""
        return f"<MemoryRegion of {self._length} bytes at {self._address:#x}{state}>"


def total_length(pieces: Iterable[Piece]) -> int:
    """Returns the bytes of all pieces together."""
    return sum(piece.length for piece in pieces)
