# SPDX-License-Identifier: MIT
"""Multichannels: connections to many peers."""
from __future__ import annotations

from typing import Any, Iterable, Sequence

from ._channel import (
    ChannelInfo,
    endpoint_bytes,
    endpoint_struct,
    first_error,
    query,
    wait_in_slices,
    word,
)
from ._completion import Completion, FirstError
from ._connection import Connection
from ._context import ProtectionDomain
from ._engine import first_number
from ._errors import check, error_of, last_error, made
from ._library import Limit, ffi, lib
from ._list import PreparedList
from ._memory import Memory, RemoteRegion, pieces_of
from ._numbers import PeerState
from ._object import Object
from ._options import Options, attr_of
from ._request import READ, RECEIVE, SEND, WRITE, Request, Work, requests_of
from ._scope import Scope
from ._statistics import Counters, Histogram, counters_of, histogram_of


class PreparedMultiChannel(Object):
    """Connections to many peers, with an endpoint for each, before the handshake."""

    _what = "the prepared multichannel"

    def __init__(self, domain: ProtectionDomain, peers: int, options: Options | None = None):
        self._pointer = made(
            lib.sluice_multichannel_prepare(domain._get(), peers, attr_of(options))
        )
        self.peers = peers

    def _end(self, pointer: Any) -> None:
        lib.sluice_prepared_multichannel_free(pointer)

    @property
    def endpoints(self) -> list[bytes]:
        """The endpoints, one for each peer, in the order of peers."""
        array = ffi.new("struct sluice_endpoint[]", max(1, self.peers))
        check(lib.sluice_prepared_multichannel_endpoints(self._get(), array, self.peers))
        return [endpoint_bytes(array[i]) for i in range(self.peers)]

    def handshake(self, endpoints: Sequence[bytes | None]) -> MultiChannel:
        """Connects to the endpoints of all peers, without waiting for them; ``None`` is a peer that
        does not exist yet. The prepared multichannel is used up, even if this fails."""
        array = ffi.new("struct sluice_endpoint[]", max(1, len(endpoints)))
        for i, endpoint in enumerate(endpoints):
            if endpoint is not None:
                array[i] = endpoint_struct(endpoint)[0]
        pointer = self._get()
        self._pointer = None
        return MultiChannel._of(
            made(lib.sluice_prepared_multichannel_handshake(pointer, array, len(endpoints)))
        )


