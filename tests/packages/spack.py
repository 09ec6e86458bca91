# SPDX-License-Identifier: MIT
"""Executes a Spack recipe with a stand-in for the parts of Spack that it uses.

    python3 spack.py PACKAGE.PY VARIANT...

prints the arguments of configure, one a line, and the calls of make, for the defaults changed by
these variants, such as "~verbs". With --describe it prints what the recipe declares. A directive or method that Spack does
not have is an error, as is a variant without a use or a condition that names no variant.
"""
import re
import sys
import types

declared = {"variants": {}, "versions": {}, "depends": [], "licenses": []}


def names_in(condition):
    return re.findall(r"[+~]([a-z0-9_]+)", condition or "")


def variant(name, default, description, when=None):
    if not isinstance(default, bool) or not description:
        raise TypeError(f"variant {name}: it needs a bool and a description")
    declared["variants"][name] = (default, when)


def version(number, sha256):
    if not re.fullmatch("[0-9a-f]{64}", sha256):
        raise ValueError(f"version {number}: {sha256} is no checksum")
    declared["versions"][number] = sha256


def depends_on(spec, type=("build", "link"), when=None):
    declared["depends"].append((spec, type, when))


def license(identifier):
    declared["licenses"].append(identifier)


class AutotoolsPackage:
    """Spack's methods that make arguments of configure, for boolean variants."""

    build_targets = []
    install_targets = ["install"]

    def __init__(self, changes):
        self.values = {name: default for name, (default, _) in declared["variants"].items()}
        for change in changes:
            if change[1:] not in self.values:
                raise KeyError(f"no variant {change[1:]}")
            self.values[change[1:]] = change[0] == "+"
        self.used = set()

    def holds(self, condition):
        return all(
            self.values[name] == (sign == "+")
            for sign, name in re.findall(r"([+~])([a-z0-9_]+)", condition or "")
        )

    def argument(self, name, yes, no):
        when = declared["variants"][name][1]
        self.used.add(name)
        if not self.holds(when):
            return []
        return [f"--{yes if self.values[name] else no}-{name}"]

    def with_or_without(self, name):
        return self.argument(name, "with", "without")

    def enable_or_disable(self, name):
        return self.argument(name, "enable", "disable")


def add_module(name, *things):
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        sys.modules.setdefault(".".join(parts[:count]), types.ModuleType(parts[count - 1]))
    for thing in things:
        setattr(sys.modules[name], thing.__name__, thing)


def load(path):
    add_module("spack.package", depends_on, license, variant, version)
    add_module("spack_repo.builtin.build_systems.autotools", AutotoolsPackage)
    scope = {"__name__": "recipe"}
    with open(path, encoding="utf-8") as file:
        exec(compile(file.read(), path, "exec"), scope)
    recipes = [
        value
        for value in scope.values()
        if isinstance(value, type) and issubclass(value, AutotoolsPackage)
        and value is not AutotoolsPackage
    ]
    if [recipe.__name__ for recipe in recipes] != ["Sluice"]:
        raise NameError(f"{path}: the class of the package sluice is Sluice")
    return recipes[0]


def main():
    recipe = load(sys.argv[1])
    conditions = [when for _, when in declared["variants"].values()]
    conditions += [when for _, _, when in declared["depends"]]
    for condition in conditions:
        for name in names_in(condition):
            if name not in declared["variants"]:
                raise KeyError(f"when={condition}: no variant {name}")
    if sys.argv[2:] == ["--describe"]:
        print("url", recipe.url)
        for number, checksum in declared["versions"].items():
            print("version", number, checksum)
        for identifier in declared["licenses"]:
            print("license", identifier)
        for spec, _, _ in declared["depends"]:
            print("depends", spec)
        return
    package = recipe(sys.argv[2:])
    arguments = package.configure_args()
    if package.used != set(declared["variants"]):
        raise KeyError(f"unused: {set(declared['variants']) - package.used}")
    print(*arguments, sep="\n")
    print("make", *package.build_targets)
    print("make", *package.install_targets)


main()
