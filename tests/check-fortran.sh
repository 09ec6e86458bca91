#!/bin/sh
# SPDX-License-Identifier: MIT
# The Fortran module says what the headers say, by what two compilers make of both, and programs
# that use it run: bindings/fortran.
. "${srcdir:-.}/tests/tap.sh"

fortran=${FC:-gfortran}
top=$(cd "$srcdir" && pwd)
module=$top/bindings/fortran/sluice.f90
libs=$(pwd)/lib/.libs
launch=$(pwd)/tools/sluice-launch

have "$fortran" || skip_all "no $fortran"
[ -f "$libs/libsluice.so" ] || skip_all 'no shared library was built'
# Options of GNU Fortran that other compilers may not know.
strict=
case $($fortran --version 2>/dev/null) in
  GNU*) strict='-std=f2008 -pedantic -Wall -Wextra -Werror -fcheck=bounds,do,mem,pointer' ;;
esac

# Modules are written, and looked for, in $tmp. Code of a sanitizer's is linked as it must be.
compile() {
  # shellcheck disable=SC2086 # flags are words
  (cd "$tmp" && $fortran $strict -g -c "$@")
}
link() {
  program=$1
  shift
  # shellcheck disable=SC2086 # flags are words
  (cd "$tmp" && $fortran $strict -g ${SANITIZE:-} -o "$program" "$@" -L"$libs" -lsluice)
}
run() {
  LD_LIBRARY_PATH=$libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} SLUICE_DEVICE=soft timeout 120 "$@"
}

headers() {
  (cd "$top/include" && find sluice -name '*.h' ! -name mpi.h | sort | sed 's/.*/#include <&>/')
}

# The declarations of the headers, one a line, without attributes and inline functions.
declarations() {
  mkdir -p "$tmp/standard"
  touch "$tmp/standard/stdint.h" "$tmp/standard/stddef.h"
  headers | ${CC:-cc} -E -P -xc -U__GNUC__ -nostdinc -I"$top/include" -I"$tmp/standard" - |
    tr '\n' ' ' | sed 's/static inline [^{]*{[^{}]*}//g; s/; */;\n/g; s/  */ /g'
}

