# SPDX-License-Identifier: MIT
"""Peers of agents, and what they send: messages, and regions of their memory."""
from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Iterable, Sequence

from . import _forked
from ._completion import Completion, completion_of, gather
from ._errors import check, last_error, made
from ._library import FOREVER, Limit, ffi, lib, nanoseconds, text_of
from ._memory import Memory, Piece, RemoteRegion, registered_pieces_of
from ._numbers import Access, AgentState, Level
from ._request import Work, fill_sge, requests_of
from ._shared import Shared, number_of, struct_of

if TYPE_CHECKING:
    from ._agent import Agent

# Seconds for which the end of a ``with`` block waits until the owner of a region has confirmed it.
_RELEASE = 5


@dataclass(frozen=True)
class AgentPeerInfo:
    """A peer, and its limits; as ``struct sluice_agent_peer_info``. ``max_lease`` is in seconds,
    ``None``: no end."""

    state: AgentState
    error: int
    level: Level
    access: Access
    eager: int
    regions: int
    held: int
    bytes: int
    quota: int
    max_message: int
    max_lease: float | None
    refused: int
    reconnects: int
    address: str
    text: str


@dataclass(frozen=True)
class AgentRegionInfo:
    """A region of a peer. ``lease`` is in seconds, 0: it is over, ``None``: it has no end."""

    access: Access
    id: int
    lease: float | None
    remote: RemoteRegion


def _seconds(value: int) -> float | None:
    return None if value == FOREVER else value / 1e9


@dataclass
class _Lent:
    """Memory of this side that a peer holds. ``source`` keeps it, even if its region is closed."""

    memory: Piece
    source: Any
    until: float | None


class AgentPeer(Shared):
    """A connection of an agent, until it is closed, even if it is lost. :meth:`Agent.connect` and
    :meth:`Agent.next_peer` return it.

    Only the deadlines of reads, writes and atomics are destructive, and only for other reads, writes
    and atomics with this peer. All other deadlines end a wait.
    """

    _what = "the peer of the agent"

    def __init__(self, agent: Agent, pointer: Any, borrowed: Any):
        self._agent = agent
        # What keeps a peer valid that the program has not taken by next_peer().
        self._borrowed = borrowed
        self._number = number_of(pointer)
        self._lent: dict[int, _Lent] = {}
        self._set_up(pointer)

    def _end(self, pointer: Any) -> None:
        if self._agent._peers.get(self._number) is self:
            del self._agent._peers[self._number]
        if self._borrowed is None:
            lib.sluice_agent_peer_close(pointer)
        self._borrowed = None
        self._lent.clear()

    def _used(self) -> None:
        self._agent._used()

    def _interrupt(self) -> None:
        super()._interrupt()
        if not self._agent.closed:
            self._agent.wake()

    @property
    def agent(self) -> Agent:
        """Its agent."""
        return self._agent

    @property
    def info(self) -> AgentPeerInfo:
        """Its state, and its limits."""
        info = struct_of("sluice_agent_peer_info")
        with self._hold() as pointer:
            check(lib.sluice_agent_peer_query(pointer, info))
        values = {name: getattr(info, name) for name in AgentPeerInfo.__dataclass_fields__}
        values["state"], values["level"] = AgentState(info.state), Level(info.level)
        values["access"], values["max_lease"] = Access(info.access), _seconds(info.max_lease)
        values["address"], values["text"] = text_of(info.address), text_of(info.text)
        return AgentPeerInfo(**values)

    # Messages.

    def send(self, data: Any, *, deadline: float | None) -> None:
        """Sends a message: any contiguous buffer. A message of at most ``info.eager`` bytes is
        copied. A longer one is read by the peer once its program receives, and this returns when
        all of it is there."""
        source, limit = ffi.from_buffer(data), Limit(deadline)
        self._blocking(
            lambda pointer: lib.sluice_agent_send(pointer, source, len(source), limit.left())
        )

    async def send_async(self, data: Any, *, deadline: float | None) -> None:
        """As :meth:`send`, for asyncio. It waits in another thread."""
        await asyncio.to_thread(self.send, data, deadline=deadline)

    def flush(self, timeout: float | None) -> None:
        """Waits until the library of the peer has received all that was sent."""
        limit = Limit(timeout)
        self._blocking(lambda pointer: lib.sluice_agent_flush(pointer, limit.left()))

    # Memory.

    def request(
        self, length: int, access: int, *, deadline: float | None, lease: float | None = 0
    ) -> AgentRegion:
        """Asks the peer for zeroed memory, for a lease in seconds; 0: the longest that it gives.
        ``access`` has rights of this side, such as ``REMOTE_WRITE``."""
        limit, wanted = Limit(deadline), nanoseconds(lease)
        found = region = None
        try:
            found = self._blocking(
                lambda pointer: lib.sluice_agent_request_mr(
                    pointer, length, access, wanted, limit.left()
                ),
                dispose=_release_at_once,
            )
            region = AgentRegion(self._agent, found)
            region._own(found)
            return region
        except BaseException:
            if found is not None and (region is None or not region._owns):
                _release_at_once(found)
            raise

    def lend(
        self, memory: Any, access: int, *, lease: float | None, deadline: float | None
    ) -> int:
        """Lends a region, or a :class:`Piece` of one, to the peer, whose program takes it by
        :meth:`Agent.receive_remote`. Returns the name of the loan.

        The memory is kept until the loan is over: until the lease and a second have passed,
        :meth:`revoke` has returned, the peer is closed, or the memory came back.
        """
        (piece,) = registered_pieces_of(memory)
        region, limit, wanted = piece.region, Limit(deadline), nanoseconds(lease)
        mr, offset = region._get(), piece.address - region._base
        until = None if lease is None else time.monotonic() + lease + 1
        name = ffi.new("uint64_t *")
        lent = _Lent(piece, region._source, until)

        def hand_over(pointer: Any) -> Any:
            result = lib.sluice_agent_send_local_mr(
                pointer, mr, offset, piece.length, access, wanted, limit.left(), name
            )
            if result == 0:
                self._forget_loans()
                if until is not None:
                    lent.until = time.monotonic() + (lease or 0) + 1
                self._lent[name[0]] = lent
            return result

        self._blocking(hand_over)
        return int(name[0])

    def _forget_loans(self) -> None:
        now = time.monotonic()
        for name, each in list(self._lent.items()):
            if each.until is not None and each.until < now:
                self._lent.pop(name, None)

    def revoke(self, name: int) -> None:
        """Takes memory back that was lent, or allocated here, by its name. The peer cannot access
        it afterwards."""
        with self._hold() as pointer:
            check(lib.sluice_agent_revoke_mr(pointer, name))
        self._lent.pop(name, None)

    def submit(self, works: Iterable[Work], *, deadline: float | None) -> list[Completion]:
        """Does a list of reads, writes and atomics with memory of the peer. ``remote`` of each is
        that of :attr:`AgentRegion.info`; leases are not checked. Returns and raises as
        :meth:`Channel.submit`."""
        every, limit = list(works), Limit(deadline)
        array, sges = requests_of(every, 0)
        results = ffi.new("struct sluice_completion[]", max(1, len(every)))
        said = [0, ""]

        def submit(pointer: Any) -> int:
            said[0] = lib.sluice_agent_submit(pointer, array, len(every), limit.left(), results)
            said[1] = last_error() if said[0] < 0 else ""
            assert sges is not None
            # A completion without opcode is that of a mistake, for which nothing was written.
            return 0 if every and results[0].opcode != 0 else said[0]

        self._blocking(submit)
        ended = [completion_of(results[i], work.user) for i, work in enumerate(every)]
        return gather(ended, lambda completion: str(said[1]))


