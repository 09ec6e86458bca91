# SPDX-License-Identifier: MIT
"""A wheel that has the library in it is of this machine, and of any Python 3."""
from pathlib import Path

from setuptools import setup
from wheel.bdist_wheel import bdist_wheel

BUNDLED = (Path(__file__).parent / "src/sluice/lib/libsluice.so.0").exists()


class Wheel(bdist_wheel):
    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = not BUNDLED

    def get_tag(self):
        return ("py3", "none", super().get_tag()[2] if BUNDLED else "any")


setup(cmdclass={"bdist_wheel": Wheel})
