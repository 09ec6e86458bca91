# SPDX-License-Identifier: MIT
"""Agents: memory of peers on request, and messages for which no receive is posted."""
from __future__ import annotations

import asyncio
import errno
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

from ._agent_peer import AgentMessage, AgentPeer, AgentRegion
from ._context import ProtectionDomain
from ._errors import check, last_error, made, wait_error_of
from ._library import FOREVER, Limit, c_text, ffi, lib, nanoseconds
from ._memory import MemoryRegion, Piece
from ._object import remember
from ._pump import TURN_MOST, Pump
from ._shared import Shared, number_of, struct_of


@dataclass(frozen=True)
class AgentInfo:
    """Counts of an agent; as ``struct sluice_agent_info``."""

    peers: int
    regions: int
    held: int
    bytes: int
    allocated: int
    denied: int
    expired: int
    reclaimed: int
    late: int
    refused_late: int
    malformed: int
    oversized: int
    unasked: int
    reconnects: int
    lost: int
    messages_sent: int
    messages_arrived: int
    left_bytes: int
    turned_away: int


@dataclass(frozen=True)
class AgentReturned:
    """Memory of this side that a peer has sent back. Later versions may have more fields.

    ``id`` is the result of :meth:`AgentPeer.lend`, and ``memory`` the memory that was lent. For
    memory that was allocated here for the peer, ``region`` is a new region with its bytes.
    """

    id: int
    memory: Piece
    region: MemoryRegion | None
    peer: AgentPeer


class _Result:
    """What a call of the library has returned, until the program has an object of it.

    Ctrl-C may come before any instruction of Python. Each step to the object can therefore be
    repeated, and only the last one, which is one instruction, lets the object own the result. An
    object that owns its result is kept here as well, so that nothing is lost in between.
    """

    def __init__(self, function: Any):
        self.function = function
        local = function is lib.sluice_agent_receive_local_mr
        self.struct: Any = struct_of("sluice_agent_local") if local else None
        self.returned: list[Any] = []
        # The number of the peer that it is of, once it was kept.
        self.sender = 0
        self.object: Any = None

    @property
    def found(self) -> Any:
        """The object or struct of the library."""
        return self.returned[0] if self.struct is None else self.struct

    @property
    def there(self) -> bool:
        """Whether a call of the library has made an object, or has written the struct."""
        if not self.returned:
            return False
        value = self.returned[0]
        return bool(value != ffi.NULL if self.struct is None else value == 0)


