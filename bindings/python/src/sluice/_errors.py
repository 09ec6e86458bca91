# SPDX-License-Identifier: MIT
"""The exceptions of this package."""
from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

from ._library import ffi, lib

if TYPE_CHECKING:
    from ._completion import Completion


class Error(OSError):
    """The base class of all errors of the library.

    ``errno`` is a positive value of :mod:`errno`, ``strerror`` the text of ``sluice_last_error()``:
    what failed, on what, and what to try. ``completion`` is that of the failed request, if any;
    ``completions`` are those of all requests of a list.
    """

    completion: Completion | None = None
    completions: list[Completion] | None = None


class PeerLostError(Error, ConnectionResetError):
    """The peer, or the path to it, is gone."""

    @property
    def closed(self) -> bool:
        """Whether the peer reported that it closed the connection in order."""
        completion = self.completion
        return completion is not None and completion.cause == lib.SLUICE_STATUS_PEER_CLOSED


class NotConnectedError(Error, ConnectionError):
    """The peer had failed before, or was not connected."""


class DeadlineError(Error, TimeoutError):
    """The deadline of work has passed, which has ended the connection of that work."""


class WaitTimeout(Error, TimeoutError):
    """The timeout of a wait has passed. Nothing was harmed: what was waited for goes on, and can be
    waited for again."""


class AccessError(Error, PermissionError):
    """A remote key, range or right was refused; or the secrets differ."""


class TruncatedError(Error):
    """A message was longer than its receive."""


class CancelledError(Error):
    """Ended because of another error, or because its connection was closed."""


class LocalMemoryError(Error):
    """An element with local memory was wrong."""


class DeviceError(Error):
    """The device failed."""


class ProtocolError(Error):
    """The other side sent something invalid."""


class ArgumentError(Error, ValueError):
    """An argument is wrong, or a message longer than allowed; nothing was done."""


class BusyError(Error):
    """The object is in use: memory by posted work, a list by its own work, an address by another
    listener."""


class WouldBlockError(Error, BlockingIOError):
    """There is no room in the queues now."""


class StaleError(Error):
    """A peer, a handle or an owner has been replaced since."""


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
    """Returns the exception for an errno value of either sign."""
    number = abs(number)
    error = _CLASSES.get(number, Error)(number, text or os.strerror(number))
    error.completion = completion
    return error


def last_error() -> str:
    """Returns the text of the last failure in this thread."""
    return str(ffi.string(lib.sluice_last_error()).decode(errors="replace"))


def wait_error_of(number: int, text: str = "") -> Error:
    """As :func:`error_of`, of a call whose limit is a timeout, which harms nothing."""
    if abs(number) == errno.ETIMEDOUT:
        return WaitTimeout(errno.ETIMEDOUT, text or os.strerror(errno.ETIMEDOUT))
    return error_of(number, text)


def check(result: int) -> int:
    """Returns a result of the library, or raises its error."""
    if result < 0:
        raise error_of(result, last_error())
    return result


def made(pointer: Any) -> Any:
    """Returns an object that the library has made, or raises its error."""
    if pointer == ffi.NULL:
        number = ffi.errno
        raise error_of(number, last_error())
    return pointer


def closed(what: str) -> ClosedError:
    return ClosedError(errno.EBADF, f"{what} was closed")
