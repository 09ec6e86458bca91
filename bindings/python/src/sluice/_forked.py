# SPDX-License-Identifier: MIT
"""Memory that the library has allocated, in a child of fork(2).

The child does not inherit its pages, but it inherits arrays that reference them. It gets zeroed
pages of its own instead; otherwise an access would raise SIGSEGV.
"""
from __future__ import annotations

import mmap
import os
from typing import Any

from ._errors import ArgumentError
from ._library import ffi

_libc = ffi.dlopen(None)
_VOID, _FAILED = ffi.typeof("void *"), ffi.cast("void *", -1)

# From linux/mman.h: fails if the address is mapped already, and keeps that mapping. Linux before
# 4.17 treats the address as a hint.
_FIXED_NOREPLACE = 0x100000

# Address and length of allocated memory, by the address of its object in C.
_allocated: dict[int, tuple[int, int]] = {}

# The number of forks between the process that imported the package and this one.
_generation = 0


def generation() -> int:
    """Returns the number of forks so far, which an object stores for :func:`check_generation`."""
    return _generation


def check_generation(noted: int, what: str) -> None:
    """Raises if the object was made before a fork."""
    if noted != _generation:
        raise ArgumentError(
            22, f"{what} is that of the parent: what was made before fork() is the parent's alone"
        )


def note(key: int, address: int, length: int) -> None:
    """Records allocated memory."""
    _allocated[key] = address, length


def forget(key: int) -> None:
    """Forgets memory that is about to be freed."""
    _allocated.pop(key, None)


def _map_zeros(address: int, length: int) -> None:
    begin = address & ~(mmap.PAGESIZE - 1)
    length = (address + length + mmap.PAGESIZE - 1 & ~(mmap.PAGESIZE - 1)) - begin
    wanted = ffi.cast(_VOID, begin)
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
