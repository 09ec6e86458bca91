# SPDX-License-Identifier: MIT
"""The log of the library."""
from __future__ import annotations

import atexit
import logging
import os
import queue
import threading
from typing import Any, Callable

from ._errors import check
from ._library import ffi, lib
from ._numbers import LogLevel

_LEVELS = {
    LogLevel.ERROR: logging.ERROR,
    LogLevel.WARN: logging.WARNING,
    LogLevel.INFO: logging.INFO,
    LogLevel.DEBUG: logging.DEBUG,
}

# Lines that no function has received yet. The library calls from any of its threads, with locks
# held, so a thread of this module calls the function of the program.
_lines: queue.SimpleQueue[tuple[int, str] | None] = queue.SimpleQueue()
_thread: threading.Thread | None = None
_level = LogLevel.NONE
_lock = threading.Lock()


@ffi.callback("void(*)(uint32_t, const char *, void *)")  # type: ignore[misc]
def _on_line(level: int, line: Any, _: Any) -> None:
    _lines.put((level, ffi.string(line).decode(errors="replace")))


def _pass_on(function: Callable[[LogLevel, str], object]) -> None:
    while True:
        line = _lines.get()
        if line is None:
            return
        try:
            function(LogLevel(line[0]), line[1])
        except Exception:  # that of a line must not end those that follow
            logging.getLogger("sluice").exception("the function of the log has failed")


def set_log(level: int, function: Callable[[LogLevel, str], object] | None = None) -> None:
    """Passes lines of the library of ``level`` and below to a function, which a thread of its own
    calls; ``None``: to standard error. It is for the whole process."""
    global _thread, _level
    with _lock:
        check(lib.sluice_log_set(level, ffi.NULL, ffi.NULL))
        _level = LogLevel(level)
        if _thread is not None:
            _lines.put(None)
            if _thread is not threading.current_thread():
                _thread.join()
            _thread = None
        if function is not None:
            _thread = threading.Thread(
                target=_pass_on, args=(function,), name="sluice log", daemon=True
            )
            _thread.start()
            check(lib.sluice_log_set(level, _on_line, ffi.NULL))


def log_to(logger: logging.Logger, level: int = LogLevel.INFO) -> None:
    """Passes lines of the library of ``level`` and below to a logger, such as
    ``logging.getLogger("sluice")``."""
    set_log(level, lambda each, line: logger.log(_LEVELS.get(each, logging.INFO), "%s", line))


@atexit.register
def _at_exit() -> None:
    if _thread is not None:
        set_log(_level)


def _in_child() -> None:
    # The thread does not exist here: lines go to standard error.
    global _thread, _lock
    _lock = threading.Lock()
    if _thread is not None:
        _thread = None
        lib.sluice_log_set(_level, ffi.NULL, ffi.NULL)


os.register_at_fork(after_in_child=_in_child)
