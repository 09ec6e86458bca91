# SPDX-License-Identifier: MIT
"""README.md lists the calls of the library that the package does not make, no more and no fewer."""
import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1]
MAP = PACKAGE.parents[1] / "lib" / "sluice.map"
README = (PACKAGE / "README.md").read_text()


def exported():
    return set(re.findall(r"^\s+(sluice_\w+);", MAP.read_text(), re.M))


def called():
    """By its name, or by the name that channels and multichannels have in common."""
    names = set()
    for source in (PACKAGE / "src" / "sluice").glob("*.py"):
        text = source.read_text()
        if source.name == "_cdef.py":
            continue
        names |= set(re.findall(r"\blib(?:rary)?\.(sluice_\w+)", text))
        common = re.findall(r'\b_f\(\s*"(\w+)"', text)
        for listed in re.findall(r"_f\(name\) for name in \(([^)]*)\)", text):
            common += re.findall(r'"(\w+)"', listed)
        for name in common:
            names |= {f"sluice_channel_{name}", f"sluice_multichannel_{name}"}
    return names


def rows(title):
    """The first column of the table that follows these words."""
    table = README.split(title, 1)[1].split("| --- | --- |\n", 1)[1].split("\n\n", 1)[0]
    return [re.findall(r"`(sluice_[\w*]+)`", row.split("|")[1]) for row in table.splitlines()]


def patterns():
    missing = rows("\n## Calls without a Python form\n")
    formed = rows("\nThese calls have another form:\n")
    return [name for row in missing + formed for name in row]


@pytest.mark.skipif(not MAP.exists(), reason="not in the sources of the library")
class TestList:
    def test_all_that_is_not_called_is_listed(self):
        left = exported() - called()
        listed = patterns()
        assert sorted(n for n in left if not any(fnmatchcase(n, p) for p in listed)) == []

    def test_all_that_is_listed_is_not_called(self):
        left = exported() - called()
        for pattern in patterns():
            assert any(fnmatchcase(name, pattern) for name in left), pattern
            if "*" not in pattern:
                assert pattern in left, pattern

    def test_no_call_is_of_another_library(self):
        assert called() - exported() == set()

    def test_what_is_missing_is_not_called_at_all(self):
        names = called()
        for row in rows("\n## Calls without a Python form\n"):
            for pattern in row:
                assert not [name for name in names if fnmatchcase(name, pattern)], pattern