class _Ownership:
    """Whether an object has to be freed."""

    begun = False


def _release_at_once(pointer: Any) -> None:
    if pointer != ffi.NULL:
        lib.sluice_agent_mr_release(pointer, 0)


class AgentMessage:
    """A message that has arrived, whole. Its memory is freed with the last reference to it."""

    def __init__(self, agent: Agent, pointer: Any):
        self._length = int(lib.sluice_agent_message_length(pointer))
        self._generation = _forked.generation()
        self._ownership = ownership = _Ownership()
        key, address = number_of(pointer), lib.sluice_agent_message_addr(pointer)

        def free(_: Any) -> None:
            if ownership.begun:
                _forked.forget(key)
                lib.sluice_agent_message_free(pointer)

        self._held = ffi.gc(address, free)
        self._peer = agent._peer_of(lib.sluice_agent_message_peer(pointer), self)

    @property
    def _owns(self) -> bool:
        return self._ownership.begun

    def _own(self, pointer: Any) -> None:
        """From here on the message is freed with the last reference to its bytes."""
        _forked.note(number_of(pointer), number_of(self._held), self._length)
        self._ownership.begun = True
        if self._peer._borrowed is self:
            self._peer._borrowed = self._held

    @property
    def peer(self) -> AgentPeer:
        """The sender."""
        return self._peer

    @property
    def buffer(self) -> memoryview:
        """The bytes, writable and without a copy."""
        _forked.check_generation(self._generation, "the message")
        return memoryview(ffi.buffer(self._held, self._length)).cast("B")

    def __buffer__(self, flags: int) -> memoryview:
        return self.buffer

    def __bytes__(self) -> bytes:
        return bytes(self.buffer)

    def __len__(self) -> int:
        return self._length

    def __repr__(self) -> str:
        return f"<AgentMessage of {self._length} bytes>"


