# SPDX-License-Identifier: MIT
"""Serving a connection or an agent from an event loop of asyncio."""
from __future__ import annotations

import asyncio
from typing import Any


#: Completions, or messages, after which other tasks of the loop run; see sluice_channel_fd(3).
TURN_MOST = 256


class Pump:
    """Lets an event loop serve a connection while tasks await its work."""

    def __init__(self, connection: Any, loop: asyncio.AbstractEventLoop):
        self.connection, self.loop = connection, loop
        self.users = 0
        self.descriptor: int | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.scheduled = False

    def __enter__(self) -> Pump:
        self.users += 1
        if self.descriptor is None:
            self.descriptor = self.connection.fileno()
            self.loop.add_reader(self.descriptor, self.turn)
        self.soon()
        return self

    def __exit__(self, *exception: object) -> None:
        self.users -= 1
        if self.users == 0:
            self.stop()

    def soon(self) -> None:
        """Runs once before the loop sleeps, because a call has disarmed the connection."""
        if self.users > 0 and not self.scheduled and not self.loop.is_closed():
            self.scheduled = True
            try:
                same = asyncio.get_running_loop() is self.loop
            except RuntimeError:
                same = False
            (self.loop.call_soon if same else self.loop.call_soon_threadsafe)(self.scheduled_turn)

    def scheduled_turn(self) -> None:
        self.scheduled = False
        self.turn()

    def turn(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        if self.users == 0 or self.connection.closed:
            return
        with self.connection._guard:
            # After a turn that stopped at its bound, the loop must not sleep.
            bound = self.connection._look(TURN_MOST) >= TURN_MOST
            due = 0.0 if bound else self.connection.arm()
        if due == 0.0:
            # Other tasks of the loop run in between.
            self.soon()
        elif due is not None:
            self.timer = self.loop.call_later(due, self.turn)

    def stop(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        if self.descriptor is not None:
            descriptor, self.descriptor = self.descriptor, None
            if not self.loop.is_closed():
                self.loop.remove_reader(descriptor)
        if self.connection._loop is self:
            self.connection._loop = None

