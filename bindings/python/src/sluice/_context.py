# SPDX-License-Identifier: MIT
"""Devices, contexts and protection domains."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ._errors import check, made
from ._library import c_text, ffi, lib, text_of
from ._memory import LOCAL_WRITE, MemoryRegion
from ._numbers import Atomics, Level, LinkLayer
from ._object import Object


@dataclass(frozen=True)
class DeviceInfo:
    """A device, as :func:`devices` lists it."""

    name: str
    transport: str
    active: bool
    ports: int
    level: Level
    numa_node: int
    firmware: str
    description: str


def devices() -> list[DeviceInfo]:
    """Returns the devices of this host; the last one is "soft", which always exists."""
    handle = made(lib.sluice_device_list_get())
    try:
        result = []
        info = ffi.new("struct sluice_device_info *")
        for index in range(lib.sluice_device_list_count(handle)):
            info.size = ffi.sizeof("struct sluice_device_info")
            check(lib.sluice_device_list_info(handle, index, info))
            result.append(
                DeviceInfo(
                    text_of(info.name),
                    text_of(info.transport),
                    bool(info.active),
                    info.ports,
                    Level(info.level),
                    info.numa_node,
                    text_of(info.firmware),
                    text_of(info.description),
                )
            )
        return result
    finally:
        lib.sluice_device_list_free(handle)


@dataclass(frozen=True)
class ContextInfo:
    """The device of a context, and its limits; as ``struct sluice_context_info``."""

    device: str
    transport: str
    level: Level
    port: int
    link_layer: LinkLayer
    active_mtu: int
    gid_index: int
    numa_node: int
    atomics: Atomics
    max_send_depth: int
    max_receive_depth: int
    max_sge: int
    max_read_sge: int
    max_inline: int
    max_read_depth: int
    max_message: int
    max_region: int
    max_channels: int
    max_regions: int
    max_completions: int


def _fields(info: Any, cls: type) -> dict[str, Any]:
    """Returns the fields of a struct that a dataclass has, by name."""
    values = {}
    for name in cls.__dataclass_fields__:  # type: ignore[attr-defined]
        value = getattr(info, name)
        values[name] = value if isinstance(value, int) else text_of(value)
    return values


class Context(Object):
    """An open device.

    :param device: a name such as ``"mlx5_0"``, ``"mlx5_0:1"`` or ``"soft"``; ``None`` takes
    ``SLUICE_DEVICE``, or else an active RDMA device near this process, or else "soft".
    :param port: of an RDMA device; 0: the first active one.
    :param gid_index: an entry of the port's GID table; ``None``: the best one.
    :param address: soft: the address to listen on; ``None``: all of the host.
    :param fork: verbs: make fork(2) safe.

    Objects that were made from a context keep its device open, so contexts may be closed in any
    order.
    """

    _what = "the context"

    def __init__(
        self,
        device: str | None = None,
        *,
        port: int = 0,
        gid_index: int | None = None,
        address: str | None = None,
        fork: bool = False,
    ):
        attr = ffi.new("struct sluice_context_attr *")
        attr.size = ffi.sizeof("struct sluice_context_attr")
        attr.port = port
        where = c_text(address)
        attr.address = where
        if gid_index is not None:
            attr.gid_index = gid_index
            attr.flags |= lib.SLUICE_CONTEXT_GID_INDEX
        if fork:
            attr.flags |= lib.SLUICE_CONTEXT_FORK
        self._pointer = made(lib.sluice_context_open(c_text(device), attr))

    def _end(self, pointer: Any) -> None:
        lib.sluice_context_close(pointer)

    @property
    def info(self) -> ContextInfo:
        """The device, and its limits."""
        info = ffi.new("struct sluice_context_info *")
        info.size = ffi.sizeof("struct sluice_context_info")
        check(lib.sluice_context_query(self._get(), info))
        fields = _fields(info, ContextInfo)
        for name, kind in (("level", Level), ("link_layer", LinkLayer), ("atomics", Atomics)):
            fields[name] = kind(fields[name])
        return ContextInfo(**fields)

    def domain(self) -> ProtectionDomain:
        """A new protection domain."""
        return ProtectionDomain(self)


class ProtectionDomain(Object):
    """Memory and connections that belong together; :meth:`Context.domain` makes it."""

    _what = "the protection domain"

    def __init__(self, context: Context):
        self._pointer = made(lib.sluice_pd_alloc(context._get()))
        self._context = context  # keeps it open while a domain of it exists

    def _end(self, pointer: Any) -> None:
        lib.sluice_pd_free(pointer)

    def allocate(
        self, length: int, access: int = LOCAL_WRITE, *, huge_pages: bool = False
    ) -> MemoryRegion:
        """Allocates zeroed, registered memory of the library; see :class:`MemoryRegion`."""
        return MemoryRegion._allocate(self._get(), length, access, huge_pages)

    def register(self, buffer: Any, access: int = LOCAL_WRITE) -> MemoryRegion:
        """Registers a buffer in place: a numpy array, a bytearray, an mmap, or anything writable
        and contiguous; with ``access`` 0 a read-only one as well, such as ``bytes``, which can be
        sent and written to peers. The region keeps a reference to it."""
        return MemoryRegion._register(self._get(), buffer, access)


class BorrowedDomain(ProtectionDomain):
    """That of a node, which ends it."""

    def __init__(self, pointer: Any, owner: Any):
        self._pointer, self._owner = pointer, owner

    def _get(self) -> Any:
        self._owner._get()
        return super()._get()

    def _end(self, pointer: Any) -> None:
        pass


class BorrowedContext(Context):
    """That of a node, which ends it."""

    def __init__(self, pointer: Any, owner: Any):
        self._pointer, self._owner = pointer, owner

    def _get(self) -> Any:
        self._owner._get()
        return super()._get()

    def _end(self, pointer: Any) -> None:
        pass