# name.field of each struct, in C and in the module, whose one type of another name is known.
fields_of_headers() {
  declarations | awk '
    /^ *struct sluice_[a-z_0-9]* *{/ { name = $2; inside = 1; sub(/^[^{]*{/, "") }
    inside && /^ *}/ { inside = 0 }
    inside {
      field = $0
      if (field ~ /\(\*/) { sub(/^[^*]*\(\*/, "", field); sub(/\).*/, "", field) }
      sub(/\[.*/, "", field); sub(/ *;.*/, "", field); sub(/.*[ *]/, "", field)
      print name, field
    }'
}
fields_of_module() {
  awk '/^    type, public, bind\(c\) ::/ { name = $NF; next }
    /^    end type/ { name = "" }
    name != "" { field = $0; sub(/.*:: /, "", field); sub(/[ (].*/, "", field); print name, field }' \
    "$module"
}

# Each field of the headers as C lays it out: struct, field, offset and bytes.
layout_in_c() {
  {
    echo '#include <stdio.h>' && echo '#include <stddef.h>' && headers
    echo 'int main(void) {'
    fields_of_headers | awk '
      { printf "printf(\"%s %s %%zu %%zu\\n\", offsetof(struct %s, %s),", $1, $2, $1, $2 }
      { printf " sizeof(((struct %s *)0)->%s));\n", $1, $2 }
      !seen[$1]++ { printf "printf(\"%s - 0 %%zu\\n\", sizeof(struct %s));\n", $1, $1 }'
    echo 'return 0; }'
  } >"$tmp/layout.c"
  ${CC:-cc} -I"$top/include" -o "$tmp/layout_c" "$tmp/layout.c" && "$tmp/layout_c" | sort >"$tmp/in_c"
  [ -s "$tmp/in_c" ]
}

# The same of the module, as Fortran does. And a variable that nothing was said of is zero, but for
# its size.
layout_in_fortran() {
  {
    echo 'program layout' && echo 'use sluice' && echo 'use, intrinsic :: iso_c_binding'
    echo 'implicit none'
    fields_of_module | cut -d ' ' -f 1 | uniq | while read -r type; do
      echo "call at_${type#sluice_}()"
    done
    echo contains
    fields_of_module | awk '
      function end_of() {
        if (type == "") return
        print "write (*, \"(2a, i0)\") \"" c_name " - 0 \", \"\", c_sizeof(v)"
        print "first = 1"
        if (sized) print "first = 5"
        if (sized) print "if (v%size /= c_sizeof(v)) print *, \"" c_name ": another size is set\""
        print "if (any(bytes(first:) /= 0)) print *, \"" c_name ": it is not zero\""
        print "end subroutine"
      }
      $1 != type {
        end_of()
        type = c_name = $1; sized = 0
        sub(/_t$/, "", c_name)
        print "subroutine at_" substr(type, 8) "()"
        print "type(" type "), target :: v"
        print "integer(c_int8_t), pointer :: bytes(:)"
        print "integer :: first"
        print "call c_f_pointer(c_loc(v), bytes, [c_sizeof(v)])"
      }
      $2 == "size" { sized = 1 }
      {
        print "write (*, \"(a, i0, a, i0)\") \"" c_name " " $2 " \", &"
        print "transfer(c_loc(v%" $2 "), 0_c_intptr_t) - transfer(c_loc(v), 0_c_intptr_t), &"
        print "\" \", c_sizeof(v%" $2 ")"
      }
      END { end_of() }'
    echo 'end program layout'
  } >"$tmp/layout.f90"
  (cd "$tmp" && $fortran -o layout_f layout.f90 sluice.o -L"$libs" -lsluice) &&
    run "$tmp/layout_f" | sort >"$tmp/in_fortran" && [ -s "$tmp/in_fortran" ]
}

same_layout() {
  layout_in_c && layout_in_fortran && diff "$tmp/in_c" "$tmp/in_fortran"
}

# Constants, and values of errno: those that the headers have, with the values that they have.
same_constants() {
  sed -n 's/.*parameter, public :: \(SLUICE_[A-Z0-9_]*\) = .*/\1/p' "$module" >"$tmp/names"
  cut -d ' ' -f 1 "$top/tests/abi/libsluice.constants" | sort >"$tmp/known"
  grep -v -E '^SLUICE_(E[A-Z0-9]*|VERSION_.*)$' "$tmp/names" | sort | comm -13 - "$tmp/known" >"$tmp/absent"
  if [ -s "$tmp/absent" ]; then
    echo 'the module lacks:' && cat "$tmp/absent"
    return 1
  fi
  {
    echo '#include <errno.h>' && echo '#include <stdio.h>' && headers
    sed -n 's/^SLUICE_\(E[A-Z0-9]*\)$/#define SLUICE_\1 \1/p' "$tmp/names"
    echo 'int main(void) {'
    sed 's/.*/printf("& %lld\\n", (long long)(&));/' "$tmp/names"
    echo 'return 0; }'
  } >"$tmp/constants.c"
  {
    echo 'program constants' && echo 'use sluice' && echo 'implicit none'
    echo 'integer, parameter :: wide = selected_int_kind(18)'
    sed 's/.*/call tell("&", int(\&\n&, wide), kind(\&\n&) == wide)/' "$tmp/names"
    cat <<'END'
contains
subroutine tell(name, value, long)
character(*), intent(in) :: name
integer(wide), intent(in) :: value
logical, intent(in) :: long
if (long) then
write (*, '(2a, i0)') name, ' ', value
else
write (*, '(2a, i0)') name, ' ', iand(value, 4294967295_wide)
end if
end subroutine
end program constants
END
  } >"$tmp/constants.f90"
  ${CC:-cc} -I"$top/include" -o "$tmp/constants_c" "$tmp/constants.c" &&
    "$tmp/constants_c" >"$tmp/constants.of_c" || return 1
  (cd "$tmp" && $fortran -o constants_f constants.f90 sluice.o -L"$libs" -lsluice) &&
    run "$tmp/constants_f" >"$tmp/constants.of_fortran" || return 1
  [ -s "$tmp/constants.of_c" ] && diff "$tmp/constants.of_c" "$tmp/constants.of_fortran"
}

# Prototypes as what is passed: 4 or 8 bytes, or an address (p); nothing is v.
passed() {
  awk '
    function kind(text) {
      if (text ~ /[*[]/ || text ~ /sluice_log_function/) return "p"
      if (text ~ /(int64_t|size_t|long)/) return "8"
      if (text ~ /(^| )(int|int32_t|uint32_t)( |$)/) return "4"
      return text ~ /void/ ? "v" : "?" text
    }
    match($0, /sluice_[a-z0-9_]+ ?\(/) {
      name = substr($0, RSTART, RLENGTH); gsub(/[ (]/, "", name)
      line = name " " kind(substr($0, 1, RSTART - 1)) ":"
      text = substr($0, RSTART + RLENGTH)
      while (gsub(/\(\*[a-z_]*\) ?\([^()]*\)/, "*", text)) continue
      sub(/\) ?;.*/, "", text)
      count = split(text, parts, ",")
      for (i = 1; i <= count; i++) line = line " " (parts[i] ~ /^ *void *$/ ? "" : kind(parts[i]))
      sub(/ *$/, "", line)
      print line
    }' | sort -u
}
same_prototypes() {
  declarations | grep -v -e typedef -e '{' | grep -E '^ *[a-z].*sluice_[a-z0-9_]*\(' | passed >"$tmp/of_headers"
  (cd "$tmp" && $fortran -fc-prototypes -fsyntax-only "$module") | grep -E 'sluice_[a-z0-9_]+ \(' |
    passed >"$tmp/of_module"
  cut -d ' ' -f 1 "$tmp/of_headers" | sort >"$tmp/functions"
  sed -n 's/^ *\(sluice_[a-z0-9_]*\);.*/\1/p' "$top/lib/sluice.map" | sort | diff - "$tmp/functions" &&
    diff "$tmp/of_headers" "$tmp/of_module"
}

# Each of them has a name that programs use.
all_public() {
  sed -n 's/^    public :: \(sluice_[a-z0-9_]*\)$/\1/p' "$module" | sort | diff "$tmp/functions" -
}

# Where a program that knows nothing but pkg-config finds the module; README.md tells it.
found_by_pkg_config() {
  found=$(PKG_CONFIG_LIBDIR=$(pwd)/lib ${PKG_CONFIG:-pkg-config} --variable=fortran_source sluice)
  echo "$found"
  [ "${found##*/}" = sluice.f90 ]
}

# digest COMMAND...: what it says of the file.
digest() {
  run "$@" >"$tmp/out" 2>&1
  grep -o -E '^[0-9a-f]{64}: digests agree$' "$tmp/out" || { cat "$tmp/out"; return 1; }
}

# same_digests RANKS FILE: as the example in C. No FILE: its noise.
same_digests() {
  count=$1
  shift
  digest examples/03-scatter-gather -n "$count" "$@" >"$tmp/of_c.digest" || cat "$tmp/of_c.digest"
  digest "$launch" -q -n "$count" "$tmp/scatter_gather" "$@" >"$tmp/of_f.digest" ||
    cat "$tmp/of_f.digest"
  cat "$tmp/of_c.digest" && [ -s "$tmp/of_c.digest" ] && cmp "$tmp/of_c.digest" "$tmp/of_f.digest"
}

# Ways of use, as bench/usage runs them: a line with a number for each.
ways_run() {
  compile "$top/bench/ways/ways.f90" && link ways ways.o sluice.o &&
    SLUICE_WIRE=shm run "$launch" -q -n 2 "$tmp/ways" 20 >"$tmp/out" 2>&1
  cat "$tmp/out"
  [ "$(grep -c -E '^[a-z_]+ +[0-9]*\.[0-9]{3}$' "$tmp/out")" = 3 ]
}

# The program of README.md, as it is there.
read_me() {
  awk '/^```fortran$/ { inside = 1; next } /^```/ { inside = 0 } inside' \
    "$top/bindings/fortran/README.md" >"$tmp/hello.f90"
  compile hello.f90 && link hello hello.o sluice.o &&
    run "$launch" -q -n 3 "$tmp/hello" >"$tmp/out" 2>&1
  cat "$tmp/out"
  sort "$tmp/out" | tr -d '\n' |
    grep -q 'rank 0 heard from 2.*rank 1 heard from 0.*rank 2 heard from 1'
}

says_what_is_missing() {
  ! run "$launch" -q -n 1 "$tmp/scatter_gather" "$tmp/nosuchfile" >"$tmp/out" 2>&1
  cat "$tmp/out"
  grep -q "nosuchfile" "$tmp/out"
}

check 'the module compiles without a warning' compile "$module"
if [ ! -f "$tmp/sluice.o" ]; then
  finish
fi
check 'types are laid out as structs, and zero at first' same_layout
check 'constants have the values of the headers' same_constants
case $strict in
  '')
    skip 'functions take what those of the headers take' "not gfortran"
    skip 'each function of the library has its name' "not gfortran"
    ;;
  *)
    check 'functions take what those of the headers take' same_prototypes
    check 'each function of the library has its name' all_public
    ;;
esac
check 'pkg-config tells where the module is' found_by_pkg_config

if compile "$top/bindings/fortran/tests/calls.f90" >"$tmp/out" 2>&1 &&
  link calls calls.o sluice.o >"$tmp/out" 2>&1; then
  run "$tmp/calls" >"$tmp/calls.out" 2>&1
  pass_on calls $? "$tmp/calls.out"
else
  check 'the calls compile' cat "$tmp/out" /nonexistent
fi

# As README.md says; the library of its digests may lack what linking it takes.
# As ranks of MPI, whose compiler for Fortran has the name of that for C.
mpi_fortran=$(printf '%s' "${MPICC:-mpicc}" | sed 's/mpicc/mpifort/')
build_mpi() {
  cp "$top/bindings/fortran/examples/mpi_blocks.f90" "$tmp" &&
    (cd "$tmp" && "$mpi_fortran" -g -o mpi_blocks mpi_blocks.f90 sluice.o -L"$libs" -lsluice)
}
runs_with_mpi() {
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
    OMPI_MCA_hwloc_base_binding_policy=none run "${MPIEXEC:-mpiexec}" -n 3 "$tmp/mpi_blocks" \
    >"$tmp/out" 2>&1
  cat "$tmp/out"
  grep -q '^all blocks are right' "$tmp/out"
}
printf 'program p\n use mpi\nend program\n' >"$tmp/with_mpi.f90"
if ! have "${MPIEXEC:-mpiexec}" ||
  ! (cd "$tmp" && "$mpi_fortran" -fsyntax-only with_mpi.f90) >/dev/null 2>&1; then
  skip 'the example with MPI runs' "no MPI for $fortran"
else
  check 'the example with MPI compiles' build_mpi
  check 'the example with MPI runs' runs_with_mpi
fi

if [ -x "$launch" ]; then
  check 'the program of README.md is compiled, and runs' read_me
  check 'the ways of use that are measured run' ways_run
fi
if ! [ -x examples/03-scatter-gather ] || ! [ -x "$launch" ]; then
  skip 'the example has the digests of that in C' 'that or sluice-launch was not built'
else
  sodium=$(${PKG_CONFIG:-pkg-config} --libs libsodium)
  build_example() {
    # shellcheck disable=SC2086 # flags are words
    compile "$top/bindings/fortran/examples/scatter_gather.f90" &&
      link scatter_gather scatter_gather.o sluice.o $sodium
  }
  check 'the example compiles' build_example
  head -c 3000001 /dev/urandom >"$tmp/input"
  : >"$tmp/empty"
  check 'the example has the digests of that in C' same_digests 4 "$tmp/input"
  check 'the example has them alone' same_digests 1 "$tmp/input"
  check 'the example has them of no bytes' same_digests 3 "$tmp/empty"
  check 'the example has them of noise' same_digests 2
  check 'the example names a file that is not there' says_what_is_missing
fi

# Debian's flang compiles, and has nothing to link with.
other() {
  mkdir -p "$tmp/other" && cd "$tmp/other" &&
    "$flang" -c "$module" "$top/bindings/fortran/tests/calls.f90" "$top/bench/ways/ways.f90" \
      "$top/bindings/fortran/examples/scatter_gather.f90"
}
flang=$(command -v flang-new || command -v flang-new-16 || echo none)
if have "$flang"; then
  check "$flang compiles the module and the programs, too" other
else
  skip 'flang compiles the module and the programs, too' 'no flang'
fi
finish
