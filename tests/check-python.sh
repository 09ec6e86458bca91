#!/bin/sh
# SPDX-License-Identifier: MIT
# The Python package. The test of its sources and that of a wheel each take long, so they are two
# tests for make, which run at the same time.
#
#   check-python.sh           its tests, on each wire of the software transport, over cffi as it is in
#                             the sources; and its examples
#   check-python.sh wheel     a wheel of it, with the extension in C, which is installed where nothing
#                             else of sluice is, passes the same tests, and has the digests of the
#                             example in C: check-wheel.sh
#   check-python.sh guest     in the guest of tests/softroce: what is of devices, on rxe0
. "${srcdir:-.}/tests/tap.sh"

package=$(cd "$srcdir/bindings/python" && pwd)
library=$(pwd)/lib/.libs/libsluice.so.1
[ -f "$library" ] || skip_all 'no shared library was built'

# The distribution's Python has the distribution's packages.
python=
for candidate in ${PYTHON:-} python3 /usr/bin/python3; do
  if "$candidate" -c 'import cffi, numpy, pytest' 2>/dev/null; then
    python=$candidate
    break
  fi
done
[ -n "$python" ] || skip_all 'no python3 with cffi, numpy and pytest'

# A cluster that happens to be here is not asked. Sources may be of others, and stay as they are.
export SLUICE_MUNGE=no PYTHONDONTWRITEBYTECODE=1
limit=600
with_sources() {
  PYTHONPATH=$package/src SLUICE_LIBRARY=$library timeout "$limit" "$python" "$@"
}

# run_pytest NUMBER RUNNER ARGUMENT...: runs it, for report.
run_pytest() {
  number=$1 runner=$2
  shift 2
  : >"$tmp/$number.tap"
  SLUICE_TEST_TAP=$tmp/$number.tap "$runner" -m pytest -q -p no:cacheprovider \
    --rootdir "$package" "$@" >"$tmp/$number.out" 2>&1
  echo $? >"$tmp/$number.status"
}

# report NAME NUMBER: its tests, as results of this script's own.
report() {
  status=$(cat "$tmp/$2.status")
  # 1: some have failed, which their lines say.
  [ "$status" -le 1 ] || sed 's/^/# /' "$tmp/$2.out"
  [ "$status" != 1 ] || status=0
  pass_on "$1" "$status" "$tmp/$2.tap"
}

# tests NAME RUNNER ARGUMENT...: of pytest.
tests() {
  name=$1
  shift
  run_pytest 1 "$@"
  report "$name" 1
}

# Each second file of tests at the same time as the others, because most tests wait.
all_tests() {
  for half in 0 1; do
    # shellcheck disable=SC2046 # they are words
    later with_sources $(find "$package/tests" -name 'test_*.py' | sort | awk -v half=$half 'NR % 2 == half')
  done
  at_once 2 run_pytest
  report python 1
  report python 2
}

some='message or write_and_read or atomics or errors_by_class or await_requests'
some="$some or scatter_and_gather or last_reference"
if [ "${1:-}" = guest ]; then
  export SLUICE_TEST_DEVICE="${SLUICE_TEST_DEVICE:-rxe0}"
  # To begin takes a minute there, and several beside other work: files come over 9p.
  limit=1100
  tests python with_sources -k "$some" "$package/tests/test_channel.py" "$package/tests/test_memory.py" \
    "$package/tests/test_multichannel.py" "$package/tests/test_aio.py"
  finish
fi

same_version() {
  found=$(with_sources -c 'import sluice; print(sluice.__version__)')
  echo "$found, $VERSION"
  [ "$found" = "$VERSION" ] && grep -q "^version = \"$VERSION\"\$" "$package/pyproject.toml"
}

# The first program of README.md.
read_me() {
  awk '/^```python$/ { inside = ++seen == 1; next } /^```/ { inside = 0 } inside' \
    "$package/README.md" >"$tmp/readme.py"
  SLUICE_DEVICE=soft with_sources "$tmp/readme.py" >"$tmp/out" 2>&1
  cat "$tmp/out"
  printf '%s\n' '5 bytes: hello' 150.0 | cmp - "$tmp/out"
}