class MultiChannel(Connection):
    """Reliable connections to many peers, each identified by its index.

    A broken peer does not affect the others. As with :class:`Channel`, a ``deadline`` that passes
    ends the connection to that peer, and a ``timeout`` harms nothing.
    """

    _what = "the multichannel"
    _prefix = "sluice_multichannel"
    _owner: Any = None
    _peers = 0

    def __init__(self) -> None:
        raise TypeError("multichannels come of PreparedMultiChannel.handshake() and of nodes")

    @classmethod
    def _of(cls, pointer: Any, owner: Any = None) -> MultiChannel:
        self = cls.__new__(cls)
        self._owner = owner
        self._pool_number = first_number()
        self._set_up(pointer, (128, 128))
        self._room[0] = self._room[1] = 0  # that of all peers is found when it is needed
        return self

    def _places(self, kind: int) -> int:
        # The sum over all peers, which have the same depths.
        peers: int = lib.sluice_multichannel_peers(self._get())
        if peers != self._peers:
            for peer in range(peers):
                info = ffi.new("struct sluice_channel_info *")
                info.size = ffi.sizeof("struct sluice_channel_info")
                if lib.sluice_multichannel_peer_query(self._get(), peer, info) == 0:
                    self._depths = (info.send_depth, info.receive_depth)
                    self._peers = peers
                    break
        return self._depths[kind] * peers

    def _get(self) -> Any:
        if self._owner is not None:
            self._owner._get()
        return super()._get()

    def close(self) -> None:
        """Ends all connections at once, as :meth:`Channel.close`. The multichannel of a node ends
        with it."""
        if self._owner is None:
            super().close()

    def _end(self, pointer: Any) -> None:
        if self._owner is None:
            lib.sluice_multichannel_close(pointer)

    def __len__(self) -> int:
        """Number of indices: one more than the highest that a peer has or had."""
        with self._guard:
            count: int = lib.sluice_multichannel_peers(self._get())
            return count

    # Peers.

    def add_peer(self) -> tuple[int, bytes]:
        """Adds a peer. Returns its index, and the endpoint for it."""
        struct = ffi.new("struct sluice_endpoint *")
        with self._guard:
            index = check(lib.sluice_multichannel_peer_add(self._get(), struct))
        return index, endpoint_bytes(struct)

    def remove_peer(self, peer: int) -> None:
        """Ends the connection to a peer, and frees its index."""
        with self._guard:
            check(lib.sluice_multichannel_peer_remove(self._get(), peer))
            self._look()

    def reset_peer(self, peer: int) -> bytes:
        """Ends the connection to a peer and prepares a new one. Returns the endpoint for it."""
        struct = ffi.new("struct sluice_endpoint *")
        with self._guard:
            check(lib.sluice_multichannel_peer_reset(self._get(), peer, struct))
            self._look()
        return endpoint_bytes(struct)

    def handshake_peer(self, peer: int, endpoint: bytes) -> None:
        """Connects a peer that was added or reset, or was missing at the handshake."""
        struct = endpoint_struct(endpoint)
        with self._guard:
            check(lib.sluice_multichannel_peer_handshake(self._get(), peer, struct))

    def state(self, peer: int) -> PeerState:
        """:data:`PREPARED`, :data:`READY`, :data:`FAILED` or :data:`REMOVED`."""
        with self._guard:
            return PeerState(check(lib.sluice_multichannel_peer_state(self._get(), peer)))

    def _first_error(self, peer: int) -> FirstError | None:
        return self.error(peer)

    def error(self, peer: int) -> FirstError | None:
        """Returns the first error of a peer, which caused the later ones."""
        with self._guard:
            return first_error(lib.sluice_multichannel_peer_error, self._get(), peer)

    def info(self, peer: int) -> ChannelInfo:
        """What the connection to a peer uses."""
        with self._guard:
            return ChannelInfo(query(lib.sluice_multichannel_peer_query, self._get(), peer))

    def wait_connected(self, timeout: float | None, peer: int | None = None) -> None:
        """Waits until a peer, or all of them, have done their handshakes as well."""
        if peer is None:
            wait_in_slices(self, lib.sluice_multichannel_wait_connected, Limit(timeout))
        else:
            wait_in_slices(
                self, lib.sluice_multichannel_peer_wait_connected, Limit(timeout), peer
            )

    def counters(self, peer: int | None = None) -> Counters:
        """What has been done so far with a peer, or with all of them."""
        with self._guard:
            if peer is None:
                return counters_of(lib.sluice_multichannel_counters, self._get())
            return counters_of(lib.sluice_multichannel_peer_counters, self._get(), peer)

    def histogram(self, opcode: int, peer: int | None = None) -> Histogram:
        """How long requests of this kind took, with ``Options(histograms=True)``."""
        with self._guard:
            if peer is None:
                return histogram_of(lib.sluice_multichannel_histogram, self._get(), opcode)
            return histogram_of(
                lib.sluice_multichannel_peer_histogram, self._get(), peer, opcode
            )

    def reset_histograms(self) -> None:
        """Lets all histograms begin anew."""
        with self._guard:
            check(lib.sluice_multichannel_histogram_reset(self._get()))

    # To the end, with one peer.

    def send(
        self, peer: int, memory: Memory, *, deadline: float | None, immediate: int | None = None
    ) -> None:
        """Sends a message to a peer, and returns when the peer has received it."""
        self._do(Work(SEND, memory, peer, None, immediate), deadline)

    def receive(self, peer: int, memory: Memory, *, deadline: float | None) -> Completion:
        """Receives a message from a peer; ``bytes`` of the completion is its length."""
        return self._do(Work(RECEIVE, memory, peer), deadline)

    def write(
        self,
        peer: int,
        memory: Memory,
        remote: RemoteRegion,
        *,
        deadline: float | None,
        immediate: int | None = None,
    ) -> None:
        """Writes into memory of a peer."""
        self._do(Work(WRITE, memory, peer, remote, immediate), deadline)

    def read(
        self, peer: int, memory: Memory, remote: RemoteRegion, *, deadline: float | None
    ) -> None:
        """Reads memory of a peer."""
        self._do(Work(READ, memory, peer, remote), deadline)

    def compare_swap(
        self,
        peer: int,
        memory: Memory,
        remote: RemoteRegion,
        expected: int,
        desired: int,
        *,
        deadline: float | None,
    ) -> int:
        """As :meth:`Channel.compare_swap`."""
        return word(self, Work.compare_swap(memory, remote, expected, desired, peer), deadline)

    def fetch_add(
        self, peer: int, memory: Memory, remote: RemoteRegion, addend: int, *, deadline: float | None
    ) -> int:
        """As :meth:`Channel.fetch_add`."""
        return word(self, Work.fetch_add(memory, remote, addend, peer), deadline)

    # Receives that all peers share, with ``receive_pool`` of the options.

    def post_receive_any(self, memories: Iterable[Memory]) -> list[Request]:
        """Posts receives that messages of any peer take, as many of the first ones as the pool has
        room for. The completion of each has the peer.

        They have no deadline: they wait while peers come, fail and are reset, and end cancelled with
        the multichannel. :meth:`flush` and :meth:`shutdown` do not wait for them.
        """
        requests = [Request(self, Work(RECEIVE, memory)) for memory in memories]
        with self._guard:
            pointer, first = self._get(), self._pool_number
            self._pool_number += len(requests)
            array, sges = requests_of([each._work for each in requests], first)  # type: ignore
            handles = ffi.new("struct sluice_handle[]", max(1, len(requests)))
            memory, size = memoryview(ffi.buffer(handles)), ffi.sizeof("struct sluice_handle")
            # Recorded before they are posted, so that Ctrl-C loses none.
            for i, request in enumerate(requests):
                request.pooled, request._handle = True, memory[i * size : (i + 1) * size]
                self._count[1] += 1
                self._posted[first + i] = request
            result = lib.sluice_multichannel_post_receive_any(
                pointer, array, len(requests), handles
            )
            text = last_error() if result < 0 else ""
            for i in range(max(result, 0), len(requests)):
                self._count[1] -= 1
                del self._posted[first + i]
            del sges
        if self._loop is not None:
            self._loop.soon()
        if result < 0:
            raise error_of(result, text)
        return requests[:result]

    @property
    def receive_any_room(self) -> int:
        """Number of receives that the pool has room for, or 0 while more than ``receive_pool_low``
        are posted."""
        with self._guard:
            return check(lib.sluice_multichannel_receive_any_room(self._get()))

    # To the end, with many.

    def scatter(
        self, blocks: dict[int, Memory], *, deadline: float | None, immediate: int | None = None
    ) -> list[Completion]:
        """Sends a message to each peer; ``blocks`` has the memory for each."""
        works = [Work(SEND, memory, peer, None, immediate) for peer, memory in blocks.items()]
        return self.submit(works, deadline=deadline)

    def gather(self, places: dict[int, Memory], *, deadline: float | None) -> list[Completion]:
        """Receives a message from each peer; ``places`` has the memory for each."""
        works = [Work(RECEIVE, memory, peer) for peer, memory in places.items()]
        return self.submit(works, deadline=deadline)

    def scatter_gather(
        self, sends: dict[int, Memory], receives: dict[int, Memory], *, deadline: float | None
    ) -> list[Completion]:
        """Posts the receives, sends, and waits for both. The completions of sends come first.

        Most programs should use this call: two ranks that both call :meth:`scatter` wait for each
        other, because a send completes when the peer has received it.
        """
        works = [Work(SEND, memory, peer) for peer, memory in sends.items()]
        works += [Work(RECEIVE, memory, peer) for peer, memory in receives.items()]
        return self.submit(works, deadline=deadline)

    def scatter_write(
        self, blocks: dict[int, tuple[Memory, RemoteRegion]], *, deadline: float | None
    ) -> list[Completion]:
        """Writes into memory of each peer; ``blocks`` has the source and target of each."""
        works = [Work(WRITE, memory, peer, to) for peer, (memory, to) in blocks.items()]
        return self.submit(works, deadline=deadline)

    def gather_read(
        self, places: dict[int, tuple[Memory, RemoteRegion]], *, deadline: float | None
    ) -> list[Completion]:
        """Reads memory of each peer; ``places`` has the target and source of each."""
        works = [Work(READ, memory, peer, of) for peer, (memory, of) in places.items()]
        return self.submit(works, deadline=deadline)

    def multicast_send(
        self,
        memory: Memory,
        peers: Iterable[int],
        *,
        deadline: float | None,
        immediate: int | None = None,
    ) -> list[Completion]:
        """Sends the same message to each of these peers."""
        pieces = pieces_of(memory)
        works = [Work(SEND, pieces, peer, None, immediate) for peer in peers]
        return self.submit(works, deadline=deadline)

    def multicast_write(
        self,
        memory: Memory,
        remotes: dict[int, RemoteRegion],
        *,
        deadline: float | None,
        immediate: int | None = None,
    ) -> list[Completion]:
        """Writes the same bytes into memory of each of these peers."""
        pieces = pieces_of(memory)
        works = [Work(WRITE, pieces, peer, to, immediate) for peer, to in remotes.items()]
        return self.submit(works, deadline=deadline)

    # Without waiting.

    def post_send(
        self, peer: int, memory: Memory, *, deadline: float | None, immediate: int | None = None
    ) -> Request:
        """As :meth:`send`, but returns at once. :exc:`WouldBlockError`: there is no room."""
        return self._post_one(Work(SEND, memory, peer, None, immediate), deadline)

    def post_receive(self, peer: int, memory: Memory, *, deadline: float | None) -> Request:
        """As :meth:`receive`, but returns at once."""
        return self._post_one(Work(RECEIVE, memory, peer), deadline)

    def post_write(
        self,
        peer: int,
        memory: Memory,
        remote: RemoteRegion,
        *,
        deadline: float | None,
        immediate: int | None = None,
    ) -> Request:
        """As :meth:`write`, but returns at once."""
        return self._post_one(Work(WRITE, memory, peer, remote, immediate), deadline)

    def post_read(
        self, peer: int, memory: Memory, remote: RemoteRegion, *, deadline: float | None
    ) -> Request:
        """As :meth:`read`, but returns at once."""
        return self._post_one(Work(READ, memory, peer, remote), deadline)

    def post_compare_swap(
        self,
        peer: int,
        memory: Memory,
        remote: RemoteRegion,
        expected: int,
        desired: int,
        *,
        deadline: float | None,
    ) -> Request:
        """As :meth:`compare_swap`, but returns at once."""
        work = Work.compare_swap(memory, remote, expected, desired, peer)
        return self._post_one(work, deadline)

    def post_fetch_add(
        self, peer: int, memory: Memory, remote: RemoteRegion, addend: int, *, deadline: float | None
    ) -> Request:
        """As :meth:`fetch_add`, but returns at once."""
        return self._post_one(Work.fetch_add(memory, remote, addend, peer), deadline)

    def scope(self, *, deadline: float | None, strict: bool = False) -> Scope:
        """A ``with`` block at whose end all work that was posted in it is complete."""
        return Scope(self, deadline, strict)

    def prepare(self, works: Iterable[Work]) -> PreparedList:
        """A list of work that is posted again and again, laid out once."""
        return PreparedList(self, lib.sluice_multichannel_list_prepare, works)

    def arrivals(self, tag: int) -> int:
        """How many immediates of a tag have come from all peers, with ``arrival_tags`` of the
        options."""
        count = ffi.new("uint64_t *")
        with self._guard:
            check(lib.sluice_multichannel_arrivals(self._get(), tag, count))
        return int(count[0])

    def wait_arrivals(self, tag: int, count: int, timeout: float | None) -> None:
        """Waits until at least so many have come."""
        wait_in_slices(self, lib.sluice_multichannel_wait_arrivals, Limit(timeout), tag, count)
