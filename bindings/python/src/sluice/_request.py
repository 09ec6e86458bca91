# SPDX-License-Identifier: MIT
"""Work, requests and their completions."""
from __future__ import annotations

import errno
from array import array
from typing import TYPE_CHECKING, Any, Callable, Generator, Sequence

from ._completion import NAMES, Completion
from ._errors import ArgumentError
from ._library import ffi, lib
from ._memory import Memory, Piece, RemoteRegion, pieces_of, total_length
from ._numbers import Opcode
from ._plain import PlainBuffer

if TYPE_CHECKING:
    from ._connection import Connection

SEND, RECEIVE, WRITE, READ = Opcode.SEND, Opcode.RECEIVE, Opcode.WRITE, Opcode.READ
COMPARE_SWAP, FETCH_ADD = Opcode.COMPARE_SWAP, Opcode.FETCH_ADD

_IMMEDIATE: int = lib.SLUICE_IMMEDIATE
_FENCE: int = lib.SLUICE_FENCE
_SOLICITED: int = lib.SLUICE_SOLICITED
_INLINE: int = lib.SLUICE_INLINE
_PLAIN: int = lib.SLUICE_PLAIN_MEMORY

#: The most bytes of an element of local memory.
LONGEST = 0xFFFFFFFF

# Work that does not change its local memory.
_ONLY_READ = (SEND, WRITE)


