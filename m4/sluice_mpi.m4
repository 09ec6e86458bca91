# SPDX-License-Identifier: MIT
# SLUICE_MPI
# Finds the flags of a C compiler for MPI programs: MPI_CFLAGS, MPI_LIBS, and
# in $mpi where they came from, or no. Asks the compiler wrapper first (Open
# MPI, then MPICH and its kin), then pkg-config; believes what compiles and links.
AC_DEFUN([SLUICE_MPI], [
  AC_ARG_WITH([mpi],
    [AS_HELP_STRING([--without-mpi], [build the examples without those that need MPI])],
    [], [with_mpi=check])
  mpi=no
  AS_IF([test "x$with_mpi" != xno], [
    AC_CHECK_PROG([MPICC], [mpicc], [mpicc])
    AC_CHECK_PROG([MPIEXEC], [mpiexec], [mpiexec])
    AC_MSG_CHECKING([for MPI])
    AS_IF([test -n "$MPICC"], [
      _SLUICE_MPI_TRY([$MPICC], [$($MPICC --showme:compile 2>/dev/null)],
        [$($MPICC --showme:link 2>/dev/null)])
      sluice_mpi_link=$($MPICC -link_info 2>/dev/null || $MPICC -link-info 2>/dev/null)
      sluice_mpi_compile=$($MPICC -compile_info 2>/dev/null || $MPICC -compile-info 2>/dev/null)
      _SLUICE_MPI_TRY([$MPICC], [${sluice_mpi_compile#* }], [${sluice_mpi_link#* }])
    ])
    for sluice_mpi_pc in ompi-c mpich mpi-c; do
      _SLUICE_MPI_TRY([$sluice_mpi_pc], [$($PKG_CONFIG --cflags $sluice_mpi_pc 2>/dev/null)],
        [$($PKG_CONFIG --libs $sluice_mpi_pc 2>/dev/null)])
    done
    AC_MSG_RESULT([$mpi])
    AS_IF([test "x$mpi,$with_mpi" = xno,yes],
      [AC_MSG_ERROR([--with-mpi was given, but no MPI program could be built])])
  ])
  AC_SUBST([MPI_CFLAGS])
  AC_SUBST([MPI_LIBS])
])

# _SLUICE_MPI_TRY(NAME, CFLAGS, LIBS): takes them if they work and nothing did so far.
AC_DEFUN([_SLUICE_MPI_TRY], [
  AS_IF([test "x$mpi" = xno], [
    sluice_save_CFLAGS=$CFLAGS sluice_save_LIBS=$LIBS
    sluice_mpi_cflags="$2" sluice_mpi_libs="$3"
    CFLAGS="$CFLAGS $sluice_mpi_cflags" LIBS="$sluice_mpi_libs $LIBS"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>]], [[return MPI_Init(0, 0)]])],
      [mpi="$1" MPI_CFLAGS=$sluice_mpi_cflags MPI_LIBS=$sluice_mpi_libs])
    CFLAGS=$sluice_save_CFLAGS LIBS=$sluice_save_LIBS
  ])
])
