# SPDX-License-Identifier: MIT
"""The ranks of a job: how they find each other, and nodes that connect them all."""
from __future__ import annotations

from typing import Any, Callable, Sequence

from ._multichannel import MultiChannel
from ._context import BorrowedContext, BorrowedDomain, ProtectionDomain
from ._errors import Error, check, made
from ._library import Limit, c_text, ffi, lib
from ._memory import MemoryRegion, RemoteRegion
from ._object import Guard, Object, call, remember
from ._options import Options, attr_of
from ._provider import Provider


class _Ranks(Object):
    """Base of objects whose calls block in the library until other ranks call, with a destructive
    deadline.

    If this is the main thread, another thread makes such a call, so that Ctrl-C is served; it ends
    the call as if its deadline had passed. If the object is closed meanwhile, the other thread ends
    it after the call.
    """

    def _set_up(self, pointer: Any) -> None:
        self._pointer = pointer
        self._guard = Guard()
        self._late: Any = None
        remember(self)

    def _blocking(self, limit: Limit, function: Any, **how: Any) -> Any:
        def work() -> Any:
            self._guard.enter(limit, self._what)
            try:
                return function(self._get())
            finally:
                late, self._late = self._late, None
                if late is not None:
                    self._end(late)
                self._guard.release()

        return call(work, **how)

    def close(self) -> None:
        """Ends it."""
        if getattr(self, "_pointer", None) is None:
            return
        pointer, self._pointer = self._pointer, None
        if self._guard.try_for(0.1):
            try:
                self._end(pointer)
            finally:
                self._guard.release()
        else:
            self._late = pointer
            if self._guard.try_for(0):  # it has just ended, and may have missed that
                late, self._late = self._late, None
                try:
                    if late is not None:
                        self._end(late)
                finally:
                    self._guard.release()

    def _close_at_exit(self) -> None:
        self.close()


