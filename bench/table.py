# SPDX-License-Identifier: MIT
"""Code that bench/compare and bench/usage share: running programs, MPI as a peer, medians with
intervals, and tables as JSON, CSV and plot."""

import csv
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT = 120  # seconds for one program
RESAMPLES = 2000


class Failed(Exception):
    """A program did not run, or its output cannot be read."""


def run(command, more=None):
    """Runs a program and returns its output; on an exception kills it and all that it started."""
    environment = dict(os.environ, **(more or {}))
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                          start_new_session=True) as process:
        try:
            out, err = process.communicate(timeout=LIMIT)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            if isinstance(error, subprocess.TimeoutExpired):
                raise Failed(f'{command[0]}: not done after {LIMIT} s') from error
            raise
    if process.returncode != 0:
        raise Failed(f'{" ".join(command)}: exit status {process.returncode}: {err.strip()[-300:]}')
    return out


def bytes_text(size):
    for unit, shift in (('MiB', 20), ('KiB', 10)):
        if size >> shift and not size & ((1 << shift) - 1):
            return f'{size >> shift} {unit}'
    return f'{size} B'


def interval(values):
    """Returns the median, and its 95 % interval by resampling."""
    chance = random.Random(1)
    medians = sorted(statistics.median(chance.choices(values, k=len(values)))
                     for _ in range(RESAMPLES))
    return (statistics.median(values), medians[int(0.025 * RESAMPLES)],
            medians[int(0.975 * RESAMPLES) - 1])


class Mpi:
    """An MPI with its compiler and launcher, over shared memory or TCP."""

    def __init__(self, kind, wire, folder):
        self.name = f'{"Open MPI" if kind == "openmpi" else "MPICH"} {wire}'
        self.kind, self.wire = kind, wire
        self.compiler = shutil.which(f'mpicc.{kind}')
        self.launcher = shutil.which(f'mpirun.{kind}')
        self.program = os.path.join(folder, f'mpi-{kind}')

    def missing(self):
        if self.compiler is None or self.launcher is None:
            return f'no mpicc.{self.kind} or mpirun.{self.kind}'
        if not os.path.exists(self.program):
            run([self.compiler, '-O2', '-o', self.program, os.path.join(HERE, 'peers', 'mpi.c')])
        return None

    def command(self, fits):
        if self.kind == 'openmpi':
            network = 'self,vader' if self.wire == 'shm' else 'self,tcp'
            command = [self.launcher, '--oversubscribe', '--mca', 'pml', 'ob1', '--mca', 'btl',
                       network, '--mca', 'btl_tcp_if_include', 'lo', '--mca', 'osc', '^ucx']
            return command + ['--bind-to', 'core' if fits else 'none']
        return [self.launcher] + (['-bind-to', 'core'] if fits else [])

    def environment(self):
        if self.kind == 'openmpi':
            return {'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1'}
        return {}

    def measure(self, name, size, ranks, count, fits, more=()):
        """Returns the median in microseconds."""
        command = self.command(fits) + ['-n', str(ranks), self.program, name, str(size), str(count)]
        words = run(command + list(more), self.environment()).split()
        if len(words) != 5 or words[0] != name:
            raise Failed(f'{self.name}: {" ".join(words)[:200]}')
        return float(words[3])


def write_csv(path, results):
    names = list(dict.fromkeys(name for result in results for name in result
                               if not isinstance(result[name], dict)))
    with open(path, 'w', encoding='utf-8', newline='') as file:
        writer = csv.DictWriter(file, names, extrasaction='ignore')
        writer.writeheader()
        writer.writerows(results)


def write_svg(path, results, label):
    """Draws ratios with their intervals on a logarithmic scale, and the line of 1. Of rates it draws
    the inverse, so that left is better in all rows."""
    shown = [result for result in results if 'ratio' in result]
    if shutil.which('gnuplot') is None:
        print('missing: gnuplot, so there is no plot')
        return
    if not shown:
        print('no row has a ratio, so there is no plot')
        return
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, 'data')
        with open(data, 'w', encoding='utf-8') as file:
            for place, result in enumerate(reversed(shown)):
                name = result['row'].replace('"', '')
                ratio, low, high = result['ratio'], result['low'], result['high']
                if result.get('sense') == '>':
                    name += ' (inverse)'
                    ratio, low, high = 1 / ratio, 1 / high, 1 / low
                file.write(f'"{name}" {place} {ratio} {low} {high}\n')
        script = f'''set terminal svg size 900,{80 + 22 * len(shown)} dynamic noenhanced font "sans,11"
set output "{path}"
set logscale x
set grid x
set xlabel "{label} (95 % interval): left is better"
set yrange [-0.7:{len(shown) - 0.3}]
set arrow from 1, graph 0 to 1, graph 1 nohead lw 2
plot "{data}" using 3:2:4:5:ytic(1) with xerrorbars pt 7 ps 0.6 notitle
'''
        plot = os.path.join(folder, 'plot')
        with open(plot, 'w', encoding='utf-8') as file:
            file.write(script)
        run(['gnuplot', plot])


def add_arguments(parser):
    """Adds the arguments that the tables have in common."""
    parser.add_argument('--rounds', type=int, help='of each row (11; quick: 3)')
    parser.add_argument('--quick', action='store_true', help='shows that all works, little more')
    parser.add_argument('--row', action='append', default=[], metavar='WORDS',
                        help='only rows whose name has these words; may be repeated')
    parser.add_argument('--json', metavar='FILE')
    parser.add_argument('--csv', metavar='FILE')
    parser.add_argument('--svg', metavar='FILE')
    parser.add_argument('--list', action='store_true', help='names the rows')
    parser.add_argument('--verbose', action='store_true', help='shows each round')


def read_arguments(parser):
    options = parser.parse_args()
    options.rounds = options.rounds or (3 if options.quick else 11)
    if options.rounds < 1:
        parser.error('--rounds: at least 1')
    return options


def end_by_exception():
    """Makes SIGTERM raise an exception, which ends all started programs."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


def write_files(options, results, label):
    if options.json:
        with open(options.json, 'w', encoding='utf-8') as file:
            json.dump(results, file, indent=1)
    if options.csv:
        write_csv(options.csv, results)
    if options.svg:
        write_svg(options.svg, results, label)
