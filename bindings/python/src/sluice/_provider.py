# SPDX-License-Identifier: MIT
"""An exchange whose bytes an object of the program carries."""
from __future__ import annotations

import errno
from typing import Any, Callable, Sequence

from ._library import FOREVER, ffi
from ._shared import struct_of


class Provider:
    """The functions of such an object for C, which this keeps. ``raised`` is the last exception that
    one of them has raised."""

    def __init__(self, provider: Any, ranks: int):
        self._provider, self._ranks = provider, ranks
        self.raised: BaseException | None = None
        gather = "int(*)(void *, const void *, void *, size_t, int64_t)"
        self.struct = struct_of("sluice_exchange_provider")
        self._kept = [
            ffi.callback(gather, self._allgather),
            ffi.callback("int(*)(void *, int64_t)", self._barrier),
        ]
        self.struct.allgather, self.struct.barrier = self._kept
        if hasattr(provider, "alltoall"):
            self._kept.append(ffi.callback(gather, self._alltoall))
            self.struct.alltoall = self._kept[-1]

    def _try(self, function: Callable[[], None]) -> int:
        try:
            function()
            return 0
        except BaseException as error:
            self.raised = error
            number = getattr(error, "errno", None)
            if isinstance(error, TimeoutError):
                number = errno.ETIMEDOUT
            return -number if isinstance(number, int) and number > 0 else -errno.EIO

    def _fill(self, target: Any, values: Sequence[bytes], length: int) -> None:
        if len(values) != self._ranks or any(len(each) != length for each in values):
            raise ValueError(f"{self._ranks} ranks give {length} bytes each")
        ffi.memmove(target, b"".join(bytes(each) for each in values), length * self._ranks)

    def _allgather(self, _: Any, own: Any, every: Any, length: int, deadline: int) -> int:
        def gather() -> None:
            given = bytes(ffi.buffer(own, length)) if length > 0 else b""
            self._fill(every, self._provider.allgather(given, _seconds(deadline)), length)

        return self._try(gather)

    def _alltoall(self, _: Any, to: Any, taken: Any, length: int, deadline: int) -> int:
        def trade() -> None:
            given = bytes(ffi.buffer(to, length * self._ranks)) if length > 0 else b""
            each = [given[i * length : (i + 1) * length] for i in range(self._ranks)]
            self._fill(taken, self._provider.alltoall(each, _seconds(deadline)), length)

        return self._try(trade)

    def _barrier(self, _: Any, deadline: int) -> int:
        return self._try(lambda: self._provider.barrier(_seconds(deadline)))


def _seconds(nanoseconds: int) -> float | None:
    return None if nanoseconds == FOREVER else nanoseconds / 1e9