class Exchange(_Ranks):
    """Exchanges small values between the ranks of a job, before these are connected.

    Without arguments, everything comes from the environment, as launchers set it; otherwise give
    rank, ranks and ``root``, ``"host:port"`` of rank 0. All ranks make the same calls.
    """

    _what = "the exchange"

    def __init__(
        self,
        *,
        deadline: float | None,
        rank: int | None = None,
        ranks: int = 0,
        root: str | None = None,
        host_file: str | None = None,
        secret_file: str | None = None,
        job: str | None = None,
        kind: int = 0,
    ):
        attr = ffi.new("struct sluice_exchange_attr *")
        attr.size = ffi.sizeof("struct sluice_exchange_attr")
        if rank is not None:
            attr.rank = rank if rank != 0 else lib.SLUICE_ZERO
        attr.ranks, attr.kind = ranks, kind
        texts = [c_text(each) for each in (root, host_file, secret_file, job)]
        attr.root, attr.host_file, attr.secret_file, attr.job = texts
        limit = Limit(deadline)
        pointer = call(
            lambda: lib.sluice_exchange_open(attr, limit.left()) if texts else ffi.NULL,
            dispose=lib.sluice_exchange_close,
        )
        self._set_up(pointer)

    @classmethod
    def wrap(cls, provider: Any, rank: int, ranks: int) -> Exchange:
        """Makes an exchange of an object of the program, such as one that uses torch.distributed or
        mpi4py. It has the methods ``allgather(own, deadline)``, which returns the bytes of each rank,
        and ``barrier(deadline)``; and may have ``alltoall(to, deadline)``, of a list of bytes for each
        rank. ``deadline`` is in seconds, or ``None``.

        They may be called in any thread. If one raises, the call of the exchange fails, and its error
        has that exception as its cause.
        """
        self = cls.__new__(cls)
        self._provider = Provider(provider, ranks)
        struct = self._provider.struct
        self._set_up(made(lib.sluice_exchange_wrap(struct, ffi.NULL, rank, ranks)))
        return self

    _provider: Provider | None = None

    def _blocking(self, limit: Limit, function: Any, **how: Any) -> Any:
        try:
            return super()._blocking(limit, function, **how)
        except Error as error:
            if self._provider is None or self._provider.raised is None:
                raise
            cause, self._provider.raised = self._provider.raised, None
            raise error from cause

    def _end(self, pointer: Any) -> None:
        lib.sluice_exchange_close(pointer)

    def _info(self) -> Any:
        info = ffi.new("struct sluice_exchange_info *")
        info.size = ffi.sizeof("struct sluice_exchange_info")
        check(lib.sluice_exchange_query(self._get(), info))
        return info

    @property
    def rank(self) -> int:
        """The number of this rank."""
        return int(self._info().rank)

    @property
    def ranks(self) -> int:
        """The number of ranks."""
        return int(self._info().ranks)

    def allgather(self, own: bytes, *, deadline: float | None) -> list[bytes]:
        """Gives ``own`` to all, and returns what each rank gave: as many bytes as this one."""
        length, limit = len(own), Limit(deadline)
        every = ffi.new("char[]", max(1, length * self.ranks))
        self._blocking(
            limit,
            lambda pointer: lib.sluice_exchange_allgather(
                pointer, own, every, length, limit.some()
            ),
        )
        return [bytes(ffi.buffer(every + i * length, length)) for i in range(self.ranks)]

    def alltoall(self, to: Sequence[bytes], *, deadline: float | None) -> list[bytes]:
        """Gives ``to[i]`` to rank i, and returns what each gave to this one; all are as long."""
        ranks, limit = self.ranks, Limit(deadline)
        if len(to) != ranks or len({len(each) for each in to}) != 1:
            raise ValueError(f"each of {ranks} ranks is given as many bytes")
        length = len(to[0])
        given = b"".join(to)
        taken = ffi.new("char[]", max(1, length * ranks))
        self._blocking(
            limit,
            lambda pointer: lib.sluice_exchange_alltoall(
                pointer, given, taken, length, limit.some()
            ),
        )
        return [bytes(ffi.buffer(taken + i * length, length)) for i in range(ranks)]

    def barrier(self, *, deadline: float | None) -> None:
        """Returns when all ranks have called it."""
        limit = Limit(deadline)
        self._blocking(limit, lambda pointer: lib.sluice_exchange_barrier(pointer, limit.some()))

    def locality(self, *, deadline: float | None) -> tuple[int, int]:
        """Returns the position of this rank among the ranks of its host, and how many these are. All
        ranks call it."""
        found, limit = ffi.new("uint32_t[]", 2), Limit(deadline)
        self._blocking(
            limit,
            lambda pointer: lib.sluice_exchange_locality(
                pointer, found, found + 1, limit.some()
            ),
        )
        return int(found[0]), int(found[1])

    @property
    def missing(self) -> list[int]:
        """The ranks that did not take part in the failed call, as far as they are known."""
        ranks = ffi.new("uint32_t[]", self.ranks)
        count = check(lib.sluice_exchange_missing(self._get(), ranks, len(ranks)))
        return list(ranks)[:count]


class _BorrowedExchange(Exchange):
    """That of a node, which ends it."""

    def __init__(self, pointer: Any, owner: Node):
        self._owner = owner
        self._set_up(pointer)

    def _get(self) -> Any:
        self._owner._get()
        return super()._get()

    def _end(self, pointer: Any) -> None:
        pass


def _fill_endpoint(struct: Any, endpoint: bytes) -> None:
    """Writes an endpoint of a node; no bytes are a rank that is absent."""
    if len(endpoint) not in (0, lib.SLUICE_NODE_ENDPOINT_BYTES):
        raise ValueError(
            f"an endpoint of a node has {lib.SLUICE_NODE_ENDPOINT_BYTES} bytes, not {len(endpoint)}"
        )
    ffi.memmove(struct.bytes, endpoint, len(endpoint))


