# SPDX-License-Identifier: MIT
"""Ways of use in Python, within one context, for bench/usage: a line with the name of each and
its median in microseconds."""

import statistics
import time

import sluice

ALL_RIGHTS = (sluice.LOCAL_WRITE | sluice.REMOTE_READ | sluice.REMOTE_WRITE |
              sluice.REMOTE_ATOMIC)
DEADLINE = 30.0
COUNT = 300
PARTS = 5


def measure(name, function):
    times = []
    for _ in range(PARTS):
        begin = time.perf_counter()
        for _ in range(COUNT):
            function()
        times.append(1e6 * (time.perf_counter() - begin) / COUNT)
    print(f'{name}\t{statistics.median(times):.3f}')


def main():
    context = sluice.Context('soft')
    domain = context.domain()
    memory = domain.allocate(65536, ALL_RIGHTS)
    prepared = sluice.PreparedChannel(domain, None), sluice.PreparedChannel(domain, None)
    endpoints = [side.endpoint for side in prepared]
    one, two = prepared[0].handshake(endpoints[1]), prepared[1].handshake(endpoints[0])
    remote, piece, place = memory.remote(0, 8), memory[:8], memory[64:72]

    def message():
        request = two.post_receive(place, deadline=DEADLINE)
        one.send(piece, deadline=DEADLINE)
        request.wait(DEADLINE)

    measure('write', lambda: one.write(piece, remote, deadline=DEADLINE))
    measure('read', lambda: one.read(piece, remote, deadline=DEADLINE))
    measure('receive and send', message)


if __name__ == '__main__':
    main()
