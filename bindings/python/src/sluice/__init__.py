# SPDX-License-Identifier: MIT
"""RDMA channels to many peers, with a software transport for hosts without RDMA.

This package calls libsluice. Its classes are the objects of the library, and can be used in
``with`` statements. The manual of the library describes what each call guarantees.

Durations are seconds; ``None``, which must be given explicitly, means forever. A *deadline* limits
work and is destructive: a reliable connection cannot take back one request, so when the deadline
passes, the connection to that peer ends. A *timeout* limits a wait and harms nothing.
"""
from ._agent import Agent, AgentInfo, AgentReturned
from ._agent_peer import (
    AgentMessage,
    AgentPeer,
    AgentPeerInfo,
    AgentRegion,
    AgentRegionInfo,
)
from ._allocator import Allocator, AllocatorInfo, Block
from ._batch import BufferBatch
from ._buffer import Action, Buffer, BufferInfo, BufferService, buffer_info
from ._channel import (
    FAILED,
    PREPARED,
    READY,
    REMOVED,
    Channel,
    ChannelInfo,
    PreparedChannel,
)
from ._completion import Completion, FirstError
from ._connect import Incoming, IncomingInfo, Listener, connect, connect_into
from ._context import Context, ContextInfo, DeviceInfo, ProtectionDomain, devices
from ._engine import compiled
from ._errors import (
    AccessError,
    ArgumentError,
    BusyError,
    CancelledError,
    ClosedError,
    DeadlineError,
    DeviceError,
    Error,
    InterruptedWait,
    LocalMemoryError,
    NotConnectedError,
    OutOfMemoryError,
    PeerLostError,
    ProtocolError,
    StaleError,
    TruncatedError,
    UnsupportedError,
    WaitTimeout,
    WouldBlockError,
    last_error,
)
from ._launch import LaunchInfo, Variable, environment, launch_info
from ._library import library_path, version
from ._list import PreparedList
from ._log import log_to, set_log
from ._memory import (
    LOCAL_WRITE,
    REMOTE_ATOMIC,
    REMOTE_READ,
    REMOTE_WRITE,
    MemoryRegion,
    Piece,
    RemoteRegion,
)
from ._multichannel import MultiChannel, PreparedMultiChannel
from ._node import Exchange, Node, PreparedNode
from ._numbers import (
    Access,
    AgentState,
    Atomics,
    Barrier,
    ErrorClass,
    ExchangeKind,
    Level,
    LinkLayer,
    LogLevel,
    Opcode,
    PeerState,
    Status,
    VariableState,
    WaitMode,
)
from ._options import NO_ACCESS, ZERO, Options
from ._plain import CachedRegion, MemoryCache, MemoryCacheInfo
from ._request import (
    COMPARE_SWAP,
    FETCH_ADD,
    READ,
    RECEIVE,
    SEND,
    WRITE,
    Layout,
    Request,
    Work,
)
from ._scope import Scope
from ._statistics import Counters, Histogram

__version__ = "1.0.0"

__all__ = [
    "Access",
    "AccessError",
    "Action",
    "Agent",
    "AgentInfo",
    "AgentMessage",
    "AgentPeer",
    "AgentPeerInfo",
    "AgentRegion",
    "AgentRegionInfo",
    "AgentReturned",
    "AgentState",
    "Allocator",
    "AllocatorInfo",
    "ArgumentError",
    "Atomics",
    "Barrier",
    "Block",
    "Buffer",
    "BufferBatch",
    "BufferInfo",
    "BufferService",
    "BusyError",
    "COMPARE_SWAP",
    "CachedRegion",
    "CancelledError",
    "Channel",
    "ChannelInfo",
    "ClosedError",
    "Completion",
    "Context",
    "ContextInfo",
    "Counters",
    "DeadlineError",
    "DeviceError",
    "DeviceInfo",
    "Error",
    "ErrorClass",
    "Exchange",
    "ExchangeKind",
    "FAILED",
    "FETCH_ADD",
    "FirstError",
    "Histogram",
    "Incoming",
    "IncomingInfo",
    "InterruptedWait",
    "LOCAL_WRITE",
    "LaunchInfo",
    "Layout",
    "Level",
    "LinkLayer",
    "Listener",
    "LocalMemoryError",
    "LogLevel",
    "MemoryCache",
    "MemoryCacheInfo",
    "MemoryRegion",
    "MultiChannel",
    "NO_ACCESS",
    "Node",
    "NotConnectedError",
    "Opcode",
    "Options",
    "OutOfMemoryError",
    "PREPARED",
    "PeerLostError",
    "PeerState",
    "Piece",
    "PreparedChannel",
    "PreparedList",
    "PreparedMultiChannel",
    "PreparedNode",
    "ProtectionDomain",
    "ProtocolError",
    "READ",
    "READY",
    "RECEIVE",
    "REMOTE_ATOMIC",
    "REMOTE_READ",
    "REMOTE_WRITE",
    "REMOVED",
    "RemoteRegion",
    "Request",
    "SEND",
    "Scope",
    "StaleError",
    "Status",
    "TruncatedError",
    "UnsupportedError",
    "Variable",
    "VariableState",
    "WRITE",
    "WaitMode",
    "WaitTimeout",
    "Work",
    "WouldBlockError",
    "ZERO",
    "buffer_info",
    "compiled",
    "connect",
    "connect_into",
    "devices",
    "environment",
    "last_error",
    "launch_info",
    "library_path",
    "log_to",
    "set_log",
    "version",
]