class PreparedNode(Object):
    """A node in steps, for ranks that pass their endpoints by themselves, and for a new process in
    place of a rank that is gone: see sluice_node_prepare(3). Keywords are those of :class:`Node`.
    """

    _what = "the prepared node"

    def __init__(
        self,
        domain: ProtectionDomain,
        rank: int,
        ranks: int,
        *,
        options: Options | None = None,
        barrier: int = 0,
        lazy: bool = False,
        peers: Sequence[int] = (),
        max_connections: int = 0,
        max_ranks: int = 0,
    ):
        kept: list[Any] = []
        attr = _node_attr(kept, options, barrier, lazy, peers, max_connections, max_ranks)
        self._pointer = made(lib.sluice_node_prepare(domain._get(), rank, ranks, attr))
        self._ranks = ranks
        del kept

    def _end(self, pointer: Any) -> None:
        lib.sluice_prepared_node_free(pointer)

    @property
    def endpoints(self) -> list[bytes]:
        """An endpoint for each rank: number i is for rank i."""
        array = ffi.new("struct sluice_node_endpoint[]", self._ranks)
        check(lib.sluice_prepared_node_endpoints(self._get(), array, self._ranks))
        return [bytes(each.bytes) for each in array]

    def handshake(self, endpoints: Sequence[bytes]) -> Node:
        """Connects to all ranks, without waiting: number i is the endpoint that rank i made for this
        one, or ``b""`` if rank i is absent. The prepared node is used up, even if this fails."""
        array = ffi.new("struct sluice_node_endpoint[]", len(endpoints))
        for i, each in enumerate(endpoints):
            _fill_endpoint(array[i], each)
        pointer = self._get()
        self._pointer = None
        return Node._of(made(lib.sluice_prepared_node_handshake(pointer, array, len(endpoints))))


def _node_attr(
    kept: list[Any],
    options: Options | None,
    barrier: int,
    lazy: bool,
    peers: Sequence[int],
    max_connections: int,
    max_ranks: int,
) -> Any:
    """Attributes of a node, which refer to what is appended to ``kept``."""
    attr = ffi.new("struct sluice_node_attr *")
    attr.size = ffi.sizeof("struct sluice_node_attr")
    attr.barrier = barrier
    attr.connect = lib.SLUICE_NODE_CONNECT_LAZY if lazy else lib.SLUICE_NODE_CONNECT_ALL
    ahead = ffi.new("uint32_t[]", list(peers))
    attr.peer_count = len(peers)
    attr.peers = ahead if peers else ffi.NULL
    attr.max_connections, attr.max_ranks = max_connections, max_ranks
    of_channels = attr_of(options)
    attr.channel = of_channels
    kept += [ahead, of_channels]
    return attr


