# SPDX-License-Identifier: MIT
"""Finds libsluice, and checks that its version matches these declarations."""
from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import Any

# What else of types the calls of this package name; see _parse().
_TYPES = """
    char[]
    int *
    int(*)(void *, const void *, void *, size_t, int64_t)
    int(*)(void *, int64_t)
    int64_t *
    int64_t[2]
    struct sluice_accept_attr
    struct sluice_accept_attr *
    struct sluice_admitted
    struct sluice_admitted *
    struct sluice_agent_attr
    struct sluice_agent_attr *
    struct sluice_agent_info
    struct sluice_agent_info *
    struct sluice_agent_local
    struct sluice_agent_local *
    struct sluice_agent_mr_info
    struct sluice_agent_mr_info *
    struct sluice_agent_peer_info
    struct sluice_agent_peer_info *
    struct sluice_allocator_attr
    struct sluice_allocator_attr *
    struct sluice_allocator_info
    struct sluice_allocator_info *
    struct sluice_blocks
    struct sluice_blocks *
    struct sluice_buffer_action[]
    struct sluice_buffer_handle *
    struct sluice_buffer_info
    struct sluice_buffer_info *
    struct sluice_buffer_service_attr
    struct sluice_buffer_service_attr *
    struct sluice_channel_attr
    struct sluice_channel_attr *
    struct sluice_channel_info
    struct sluice_channel_info *
    struct sluice_completion *
    struct sluice_completion[]
    struct sluice_connect_attr
    struct sluice_connect_attr *
    struct sluice_context_attr
    struct sluice_context_attr *
    struct sluice_context_info
    struct sluice_context_info *
    struct sluice_counters
    struct sluice_counters *
    struct sluice_device_info
    struct sluice_device_info *
    struct sluice_endpoint *
    struct sluice_endpoint[]
    struct sluice_error
    struct sluice_error *
    struct sluice_exchange_attr
    struct sluice_exchange_attr *
    struct sluice_exchange_info
    struct sluice_exchange_provider
    struct sluice_exchange_provider *
    struct sluice_exchange_info *
    struct sluice_handle
    struct sluice_handle *
    struct sluice_handle[]
    struct sluice_histogram
    struct sluice_histogram *
    struct sluice_incoming_info
    struct sluice_incoming_info *
    struct sluice_launch_info
    struct sluice_launch_info *
    struct sluice_layout *
    struct sluice_listen_attr
    struct sluice_listen_attr *
    struct sluice_mr_cache_attr
    struct sluice_mr_cache_attr *
    struct sluice_mr_cache_info
    struct sluice_mr_cache_info *
    struct sluice_node_attr
    struct sluice_node_attr *
    struct sluice_node_endpoint *
    struct sluice_node_endpoint[]
    struct sluice_pd *[]
    struct sluice_peer_remote_mr[]
    struct sluice_private_data *
    struct sluice_remote_mr *
    struct sluice_request[]
    struct sluice_sge *
    struct sluice_sge[]
    struct sluice_variable_info
    struct sluice_variable_info *
    uint32_t[]
    uint64_t *
    uint8_t[]
    uintptr_t
    void *
    void(*)(uint32_t, const char *, void *)
    void(*)(void *)
"""


def _parse() -> Any:
    """Has cffi parse the declarations, which takes half a second.

    cffi parses other types when they are first used, and Ctrl-C in the middle of that breaks its
    parser; so they are named here.
    """
    from cffi import FFI

    from ._cdef import DECLARATIONS

    parsed = FFI()
    parsed.cdef(DECLARATIONS)
    for name in _TYPES.strip().splitlines():
        parsed.typeof(name.strip())
    return parsed


ffi: Any
try:
    # setup.py makes this of the same declarations, so that nothing is parsed here.
    from ._ffi import ffi  # type: ignore[no-redef,import-not-found,unused-ignore]
except ImportError:
    ffi = _parse()

# What compiled declarations raise for a name that the library lacks; parsed ones have no such class.
_MISSING: type[Exception] = getattr(ffi, "error", AttributeError)

#: The name by which the linker of the system knows the library.
SONAME = "libsluice.so.1"


def _candidate() -> tuple[str, str]:
    """Returns a path or name for dlopen(3), and where it comes from, for messages."""
    wanted = os.environ.get("SLUICE_LIBRARY", "")
    if wanted:
        return wanted, "named by SLUICE_LIBRARY"
    bundled = Path(__file__).parent / "lib" / SONAME
    if bundled.exists():
        return str(bundled), "which came with this package"
    return SONAME, "of the system"