# The sums of examples/allreduce.py are right, by both algorithms, of sizes that nothing divides.
# One start of the ranks is enough for all sizes: most of the time they import numpy.
reduces() {
  for algorithm in ring tree; do
    PYTHONPATH=$package/src SLUICE_LIBRARY=$library SLUICE_DEVICE=soft timeout 120 \
      tools/sluice-launch -q -n "$1" "$python" "$package/examples/allreduce.py" \
      "$algorithm" 2 1001 40003 >"$tmp/out" 2>&1
    status=$?
    cat "$tmp/out"
    [ "$status" = 0 ] || return 1
    for numbers in 2 1001 40003; do
      grep -q "^$algorithm: $numbers numbers, $1 ranks, sums are right" "$tmp/out" || return 1
    done
  done
}

if [ "${1:-}" != wheel ]; then
  all_tests
  check 'the package has the version of the library' same_version
  check 'the program of README.md runs' read_me
  if [ -x tools/sluice-launch ]; then
    for ranks in 1 3; do
      check "examples/allreduce.py of $ranks ranks" reduces "$ranks"
    done
  fi
  finish
fi

# Libtool leaves a script where the program would be, or the program.
info=$(pwd)/tools/.libs/sluice-info
[ -f "$info" ] || info=$(pwd)/tools/sluice-info
build_wheel() {
  with_info=
  [ ! -f "$info" ] || with_info="--info $info"
  # shellcheck disable=SC2086 # they are words
  (cd "$tmp" && PYTHON=$python sh "$package/build-wheel" --library "$library" $with_info)
}
install_wheel() {
  "$python" -m venv --system-site-packages "$tmp/venv" &&
    "$tmp/venv/bin/pip" --disable-pip-version-check install --no-index --no-deps "$tmp"/dist/*.whl
}
# In a build folder its own library is taken, where that has verbs or not as the wheel is to.
takes_built() {
  verbs=
  ! grep -q '^#define HAVE_VERBS 1' config.h || verbs=--with-verbs
  # shellcheck disable=SC2086 # no word if there is none
  (unset MAKEFLAGS MFLAGS MAKELEVEL &&
    PYTHON=$python sh "$package/build-wheel" $verbs --output "$tmp/built") >"$tmp/out" 2>&1
  status=$?
  cat "$tmp/out"
  [ "$status" = 0 ] && grep -q 'takes the library of this folder' "$tmp/out" &&
    ls "$tmp"/built/sluice-*.whl
}
# It must be the installed package that is found, and the library that came with it.
in_venv() {
  (cd "$tmp" && env -u PYTHONPATH -u SLUICE_LIBRARY -u LD_LIBRARY_PATH SLUICE_DEVICE=soft \
    timeout 600 "$tmp/venv/bin/python" "$@")
}
own_library() {
  found=$(in_venv -c 'import sluice; print(sluice.library_path)')
  echo "$found"
  case $found in "$tmp"/venv/*/sluice/lib/libsluice.so.1) ;; *) return 1 ;; esac
}
# It brings sluice-info along, which is of the library that the package loads: its own, or another.
tells_library() {
  (cd "$tmp" && env -u PYTHONPATH -u LD_LIBRARY_PATH "$@" "$tmp/venv/bin/sluice-info" build) >"$tmp/out" 2>&1
  cat "$tmp/out"
}
own_info() {
  tells_library -u SLUICE_LIBRARY && grep -q "$tmp/venv/.*/sluice/lib/libsluice.so.1" "$tmp/out" &&
    grep -q -F -e "$(in_venv -c 'import sluice; print(sluice.version())')" "$tmp/out" &&
    tells_library "SLUICE_LIBRARY=$library" && grep -q "$library" "$tmp/out"
}
# Without a compiler there is a wheel all the same, for any Python 3.
build_plain_wheel() {
  (cd "$tmp" && CC=false PYTHON=$python sh "$package/build-wheel" --library "$library" \
    --output "$tmp/plain" && ls "$tmp"/plain/sluice-*-py3-none-*.whl)
}
# A wheel is called manylinux_2_N only if all of it loads with that glibc.
build_named_wheel() {
  (cd "$tmp" && CC=false PYTHON=$python sh "$package/build-wheel" --library "$library" \
    --platform "manylinux_2_$1_$(uname -m)" --output "$tmp/named")
}
name_is_checked() {
  build_named_wheel 99 && ls "$tmp"/named/sluice-*-py3-none-manylinux_2_99_*.whl || return 1
  ! build_named_wheel 2 >"$tmp/out" 2>&1
  cat "$tmp/out"
  grep -q 'is no manylinux_2_2_.*: it needs GLIBC_2' "$tmp/out" && ! ls "$tmp"/named/*manylinux_2_2_*
}
# Else each import takes half a second, in which cffi parses them.
parses_nothing() {
  in_venv -c 'import sys, sluice; assert "cffi.api" not in sys.modules'
}
compiled() {
  in_venv -c 'import sluice; assert sluice.compiled'
}
typed() {
  in_venv -c 'import pathlib, sluice; assert (pathlib.Path(sluice.__file__).parent / "py.typed").exists()'
}
digest() {
  grep -o -E '^[0-9a-f]{64}: digests agree$' "$1" || { cat "$1"; return 1; }
}
same_digests() {
  env SLUICE_DEVICE=soft timeout 120 examples/03-scatter-gather "$@" >"$tmp/of_c" 2>&1
  in_venv "$package/examples/scatter_gather.py" "$@" >"$tmp/of_python" 2>&1
  digest "$tmp/of_c" >"$tmp/of_c.digest" && digest "$tmp/of_python" >"$tmp/of_python.digest"
  cat "$tmp/of_c.digest" "$tmp/of_python"
  cmp "$tmp/of_c.digest" "$tmp/of_python.digest"
}
names_the_file() {
  ! in_venv "$package/examples/scatter_gather.py" "$tmp/nosuchfile" >"$tmp/out" 2>&1
  cat "$tmp/out"
  grep -q '^scatter_gather.py: .*nosuchfile: No such file' "$tmp/out"
}

if ! "$python" -c 'import build, setuptools, venv, wheel' 2>/dev/null; then
  skip 'a wheel is built' "$python has no build, setuptools, venv or wheel"
else
  check 'a wheel is built' build_wheel
  check 'it is installed in a virtual environment' install_wheel
  check 'it brings its library along' own_library
  if [ -f "$info" ]; then
    check 'it brings sluice-info along' own_info
  else
    skip 'it brings sluice-info along' 'sluice-info was not built'
  fi
  check 'it is typed' typed
  check 'its declarations are not parsed' parses_nothing
  if [ "${SLUICE_TEST_SHORT:-}" ]; then
    skip 'a wheel is built without a compiler' 'it takes long, and SLUICE_TEST_SHORT is set'
    skip 'a wheel takes the library of a build folder' 'it takes long, and SLUICE_TEST_SHORT is set'
  else
    check 'a wheel is built without a compiler' build_plain_wheel
    check 'a wheel needs no newer glibc than its name says' name_is_checked
    if [ -f Makefile ] && [ -f config.h ] && [ -z "${SANITIZE:-}" ]; then
      check 'a wheel takes the library of a build folder' takes_built
    else
      skip 'a wheel takes the library of a build folder' 'not in a build folder of such a library'
    fi
  fi
  headers=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
  if [ -f "$headers/Python.h" ]; then
    check 'the wheel has the extension in C' compiled
    # That it is another way into the same library is seen by some of them.
    if [ "${SLUICE_TEST_SHORT:-}" ]; then
      tests wheel in_venv -k "$some" "$package/tests"
    else
      tests wheel in_venv "$package/tests"
    fi
  else
    skip 'the wheel has the extension in C' "no $headers/Python.h"
  fi
  if [ -x examples/03-scatter-gather ]; then
    head -c 3000001 /dev/urandom >"$tmp/input"
    check 'its example has the digests of that in C' same_digests -n 4 "$tmp/input"
  else
    skip 'its example has the digests of that in C' 'that was not built'
  fi
  check 'its example names a file that is not there' names_the_file
fi
finish
