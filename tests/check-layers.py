#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Who may call whom in lib/: reads lib/layers, the objects of a build and the includes of the sources.

    check-layers.py SOURCE-TREE BUILD-TREE   complains on stdout and exits 1 if a rule is broken
    check-layers.py -v SOURCE-TREE BUILD-TREE   shows the circles, and what of each makes it one

A layer is a folder, or a file with its header, of lib/layers. It calls itself and the layers that
stand before it, and includes headers of no others. What a header that is named a seam declares may be called from below it. The
files of a folder that call each other in circles are no more than lib/layers allows.
"""
import collections
import os
import re
import subprocess
import sys


def read_layers(path):
    order, seams, circles = [], [], {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            words = line.split("#")[0].split()
            if not words:
                continue
            if words[0] == "seam":
                seams.append(words[1])
            elif words[0] == "circle":
                circles[words[1]] = int(words[2])
            else:
                order.append(words[0])
    return order, seams, circles


def sources(top):
    for folder, _, names in os.walk(os.path.join(top, "lib")):
        for name in sorted(names):
            if name.endswith((".c", ".h")):
                yield os.path.relpath(os.path.join(folder, name), os.path.join(top, "lib"))


def object_of(build, source):
    """The object of a source, shared or static, as libtool and automake name it."""
    folder, name = os.path.split(source)
    name = name[:-2] + ".o"
    for place in (".libs/", ""):
        for prefix in ("libsluice_la-", "lib_libsluice_la-"):
            path = os.path.join(build, "lib", folder, place + prefix + name)
            if os.path.exists(path):
                return path
    return None


def symbols(paths):
    """path -> what each of these objects defines, and what it wants of others."""
    found = {path: (set(), set()) for path in paths}
    if not paths:
        return found
    # One process reads all objects. It prints the path of one before each of its symbols.
    output = subprocess.run(["nm", "-A", *paths], capture_output=True, text=True, check=True).stdout
    for line in output.splitlines():
        path, _, rest = line.rpartition(":")
        defined, wanted = found[path]
        words = rest.split()
        if len(words) == 3 and words[1] in "TDBRVWC":
            defined.add(words[2])
        elif len(words) == 2 and words[0] == "U":
            wanted.add(words[1])
    return found


def calls_between(top, build, seam_names):
    """file -> file -> names; a name that a seam declares is no call."""
    owner, wants, objects = {}, {}, {}
    for source in sources(top):
        path = object_of(build, source) if source.endswith(".c") else None
        if path is not None:
            objects[path] = source
    for path, (defined, wanted) in symbols(list(objects)).items():
        owner.update(dict.fromkeys(defined, objects[path]))
        wants[objects[path]] = wanted
    calls = collections.defaultdict(lambda: collections.defaultdict(set))
    for source, wanted in wants.items():
        for name in wanted:
            if name in owner and owner[name] != source and name not in seam_names:
                calls[source][owner[name]].add(name)
    return calls, set(wants)


def circles_of(nodes, calls):
    """Strongly connected components of more than one file (Tarjan's algorithm)."""
    index, low, stack, on_stack, found = {}, {}, [], set(), []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on_stack.add(node)
        for other in calls[node]:
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in on_stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            circle = []
            while not circle or circle[-1] != node:
                circle.append(stack.pop())
                on_stack.discard(circle[-1])
            if len(circle) > 1:
                found.append(sorted(circle))

    sys.setrecursionlimit(10000)
    for node in sorted(nodes):
        if node not in index:
            visit(node)
    return found


def layer_of(source, order):
    """The longest entry of the list that is the source, its stem, or a folder that it is in."""
    fitting = [n for n in order if source.startswith(n + "/") or n in (source, source[:-2])]
    return max(fitting, key=len) if fitting else None


def declared_in(path):
    with open(path, encoding="utf-8") as text:
        return set(re.findall(r"\b(slu_\w+)(?:\(|;|\[)", text.read()))


def includes_of(top, source):
    with open(os.path.join(top, "lib", source), encoding="utf-8") as text:
        return re.findall(r'^#include "([\w/]+\.h)"', text.read(), re.M)


def check(top, build, verbose):
    order, seams, allowed = read_layers(os.path.join(top, "lib", "layers"))
    complaints = []
    seam_names = set()
    for seam in seams:
        seam_names |= declared_in(os.path.join(top, "lib", seam))
    calls, files = calls_between(top, build, seam_names)
    for source in sources(top):
        layer = layer_of(source, order)
        if layer is None:
            complaints.append(f"lib/{source} is in no folder of lib/layers")
            continue
        for header in includes_of(top, source):
            other = layer_of(header, order)
            if other is not None and order.index(other) > order.index(layer) and header not in seams:
                complaints.append(f"lib/{source} includes {header}, of a layer above it")
        for other_source, names in sorted(calls[source].items()):
            other = layer_of(other_source, order)
            if other is not None and order.index(other) > order.index(layer):
                complaints.append(
                    f"lib/{source} calls {', '.join(sorted(names))} of {other_source}, above it")
    largest = collections.Counter()
    for circle in circles_of(files, calls):
        layer = layer_of(circle[0], order) or "?"
        largest[layer] = max(largest[layer], len(circle))
        if verbose:
            print(f"circle of {len(circle)} in {layer}: {' '.join(circle)}")
            for source in circle:
                inside = {o: n for o, n in calls[source].items() if o in circle}
                for other, names in sorted(inside.items()):
                    print(f"    {source} -> {other}: {' '.join(sorted(names))}")
    for layer, count in sorted(largest.items()):
        most = allowed.get(layer, 0)
        if count > most:
            complaints.append(f"{count} files of {layer} call each other in a circle, not {most}")
    for layer, most in sorted(allowed.items()):
        if largest[layer] < most:
            complaints.append(
                f"lib/layers allows a circle of {most} files in {layer}: there are {largest[layer]}")
    if not files:
        complaints.append(f"no objects of the library in {build}")
    return complaints


def main():
    arguments = [word for word in sys.argv[1:] if word != "-v"]
    complaints = check(arguments[0], arguments[1], "-v" in sys.argv)
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
