# SPDX-License-Identifier: MIT
"""Counters of connections, and histograms of the time that requests took."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ._errors import check
from ._library import ffi, lib
from ._numbers import ErrorClass, Opcode
from ._shared import struct_of


@dataclass(frozen=True)
class Counters:
    """What a connection has done; as ``struct sluice_counters``. ``requests`` and ``bytes`` are by
    :class:`Opcode`, ``failed`` by :class:`ErrorClass`, without entries of 0."""

    requests: dict[Opcode, int]
    bytes: dict[Opcode, int]
    failed: dict[ErrorClass, int]
    refused: int
    queue_full: int
    forgotten: int
    resets: int
    discarded: int
    polls: int
    sleeps: int
    wakes: int
    arrivals: int
    strays: int


def counters_of(function: Any, *arguments: Any) -> Counters:
    """Returns the counters that a call of the library writes."""
    struct = struct_of("sluice_counters")
    check(function(*arguments, struct))
    values: dict[str, Any] = {
        name: getattr(struct, name) for name in Counters.__dataclass_fields__
    }
    for name, kind in (("requests", Opcode), ("bytes", Opcode), ("failed", ErrorClass)):
        values[name] = {kind(i): each for i, each in enumerate(values[name]) if each > 0}
    return Counters(**values)


class Histogram:
    """How long requests of one kind took, with ``Options(histograms=True)``. Times are in seconds;
    percentiles are within 1/64 of the time, and buckets 1/32 of it wide."""

    def __init__(self, struct: Any):
        self._struct = struct

    @property
    def count(self) -> int:
        """Number of requests."""
        return int(self._struct.count)

    @property
    def min(self) -> float:
        """The shortest time; 0 if there were no requests."""
        return float(self._struct.min / 1e9)

    @property
    def max(self) -> float:
        """The longest time; 0 if there were no requests."""
        return float(self._struct.max / 1e9)

    @property
    def mean(self) -> float:
        """The mean time."""
        return float(check(lib.sluice_histogram_mean(self._struct)) / 1e9)

    def percentile(self, percent: float) -> float:
        """Returns the time within which so many percent of the requests were complete."""
        return float(check(lib.sluice_histogram_percentile(self._struct, percent)) / 1e9)

    def merge(self, other: Histogram) -> None:
        """Adds the requests of another one."""
        check(lib.sluice_histogram_merge(self._struct, other._struct))

    @property
    def buckets(self) -> list[tuple[float, int]]:
        """The longest time of each bucket that has requests, and how many it has."""
        return [
            (lib.sluice_histogram_bound(i) / 1e9, int(count))
            for i, count in enumerate(self._struct.buckets)
            if count > 0
        ]


def histogram_of(function: Any, *arguments: Any) -> Histogram:
    """Returns the histogram that a call of the library writes."""
    struct = struct_of("sluice_histogram")
    check(function(*arguments, struct))
    return Histogram(struct)
