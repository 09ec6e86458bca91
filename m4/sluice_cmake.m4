# SPDX-License-Identifier: MIT
# SLUICE_CMAKE
# What lib/sluiceConfig.cmake says of this library, besides its version. For programs that
# link the archive, CMAKE_LIBS, and for all of them CMAKE_CFLAGS, both as lists of CMake;
# CMAKE_TO_INCLUDEDIR is the way from the folder of that file to the headers, so that the
# installed tree may be moved.
AC_DEFUN([SLUICE_CMAKE], [
  AC_REQUIRE([SLUICE_VERBS])
  cmake_prefix=$prefix cmake_exec_prefix=$exec_prefix
  AS_IF([test "x$prefix" = xNONE], [prefix=$ac_default_prefix])
  AS_IF([test "x$exec_prefix" = xNONE], [exec_prefix=$prefix])
  # Folders are named by folders, which are named by the prefix.
  eval cmake_libdir="$libdir" && eval cmake_libdir="$cmake_libdir"
  eval cmake_includedir="$includedir" && eval cmake_includedir="$cmake_includedir"
  prefix=$cmake_prefix exec_prefix=$cmake_exec_prefix
  _SLUICE_CMAKE_WAY([CMAKE_TO_INCLUDEDIR], [$cmake_libdir/cmake/sluice], [$cmake_includedir])
  _SLUICE_CMAKE_LIST([CMAKE_LIBS], [$SODIUM_LIBS $JANSSON_LIBS $verbs_plain $system_libs])
  _SLUICE_CMAKE_LIST([CMAKE_CFLAGS], [$PC_CFLAGS])
  AC_SUBST([CMAKE_TO_INCLUDEDIR])
  AC_SUBST([CMAKE_LIBS])
  AC_SUBST([CMAKE_CFLAGS])
])

# _SLUICE_CMAKE_WAY(VARIABLE, FROM, TO): up from one folder and down to the other.
AC_DEFUN([_SLUICE_CMAKE_WAY], [
  $1=$($AWK -v from="$2" -v to="$3" 'BEGIN {
    gsub(/\/+/, "/", from); gsub(/\/+/, "/", to); sub(/\/$/, "", to)
    n = split(from, up, "/"); m = split(to, down, "/")
    for (same = 1; same < n && same < m && up[[same + 1]] == down[[same + 1]]; same++) continue
    for (i = same; i < n; i++) way = way "../"
    for (i = same + 1; i <= m; i++) way = way down[[i]] (i < m ? "/" : "")
    print way }')
])

# _SLUICE_CMAKE_LIST(VARIABLE, WORDS)
AC_DEFUN([_SLUICE_CMAKE_LIST], [
  $1=$(AS_ECHO(["$2"]) | $AWK '{ for (i = 1; i <= NF; i++) printf("%s%s", i > 1 ? ";" : "", $i) }')
])
