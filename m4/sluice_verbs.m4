# SPDX-License-Identifier: MIT
# SLUICE_VERBS
# Decides whether there is a verbs transport, and with which libibverbs: the one
# that pkg-config finds, another one by --with-rdma-core=PREFIX, linked statically
# by --with-static-verbs=LIST, or none. For configure itself, sets
#
#   verbs            the version of libibverbs, or no
#   verbs_summary    which one, how it is linked and where it is, or why there is none
#
# For what is linked with libibverbs, VERBS_CFLAGS and VERBS_LIBS; for sluice.pc, PC_*;
# for the sources, HAVE_VERBS, TRANSPORTS and, as verbs.h wants it, RDMA_STATIC_PROVIDERS.

# ibv_is_fork_initialized is the youngest of what is used without a conditional.
m4_define([SLUICE_VERBS_MINIMUM], [1.13])

AC_DEFUN([SLUICE_VERBS], [
  AC_REQUIRE([LT_INIT])
  AC_REQUIRE([PKG_PROG_PKG_CONFIG])
  AC_ARG_WITH([verbs],
    [AS_HELP_STRING([--without-verbs], [build without RDMA devices, software transport only])],
    [], [with_verbs=check])
  AC_ARG_WITH([rdma-core],
    [AS_HELP_STRING([--with-rdma-core=PREFIX],
      [use the rdma-core that is installed, or was built, in PREFIX (default: the one that
       pkg-config finds)])],
    [], [with_rdma_core=no])
  AC_ARG_WITH([static-verbs],
    [AS_HELP_STRING([--with-static-verbs=LIST],
      [link libibverbs statically, with the providers in LIST, such as mlx5,rxe, or with all])],
    [], [with_static_verbs=no])
  _SLUICE_VERBS_OPTIONS

  verbs_why=--without-verbs verbs_version=unknown verbs_libdir= verbs_needs= verbs_providers=
  AS_IF([test "x$with_verbs" != xno], [
    verbs_why=
    AS_IF([test "x$with_rdma_core" = xno], [_SLUICE_VERBS_FIND], [_SLUICE_VERBS_PREFIX])
    AS_IF([test -z "$verbs_why"], [_SLUICE_VERBS_VERSION])
    AS_IF([test -z "$verbs_why"], [_SLUICE_VERBS_LINK])
    AS_IF([test -n "$verbs_why" && test "x$with_verbs" != xcheck], [AC_MSG_ERROR([$verbs_why])])
  ])
  AS_IF([test -z "$verbs_why"], [_SLUICE_VERBS_TAKE], [_SLUICE_VERBS_LEAVE])
  AC_SUBST([VERBS_CFLAGS])
  AC_SUBST([VERBS_LIBS])
  AC_SUBST([HAVE_VERBS], [$verbs])
  AM_CONDITIONAL([VERBS], [test "x$verbs" != xno])
  AM_CONDITIONAL([STATIC_VERBS], [test -n "$verbs_providers"])
])

# What was asked for must make sense; to ask for a certain libibverbs is to ask for verbs.
AC_DEFUN([_SLUICE_VERBS_OPTIONS], [
  AS_CASE([$with_rdma_core], [yes | ''],
    [AC_MSG_ERROR([--with-rdma-core needs the folder of rdma-core: --with-rdma-core=PREFIX])])
  AS_CASE([$with_static_verbs], [yes | ''],
    [AC_MSG_ERROR([--with-static-verbs needs names: --with-static-verbs=mlx5,rxe, or =all])])
  AS_CASE([$with_verbs,$with_rdma_core,$with_static_verbs],
    [no,no,no], [],
    [no,*], [AC_MSG_ERROR([--without-verbs contradicts --with-rdma-core and --with-static-verbs])],
    [check,no,no], [],
    [with_verbs=yes])
])

