# SPDX-License-Identifier: MIT
"""The extension in C is optional, and a wheel is named after what is in it.

A wheel with the library or the extension is of this machine, and with the extension of CPython 3.10
and later. Without a compiler or the headers of Python the package works all the same, over cffi.

The declarations are compiled for cffi, which else parses them at each import.
"""
import os
import runpy
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from wheel.bdist_wheel import bdist_wheel

HERE = Path(__file__).parent
BUNDLED = (HERE / "src/sluice/lib/libsluice.so.1").exists()
# build-wheel copies the headers beside this file.
HEADERS = "include" if (HERE / "include").exists() else "../../include"

EXTENSION = Extension(
    "sluice._fast",
    sources=["fast_batch.c", "fast_engine.c"],
    depends=["fast.h"],
    include_dirs=[HEADERS],
    define_macros=[("Py_LIMITED_API", "0x030A0000")],
    extra_link_args=["-s"],
    py_limited_api=True,
    optional=True,
)
SUPPORTED = (
    sys.implementation.name == "cpython"
    and sys.version_info >= (3, 10)
    and not sysconfig.get_config_var("Py_GIL_DISABLED")
)


class Build(build_ext):
    built = False

    def build_extension(self, extension):
        super().build_extension(extension)
        Build.built = True


class Package(build_py):
    def run(self):
        super().run()
        # An editable package parses them, because a file among its sources would be left behind.
        if not getattr(self, "editable_mode", False):
            self.compile_declarations()

    def compile_declarations(self):
        try:
            from cffi import FFI
        except ImportError:
            return
        ffi = FFI()
        ffi.set_source("sluice._ffi", None)
        ffi.cdef(runpy.run_path(str(HERE / "src/sluice/_cdef.py"))["DECLARATIONS"])
        ffi.emit_python_code(str(Path(self.build_lib, "sluice", "_ffi.py")))


class Wheel(bdist_wheel):
    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = not (BUNDLED or SUPPORTED)

    def get_tag(self):
        # build-wheel checks afterwards that the wheel is what it is called.
        platform = os.environ.get("SLUICE_WHEEL_PLATFORM") or super().get_tag()[2]
        if Build.built:
            return ("cp310", "abi3", platform)
        return ("py3", "none", platform if BUNDLED else "any")


setup(
    cmdclass={"bdist_wheel": Wheel, "build_ext": Build, "build_py": Package},
    ext_modules=[EXTENSION] if SUPPORTED else [],
)