class AgentRegion(Shared):
    """Memory of a peer that this side holds under a lease. The end of a ``with`` block, and of the
    last reference, releases it.

    Reads, writes and atomics raise :exc:`AccessError` once the lease is over, or the owner took the
    memory back.
    """

    _what = "the region of the peer"

    def __init__(self, agent: Agent, pointer: Any):
        self._agent = agent
        # It owns the region from _own() on.
        self._set_up(None)
        self._peer = agent._peer_of(lib.sluice_agent_mr_peer(pointer), self)

    @property
    def _owns(self) -> bool:
        return self._pointer is not None

    def _own(self, pointer: Any) -> None:
        self._pointer = pointer

    def _used(self) -> None:
        self._agent._used()

    @property
    def peer(self) -> AgentPeer:
        """The owner."""
        return self._peer

    @property
    def info(self) -> AgentRegionInfo:
        """The lease, the rights, and the handle of the memory."""
        info = struct_of("sluice_agent_mr_info")
        with self._hold() as pointer:
            check(lib.sluice_agent_mr_query(pointer, info))
        return AgentRegionInfo(
            Access(info.access), info.id, _seconds(info.lease), RemoteRegion._of(info.remote)
        )

    def _transfer(
        self, function: Any, memory: Memory, offset: int, deadline: float | None, *operands: int
    ) -> Sequence[Piece]:
        pieces, limit = registered_pieces_of(memory), Limit(deadline)
        sges = ffi.new("struct sluice_sge[]", max(1, len(pieces)))
        for i, piece in enumerate(pieces):
            fill_sge(sges[i], piece)
        if not operands and function in (lib.sluice_agent_mr_read, lib.sluice_agent_mr_write):
            operands = (len(pieces),)
        self._blocking(
            lambda pointer: function(pointer, offset, sges, *operands, limit.left())
            if pieces is not None  # which keeps the memory
            else 0
        )
        return pieces

    def read(self, memory: Memory, *, offset: int = 0, deadline: float | None) -> None:
        """Reads from ``offset`` on into local memory."""
        self._transfer(lib.sluice_agent_mr_read, memory, offset, deadline)

    def write(self, memory: Memory, *, offset: int = 0, deadline: float | None) -> None:
        """Writes local memory to ``offset`` on."""
        self._transfer(lib.sluice_agent_mr_write, memory, offset, deadline)

    def compare_swap(
        self,
        memory: Piece,
        expected: int,
        desired: int,
        *,
        offset: int = 0,
        deadline: float | None,
    ) -> int:
        """As :meth:`Channel.compare_swap`."""
        function = lib.sluice_agent_mr_compare_swap
        pieces = self._transfer(function, memory, offset, deadline, expected, desired)
        return int(ffi.cast("uint64_t *", pieces[0].address)[0])

    def fetch_add(
        self, memory: Piece, addend: int, *, offset: int = 0, deadline: float | None
    ) -> int:
        """As :meth:`Channel.fetch_add`."""
        pieces = self._transfer(lib.sluice_agent_mr_fetch_add, memory, offset, deadline, addend)
        return int(ffi.cast("uint64_t *", pieces[0].address)[0])

    def renew(self, lease: float | None = 0, *, deadline: float | None) -> None:
        """Asks the owner for a new lease, in seconds from now; 0: the longest that it gives."""
        limit, wanted = Limit(deadline), nanoseconds(lease)
        self._blocking(lambda pointer: lib.sluice_agent_mr_renew(pointer, wanted, limit.left()))

    def _give(self, function: Any, deadline: float | None) -> None:
        """Ends the region by a call that consumes it, once no other call uses it."""
        limit = Limit(deadline)
        with self._turn:
            self._get()
            self._turn.wait_for(lambda: self._busy == 0, limit.seconds())
            if self._busy > 0:
                check(-16)
            pointer, self._pointer = self._get(), None
        self._consume(function, pointer, limit)

    @staticmethod
    def _consume(function: Any, pointer: Any, limit: Limit) -> None:
        from ._object import call

        call(lambda: function(pointer, limit.left()), calls=set())

    def send_back(self, *, deadline: float | None) -> None:
        """Sends the memory, with its bytes, back to the owner, whose program takes it by
        :meth:`Agent.receive_local`. All rights of this side end."""
        self._give(lib.sluice_agent_mr_send_back, deadline)

    def release(self, *, deadline: float | None) -> None:
        """Gives the memory up, and waits until the owner has confirmed that. It is given up even if
        this raises."""
        self._give(lib.sluice_agent_mr_release, deadline)

    def _end(self, pointer: Any) -> None:
        lib.sluice_agent_mr_release(pointer, 0)

    def __exit__(self, *exception: object) -> None:
        if self._pointer is None:
            return
        try:
            self.release(deadline=_RELEASE)
        except Exception:
            if exception[0] is None and self._peer.info.state == AgentState.CONNECTED:
                raise
