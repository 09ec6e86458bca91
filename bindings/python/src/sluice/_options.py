# SPDX-License-Identifier: MIT
"""Attributes of connections."""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._library import ffi, lib
from ._numbers import Access

if TYPE_CHECKING:
    from ._plain import MemoryCache


# Fields that are set apart from the others.
_SPECIAL = ("psn", "global_route", "drop_long", "histograms", "mr_cache")


@dataclass(frozen=True)
class Options:
    """Attributes of a channel, or of each peer of a multichannel; see sluice_channel_prepare(3).

    0, or ``None``, is the default. ``access`` has the rights of peers, such as ``REMOTE_READ``, or
    :data:`NO_ACCESS`. In fields for which 0 has a meaning of its own, use :data:`ZERO`. Durations
    are seconds.
    """

    send_depth: int = 0
    receive_depth: int = 0
    max_sge: int = 0
    max_inline: int = 0
    access: int = 0
    read_depth: int = 0
    max_message: int = 0
    keepalive: float = 0
    spin_time: float = 0
    wait_mode: int = 0
    path_mtu: int = 0
    pkey: int = 0
    service_level: int = 0
    traffic_class: int = 0
    flow_label: int = 0
    hop_limit: int = 0
    path_bits: int = 0
    ack_timeout: int = 0
    retry_count: int = 0
    rnr_timer: int = 0
    rnr_retry: int = 0
    arrival_tags: int = 0
    queue_pairs: int = 0
    stripe_least: int = 0
    psn: int | None = None
    global_route: bool = False
    drop_long: bool = False
    staging: int = 0
    receive_pool: int = 0
    receive_pool_low: int = 0
    histograms: bool = False
    mr_cache: MemoryCache | None = None

    def _struct(self) -> Any:
        attr = ffi.new("struct sluice_channel_attr *")
        attr.size = ffi.sizeof("struct sluice_channel_attr")
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if name in ("keepalive", "spin_time"):
                attr_value = int(value * 1e9)
                setattr(attr, name, attr_value)
            elif name not in _SPECIAL:
                setattr(attr, name, value)
        if self.psn is not None:
            attr.psn = self.psn
            attr.flags |= lib.SLUICE_CHANNEL_PSN
        if self.global_route:
            attr.flags |= lib.SLUICE_CHANNEL_GLOBAL
        if self.drop_long:
            attr.flags |= lib.SLUICE_CHANNEL_DROP_LONG
        if self.histograms:
            attr.flags |= lib.SLUICE_CHANNEL_HISTOGRAMS
        if self.mr_cache is not None:
            attr.mr_cache = self.mr_cache._get()
        return attr


def attr_of(options: Options | None) -> Any:
    """Returns the attributes for C; NULL is all defaults."""
    return ffi.NULL if options is None else options._struct()


#: Peers may neither read nor write.
NO_ACCESS = Access.NONE
#: The number 0, in fields in which 0 means the default.
ZERO: int = lib.SLUICE_ZERO
