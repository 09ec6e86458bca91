# SPDX-License-Identifier: MIT
"""How the library is found, and what is said if it is not."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

import cffi
import pytest
from conftest import run_python

import sluice
from sluice import _cdef, _info, _library


def import_with(library):
    env = dict(os.environ, SLUICE_LIBRARY=library)
    env["PYTHONPATH"] = os.path.dirname(os.path.dirname(sluice.__file__))
    result = subprocess.run(
        [sys.executable, "-c", "import sluice; print(sluice.library_path)"],
        capture_output=True,
        text=True,
        env=env,
    )
    return result.returncode, result.stdout + result.stderr


def test_no_such_library(tmp_path):
    status, text = import_with(str(tmp_path / "nowhere.so"))
    assert status != 0 and "ImportError" in text
    assert "nowhere.so, named by SLUICE_LIBRARY, cannot be loaded" in text


def test_no_room_for_thread_local_variables(monkeypatch):
    def fail(name):
        raise OSError(f"{name}: cannot allocate memory in static TLS block")

    class Fake:
        dlopen = staticmethod(fail)

    monkeypatch.setattr(_library, "ffi", Fake)
    with pytest.raises(ImportError, match="used up the room .*import sluice before them"):
        _library._load()


def test_another_library():
    status, text = import_with("libc.so.6")
    assert status != 0 and "is not libsluice" in text


@pytest.mark.parametrize("text", [b"0.1.0 (soft)", b"2.0.0 (soft)", b"nonsense"])
def test_another_version(text):
    class Fake:
        SLUICE_VERSION_MAJOR = _library.lib.SLUICE_VERSION_MAJOR
        SLUICE_VERSION_MINOR = _library.lib.SLUICE_VERSION_MINOR
        SLUICE_VERSION_PATCH = _library.lib.SLUICE_VERSION_PATCH
        said = _library.ffi.new("char[]", text)

        def sluice_version(self):
            return self.said

    with pytest.raises(ImportError, match="and this package needs 1.0"):
        _library._check_version(Fake(), "libsluice.so.1", "of the system")


def test_info_that_is_not_there(monkeypatch, tmp_path):
    monkeypatch.setattr(_info, "FOLDER", tmp_path)
    with pytest.raises(SystemExit, match="was built without it"):
        _info.main()


def test_info_loads_the_same_library(monkeypatch, tmp_path):
    monkeypatch.setattr(_info, "FOLDER", tmp_path)
    monkeypatch.setattr(_info, "library_path", str(tmp_path / "libsluice.so.1"))
    assert _info.environment({"LD_LIBRARY_PATH": "a"}) == {"LD_LIBRARY_PATH": f"{tmp_path}:a"}
    monkeypatch.setattr(_info, "library_path", "/elsewhere/mine.so")
    assert _info.environment({}) == {
        "LD_LIBRARY_PATH": str(tmp_path),
        "LD_PRELOAD": "/elsewhere/mine.so",
    }


def test_all_that_is_public_is_described():
    for name in sluice.__all__:
        each = getattr(sluice, name)
        if callable(each):
            assert each.__doc__, name
        if isinstance(each, type):
            for key, value in vars(each).items():
                if callable(value) and not key.startswith("_"):
                    assert value.__doc__, f"{name}.{key}"


def test_types_are_parsed_before_they_are_used():
    """Ctrl-C while cffi parses a type breaks its parser."""
    out = run_python(
        """
        import re
        import sys
        from pathlib import Path
        sys.modules["sluice._ffi"] = None  # as in the sources
        import sluice
        from sluice._library import ffi
        names = set()
        for source in Path(sluice.__file__).parent.glob("*.py"):
            calls = r'ffi\\.(?:new|cast|sizeof|typeof|callback)\\(\\s*f?"([^"]*)"'
            text = source.read_text()
            names |= set(re.findall(calls, text))
            for name in re.findall(r'struct_of\\("(\\w+)"', text):
                names |= {f"struct {name}", f"struct {name} *"}
        print(len(names) > 30, names - set(ffi._parsed_types))
        """
    )
    assert out == "True set()\n"


@pytest.fixture
def compiled(tmp_path):
    """The declarations as setup.py compiles them."""
    made = cffi.FFI()
    made.set_source("sluice._ffi", None)
    made.cdef(_cdef.DECLARATIONS)
    made.emit_python_code(str(tmp_path / "_ffi.py"))
    return tmp_path / "_ffi.py"


def test_compiled_declarations_are_those_of_the_package(compiled):
    installed = Path(sluice.__file__).parent / "_ffi.py"
    if not installed.exists():
        pytest.skip("these are the sources, which have none")
    assert installed.read_text() == compiled.read_text()


def test_nothing_is_parsed_with_compiled_declarations(compiled, tmp_path):
    package = tmp_path / "path" / "sluice"
    shutil.copytree(Path(sluice.__file__).parent, package)
    shutil.copy(compiled, package)
    code = """
import sys
import sluice
assert "cffi.api" not in sys.modules and "pycparser" not in sys.modules
channels = [sluice.PreparedChannel(sluice.Context("soft").domain()) for _ in range(2)]
ends = [each.endpoint for each in channels]
one, other = channels[0].handshake(ends[1]), channels[1].handshake(ends[0])
one.wait_connected(60)
print(one.info.send_depth > 0, sluice.FAILED != sluice.READY)
"""
    env = dict(os.environ, PYTHONPATH=str(package.parent), SLUICE_LIBRARY=_library.library_path)
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600, env=env
    )
    assert (result.stdout, result.stderr) == ("True True\n", "")
    env["SLUICE_LIBRARY"] = "libc.so.6"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600, env=env
    )
    assert result.returncode != 0 and "is not libsluice" in result.stderr
