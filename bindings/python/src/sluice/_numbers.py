# SPDX-License-Identifier: MIT
"""Named numbers of the library.

Each is an ``int``. A number that this package does not know, of a later version of the library, is
accepted: it compares and prints as a number, and its name is ``UNKNOWN``.
"""
from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import Any

from ._library import lib


class _Number(IntEnum):
    """The base of the others."""

    @classmethod
    def _missing_(cls, value: object) -> Any:
        if not isinstance(value, int):
            return None
        unknown = int.__new__(cls, value)
        unknown._name_, unknown._value_ = "UNKNOWN", int(value)
        return unknown


class Opcode(_Number):
    """The kind of a request."""

    NONE = lib.SLUICE_OP_NONE
    SEND = lib.SLUICE_OP_SEND
    RECEIVE = lib.SLUICE_OP_RECEIVE
    WRITE = lib.SLUICE_OP_WRITE
    READ = lib.SLUICE_OP_READ
    COMPARE_SWAP = lib.SLUICE_OP_COMPARE_SWAP
    FETCH_ADD = lib.SLUICE_OP_FETCH_ADD


class Status(_Number):
    """What the device reported of a request, or the library in its place; as ``enum
    sluice_status``."""

    SUCCESS = lib.SLUICE_STATUS_SUCCESS
    LOC_LEN_ERR = lib.SLUICE_STATUS_LOC_LEN_ERR
    LOC_QP_OP_ERR = lib.SLUICE_STATUS_LOC_QP_OP_ERR
    LOC_PROT_ERR = lib.SLUICE_STATUS_LOC_PROT_ERR
    WR_FLUSH_ERR = lib.SLUICE_STATUS_WR_FLUSH_ERR
    BAD_RESP_ERR = lib.SLUICE_STATUS_BAD_RESP_ERR
    LOC_ACCESS_ERR = lib.SLUICE_STATUS_LOC_ACCESS_ERR
    REM_INV_REQ_ERR = lib.SLUICE_STATUS_REM_INV_REQ_ERR
    REM_ACCESS_ERR = lib.SLUICE_STATUS_REM_ACCESS_ERR
    REM_OP_ERR = lib.SLUICE_STATUS_REM_OP_ERR
    RETRY_EXC_ERR = lib.SLUICE_STATUS_RETRY_EXC_ERR
    RNR_RETRY_EXC_ERR = lib.SLUICE_STATUS_RNR_RETRY_EXC_ERR
    FATAL_ERR = lib.SLUICE_STATUS_FATAL_ERR
    GENERAL_ERR = lib.SLUICE_STATUS_GENERAL_ERR
    DEADLINE = lib.SLUICE_STATUS_DEADLINE
    PEER_CLOSED = lib.SLUICE_STATUS_PEER_CLOSED


class ErrorClass(_Number):
    """What a failure means for the program."""

    NONE = lib.SLUICE_CLASS_NONE
    PEER_LOST = lib.SLUICE_CLASS_PEER_LOST
    TIMEOUT = lib.SLUICE_CLASS_TIMEOUT
    ACCESS = lib.SLUICE_CLASS_ACCESS
    TRUNCATED = lib.SLUICE_CLASS_TRUNCATED
    CANCELLED = lib.SLUICE_CLASS_CANCELLED
    LOCAL = lib.SLUICE_CLASS_LOCAL
    DEVICE = lib.SLUICE_CLASS_DEVICE
    PROTOCOL = lib.SLUICE_CLASS_PROTOCOL


class Level(_Number):
    """How near a peer is, or how fast a device."""

    NONE = 0
    TCP = lib.SLUICE_LEVEL_TCP
    NIC = lib.SLUICE_LEVEL_NIC
    MEMORY = lib.SLUICE_LEVEL_MEMORY


class PeerState(_Number):
    """The state of a peer of a multichannel."""

    PREPARED = lib.SLUICE_STATE_PREPARED
    READY = lib.SLUICE_STATE_READY
    FAILED = lib.SLUICE_STATE_FAILED
    REMOVED = lib.SLUICE_STATE_REMOVED


class AgentState(_Number):
    """The state of a peer of an agent."""

    CONNECTED = lib.SLUICE_AGENT_PEER_CONNECTED
    LOST = lib.SLUICE_AGENT_PEER_LOST


class WaitMode(_Number):
    """How a connection waits: ``Options(wait_mode=)``."""

    ADAPTIVE = lib.SLUICE_WAIT_ADAPTIVE
    SPIN = lib.SLUICE_WAIT_SPIN
    EVENT = lib.SLUICE_WAIT_EVENT


class Barrier(_Number):
    """The algorithm of a barrier."""

    DEFAULT = lib.SLUICE_BARRIER_DEFAULT
    TREE = lib.SLUICE_BARRIER_TREE
    CENTRAL = lib.SLUICE_BARRIER_CENTRAL
    DISSEMINATION = lib.SLUICE_BARRIER_DISSEMINATION


class ExchangeKind(_Number):
    """How ranks find each other: ``Exchange(kind=)``."""

    AUTO = lib.SLUICE_EXCHANGE_AUTO
    TCP = lib.SLUICE_EXCHANGE_TCP
    PMIX = lib.SLUICE_EXCHANGE_PMIX
    OWN = lib.SLUICE_EXCHANGE_OWN


class LinkLayer(_Number):
    """The link layer of a port."""

    NONE = lib.SLUICE_LINK_NONE
    INFINIBAND = lib.SLUICE_LINK_INFINIBAND
    ETHERNET = lib.SLUICE_LINK_ETHERNET
    IWARP = lib.SLUICE_LINK_IWARP


class Atomics(_Number):
    """With what the atomic operations of a device are atomic."""

    NONE = lib.SLUICE_ATOMICS_NONE
    DEVICE = lib.SLUICE_ATOMICS_DEVICE
    GLOBAL = lib.SLUICE_ATOMICS_GLOBAL


class VariableState(_Number):
    """Whether an environment variable is set, and its value valid."""

    UNSET = lib.SLUICE_VARIABLE_UNSET
    SET = lib.SLUICE_VARIABLE_SET
    WRONG = lib.SLUICE_VARIABLE_WRONG
    NOT_KNOWN = lib.SLUICE_VARIABLE_UNKNOWN


class LogLevel(_Number):
    """The level of a line of the log."""

    NONE = lib.SLUICE_LOG_NONE
    ERROR = lib.SLUICE_LOG_ERROR
    WARN = lib.SLUICE_LOG_WARN
    INFO = lib.SLUICE_LOG_INFO
    DEBUG = lib.SLUICE_LOG_DEBUG


class Access(IntFlag):
    """The rights of memory."""

    LOCAL_WRITE = lib.SLUICE_ACCESS_LOCAL_WRITE
    REMOTE_WRITE = lib.SLUICE_ACCESS_REMOTE_WRITE
    REMOTE_READ = lib.SLUICE_ACCESS_REMOTE_READ
    REMOTE_ATOMIC = lib.SLUICE_ACCESS_REMOTE_ATOMIC
    #: Peers may neither read nor write, where 0 means the default.
    NONE = lib.SLUICE_ACCESS_NONE
