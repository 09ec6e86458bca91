# SPDX-License-Identifier: MIT
"""Memory that the library has allocated, in a child of fork(2).

The child has none of its pages. Arrays that look at it are there all the same, so the child gets
zeroed pages of its own in their place: it would die of SIGSEGV where it touches them.
"""
from __future__ import annotations

import mmap
import os
from typing import Any

from cffi import FFI

from ._errors import ArgumentError

_ffi = FFI()
_ffi.cdef(
    "void *mmap(void *, size_t, int, int, int, long); int munmap(void *, size_t);"
)
_libc = _ffi.dlopen(None)
_VOID, _FAILED = _ffi.typeof("void *"), _ffi.cast("void *", -1)

# Of linux/mman.h: fails where something is mapped, which then stays. Linux before 4.17 takes the
# address for a hint.
_FIXED_NOREPLACE = 0x100000

# Address and length of what is allocated, by the address of its object in C.
_allocated: dict[int, tuple[int, int]] = {}

# How many parents this process has that had the package.
_generation = 0


def generation() -> int:
    """What an object notes when it is made, for :func:`check_generation`."""
    return _generation


def check_generation(noted: int, what: str) -> None:
    """Raises if the object was made before a fork."""
    if noted != _generation:
        raise ArgumentError(
            22, f"{what} is that of the parent: what was made before fork() is the parent's alone"
        )


def note(key: int, address: int, length: int) -> None:
    """Memory was allocated."""
    _allocated[key] = address, length


def forget(key: int) -> None:
    """It is about to be freed."""
    _allocated.pop(key, None)


def _map_zeros(address: int, length: int) -> None:
    begin = address & ~(mmap.PAGESIZE - 1)
    length = (address + length + mmap.PAGESIZE - 1 & ~(mmap.PAGESIZE - 1)) - begin
    wanted = _ffi.cast(_VOID, begin)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _FIXED_NOREPLACE
    mapped: Any = _libc.mmap(wanted, length, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    if mapped not in (wanted, _FAILED):
        _libc.munmap(mapped, length)


def _in_child() -> None:
    global _generation
    _generation += 1
    for address, length in _allocated.values():
        _map_zeros(address, max(1, length))
    _allocated.clear()


os.register_at_fork(after_in_child=_in_child)