class Agent(Shared):
    """Serves peers, and connects to other agents: see sluice_agent_open(3).

    :param quota: bytes that a peer may have allocated here; 0: none.
    :param access: rights that peers may get to such memory; 0: all but those that the device lacks.
    :param max_lease: the longest lease in seconds; ``None``: 60.
    :param secret_file: the secret of connections in both directions; ``None``: that of
        ``SLUICE_SECRET_FILE``; empty: none.
    :param thread: whether a thread of the library serves peers. Without one, they are served by
        calls that wait, and by :meth:`arm` and :meth:`progress`.

    Further keywords are the fields of ``struct sluice_agent_attr``. Give each agent a domain of its
    own. All threads may use it. It keeps its peers until they are closed, and ends them with it.
    """

    _what = "the agent"

    def __init__(
        self,
        domain: ProtectionDomain,
        *,
        quota: int = 0,
        access: int = 0,
        eager: int = 0,
        window: int = 0,
        max_peers: int = 0,
        max_regions: int = 0,
        max_message: int = 0,
        max_waiting: int = 0,
        max_waiting_bytes: int = 0,
        max_left_bytes: int = 0,
        max_lease: float | None = None,
        keepalive: float = 0,
        receive_pool: int = 0,
        receive_share: int = 0,
        secret_file: str | None = None,
        thread: bool = True,
    ):
        attr = struct_of("sluice_agent_attr")
        attr.quota, attr.access, attr.eager, attr.window = quota, access, eager, window
        attr.max_peers, attr.max_regions, attr.max_message = max_peers, max_regions, max_message
        attr.max_waiting, attr.max_waiting_bytes = max_waiting, max_waiting_bytes
        attr.max_left_bytes = max_left_bytes
        attr.receive_pool, attr.receive_share = receive_pool, receive_share
        attr.max_lease = 0 if max_lease is None else nanoseconds(max_lease)
        attr.keepalive = nanoseconds(keepalive)
        attr.flags = 0 if thread else lib.SLUICE_AGENT_NO_THREAD
        secret = c_text(secret_file)
        attr.secret_file = secret
        self._domain = domain
        self._peers: dict[int, AgentPeer] = {}
        # Senders of messages and regions that next_peer() has not returned yet.
        self._strangers: WeakValueDictionary[int, AgentPeer] = WeakValueDictionary()
        # Results that Ctrl-C has kept from the program.
        self._kept: list[_Result] = []
        self._sleepers: set[asyncio.Future[None]] = set()
        self._loop: Pump | None = None
        # Messages that tasks have received since they last slept.
        self._in_a_row = 0
        self._set_up(made(lib.sluice_agent_open(domain._get(), attr)))
        remember(self)

    def _end(self, pointer: Any) -> None:
        lib.sluice_agent_close(pointer)

    def _interrupt(self) -> None:
        super()._interrupt()
        lib.sluice_agent_wake(self._late)

    def close(self) -> None:
        """Ends the agent and all its peers. All memory that peers had here is taken back."""
        if getattr(self, "_pointer", None) is None:
            return
        if self._loop is not None:
            self._loop.stop()
        super().close()
        self._wake_sleepers()
        for each in self._kept:
            self._object_of(each)
        self._kept.clear()
        for peer in list(self._peers.values()):
            peer.close()

    # Peers.

    def listen(self, address: str, *, backlog: int = 0) -> None:
        """Listens for peers at an address as that of :class:`Listener`."""
        attr = struct_of("sluice_listen_attr")
        attr.backlog = backlog
        with self._hold() as pointer:
            check(lib.sluice_agent_listen(pointer, c_text(address), attr))

    @property
    def address(self) -> str:
        """The address on which it listens."""
        text = ffi.new("char[]", 64)
        with self._hold() as pointer:
            check(lib.sluice_agent_address(pointer, text, 64))
        return str(ffi.string(text).decode())

    @property
    def port(self) -> int:
        """The port on which it listens."""
        with self._hold() as pointer:
            return check(lib.sluice_agent_address(pointer, ffi.NULL, 0))

    def connect(
        self, address: str, *, deadline: float | None, wait: bool = False
    ) -> AgentPeer:
        """Connects to an agent that listens at ``"host:port"``. With ``wait`` it need not listen
        yet."""
        attr = struct_of("sluice_connect_attr")
        attr.flags = lib.SLUICE_CONNECT_WAIT if wait else 0
        where, limit = c_text(address), Limit(deadline)
        found = None
        try:
            found = self._blocking(
                lambda pointer: lib.sluice_agent_connect(pointer, where, attr, limit.left()),
                dispose=lib.sluice_agent_peer_close,
            )
            return self._own_peer(found)
        except BaseException:
            if found is not None:  # Ctrl-C has ended the call after it had connected
                self._own_peer(found).close()
            raise

    def _own_peer(self, pointer: Any) -> AgentPeer:
        """Returns the peer of a pointer that the program has to close."""
        number = number_of(pointer)
        peer = self._peers.get(number) or self._strangers.get(number)
        if peer is None:
            peer = AgentPeer(self, pointer, True)
        # From here on it is closed with the agent, and not with the last reference.
        self._peers[number] = peer
        peer._borrowed = None
        self._strangers.pop(number, None)
        return peer

    def _peer_of(self, pointer: Any, held: Any) -> AgentPeer:
        """Returns the peer of an object, which is valid at least while ``held`` exists."""
        number = number_of(pointer)
        peer = self._peers.get(number) or self._strangers.get(number)
        if peer is None:
            peer = self._strangers[number] = AgentPeer(self, pointer, held)
        elif isinstance(peer._borrowed, (AgentMessage, AgentRegion)) and not peer._borrowed._owns:
            # Ctrl-C has ended the call that made that object.
            peer._borrowed = held
        return peer

    def next_peer(self, timeout: float | None) -> AgentPeer:
        """Returns the next peer that has connected here. Peers are served whether they are taken or
        not. Raises :exc:`WaitTimeout` if there is none."""
        return self._wait(lib.sluice_agent_next_peer, timeout)  # type: ignore[no-any-return]

    # What peers send.

    def receive(self, timeout: float | None, peer: AgentPeer | None = None) -> AgentMessage:
        """Returns the next message of a peer, or of any. The timeout ends the wait, and not the
        transfer of a long message."""
        return self._wait(lib.sluice_agent_receive, timeout, peer)  # type: ignore[no-any-return]

    def receive_remote(self, timeout: float | None, peer: AgentPeer | None = None) -> AgentRegion:
        """Returns the next region of its own memory that a peer has lent to this side."""
        function = lib.sluice_agent_receive_remote_mr
        return self._wait(function, timeout, peer)  # type: ignore[no-any-return]

    def receive_local(self, timeout: float | None, peer: AgentPeer | None = None) -> AgentReturned:
        """Returns the next memory of this side that a peer has sent back."""
        function = lib.sluice_agent_receive_local_mr
        return self._wait(function, timeout, peer)  # type: ignore[no-any-return]

    def _wait(self, function: Any, timeout: float | None, peer: AgentPeer | None = None) -> Any:
        """Waits in slices, between which Ctrl-C is served."""
        limit = Limit(timeout)
        results: list[_Result] = []
        try:
            self._take_kept(function, peer, results)
            if not results:
                results.append(_Result(function))
                self._await(results[0], limit, peer)
            return self._object_of(results[0])
        except BaseException:
            for each in results:
                if each.there:
                    self._keep(each)
            raise

    def _take_kept(self, function: Any, peer: AgentPeer | None, results: list[_Result]) -> None:
        with self._turn:
            for i, each in enumerate(self._kept):
                if each.function is function and (peer is None or peer._number == each.sender):
                    # No instruction of Python is between both lists.
                    results.extend(map(self._kept.pop, (i,)))
                    return

    def _keep(self, result: _Result) -> None:
        """Keeps a result for a later call, in the order in which results were kept first."""
        again = result.sender != 0
        if not again:
            result.sender = _sender_of(result.function, result.found)
        with self._turn:
            self._kept.insert(0 if again else len(self._kept), result)

    def _await(self, result: _Result, limit: Limit, peer: AgentPeer | None) -> None:
        if result.function is lib.sluice_agent_next_peer:
            self._await_in_slices(result, limit, ())
        elif peer is None:
            self._await_in_slices(result, limit, (ffi.NULL,))
        else:
            with peer._hold() as pointer:
                self._await_in_slices(result, limit, (pointer,))

    def _await_in_slices(self, result: _Result, limit: Limit, peers: tuple[Any, ...]) -> None:
        after = () if result.struct is None else (result.struct,)
        while True:
            result.returned.clear()
            with self._hold() as pointer:
                arguments = (pointer, *peers, limit.slice(), *after)
                # No instruction of Python is between the call and its entry in the list.
                result.returned.extend(map(result.function, *([each] for each in arguments)))
                number, text = ffi.errno, last_error()
            if result.there:
                return
            if result.struct is not None:
                number = -result.returned[0]
            if number != errno.ETIMEDOUT or limit.left() == 0:
                self._get()
                raise wait_error_of(number, text)

    def _object_of(self, result: _Result) -> Any:
        """Makes the object of a result, or goes on where Ctrl-C has interrupted this."""
        if result.function is lib.sluice_agent_next_peer:
            return self._own_peer(result.found)
        if result.function is lib.sluice_agent_receive_local_mr:
            return self._returned(result)
        if result.object is None:
            kind = AgentMessage if result.function is lib.sluice_agent_receive else AgentRegion
            result.object = kind(self, result.found)
        result.object._own(result.found)
        return result.object

    def _returned(self, result: _Result) -> AgentReturned:
        local = result.found
        if result.object is None:
            peer = self._peer_of(local.peer, None)
            if local.mr != ffi.NULL:
                region = MemoryRegion._of(local.mr, None, True, owns=False)
                piece = Piece(region, region._address, local.length, region._key)
                result.object = AgentReturned(local.id, piece, region, peer)
            else:
                lent = peer._lent[local.id]
                result.object = AgentReturned(local.id, lent.memory, None, peer)
        returned: AgentReturned = result.object
        if returned.region is not None:
            returned.region._pointer = local.mr
        returned.peer._lent.pop(local.id, None)
        return returned

    # asyncio, and other event loops.

    async def receive_async(
        self, timeout: float | None, peer: AgentPeer | None = None
    ) -> AgentMessage:
        """As :meth:`receive`, for asyncio: other tasks run while it waits."""
        limit = Limit(timeout)
        self._in_a_row += 1
        if self._in_a_row >= TURN_MOST:
            # A task that receives in a loop would keep others from running.
            self._in_a_row = 0
            await asyncio.sleep(0)
        while True:
            try:
                return self.receive(0, peer)
            except TimeoutError:
                if limit.left() == 0:
                    raise
            self._in_a_row = 0
            await self._something_new(limit)

    async def _something_new(self, limit: Limit) -> None:
        """Waits until there may be something new for this side."""
        loop = asyncio.get_running_loop()
        if self._loop is None or self._loop.loop is not loop:
            if self._loop is not None:
                self._loop.stop()
            self._loop = Pump(self, loop)
        future: asyncio.Future[None] = loop.create_future()
        self._sleepers.add(future)
        left = limit.left()
        try:
            with self._loop:
                await asyncio.wait_for(future, None if left == FOREVER else left / 1e9)
        except asyncio.TimeoutError:
            pass
        finally:
            self._sleepers.discard(future)

    def _wake_sleepers(self) -> None:
        for future in list(self._sleepers):
            try:
                future.get_loop().call_soon_threadsafe(_set, future)
            except RuntimeError:  # the loop was closed
                pass

    def _used(self) -> None:
        if self._loop is not None:
            self._loop.soon()

    def _look(self, most: int = 0) -> int:
        """Takes nothing: tasks take what is for them when they are woken."""
        return 0

    def fileno(self) -> int:
        """The descriptor for event loops: see :meth:`arm`. Never read or close it."""
        with self._turn:
            return check(lib.sluice_agent_fd(self._get()))

    def arm(self) -> float | None:
        """Serves peers; call it before each sleep on :meth:`fileno`. Returns the seconds after which
        to call it even without an event, or ``None``; 0: something is new, take it first."""
        due = ffi.new("int64_t *")
        with self._turn:
            result = check(lib.sluice_agent_arm(self._get(), due))
        if result == 1:
            self._wake_sleepers()
            return 0.0
        return None if due[0] == FOREVER else due[0] / 1e9

    def progress(self) -> bool:
        """Serves peers without waiting. Returns whether there is something new to take."""
        with self._hold() as pointer:
            return check(lib.sluice_agent_progress(pointer)) == 1

    def wake(self) -> None:
        """Ends waits of other threads, or else the next wait, with :exc:`InterruptedWait`."""
        with self._turn:
            check(lib.sluice_agent_wake(self._get()))

    @property
    def info(self) -> AgentInfo:
        """Counts of the peers and their memory."""
        info = struct_of("sluice_agent_info")
        with self._hold() as pointer:
            check(lib.sluice_agent_query(pointer, info))
        return AgentInfo(*(getattr(info, name) for name in AgentInfo.__dataclass_fields__))


def _sender_of(function: Any, found: Any) -> int:
    """Returns the number of the peer that a result is of."""
    if function is lib.sluice_agent_receive:
        found = lib.sluice_agent_message_peer(found)
    elif function is lib.sluice_agent_receive_remote_mr:
        found = lib.sluice_agent_mr_peer(found)
    elif function is lib.sluice_agent_receive_local_mr:
        found = found.peer
    return number_of(found)


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