def _companions(name: str) -> list[Path]:
    folder = Path(__file__).parent / "lib"
    if Path(name).parent != folder:
        return []
    return sorted(each for each in folder.glob("lib*.so.*") if each.name != SONAME)


def _advice(reason: str) -> str:
    """Returns advice for a library that cannot be loaded."""
    if "static TLS" in reason:
        return (
            "Libraries that were loaded before it have used up the room for thread-local variables: "
            "import sluice before them, or run Python with "
            "GLIBC_TUNABLES=glibc.rtld.optional_static_tls=16384 in the environment"
        )
    return f"Install libsluice, or set SLUICE_LIBRARY to the path of {SONAME}"


def _load() -> tuple[Any, str]:
    name, source = _candidate()
    try:
        # Load the libraries that came with it first, so that it finds them.
        kept = [ffi.dlopen(str(each)) for each in _companions(name)]
        library = ffi.dlopen(name)
        del kept
    except OSError as error:
        raise ImportError(
            f"sluice needs libsluice, and {name}, {source}, cannot be loaded: {error}. "
            f"{_advice(str(error))}"
        ) from None
    _check_version(library, name, source)
    return library, name


def _check_version(library: Any, name: str, source: str) -> None:
    try:
        text = ffi.string(library.sluice_version()).decode()
    except (AttributeError, _MISSING):
        raise ImportError(f"{name}, {source}, is not libsluice: it has no sluice_version()") from None
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", text)
    there = tuple(map(int, match.groups())) if match else (0, 0, 0)
    ours = (
        library.SLUICE_VERSION_MAJOR,
        library.SLUICE_VERSION_MINOR,
        library.SLUICE_VERSION_PATCH,
    )
    # Before 1.0.0 a minor version may break programs, see CHANGELOG.md.
    fits = there[0] == ours[0] and (there[1] == ours[1] if ours[0] == 0 else there[1] >= ours[1])
    if not fits:
        wanted = ".".join(map(str, ours[:2]))
        raise ImportError(
            f"{name}, {source}, is version {text}, and this package needs {wanted}: install that "
            "one, or a package of the version of the library"
        )


lib, library_path = _load()

#: The longest time that a call of the library waits, in nanoseconds.
FOREVER: int = lib.SLUICE_FOREVER

#: The length of a slice of a wait, in nanoseconds; signals are served after each.
SLICE = 50_000_000


def version() -> str:
    """Returns the version of the loaded library, and its transports."""
    return str(ffi.string(lib.sluice_version()).decode())


def nanoseconds(seconds: float | None) -> int:
    """Converts a duration in seconds; ``None`` is forever."""
    if seconds is None:
        return FOREVER
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise TypeError(f"a duration is a number of seconds or None, not {type(seconds).__name__}")
    if not 0 <= seconds < 9.2e9:
        raise ValueError(f"a duration is 0 or more seconds, or None for ever, not {seconds}")
    return int(seconds * 1e9)


class Limit:
    """A duration that began when this was made."""

    def __init__(self, seconds: float | None):
        self._given = nanoseconds(seconds)
        self._end = None if self._given == FOREVER else time.monotonic_ns() + self._given

    def left(self) -> int:
        """Nanoseconds that are left."""
        return FOREVER if self._end is None else max(0, self._end - time.monotonic_ns())

    def some(self) -> int:
        """Returns the same for a call that has waited for its turn: 0 only if the limit was 0."""
        return self.left() if self._given == 0 else max(1, self.left())

    def slice(self) -> int:
        """Returns the time to wait before signals are served again."""
        return min(SLICE, self.left())

    def seconds(self) -> float | None:
        """Returns the seconds that are left, for a call that takes a duration."""
        return None if self._end is None else self.left() / 1e9

    @property
    def none(self) -> bool:
        """Whether the limit was 0 from the beginning, so that nothing may be posted."""
        return self._given == 0


def text_of(field: Any) -> str:
    """Returns the text in an array of characters of a struct."""
    return str(ffi.string(field).decode(errors="replace"))


def c_text(text: str | None) -> Any:
    """Returns a text for C, which lives as long as the result."""
    return ffi.NULL if text is None else ffi.new("char[]", os.fsencode(text))
