# SPDX-License-Identifier: MIT
"""What the environment says about this process."""
from __future__ import annotations

import errno
from dataclasses import dataclass

from ._errors import check
from ._library import lib, text_of
from ._numbers import ExchangeKind, VariableState
from ._shared import struct_of


@dataclass(frozen=True)
class LaunchInfo:
    """How this process was started; as ``struct sluice_launch_info``. ``ranks`` is 0 if only the
    server of PMIx knows it and the rank."""

    kind: ExchangeKind
    rank: int
    ranks: int
    local_rank: int
    launcher: str
    source: str
    local_source: str
    root: str
    job: str


def launch_info() -> LaunchInfo:
    """Describes this process from the environment, as launchers set it. Opens nothing. Raises
    :exc:`Error` with ``ENOENT`` if the rank is not given anywhere."""
    info = struct_of("sluice_launch_info")
    check(lib.sluice_launch_query(info))
    return LaunchInfo(
        ExchangeKind(info.kind),
        info.rank,
        info.ranks,
        info.local_rank,
        text_of(info.launcher),
        text_of(info.source),
        text_of(info.local_source),
        text_of(info.root),
        text_of(info.job),
    )


@dataclass(frozen=True)
class Variable:
    """An environment variable of the library; as ``struct sluice_variable_info``."""

    state: VariableState
    name: str
    what: str
    value: str
    preset: str
    allowed: str
    nearest: str
    reason: str


def environment() -> list[Variable]:
    """Returns the environment variables of the library, and unknown ones that begin with
    ``SLUICE_``."""
    found: list[Variable] = []
    while True:
        info = struct_of("sluice_variable_info")
        result = lib.sluice_environment_variable(len(found), info)
        if result == -errno.ERANGE:
            return found
        check(result)
        names = list(Variable.__dataclass_fields__)[1:]
        texts = [text_of(getattr(info, name)) for name in names]
        found.append(Variable(VariableState(info.state), *texts))