class Layout:
    """The layout of the blocks of one side in memory; :meth:`strided` and :meth:`paged` make it.

    Pass it to :meth:`Work.send`, :meth:`Work.receive`, :meth:`Work.write` and :meth:`Work.read`, or
    those of :class:`Action`, any number of times.
    """

    __slots__ = ("_struct", "_indices")

    def __init__(self, kind: int, count: int, bytes_: int, stride: int, indices: Any):
        self._struct = ffi.new("struct sluice_layout *")
        self._struct.kind, self._struct.count, self._struct.bytes = kind, count, bytes_
        self._struct.stride, self._struct.indices = stride, indices
        self._indices = indices  # keeps the memory that C points to

    @classmethod
    def strided(cls, count: int, bytes: int, stride: int) -> Layout:
        """``count`` blocks of ``bytes``, each ``stride`` bytes after the one before it."""
        return cls(lib.SLUICE_LAYOUT_STRIDED, count, bytes, stride, ffi.NULL)

    @classmethod
    def paged(cls, indices: Any, bytes: int) -> Layout:
        """The pages that ``indices`` name: page i begins at byte ``i * bytes``.

        A contiguous array of ``uint32``, such as one of numpy, is used without a copy: it must not
        be resized while the layout exists, and each post reads its current contents. Other
        sequences of whole numbers are copied once.
        """
        taken = ffi.from_buffer("uint32_t[]", _indices_of(indices))
        return cls(lib.SLUICE_LAYOUT_PAGED, len(taken), bytes, 0, taken)

    @classmethod
    def of(cls, view: Any) -> Layout:
        """The blocks of a view of numpy, such as columns of a matrix, from its first byte on; use it
        with ``region.of(view)``::

            column = region.array("float64", (100, 100))[:, 3:5]
            work = sluice.Work.send(region.of(column), layout=sluice.Layout.of(column))

        Raises :exc:`ValueError` if the blocks are neither at a fixed distance nor at multiples of
        their length.
        """
        shape, strides, length = _contiguous_part(view)
        if len(shape) == 0:
            return cls.strided(1, length, length)
        if len(shape) == 1:
            return cls.strided(shape[0], length, strides[0])
        offsets = [0]
        for count, stride in zip(shape, strides):
            offsets = [begin + i * stride for begin in offsets for i in range(count)]
        if any(offset % length for offset in offsets):
            raise ValueError(
                f"blocks of {length} bytes are at no fixed distance, and not at multiples of it"
            )
        return cls.paged([offset // length for offset in offsets], length)


def _contiguous_part(view: Any) -> tuple[list[int], list[int], int]:
    """Returns the outer dimensions of a view and their strides, as few as possible, and the bytes of
    the blocks in them."""
    length = view.itemsize
    dimensions = [each for each in zip(view.shape, view.strides) if each[0] != 1]
    if 0 in view.shape:
        return [0], [length], length
    if any(stride <= 0 for _, stride in dimensions):
        raise ValueError("the strides of a layout are positive")
    while dimensions and dimensions[-1][1] == length:
        length *= dimensions.pop()[0]
    outer: list[tuple[int, int]] = []
    for count, stride in dimensions:
        # A dimension that continues the one around it is one with it.
        if outer and outer[-1][1] == count * stride:
            outer[-1] = (outer[-1][0] * count, stride)
        else:
            outer.append((count, stride))
    return [each[0] for each in outer], [each[1] for each in outer], length


def _indices_of(indices: Any) -> Any:
    """Returns the indices as a buffer of unsigned numbers of 32 bits."""
    try:
        view = memoryview(indices)
    except TypeError:
        return array("I", indices)
    if view.format == "I" and view.ndim == 1 and view.c_contiguous:
        return indices
    return array("I", view.tolist())


def blocks_of(layout: Layout | None, remote_layout: Layout | None) -> tuple[Any, ...]:
    """Returns a struct of blocks for C, and the layouts that it points into."""
    struct = ffi.new("struct sluice_blocks *")
    struct.size = ffi.sizeof("struct sluice_blocks")
    if layout is not None:
        struct.local = layout._struct[0]
    if remote_layout is not None:
        struct.remote = remote_layout._struct[0]
    return struct, layout, remote_layout


class Work:
    """The description of a request; :meth:`send`, :meth:`receive` and so on make it.

    It can be posted any number of times. ``user`` is any object, and is returned in the completion.
    """

    __slots__ = (
        "opcode",
        "peer",
        "pieces",
        "remote",
        "flags",
        "immediate",
        "operand",
        "user",
        "_layouts",
        "_blocks",
    )

    def __init__(
        self,
        opcode: int,
        memory: Memory,
        peer: int = 0,
        remote: RemoteRegion | None = None,
        immediate: int | None = None,
        *,
        fence: bool = False,
        solicited: bool = False,
        inline: bool = False,
        operand: tuple[int, int] = (0, 0),
        user: Any = None,
        layout: Layout | None = None,
        remote_layout: Layout | None = None,
    ):
        self.opcode, self.peer, self.remote, self.user = opcode, peer, remote, user
        self.pieces: tuple[Piece, ...] = (
            (memory,) if type(memory) is Piece else pieces_of(memory, opcode not in _ONLY_READ)
        )
        self.operand = operand
        self.immediate, self.flags = 0, 0
        if immediate is not None:
            self.immediate, self.flags = immediate, _IMMEDIATE
        if type(memory) is not Piece and any(type(each.region) is PlainBuffer for each in self.pieces):
            if not all(type(each.region) is PlainBuffer for each in self.pieces):
                raise TypeError("the memory of a request is pieces of regions, or plain buffers")
            self.flags |= _PLAIN
        if fence or solicited or inline:
            self.flags |= (
                (_FENCE if fence else 0)
                | (_SOLICITED if solicited else 0)
                | (_INLINE if inline else 0)
            )
        # The struct of the blocks and what it points into, and its address for the extension.
        self._layouts, self._blocks = None, 0
        if layout is not None or remote_layout is not None:
            self._layouts = blocks_of(layout, remote_layout)
            self._blocks = int(ffi.cast("uintptr_t", self._layouts[0]))
        if any(each.length > LONGEST for each in self.pieces):
            self._take_long_memory()

    def _take_long_memory(self) -> None:
        """Names memory that is longer than an element can say by its layout, if there is one."""
        if self._layouts is None or len(self.pieces) != 1:
            raise ArgumentError(
                errno.E2BIG,
                f"a piece has at most {LONGEST} bytes: take several, or a layout of the memory",
            )
        piece = self.pieces[0]
        self._layouts[0].local_length = piece.length
        self.pieces = (Piece(piece.region, piece.address, LONGEST, piece.key),)

    @classmethod
    def send(cls, memory: Memory, peer: int = 0, **options: Any) -> Work:
        """Sends a message, which needs a receive of the peer. With a :class:`Layout`, ``layout``, it is
        gathered from many blocks."""
        return cls(SEND, memory, peer, **options)

    @classmethod
    def receive(cls, memory: Memory, peer: int = 0, **options: Any) -> Work:
        """Receives a message of the peer, or a write with an immediate. With a :class:`Layout`,
        ``layout``, a message is scattered to many blocks."""
        return cls(RECEIVE, memory, peer, **options)

    @classmethod
    def write(cls, memory: Memory, remote: RemoteRegion, peer: int = 0, **options: Any) -> Work:
        """Writes into memory of the peer. With a :class:`Layout` of this side, ``layout``, or of
        the peer, ``remote_layout``, the bytes are in many blocks."""
        return cls(WRITE, memory, peer, remote, **options)

    @classmethod
    def read(cls, memory: Memory, remote: RemoteRegion, peer: int = 0, **options: Any) -> Work:
        """Reads memory of the peer, with layouts as :meth:`write`."""
        return cls(READ, memory, peer, remote, **options)

    @classmethod
    def compare_swap(
        cls,
        memory: Memory,
        remote: RemoteRegion,
        expected: int,
        desired: int,
        peer: int = 0,
        **options: Any,
    ) -> Work:
        """Replaces 8 bytes of the peer if they are as expected; the old ones are written to
        ``memory``."""
        operand = (expected, desired)
        return cls(COMPARE_SWAP, memory, peer=peer, remote=remote, operand=operand, **options)

    @classmethod
    def fetch_add(
        cls, memory: Memory, remote: RemoteRegion, addend: int, peer: int = 0, **options: Any
    ) -> Work:
        """Adds to a number of 8 bytes of the peer; the old one is written to ``memory``."""
        return cls(FETCH_ADD, memory, peer=peer, remote=remote, operand=(addend, 0), **options)

    def fill(self, struct: Any, number: int, sges: Any) -> None:
        """Fills a request for C; if it has several elements, these are at ``sges``."""
        struct.opcode, struct.peer, struct.flags = self.opcode, self.peer, self.flags
        struct.immediate = self.immediate
        struct.user_data = number
        struct.sge_count = len(self.pieces)
        if len(self.pieces) == 1:
            fill_sge(struct.sge, self.pieces[0])
        elif self.pieces:
            struct.sges = sges
            for i, piece in enumerate(self.pieces):
                fill_sge(sges[i], piece)
        if self.remote is not None:
            self.remote._fill(struct.remote)
        struct.operand = self.operand
        if self._layouts is not None:
            struct.blocks = self._layouts[0]

    def __repr__(self) -> str:
        name = NAMES.get(self.opcode, "work")
        return f"<Work: {name} of {total_length(self.pieces)} bytes, peer {self.peer}>"


def fill_sge(struct: Any, piece: Piece) -> None:
    piece.region._get()
    struct.addr, struct.length, struct.lkey = piece.address, piece.length, piece.key


def requests_of(works: Sequence[Work], first_number: int) -> tuple[Any, Any]:
    """Returns an array of requests for C, and objects that must be kept while C reads it."""
    requests = ffi.new("struct sluice_request[]", len(works))
    many = [len(work.pieces) if len(work.pieces) > 1 else 0 for work in works]
    sges = ffi.new("struct sluice_sge[]", max(1, sum(many)))
    at = 0
    for i, work in enumerate(works):
        work.fill(requests[i], first_number + i, sges + at)
        at += many[i]
    return requests, sges


class Request:
    """One posted request. It holds its memory until it is complete.

    It can be waited for with :meth:`wait`, awaited in asyncio, or left alone.
    """

    # The extension makes requests without __init__().
    _completion: Completion | None = None
    _handle: Any = None
    _callbacks: tuple[Callable[[], None], ...] = ()
    #: Whether its result was requested: then polls do not return it.
    seen = False
    #: Whether it is a receive that all peers share, which no flush waits for.
    pooled = False

    def __init__(self, connection: Connection, work: Work):
        self._connection = connection
        self._work: Work | None = work

    @property
    def done(self) -> bool:
        """Whether it is complete, as of the last wait or poll."""
        return self._completion is not None

    @property
    def user(self) -> Any:
        """The ``user`` of its work."""
        work, completion = self._work, self._completion
        return completion.user if completion is not None else work.user  # type: ignore[union-attr]

    @property
    def peer(self) -> int:
        """The index of its peer."""
        work, completion = self._work, self._completion
        return completion.peer if completion is not None else work.peer  # type: ignore[union-attr]

    @property
    def completion(self) -> Completion | None:
        """How it ended, or ``None``."""
        completion = self._completion
        if completion is not None and completion.error != 0:
            completion = self._completion = self._connection._explained(completion)
        return completion

    def wait(self, timeout: float | None) -> Completion:
        """Waits until it is complete, and returns its completion, even if it failed.

        Raises :exc:`WaitTimeout` after ``timeout`` seconds, and the request goes on.
        """
        return self._connection._wait_for(self, timeout)

    def result(self, timeout: float | None) -> Completion:
        """As :meth:`wait`, but raises a failure."""
        completion = self.wait(timeout)
        if not completion.ok:
            raise completion.exception(self._connection._reason(completion))
        return completion

    def cancel(self) -> Completion:
        """Cancels the request, which fails its connection if it is pending."""
        return self._connection._cancel(self)

    def __await__(self) -> Generator[Any, None, Completion]:
        return self._connection._await(self).__await__()

    def _end(self, completion: Completion) -> None:
        self._completion = completion
        self._work = None  # the memory is the program's again

    def _call_back(self) -> None:
        callbacks, self._callbacks = self._callbacks, ()
        for callback in callbacks:
            callback()

    def _complete(self, completion: Completion) -> None:
        self._end(completion)
        self._call_back()

    def __repr__(self) -> str:
        return f"<Request to peer {self.peer}: {self._completion or 'pending'}>"