# The installation that pkg-config finds. What it has to say of libdir and of libnl
# matters to a static link only.
AC_DEFUN([_SLUICE_VERBS_FIND], [
  PKG_CHECK_MODULES([VERBS], [libibverbs],
    [verbs_version=$($PKG_CONFIG --modversion libibverbs 2>/dev/null || echo unknown)
     verbs_libdir=$($PKG_CONFIG --variable=libdir libibverbs 2>/dev/null)
     verbs_needs=$($PKG_CONFIG --print-requires-private libibverbs 2>/dev/null | paste -s -d' ')],
    [verbs_why='pkg-config does not find libibverbs'])
  verbs_from=", found by pkg-config" verbs_plain=$VERBS_LIBS
  AS_IF([test ! -d "$verbs_libdir"],
    [verbs_libdir=$(dirname "$($CC -print-file-name=libibverbs.so)")])
])

# The installation in PREFIX, or the build tree: the folder of a build, or of the
# sources where that is build/. Their libibverbs.pc is asked for its version, not for
# folders: it may have been made for another place.
AC_DEFUN([_SLUICE_VERBS_PREFIX], [
  verbs_file=libibverbs.so
  AS_IF([test "x$with_static_verbs" != xno], [verbs_file=libibverbs.a])
  verbs_prefix=$(cd "$with_rdma_core" 2>/dev/null && pwd)
  AS_IF([test -z "$verbs_prefix"],
    [AC_MSG_ERROR([--with-rdma-core=$with_rdma_core: there is no such folder])])
  verbs_from= verbs_found=
  verbs_multiarch=$($CC -print-multiarch 2>/dev/null)
  AC_MSG_CHECKING([for rdma-core in $verbs_prefix])
  for verbs_root in "$verbs_prefix" "$verbs_prefix/build"; do
    test -f "$verbs_root/include/infiniband/verbs.h" || continue
    for verbs_lib in ${verbs_multiarch:+lib/$verbs_multiarch} lib64 lib; do
      AS_IF([test -z "$verbs_libdir" && test -f "$verbs_root/$verbs_lib/$verbs_file"],
        [_SLUICE_VERBS_TRY([$verbs_root], [$verbs_root/$verbs_lib])])
    done
  done
  AS_IF([test -z "$verbs_libdir"], [
    AC_MSG_RESULT([no])
    AC_MSG_ERROR(m4_normalize([[--with-rdma-core=$with_rdma_core: no rdma-core that this compiler
      can link; looked there and in its build/ for include/infiniband/verbs.h and, in]
      [${verbs_multiarch:+lib/$verbs_multiarch, }lib64 and lib, for $verbs_file]]))
  ])
  AC_MSG_RESULT([$verbs_libdir/$verbs_file])
  _SLUICE_VERBS_DESCRIBE
])

# _SLUICE_VERBS_TRY(ROOT, LIBDIR): takes them if they are for this compiler's machine.
AC_DEFUN([_SLUICE_VERBS_TRY], [
  verbs_save_LIBS=$LIBS
  LIBS="-L$2 -l:$verbs_file -Wl,-rpath,$2 $LIBS"
  AC_LINK_IFELSE([AC_LANG_CALL([], [ibv_node_type_str])], [verbs_found=$1 verbs_libdir=$2])
  LIBS=$verbs_save_LIBS
])

