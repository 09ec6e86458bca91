#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Rank 0 scatters the blocks of a file, all ranks digest them, and rank 0 gathers the digests.

    scatter_gather.py [-n PROCESSES] [-r TIMES] [FILE]

What examples/03-scatter-gather.c does, with the same digests. Rank 0 has a multichannel to all
ranks, itself included, and every other rank a channel to rank 0. In each round rank 0 sends a
different block to each rank and receives the digests of the round before. In the end it digests
the whole file alone and compares. Without a FILE the data are 64 MiB of noise.

Processes are started by multiprocessing, whose pipes carry the endpoints. Of a pipe, what comes
first is the endpoint of the worker; then rank 0 gives its own; the worker says that it has
connected, and in the end that it is done; and then rank 0 says so, since a channel that closes
acknowledges nothing any more.
"""
import argparse
import hashlib
import multiprocessing
import random
import sys
import time

import sluice

BLOCK = 1 << 20  # bytes
DIGEST = 32
DEADLINE = 30.0  # seconds, of a round; a dead process is noticed sooner
PATIENCE = 60.0  # seconds to wait for a process on its pipe


def digest(data):
    """Returns the digest of libsodium's crypto_generichash()."""
    return hashlib.blake2b(data, digest_size=DIGEST).digest()


def take(pipe, what):
    if not pipe.poll(PATIENCE):
        raise TimeoutError(f"the other side did not {what}")
    return pipe.recv_bytes()


def work(pipe):
    """A worker receives a block into one half of its memory while it digests the block in the other
    half. An empty message ends it."""
    with sluice.Context() as context, context.domain() as domain:
        with domain.allocate(2 * BLOCK + DIGEST) as memory:
            prepared = sluice.PreparedChannel(domain)
            pipe.send_bytes(prepared.endpoint)
            with prepared.handshake(take(pipe, "give an endpoint")) as channel:
                pipe.send_bytes(b"connected")
                halves = [memory[:BLOCK], memory[BLOCK : 2 * BLOCK]]
                result = memory[2 * BLOCK :]
                received = channel.post_receive(halves[0], deadline=DEADLINE)
                half = 0
                while (count := received.result(DEADLINE).bytes) != 0:
                    received = channel.post_receive(halves[1 - half], deadline=DEADLINE)
                    bytes_of_half = memory.buffer[half * BLOCK : half * BLOCK + count]
                    memory.buffer[2 * BLOCK :] = digest(bytes_of_half)
                    channel.send(result, deadline=DEADLINE)
                    half = 1 - half
                pipe.send_bytes(b"done")
                take(pipe, "end")


class Rank0:
    """The memory of rank 0: the file, the digests of its blocks, and the block for rank 0."""

    def __init__(self, domain, data, ranks, times):
        self.length, self.ranks, self.times = len(data), ranks, times
        self.blocks = (self.length + BLOCK - 1) // BLOCK
        self.data = domain.allocate(self.length + 1)
        self.digests = domain.allocate(self.blocks * DIGEST + 1)
        self.own = domain.allocate(BLOCK)
        self.data.buffer[: self.length] = data

    def block(self, number):
        """Returns a piece of the data; the last one may be shorter."""
        return self.data[number * BLOCK : min((number + 1) * BLOCK, self.length)]

    def place(self, number):
        return self.digests[number * DIGEST : (number + 1) * DIGEST]

    def scatter_and_gather(self, every):
        """Sends block b to rank (b + 1) % ranks. The last round, for which no blocks are left, has
        the empty messages and the last digests."""
        total = self.blocks * self.times
        rounds = (total + self.ranks - 1) // self.ranks
        for turn in range(rounds + 1):
            sends, receives, own = {}, {}, None
            for i in range(self.ranks):
                rank, number = (i + 1) % self.ranks, turn * self.ranks + i
                before = number - self.ranks
                if number < total:
                    sends[rank] = self.block(number % self.blocks)
                    if rank == 0:
                        own = number % self.blocks
                        receives[0] = self.own[: len(sends[0])]
                elif turn == rounds and rank != 0:
                    sends[rank] = None
                if 0 <= before < total and rank != 0:
                    receives[rank] = self.place(before % self.blocks)
            every.scatter_gather(sends, receives, deadline=DEADLINE)
            if own is not None:
                count = len(receives[0])
                self.digests.buffer[own * DIGEST : (own + 1) * DIGEST] = digest(
                    self.own.buffer[:count]
                )

    def compare(self):
        """Digests all blocks alone, and returns the digest of the digests."""
        data, digests = self.data.buffer, self.digests.buffer
        for number in range(self.blocks):
            expected = digest(data[number * BLOCK : min((number + 1) * BLOCK, self.length)])
            if digests[number * DIGEST : (number + 1) * DIGEST] != expected:
                raise SystemExit(f"digests differ in block {number}")
        return digest(digests[: self.blocks * DIGEST])


def run(data, ranks, times):
    spawn = multiprocessing.get_context("spawn")
    workers = []
    for _ in range(1, ranks):
        ours, theirs = spawn.Pipe()
        process = spawn.Process(target=work, args=(theirs,), daemon=True)
        process.start()
        theirs.close()
        workers.append((ours, process))
    with sluice.Context() as context, context.domain() as domain:
        job = Rank0(domain, data, ranks, times)
        prepared = sluice.PreparedMultiChannel(domain, ranks)
        ours = prepared.endpoints
        theirs = [ours[0]]  # peer 0 is rank 0 itself
        for rank, (pipe, _) in enumerate(workers, 1):
            theirs.append(take(pipe, "give an endpoint"))
            pipe.send_bytes(ours[rank])
        with prepared.handshake(theirs) as every:
            for pipe, _ in workers:
                take(pipe, "connect")  # what came before would be late by a second
            info = context.info
            print(
                f"{ranks} processes on device {info.device} ({info.transport}), "
                f"{job.length} bytes in {job.blocks} blocks",
                flush=True,
            )
            begin = time.monotonic()
            job.scatter_and_gather(every)
            seconds = time.monotonic() - begin
            for pipe, _ in workers:
                take(pipe, "finish")
            for pipe, process in workers:
                pipe.send_bytes(b"end")
                process.join(PATIENCE)
        rate = job.length * times / seconds / 1e6
        print(f"scattered, digested and gathered in {seconds:.3f} s: {rate:.0f} MB/s")
        print(f"{job.compare().hex()}: digests agree")
    if any(process.exitcode != 0 for _, process in workers):
        raise SystemExit("a worker has failed")


def main():
    parser = argparse.ArgumentParser(description="Scatters a file to processes, which digest it.")
    parser.add_argument("-n", type=int, default=4, metavar="PROCESSES", choices=range(1, 65))
    parser.add_argument("-r", type=int, default=1, metavar="TIMES")
    parser.add_argument("file", nargs="?", metavar="FILE")
    options = parser.parse_args()
    if options.r < 1:
        parser.error("TIMES is at least 1")
    if options.file is None:
        data = random.Random(0).randbytes(64 << 20)
    else:
        try:
            with open(options.file, "rb") as file:
                data = file.read()
        except OSError as error:
            sys.exit(f"scatter_gather.py: {options.file}: {error.strerror}")
    try:
        run(data, options.n, options.r)
    except (sluice.Error, TimeoutError, EOFError) as error:
        sys.exit(f"scatter_gather.py: {error or 'a worker has ended'}")


if __name__ == "__main__":
    main()
