#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sums of numpy arrays over all ranks, with the result on all ranks: as examples/19-allreduce.c.

    sluice-launch -n 4 allreduce.py [ring|tree] [NUMBERS...]
"""
import statistics
import sys
import time

import numpy

import sluice

DEADLINE = 60
PIECE = 16384  # numbers that are added while they are in the cache


class Reduction:
    """The vector of a rank, and as much room for data from others."""

    def __init__(self, node, numbers):
        self.all, self.rank, self.ranks = node.all, node.rank, node.ranks
        self.memory = node.domain.allocate(2 * numbers * 8, sluice.LOCAL_WRITE)
        self.vector = self.memory.array("float64", numbers)
        self.room = self.memory.array("float64", numbers, numbers * 8)

    def _move(self, to, out, source, place):
        """Sends ``out`` and receives ``place``; there is no message for an empty one."""
        sends = {to: self.memory.of(out)} if len(out) else {}
        receives = {source: self.memory.of(place)} if len(place) else {}
        if sends or receives:
            self.all.scatter_gather(sends, receives, deadline=DEADLINE)

    def _part(self, index):
        index %= self.ranks
        begin, end = (len(self.vector) * i // self.ranks for i in (index, index + 1))
        return self.vector[begin:end]

    def ring(self):
        """Each rank sends 2 (N - 1) / N of the vector: use it for long vectors."""
        after, before = (self.rank + 1) % self.ranks, (self.rank - 1) % self.ranks
        for step in range(self.ranks - 1):
            out, to = self._part(self.rank - step), self._part(self.rank - step - 1)
            for at in range(0, max(len(out), len(to)), PIECE):
                piece = to[at : at + PIECE]
                came = self.room[: len(piece)]
                self._move(after, out[at : at + PIECE], before, came)
                piece += came
        for step in range(self.ranks - 1):
            self._move(after, self._part(self.rank - step + 1), before, self._part(self.rank - step))

    def tree(self):
        """Takes 2 log2 N steps with the whole vector: use it for short vectors."""
        nothing, bit = self.vector[:0], 1
        while bit < self.ranks and not self.rank & bit:
            if self.rank + bit < self.ranks:
                self._move(0, nothing, self.rank + bit, self.room)
                self.vector += self.room
            bit *= 2
        if self.rank:
            self._move(self.rank - bit, self.vector, 0, nothing)
            self._move(0, nothing, self.rank - bit, self.vector)
        while bit := bit // 2:
            if self.rank + bit < self.ranks:
                self._move(self.rank + bit, self.vector, 0, nothing)


def measure(node, algorithm, numbers):
    reduction = Reduction(node, numbers)
    pattern, times = numpy.arange(numbers) % 7, []
    for _ in range(5):
        reduction.vector[:] = node.rank + 1 + pattern
        node.barrier(deadline=DEADLINE)
        begin = time.perf_counter()
        getattr(reduction, algorithm)()
        times.append(time.perf_counter() - begin)
        # Whole numbers have exact sums in any order.
        wanted = node.ranks * (node.ranks + 1) // 2 + node.ranks * pattern
        if not numpy.array_equal(reduction.vector, wanted):
            sys.exit(f"allreduce.py: rank {node.rank}: wrong sums")
    if node.rank == 0:
        print(
            f"{algorithm}: {numbers} numbers, {node.ranks} ranks, sums are right, "
            f"median {statistics.median(times) * 1e6:.1f} us"
        )


def main():
    algorithm = sys.argv[1] if len(sys.argv) > 1 else "ring"
    sizes = [int(word) for word in sys.argv[2:]] or [100003]
    with sluice.Node(deadline=DEADLINE) as node:
        for numbers in sizes:
            measure(node, algorithm, numbers)
        node.shutdown(deadline=DEADLINE)


if __name__ == "__main__":
    main()