# The flags for what is in $verbs_libdir, its version, and what an archive needs. libtool
# has an option of its own for where a library is at run time.
AC_DEFUN([_SLUICE_VERBS_DESCRIBE], [
  verbs_pc=$verbs_libdir/pkgconfig/libibverbs.pc
  verbs_name=$(readlink -f "$verbs_libdir/libibverbs.so")
  AS_IF([test -f "$verbs_pc"], [
    verbs_version=$(sed -n 's/^Version: *//p' "$verbs_pc")
    verbs_needs=$(sed -n 's/^Requires.private: *//p' "$verbs_pc" | tr ',' ' ')
  ], [
    AS_CASE([$verbs_name], [*.so.*.*],
      [verbs_version=$(AS_ECHO(["$verbs_name"]) | sed 's,^.*/libibverbs\.so\.,,')])
    AS_IF([$PKG_CONFIG --exists libnl-route-3.0 libnl-3.0 2>/dev/null],
      [verbs_needs='libnl-route-3.0 libnl-3.0'])
  ])
  VERBS_CFLAGS= VERBS_LIBS=-libverbs verbs_plain=-libverbs
  _SLUICE_VERBS_USUAL([], [
    VERBS_CFLAGS="-I$verbs_found/include"
    VERBS_LIBS="-L$verbs_libdir -libverbs -R$verbs_libdir"
    verbs_plain="-L$verbs_libdir -libverbs -Wl,-rpath,$verbs_libdir"
  ])
])

# _SLUICE_VERBS_USUAL(IF-TRUE, IF-FALSE): whether compiler and loader know $verbs_libdir.
AC_DEFUN([_SLUICE_VERBS_USUAL], [
  verbs_usual=$(dirname "$($CC -print-file-name=libibverbs.so)")
  AS_IF([test "$(readlink -f "$verbs_usual")" = "$(readlink -f "$verbs_libdir")"], [$1], [$2])
])

AC_DEFUN([_SLUICE_VERBS_VERSION], [
  AC_MSG_CHECKING([whether libibverbs is at least SLUICE_VERBS_MINIMUM])
  verbs_version=$(AS_ECHO(["$verbs_version"]) | tr -cd 'A-Za-z0-9._+~-')
  AS_IF([test "x$verbs_version" = xunknown], [AC_MSG_RESULT([unknown])], [
    AS_VERSION_COMPARE([$verbs_version], SLUICE_VERBS_MINIMUM, [
      AC_MSG_RESULT([no, $verbs_version is too old])
      verbs_why="libibverbs $verbs_version is too old: SLUICE_VERBS_MINIMUM or newer is needed"
    ], [AC_MSG_RESULT([yes, $verbs_version])], [AC_MSG_RESULT([yes, $verbs_version])])
  ])
])

# Believes what links: first as a program, then, with archives, as a shared library.
AC_DEFUN([_SLUICE_VERBS_LINK], [
  verbs_define=
  AS_IF([test "x$with_static_verbs" != xno], [_SLUICE_VERBS_STATIC])
  verbs_save_CFLAGS=$CFLAGS verbs_save_LIBS=$LIBS
  CFLAGS="$CFLAGS $VERBS_CFLAGS $verbs_define -pthread" LIBS="$verbs_plain $LIBS"
  AC_LANG_CONFTEST([AC_LANG_PROGRAM([[#include <infiniband/verbs.h>]], [[
    struct ibv_gid_entry entry;
    return ibv_get_device_list(0) || ibv_is_fork_initialized() ||
           ibv_reg_dmabuf_mr(0, 0, 0, 0, 0, 0) || ibv_query_gid_table(0, &entry, 1, 0);]])])
  AC_MSG_CHECKING([whether libibverbs can be linked])
  AC_LINK_IFELSE([], [AC_MSG_RESULT([yes])], [
    AC_MSG_RESULT([no])
    verbs_why="libibverbs $verbs_version cannot be linked with $verbs_plain: see config.log"
  ])
  AS_IF([test -z "$verbs_why" && test -n "$verbs_define" && test "x$enable_shared" = xyes],
    [_SLUICE_VERBS_PIC])
  rm -f conftest.c
  CFLAGS=$verbs_save_CFLAGS LIBS=$verbs_save_LIBS
])