class Node(_Ranks):
    """One rank of a job, connected to all ranks including itself: ``node.all`` is a
    :class:`MultiChannel` whose peer i is rank i.

    All ranks make a node. It opens what is not given: the exchange according to the environment,
    and a domain on a device near this rank. Leaving a ``with`` block ends the connections; call
    :meth:`shutdown` before that, so that all ranks end together.

    A node with ``lazy`` connects two ranks when one first uses the other, and connects ``peers``
    when it is made. It keeps ``max_connections`` at most, if that is not 0, and closes idle ones.
    One with ``max_ranks`` has that many numbers, whose :attr:`members` come later by :meth:`join`
    and :meth:`grow`, and leave.
    """

    _what = "the node"

    def __init__(
        self,
        *,
        deadline: float | None,
        domain: ProtectionDomain | None = None,
        exchange: Exchange | None = None,
        options: Options | None = None,
        barrier: int = 0,
        lazy: bool = False,
        peers: Sequence[int] = (),
        max_connections: int = 0,
        max_ranks: int = 0,
    ):
        kept = [options, domain, exchange]
        attr = _node_attr(kept, options, barrier, lazy, peers, max_connections, max_ranks)
        limit = Limit(deadline)
        pd = ffi.NULL if domain is None else domain._get()
        over = ffi.NULL if exchange is None else exchange._get()

        def work() -> Any:
            assert kept
            if exchange is None:
                return lib.sluice_node_open(pd, over, attr, limit.left())
            with exchange._guard:
                return lib.sluice_node_open(pd, over, attr, limit.left())

        self._begin(call(work, dispose=lib.sluice_node_close))

    @classmethod
    def join(
        cls,
        domain: ProtectionDomain,
        rank: int,
        max_ranks: int,
        ask: Callable[[bytes], Sequence[bytes]],
        *,
        options: Options | None = None,
        barrier: int = 0,
        max_connections: int = 0,
    ) -> Node:
        """Makes a new member, with a number that is free. ``ask`` is called with its endpoint, by
        which all members :meth:`grow`. It returns the :meth:`own_endpoint` of each member, by
        number, and ``b""`` for each free number; an empty list makes the first member of a job."""
        prepared = PreparedNode(
            domain,
            rank,
            max_ranks,
            options=options,
            barrier=barrier,
            lazy=True,
            max_connections=max_connections,
            max_ranks=max_ranks,
        )
        with prepared:
            own = prepared.endpoints[rank]
            given = list(ask(own))
            comes = any(len(each) > 0 for each in given)
            given += [b""] * (max_ranks - len(given))
            node = prepared.handshake([*given[:rank], own, *given[rank + 1 :]])
        if comes:
            node.reset_barriers()
        return node

    @classmethod
    def _of(cls, pointer: Any) -> Node:
        node = cls.__new__(cls)
        node._begin(pointer)
        return node

    def _begin(self, pointer: Any) -> None:
        self._set_up(pointer)
        self.rank = lib.sluice_node_rank(self._pointer)
        #: The number of ranks, or of their numbers in a node that grows.
        self.ranks = lib.sluice_node_ranks(self._pointer)
        #: The connections to all ranks, which belong to the node.
        self.all = MultiChannel._of(made(lib.sluice_node_multichannel(self._pointer)), self)
        # A node and its connections are used by one thread at a time.
        self._guard = self.all._guard
        self.domain: ProtectionDomain = BorrowedDomain(
            made(lib.sluice_node_pd(self._pointer)), self
        )
        self.context = BorrowedContext(made(lib.sluice_node_context(self._pointer)), self)

    def _end(self, pointer: Any) -> None:
        every = getattr(self, "all", None)
        if every is not None:
            every._pointer = None
            every._forget()
        lib.sluice_node_close(pointer)
        if every is not None:
            every._drop_all()

    def barrier(
        self,
        ranks: Sequence[int] | None = None,
        *,
        deadline: float | None,
        algorithm: int = 0,
    ) -> None:
        """Returns when all of these ranks, in ascending order and including this one, have called
        it; ``None``: all ranks. After a failure barriers do not work until
        :meth:`reset_barriers`."""
        array = ffi.NULL if ranks is None else ffi.new("uint32_t[]", list(ranks))
        count, limit = 0 if ranks is None else len(ranks), Limit(deadline)
        self._blocking(
            limit,
            lambda pointer: lib.sluice_node_barrier(
                pointer, array, count, algorithm, limit.some()
            ),
        )

    def reset_barriers(self) -> None:
        """Makes barriers work again after a failure; all ranks that go on call it."""
        with self._guard:
            check(lib.sluice_node_barrier_reset(self._get()))

    def allgather(self, own: bytes, *, deadline: float | None) -> list[bytes]:
        """Gives ``own`` to all ranks, and returns what each gave: as many bytes as this one."""
        length, limit = len(own), Limit(deadline)
        every = ffi.new("char[]", max(1, length * self.ranks))
        self._blocking(
            limit,
            lambda pointer: lib.sluice_node_allgather(pointer, own, every, length, limit.some()),
        )
        return [bytes(ffi.buffer(every + i * length, length)) for i in range(self.ranks)]

    def alltoall(self, to: Sequence[bytes], *, deadline: float | None) -> list[bytes]:
        """Gives ``to[i]`` to rank i, and returns what each gave to this one. All are of the same
        length, on all ranks."""
        if len(to) != self.ranks or len({len(each) for each in to}) != 1:
            raise ValueError(f"each of {self.ranks} ranks is given as many bytes")
        length, limit = len(to[0]), Limit(deadline)
        given = b"".join(to)
        every = ffi.new("char[]", max(1, length * self.ranks))
        self._blocking(
            limit,
            lambda pointer: lib.sluice_node_alltoall(pointer, given, every, length, limit.some()),
        )
        return [bytes(ffi.buffer(every + i * length, length)) for i in range(self.ranks)]

    def share(self, region: MemoryRegion | None, *, deadline: float | None) -> list[RemoteRegion]:
        """Sends the handle of a region to all ranks, and returns those of all: number i is for peer
        i. ``None``: an empty one."""
        array = ffi.new("struct sluice_peer_remote_mr[]", self.ranks)
        mr, limit = ffi.NULL if region is None else region._get(), Limit(deadline)
        self._blocking(
            limit, lambda pointer: lib.sluice_node_share_mr(pointer, mr, array, limit.some())
        )
        return [RemoteRegion._of(array[i].remote) for i in range(self.ranks)]

    def connect(
        self, *, deadline: float | None, options: Options | None = None
    ) -> MultiChannel:
        """Connects all ranks once more, with other options; all ranks call it. With
        ``arrival_tags`` it counts arrivals beside the receives of :attr:`all`."""
        attr, limit = attr_of(options), Limit(deadline)

        pointer = self._blocking(
            limit,
            lambda pointer: lib.sluice_node_multichannel_open(pointer, attr, limit.some()),
            dispose=lib.sluice_multichannel_close,
        )
        return MultiChannel._of(pointer)

    def reconnect(self, channel: MultiChannel, *, deadline: float | None) -> None:
        """Connects lost ranks again in a result of :meth:`connect`. All ranks call it, except new
        processes, which call :meth:`connect`."""
        limit = Limit(deadline)

        def work(pointer: Any) -> Any:
            with channel._guard:
                return lib.sluice_node_multichannel_reconnect(pointer, channel._get(), limit.some())

        self._blocking(limit, work)

    def reach(self, ranks: Sequence[int] | None = None, *, deadline: float | None) -> None:
        """Connects these ranks of a lazy node ahead of their use, or anew after a failure of their
        connection, which the other side does as well; ``None``: all."""
        array = ffi.NULL if ranks is None else ffi.new("uint32_t[]", list(ranks))
        count, limit = 0 if ranks is None else len(ranks), Limit(deadline)
        self._blocking(
            limit, lambda pointer: lib.sluice_node_reach(pointer, array, count, limit.some())
        )

    def grow(self, endpoints: Sequence[bytes]) -> None:
        """Takes new members of a node with ``max_ranks``, by the endpoints that :meth:`join` gave
        their ``ask``. All members make the same change, which begins a new generation."""
        array = ffi.new("struct sluice_node_endpoint[]", len(endpoints))
        for i, each in enumerate(endpoints):
            _fill_endpoint(array[i], each)
        with self._guard:
            check(lib.sluice_node_grow(self._get(), array, len(endpoints)))

    def shrink(self, ranks: Sequence[int]) -> None:
        """Removes members, dead or alive. All members that stay make the same change."""
        array = ffi.new("uint32_t[]", list(ranks))
        with self._guard:
            check(lib.sluice_node_shrink(self._get(), array, len(ranks)))

    def reset_rank(self, rank: int) -> bytes:
        """Ends the connection to a rank that is started again, and returns the endpoint for it. All
        ranks that go on call it, after as many :meth:`reset_barriers`; then
        :meth:`handshake_rank`, and, once all ranks have done that, :meth:`reset_barriers`."""
        endpoint = ffi.new("struct sluice_node_endpoint *")
        with self._guard:
            check(lib.sluice_node_peer_reset(self._get(), rank, endpoint))
            self.all._look()
        return bytes(endpoint.bytes)

    def handshake_rank(self, rank: int, endpoint: bytes) -> None:
        """Connects a rank that was reset, by the endpoint that it made for this one: that of its
        :class:`PreparedNode`."""
        struct = ffi.new("struct sluice_node_endpoint *")
        _fill_endpoint(struct, endpoint)
        with self._guard:
            check(lib.sluice_node_peer_handshake(self._get(), rank, struct))

    @property
    def exchange(self) -> Exchange | None:
        """The exchange that the node opened, which ends with it; ``None`` if it was given one, or
        has none."""
        with self._guard:
            pointer = lib.sluice_node_exchange(self._get())
        return None if pointer == ffi.NULL else _BorrowedExchange(pointer, self)

    def own_endpoint(self) -> bytes:
        """What a new member needs of this one."""
        endpoint = ffi.new("struct sluice_node_endpoint *")
        with self._guard:
            check(lib.sluice_node_own_endpoint(self._get(), endpoint))
        return bytes(endpoint.bytes)

    @property
    def members(self) -> list[int]:
        """The numbers of the members, ascending: all ranks in a node that does not grow."""
        ranks = ffi.new("uint32_t[]", self.ranks)
        with self._guard:
            count = check(lib.sluice_node_members(self._get(), ranks, len(ranks)))
        return list(ranks)[:count]

    @property
    def generation(self) -> int:
        """How often the barriers began: 1, and one more after each reset or change of members."""
        with self._guard:
            return int(check(lib.sluice_node_generation(self._get())))

    def shutdown(self, *, deadline: float | None) -> None:
        """Shuts down in order: all ranks call it, so that no work fails because another rank has
        closed."""
        limit = Limit(deadline)
        self._blocking(limit, lambda pointer: lib.sluice_node_shutdown(pointer, limit.some()))
