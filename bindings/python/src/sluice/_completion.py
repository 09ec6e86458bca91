# SPDX-License-Identifier: MIT
"""How requests ended."""
from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable

from ._errors import Error, error_of
from ._library import ffi, lib, text_of
from ._numbers import ErrorClass, Opcode, Status

if TYPE_CHECKING:
    from ._request import Work

NAMES = {
    Opcode.SEND: "send",
    Opcode.RECEIVE: "receive",
    Opcode.WRITE: "write",
    Opcode.READ: "read",
    Opcode.COMPARE_SWAP: "compare and swap",
    Opcode.FETCH_ADD: "fetch and add",
}

# The fields of a completion in the order in which new_completion() of fast_engine.c has them. A
# later field is added before the last one, here and there.
_FIELDS = (
    "opcode",
    "peer",
    "bytes",
    "error",
    "error_class",
    "status",
    "cause",
    "vendor",
    "immediate",
    "written",
    "peer_removed",
    "user",
)

#: The index of ``error``, for lists that are looked through without a call for each.
ERROR = _FIELDS.index("error")

_IMMEDIATE: int = lib.SLUICE_IMMEDIATE
_WRITTEN: int = lib.SLUICE_WRITTEN
_PEER_REMOVED: int = lib.SLUICE_PEER_REMOVED


def _field(name: str, convert: Callable[[Any], Any] | None = None) -> Any:
    index = _FIELDS.index(name)
    if convert is None:
        return property(lambda self: self._values[index])
    return property(lambda self: convert(self._values[index]))


class Completion:
    """How one request ended; as ``struct sluice_completion``. Later versions may have more fields.

    ``immediate`` is ``None`` if there was none. ``user`` is that of the work.
    """

    __slots__ = ("_values",)

    opcode: Opcode = _field("opcode", Opcode)
    peer: int = _field("peer")
    bytes: int = _field("bytes")
    error: int = _field("error")
    error_class: ErrorClass = _field("error_class", ErrorClass)
    status: Status = _field("status", Status)
    cause: Status = _field("cause", Status)
    vendor: int = _field("vendor")
    immediate: int | None = _field("immediate")
    written: bool = _field("written")
    peer_removed: bool = _field("peer_removed")
    user: Any = _field("user")

    #: The text of the first error of its peer, in an :class:`ExplainedCompletion`.
    _reason = ""

    # The extension makes completions without __init__().
    _values: tuple[Any, ...]

    def __init__(self, **values: Any):
        self._values = tuple(values.pop(name) for name in _FIELDS)
        if values:
            raise TypeError(f"a completion has no {', '.join(values)}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Completion) and self._values == other._values

    def __hash__(self) -> int:
        return hash(self._values[:-1])

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in _FIELDS)
        return f"Completion({fields})"

    @property
    def ok(self) -> bool:
        """Whether it succeeded."""
        return bool(self.error == 0)

    def check(self) -> Completion:
        """Returns itself if it succeeded, or raises its error."""
        if self.error != 0:
            raise self.exception()
        return self

    def exception(self, reason: str = "") -> Error:
        """Returns its error; ``reason`` has further details."""
        reason = self._reason or reason
        name = NAMES.get(self.opcode, "request")
        status = ffi.string(lib.sluice_status_name(self.status)).decode()
        of_class = ffi.string(lib.sluice_error_class_name(self.error_class)).decode()
        text = f"{name}, peer {self.peer}: {status} ({of_class})"
        if reason:
            # The text of the first failure has everything; those that followed have their own.
            text = reason if self.status == self.cause else f"{text}: {reason}"
        return error_of(self.error, text, self)


class ExplainedCompletion(Completion):
    """A completion of a request that failed, with the library's text of what failed its peer."""

    __slots__ = ("_reason",)
    _reason: str

    @classmethod
    def of(cls, completion: Completion, reason: str) -> ExplainedCompletion:
        """Returns the completion with this text."""
        self = cls.__new__(cls)
        self._values, self._reason = completion._values, reason
        return self


def completion_of(struct: Any, user: Any) -> Completion:
    """Makes a completion from the struct that the library has written."""
    flags, completion = struct.flags, Completion.__new__(Completion)
    completion._values = (
        struct.opcode,
        struct.peer,
        struct.bytes,
        struct.error,
        struct.error_class,
        struct.status,
        struct.cause,
        struct.vendor,
        struct.immediate if flags & _IMMEDIATE else None,
        flags & _WRITTEN != 0,
        flags & _PEER_REMOVED != 0,
        user,
    )
    return completion


def unposted(work: Work, error: int) -> Completion:
    """Makes a completion for work that was not posted: its peer is not connected, or its deadline
    has passed."""
    late = error == -errno.ETIMEDOUT
    status = lib.SLUICE_STATUS_DEADLINE if late else lib.SLUICE_STATUS_WR_FLUSH_ERR
    return Completion(
        opcode=work.opcode,
        peer=work.peer,
        bytes=0,
        error=error,
        error_class=lib.SLUICE_CLASS_TIMEOUT if late else lib.SLUICE_CLASS_CANCELLED,
        status=status,
        cause=status,
        vendor=0,
        immediate=None,
        written=False,
        peer_removed=False,
        user=work.user,
    )


def gather(
    completions: list[Completion], reason_of: Callable[[Completion], str]
) -> list[Completion]:
    """Returns the completions if all succeeded. Otherwise raises the first failure that is not a
    mere consequence, with all of them."""
    failed = [each for each in completions if each._values[ERROR] != 0]
    if failed:
        consequence = (-errno.ECANCELED, -errno.ENOTCONN)
        first = next((each for each in failed if each.error not in consequence), failed[0])
        error = first.exception(reason_of(first))
        error.completions = completions
        raise error
    return completions


@dataclass(frozen=True)
class FirstError:
    """The first error of a connection, which explains later ones."""

    peer: int
    opcode: Opcode
    status: Status
    error_class: ErrorClass
    vendor: int
    error: int
    text: str

    @classmethod
    def of(cls, struct: Any) -> FirstError:
        return cls(
            struct.peer,
            Opcode(struct.opcode),
            Status(struct.status),
            ErrorClass(struct.error_class),
            struct.vendor,
            struct.error,
            text_of(struct.text),
        )