# Distributions compile their archives for programs, not for shared libraries.
AC_DEFUN([_SLUICE_VERBS_PIC], [
  CFLAGS="$CFLAGS $lt_prog_compiler_pic -shared -Wl,-z,defs -Wl,-z,text"
  AC_MSG_CHECKING([whether it can be linked into a shared library])
  AC_LINK_IFELSE([], [AC_MSG_RESULT([yes])], [
    AC_MSG_RESULT([no])
    verbs_why=m4_normalize(["the archives in $verbs_libdir cannot go into libsluice.so, since they
      are not position-independent code: add --disable-shared, or build rdma-core with
      -DCMAKE_POSITION_INDEPENDENT_CODE=ON"])
  ])
])

# The archives of libibverbs and of the providers in $with_static_verbs. Each is named
# once, after those that need it: libtool drops repetitions, and knows no groups.
AC_DEFUN([_SLUICE_VERBS_STATIC], [
  AS_IF([test ! -f "$verbs_libdir/libibverbs.a"],
    [AC_MSG_ERROR([--with-static-verbs: there is no libibverbs.a in $verbs_libdir])])
  _SLUICE_VERBS_AVAILABLE
  AC_MSG_CHECKING([for static providers])
  verbs_wanted=$(AS_ECHO(["$with_static_verbs"]) | tr ',' ' ')
  AS_IF([test "x$verbs_wanted" = xall], [verbs_wanted=$verbs_available])
  verbs_archives=
  for verbs_name in $verbs_wanted; do
    AS_CASE([" $verbs_available "], [*" $verbs_name "*], [],
      [AC_MSG_RESULT([no])
       AC_MSG_ERROR(m4_normalize([[--with-static-verbs: there is no provider $verbs_name in]
         [$verbs_libdir, only:$verbs_available]]))])
    AS_CASE([" $verbs_providers "], [*" $verbs_name "*], [continue])
    verbs_providers="$verbs_providers${verbs_providers:+ }$verbs_name"
    for verbs_file in "$verbs_libdir/lib$verbs_name.a" "$verbs_libdir/lib$verbs_name"-rdmav*.a; do
      AS_IF([test -f "$verbs_file"],
        [verbs_archives="$verbs_archives${verbs_archives:+ }-l:$(basename "$verbs_file")" && break])
    done
  done
  AS_IF([test -z "$verbs_providers"],
    [AC_MSG_ERROR([--with-static-verbs: name at least one of:$verbs_available])])
  AC_MSG_RESULT([$verbs_providers])
  verbs_list=$(AS_ECHO(["$verbs_providers"]) | tr ' ' ',')
  verbs_define=-DRDMA_STATIC_PROVIDERS=$verbs_list
  _SLUICE_VERBS_NEEDS
  verbs_archives="$verbs_archives -l:libibverbs.a"
  _SLUICE_VERBS_USUAL([], [verbs_archives="-L$verbs_libdir $verbs_archives"])
  VERBS_LIBS="$verbs_archives $verbs_needs_libs" verbs_plain=$VERBS_LIBS
])

# The providers that verbs.h can name and that are there as an archive.
AC_DEFUN([_SLUICE_VERBS_AVAILABLE], [
  AC_LANG_CONFTEST([AC_LANG_SOURCE([[
#define RDMA_STATIC_PROVIDERS none
#include <infiniband/verbs.h>]])])
  verbs_known=$($CC $CPPFLAGS $CFLAGS $VERBS_CFLAGS -E conftest.c 2>&AS_MESSAGE_LOG_FD |
    sed -n 's/^.*verbs_device_ops verbs_provider_\([[a-z0-9_]]*\);.*$/\1/p' | sort)
  rm -f conftest.c
  verbs_available=
  for verbs_name in $verbs_known; do
    for verbs_file in "$verbs_libdir/lib$verbs_name.a" "$verbs_libdir/lib$verbs_name"-rdmav*.a; do
      AS_IF([test -f "$verbs_file"], [verbs_available="$verbs_available $verbs_name" && break])
    done
  done
])

# libnl, as libibverbs.pc names it.
AC_DEFUN([_SLUICE_VERBS_NEEDS], [
  verbs_needs_libs=
  AS_IF([test -n "$(AS_ECHO(["$verbs_needs"]) | tr -d ' ')"], [
    verbs_needs_libs=$($PKG_CONFIG --libs $verbs_needs 2>&AS_MESSAGE_LOG_FD) ||
      AC_MSG_ERROR([libibverbs.a needs what pkg-config does not find: $verbs_needs])
  ])
])

# With a shared library, its users need to know nothing, and no libibverbs.pc: pkg-config
# wants to see what is required in private, too, so that there is nothing of that. An
# archive brings along all that it needs, as flags; where there is nothing else, they are
# public, as what is required.
AC_DEFUN([_SLUICE_VERBS_TAKE], [
  verbs=$verbs_version
  verbs_text="verbs $verbs_version${verbs_providers:+ static $verbs_providers}"
  AC_DEFINE([HAVE_VERBS], [1], [Define to build the verbs transport.])
  verbs_how=shared PC_CFLAGS=$VERBS_CFLAGS
  AS_IF([test -n "$verbs_providers"], [
    AC_DEFINE_UNQUOTED([RDMA_STATIC_PROVIDERS], [$verbs_list],
      [Define to the providers that are linked statically.])
    verbs_how="static ($verbs_providers)"
    verbs_pc_libs=$verbs_archives verbs_pc_requires=$verbs_needs
    PC_LIBS_PRIVATE="$verbs_archives${verbs_needs_libs:+ }$verbs_needs_libs"
  ], [test "x$with_rdma_core" != xno || test "x$verbs_version" = xunknown], [
    verbs_pc_libs=$verbs_plain verbs_pc_requires= PC_LIBS_PRIVATE=$verbs_plain
  ], [
    verbs_pc_libs= verbs_pc_requires='libibverbs >= SLUICE_VERBS_MINIMUM' PC_CFLAGS=
    SLUICE_STATIC_LIBS([PC_LIBS_PRIVATE], [libibverbs], [$verbs_plain])
  ])
  verbs_summary="$verbs_version, $verbs_how, in $verbs_libdir$verbs_from"
  _SLUICE_VERBS_PC
])

AC_DEFUN([_SLUICE_VERBS_LEAVE], [
  verbs=no verbs_text= verbs_providers= verbs_summary="no ($verbs_why)"
  VERBS_CFLAGS= VERBS_LIBS= verbs_plain= verbs_pc_libs= verbs_pc_requires=
  _SLUICE_VERBS_PC
])

# SLUICE_STATIC_LIBS(VARIABLE, MODULE, OTHERWISE): the flags that a static link of it takes;
# or those otherwise, if pkg-config lacks a part.
AC_DEFUN([SLUICE_STATIC_LIBS], [
  $1=$($PKG_CONFIG --static --libs $2 2>&AS_MESSAGE_LOG_FD | sed 's/ *$//')
  AS_IF([test -z "$$1"], [$1="$3"])
])

AC_DEFUN([_SLUICE_VERBS_PC], [
  PC_LIBS_PRIVATE="$PC_LIBS_PRIVATE${PC_LIBS_PRIVATE:+ }$system_libs"
  AS_IF([test "x$enable_shared" = xno], [
    PC_LIBS="$verbs_pc_libs${verbs_pc_libs:+ }$system_libs" PC_LIBS_PRIVATE=
    PC_REQUIRES=$verbs_pc_requires
  ])
  AC_SUBST([PC_CFLAGS])
  AC_SUBST([PC_LIBS])
  AC_SUBST([PC_LIBS_PRIVATE])
  AC_SUBST([PC_REQUIRES])
  AC_DEFINE_UNQUOTED([TRANSPORTS], ["${verbs_text:+$verbs_text, }soft"],
    [Define to the transports in the order of preference, as sluice_version() names them.])
])
