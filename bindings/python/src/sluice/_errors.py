# SPDX-License-Identifier: MIT
"""What fails raises one of these."""
from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

from ._library import ffi, lib

if TYPE_CHECKING:
    from ._request import Completion


class Error(OSError):
    """The root of all errors of the library.

    ``errno`` is a positive value of :mod:`errno`, ``strerror`` the text of
    ``sluice_last_error()``: what, which, and what to try. ``completion`` is that of the request
    that failed, if one has; ``completions`` are those of all requests of a list.
    """

    completion: Completion | None = None
    completions: list[Completion] | None = None


class PeerLostError(Error, ConnectionResetError):
    """The peer, or the path to it, is gone."""

    @property
    def closed(self) -> bool:
        """Whether the peer closed the connection in good order, as far as it said so."""
        completion = self.completion
        return completion is not None and completion.cause == lib.SLUICE_STATUS_PEER_CLOSED


class NotConnectedError(Error, ConnectionError):
    """The peer had failed before, or was not connected."""


class DeadlineError(Error, TimeoutError):
    """A deadline or a timeout has passed. That of an operation has ended its connection."""


class AccessError(Error, PermissionError):
    """A remote key, range or right was refused; or a secret is another one."""


class TruncatedError(Error):
    """A message was longer than the receive, or than may be sent."""


class CancelledError(Error):
    """Ended because of another error, or because its connection was closed."""


class LocalMemoryError(Error):
    """Memory of this side was named wrongly."""


class DeviceError(Error):
    """The device failed."""


class ProtocolError(Error):
    """The other side said what cannot be."""


class ArgumentError(Error, ValueError):
    """An argument is wrong; nothing was done."""


class BusyError(Error):
    """It is in use: memory by posted work, a list by its own, a listener by another one."""


class WouldBlockError(Error, BlockingIOError):
    """There is no room in the queues now."""


class StaleError(Error):
    """What was named is that of a peer, a handle or an owner of before."""


class OutOfMemoryError(Error, MemoryError):
    """There is no memory, or the limit on locked memory is reached."""


class UnsupportedError(Error, NotImplementedError):
    """The device, or this build of the library, cannot do it."""


class InterruptedWait(Error, InterruptedError):
    """A wait was ended by :meth:`wake`."""


class ClosedError(Error, ValueError):
    """The object was closed."""


_CLASSES: dict[int, type[Error]] = {
    errno.ECONNRESET: PeerLostError,
    errno.ECONNREFUSED: PeerLostError,
    errno.ECONNABORTED: PeerLostError,
    errno.EHOSTUNREACH: PeerLostError,
    errno.ENETUNREACH: PeerLostError,
    errno.ENOTCONN: NotConnectedError,
    errno.ETIMEDOUT: DeadlineError,
    errno.EACCES: AccessError,
    errno.EMSGSIZE: TruncatedError,
    errno.ECANCELED: CancelledError,
    errno.EFAULT: LocalMemoryError,
    errno.EIO: DeviceError,
    errno.EPROTO: ProtocolError,
    errno.EPROTOTYPE: ProtocolError,
    errno.EINVAL: ArgumentError,
    errno.ERANGE: ArgumentError,
    errno.E2BIG: ArgumentError,
    errno.EBUSY: BusyError,
    errno.EAGAIN: WouldBlockError,
    errno.ESTALE: StaleError,
    errno.ENOMEM: OutOfMemoryError,
    errno.EOPNOTSUPP: UnsupportedError,
    errno.EINTR: InterruptedWait,
}


def error_of(number: int, text: str = "", completion: Completion | None = None) -> Error:
    """The exception of an errno value, of either sign."""
    number = abs(number)
    error = _CLASSES.get(number, Error)(number, text or os.strerror(number))
    error.completion = completion
    return error


def last_error() -> str:
    """The text of what failed last in this thread."""
    return str(ffi.string(lib.sluice_last_error()).decode(errors="replace"))


def check(result: int) -> int:
    """A result of the library, or its error."""
    if result < 0:
        raise error_of(result, last_error())
    return result


def made(pointer: Any) -> Any:
    """An object that the library has made, or its error."""
    if pointer == ffi.NULL:
        number = ffi.errno
        raise error_of(number, last_error())
    return pointer


def closed(what: str) -> ClosedError:
    return ClosedError(errno.EBADF, f"{what} was closed")
