! SPDX-License-Identifier: MIT
!
! The calls of libsluice for Fortran 2008. Compile this file together with the program, with the
! same compiler, and link with -lsluice.
!
!     gfortran -c $(pkg-config --variable=fortran_source sluice)
!     gfortran program.f90 sluice.o $(pkg-config --libs sluice)
!
! Functions, constants, types and their components have the same names as in C, and arguments have
! the same order, so that the manual of C applies to this module. sluice_fortran(7) describes the
! differences:
!
!   * Objects (a context, a channel, a region, ...) are type(c_ptr); c_null_ptr is no object.
!   * Arguments that may be NULL in C are optional, unless they are objects or memory.
!   * Structs are types whose components are initially zero, and whose size is set.
!   * Text is character(*); trailing blanks are not part of it.
!   * An unsigned number is a signed one with the same bits.
!   * Durations are integer(c_int64_t) nanoseconds: sluice_s(30), sluice_ms(500), SLUICE_FOREVER.
!
! The lines between "Generated" and "End of what is generated" are written by bindings/update.
module sluice
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: real32, real64
    implicit none
    private

    ! The length of the longest text that a call writes, in bytes.
    integer, parameter :: TEXT_BYTES = 256

    ! Values of errno, as Linux has them on x86, ARM, POWER, RISC-V and s390: a call that fails
    ! returns one of them, negated. sluice_errors(7) describes each.
    integer(c_int), parameter, public :: SLUICE_EPERM = 1
    integer(c_int), parameter, public :: SLUICE_ENOENT = 2
    integer(c_int), parameter, public :: SLUICE_EINTR = 4
    integer(c_int), parameter, public :: SLUICE_EIO = 5
    integer(c_int), parameter, public :: SLUICE_E2BIG = 7
    integer(c_int), parameter, public :: SLUICE_EBADF = 9
    integer(c_int), parameter, public :: SLUICE_EAGAIN = 11
    integer(c_int), parameter, public :: SLUICE_ENOMEM = 12
    integer(c_int), parameter, public :: SLUICE_EACCES = 13
    integer(c_int), parameter, public :: SLUICE_EFAULT = 14
    integer(c_int), parameter, public :: SLUICE_EBUSY = 16
    integer(c_int), parameter, public :: SLUICE_EEXIST = 17
    integer(c_int), parameter, public :: SLUICE_ENODEV = 19
    integer(c_int), parameter, public :: SLUICE_EINVAL = 22
    integer(c_int), parameter, public :: SLUICE_ENFILE = 23
    integer(c_int), parameter, public :: SLUICE_EMFILE = 24
    integer(c_int), parameter, public :: SLUICE_ERANGE = 34
    integer(c_int), parameter, public :: SLUICE_EPROTO = 71
    integer(c_int), parameter, public :: SLUICE_EMSGSIZE = 90
    integer(c_int), parameter, public :: SLUICE_EPROTOTYPE = 91
    integer(c_int), parameter, public :: SLUICE_EOPNOTSUPP = 95
    integer(c_int), parameter, public :: SLUICE_EADDRINUSE = 98
    integer(c_int), parameter, public :: SLUICE_EADDRNOTAVAIL = 99
    integer(c_int), parameter, public :: SLUICE_ENETDOWN = 100
    integer(c_int), parameter, public :: SLUICE_ENETUNREACH = 101
    integer(c_int), parameter, public :: SLUICE_ECONNABORTED = 103
    integer(c_int), parameter, public :: SLUICE_ECONNRESET = 104
    integer(c_int), parameter, public :: SLUICE_ENOBUFS = 105
    integer(c_int), parameter, public :: SLUICE_ENOTCONN = 107
    integer(c_int), parameter, public :: SLUICE_ETIMEDOUT = 110
    integer(c_int), parameter, public :: SLUICE_ECONNREFUSED = 111
    integer(c_int), parameter, public :: SLUICE_EHOSTUNREACH = 113
    integer(c_int), parameter, public :: SLUICE_EINPROGRESS = 115
    integer(c_int), parameter, public :: SLUICE_ESTALE = 116
    integer(c_int), parameter, public :: SLUICE_EDQUOT = 122
    integer(c_int), parameter, public :: SLUICE_ECANCELED = 125

    ! Generated: constants
    ! sluice/macros.h
    integer(c_int32_t), parameter, public :: SLUICE_ZERO = -1_c_int32_t
    ! sluice/version.h
    integer(c_int32_t), parameter, public :: SLUICE_VERSION_MAJOR = 1_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_VERSION_MINOR = 0_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_VERSION_PATCH = 0_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_VERSION_CODE = 65536_c_int32_t
    ! sluice/error.h
    integer(c_int32_t), parameter, public :: SLUICE_STATUS_SUCCESS = 0_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_STATUS_LOC_LEN_ERR = 1_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_STATUS_LOC_QP_OP_ERR = 2_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_STATUS_LOC_PROT_ERR = 4_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_STATUS_WR_FLUSH_ERR = 5_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_STATUS_BAD_RESP_ERR = 7_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_STATUS_LOC_ACCESS_ERR = 8_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_STATUS_REM_INV_REQ_ERR = 9_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_STATUS_REM_ACCESS_ERR = 10_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_STATUS_REM_OP_ERR = 11_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_STATUS_RETRY_EXC_ERR = 12_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_STATUS_RNR_RETRY_EXC_ERR = 13_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_STATUS_FATAL_ERR = 19_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_STATUS_GENERAL_ERR = 21_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_STATUS_DEADLINE = 64_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_STATUS_PEER_CLOSED = 65_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_CLASS_NONE = 0_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_CLASS_PEER_LOST = 1_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_CLASS_TIMEOUT = 2_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_CLASS_ACCESS = 3_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_CLASS_TRUNCATED = 4_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_CLASS_CANCELLED = 5_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_CLASS_LOCAL = 6_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_CLASS_DEVICE = 7_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_CLASS_PROTOCOL = 8_c_int32_t
    ! sluice/time.h
    integer(c_int64_t), parameter, public :: SLUICE_FOREVER = huge(0_c_int64_t)
    ! sluice/log.h
    integer(c_int32_t), parameter, public :: SLUICE_LOG_NONE = 0_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_LOG_ERROR = 1_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_LOG_WARN = 2_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_LOG_INFO = 3_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_LOG_DEBUG = 4_c_int32_t
    ! sluice/context.h
    integer(c_int32_t), parameter, public :: SLUICE_CONTEXT_GID_INDEX = 1_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_CONTEXT_FORK = 2_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_LINK_NONE = 0_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_LINK_INFINIBAND = 1_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_LINK_ETHERNET = 2_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_LINK_IWARP = 3_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_ATOMICS_NONE = 0_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_ATOMICS_DEVICE = 1_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_ATOMICS_GLOBAL = 2_c_int32_t
    ! sluice/device.h
    integer(c_int32_t), parameter, public :: SLUICE_LEVEL_TCP = 16_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_LEVEL_NIC = 32_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_LEVEL_MEMORY = 48_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_PORT_UNKNOWN = 0_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_PORT_DOWN = 1_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_PORT_INIT = 2_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_PORT_ARMED = 3_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_PORT_ACTIVE = 4_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_PORT_ACTIVE_DEFER = 5_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_GID_INFINIBAND = 1_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_GID_ROCE_V1 = 2_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_GID_ROCE_V2 = 3_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_CHOICE_TAKEN = 1_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_CHOICE_OTHER_RANK = 2_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_CHOICE_FARTHER = 3_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_CHOICE_NOT_ACTIVE = 4_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_CHOICE_LAST_RESORT = 5_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_CHOICE_NOT_NAMED = 6_c_int32_t
    ! sluice/mr.h
    integer(c_int32_t), parameter, public :: SLUICE_ACCESS_LOCAL_WRITE = 1_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_ACCESS_REMOTE_WRITE = 2_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_ACCESS_REMOTE_READ = 4_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_ACCESS_REMOTE_ATOMIC = 8_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_MR_HUGE_PAGES = 65536_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_REMOTE_MR_BYTES = 32_c_int32_t
    ! sluice/allocator.h
    integer(c_int32_t), parameter, public :: SLUICE_ALLOCATOR_HUGE_PAGES = 1_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_ALLOCATOR_NUMA_NODE = 2_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_ALLOCATOR_MAX_ALIGN = 65536_c_int32_t
    ! sluice/endpoint.h
    integer(c_int32_t), parameter, public :: SLUICE_ENDPOINT_BYTES = 384_c_int32_t
    ! sluice/blocks.h
    integer(c_int32_t), parameter, public :: SLUICE_LAYOUT_CONTIGUOUS = 0_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_LAYOUT_STRIDED = 1_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_LAYOUT_PAGED = 2_c_int32_t
    ! sluice/request.h
    integer(c_int32_t), parameter, public :: SLUICE_OP_NONE = 0_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_OP_SEND = 1_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_OP_RECEIVE = 2_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_OP_WRITE = 3_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_OP_READ = 4_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_OP_COMPARE_SWAP = 5_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_OP_FETCH_ADD = 6_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_IMMEDIATE = 1_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_FENCE = 2_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_SOLICITED = 4_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_INLINE = 8_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_WRITTEN = 16_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_PEER_REMOVED = 32_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_PLAIN_MEMORY = 64_c_int32_t
    ! sluice/channel.h
    integer(c_int32_t), parameter, public :: SLUICE_WAIT_ADAPTIVE = 0_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_WAIT_SPIN = 1_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_WAIT_EVENT = 2_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_STATE_PREPARED = 1_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_STATE_READY = 2_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_STATE_FAILED = 3_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_STATE_REMOVED = 4_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_ACCESS_NONE = ibset(0_c_int32_t, 31)
    integer(c_int32_t), parameter, public :: SLUICE_CHANNEL_GLOBAL = 1_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_CHANNEL_PSN = 2_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_CHANNEL_HISTOGRAMS = 4_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_CHANNEL_DROP_LONG = 8_c_int32_t
    ! sluice/multichannel.h
    integer(c_int32_t), parameter, public :: SLUICE_MAX_PEERS = 65536_c_int32_t
    ! sluice/scope.h
    integer(c_int32_t), parameter, public :: SLUICE_SCOPE_STRICT = 1_c_int32_t
    ! sluice/histogram.h
    integer(c_int32_t), parameter, public :: SLUICE_HISTOGRAM_BUCKETS = 1152_c_int32_t
    ! sluice/connect.h
    integer(c_int32_t), parameter, public :: SLUICE_PRIVATE_DATA_BYTES = 1024_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_MAX_CONNECT_CHANNELS = 64_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_LISTEN_FD = 1_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_CONNECT_WAIT = 1_c_int32_t
    ! sluice/exchange.h
    integer(c_int32_t), parameter, public :: SLUICE_MAX_RANKS = 65536_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_MAX_EXCHANGE_BYTES = 1048576_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_EXCHANGE_AUTO = 0_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_EXCHANGE_TCP = 1_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_EXCHANGE_PMIX = 2_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_EXCHANGE_OWN = 3_c_int32_t
    ! sluice/node.h
    integer(c_int32_t), parameter, public :: SLUICE_NODE_ALLGATHER_BYTES = 65536_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_NODE_ALLTOALL_BYTES = 65536_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_BARRIER_DEFAULT = 0_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_BARRIER_TREE = 1_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_BARRIER_CENTRAL = 2_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_BARRIER_DISSEMINATION = 3_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_NODE_CONNECT_ALL = 0_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_NODE_CONNECT_LAZY = 1_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_NODE_ENDPOINT_BYTES = 448_c_int32_t
    ! sluice/buffer.h
    integer(c_int32_t), parameter, public :: SLUICE_BUFFER_HANDLE_BYTES = 256_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_MAX_BUFFER_PDS = 4_c_int32_t
    ! sluice/agent.h
    integer(c_int32_t), parameter, public :: SLUICE_AGENT_NO_THREAD = 1_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_AGENT_PEER_CONNECTED = 1_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_AGENT_PEER_LOST = 2_c_int32_t
    ! sluice/environment.h
    integer(c_int32_t), parameter, public :: SLUICE_VARIABLE_UNSET = 1_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_VARIABLE_SET = 2_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_VARIABLE_WRONG = 3_c_int32_t
    integer(c_int32_t), parameter, public :: SLUICE_VARIABLE_UNKNOWN = 4_c_int32_t
    ! End of what is generated

    ! Generated: types
    ! sluice/error.h
    type, public, bind(c) :: sluice_error
        integer(c_int32_t) :: size = 384_c_int32_t
        integer(c_int32_t) :: peer = 0_c_int32_t
        integer(c_int32_t) :: opcode = 0_c_int32_t
        integer(c_int32_t) :: status = 0_c_int32_t
        integer(c_int32_t) :: error_class = 0_c_int32_t
        integer(c_int32_t) :: vendor = 0_c_int32_t
        integer(c_int32_t) :: error = 0_c_int32_t
        integer(c_int32_t) :: reserved = 0_c_int32_t
        character(kind=c_char) :: text(352) = c_null_char
    end type sluice_error

    ! sluice/context.h
    type, public, bind(c) :: sluice_context_attr
        integer(c_int32_t) :: size = 24_c_int32_t
        integer(c_int32_t) :: flags = 0_c_int32_t
        integer(c_int32_t) :: port = 0_c_int32_t
        integer(c_int32_t) :: gid_index = 0_c_int32_t
        type(c_ptr) :: address = c_null_ptr
    end type sluice_context_attr

    ! sluice/context.h
    type, public, bind(c) :: sluice_context_info
        integer(c_int32_t) :: size = 168_c_int32_t
        integer(c_int32_t) :: level = 0_c_int32_t
        integer(c_int32_t) :: max_send_depth = 0_c_int32_t
        integer(c_int32_t) :: max_receive_depth = 0_c_int32_t
        integer(c_int32_t) :: max_sge = 0_c_int32_t
        integer(c_int32_t) :: max_inline = 0_c_int32_t
        integer(c_int32_t) :: max_read_depth = 0_c_int32_t
        integer(c_int32_t) :: port = 0_c_int32_t
        integer(c_int32_t) :: link_layer = 0_c_int32_t
        integer(c_int32_t) :: active_mtu = 0_c_int32_t
        integer(c_int32_t) :: gid_index = 0_c_int32_t
        integer(c_int32_t) :: numa_node = 0_c_int32_t
        integer(c_int32_t) :: atomics = 0_c_int32_t
        integer(c_int32_t) :: max_read_sge = 0_c_int32_t
        integer(c_int64_t) :: max_message = 0_c_int64_t
        character(kind=c_char) :: device(64) = c_null_char
        character(kind=c_char) :: transport(16) = c_null_char
        integer(c_int64_t) :: max_region = 0_c_int64_t
        integer(c_int32_t) :: max_channels = 0_c_int32_t
        integer(c_int32_t) :: max_regions = 0_c_int32_t
        integer(c_int32_t) :: max_completions = 0_c_int32_t
        integer(c_int32_t) :: reserved = 0_c_int32_t
    end type sluice_context_info

    ! sluice/device.h
    type, public, bind(c) :: sluice_device_info
        integer(c_int32_t) :: size = 312_c_int32_t
        integer(c_int32_t) :: active = 0_c_int32_t
        integer(c_int32_t) :: ports = 0_c_int32_t
        integer(c_int32_t) :: gids = 0_c_int32_t
        integer(c_int32_t) :: level = 0_c_int32_t
        integer(c_int32_t) :: numa_node = 0_c_int32_t
        integer(c_int32_t) :: vendor_id = 0_c_int32_t
        integer(c_int32_t) :: vendor_part = 0_c_int32_t
        integer(c_int64_t) :: guid = 0_c_int64_t
        character(kind=c_char) :: name(64) = c_null_char
        character(kind=c_char) :: transport(16) = c_null_char
        character(kind=c_char) :: firmware(64) = c_null_char
        character(kind=c_char) :: description(128) = c_null_char
    end type sluice_device_info

    ! sluice/device.h
    type, public, bind(c) :: sluice_port_info
        integer(c_int32_t) :: size = 192_c_int32_t
        integer(c_int32_t) :: port = 0_c_int32_t
        integer(c_int32_t) :: state = 0_c_int32_t
        integer(c_int32_t) :: active = 0_c_int32_t
        integer(c_int32_t) :: link_layer = 0_c_int32_t
        integer(c_int32_t) :: lid = 0_c_int32_t
        integer(c_int32_t) :: sm_lid = 0_c_int32_t
        integer(c_int32_t) :: mtu = 0_c_int32_t
        integer(c_int32_t) :: max_mtu = 0_c_int32_t
        integer(c_int32_t) :: width = 0_c_int32_t
        integer(c_int32_t) :: speed = 0_c_int32_t
        integer(c_int32_t) :: gid_table = 0_c_int32_t
        integer(c_int32_t) :: pkey_table = 0_c_int32_t
        integer(c_int32_t) :: reserved = 0_c_int32_t
        integer(c_int64_t) :: max_message = 0_c_int64_t
        character(kind=c_char) :: description(128) = c_null_char
    end type sluice_port_info

    ! sluice/device.h
    type, public, bind(c) :: sluice_gid_info
        integer(c_int32_t) :: size = 116_c_int32_t
        integer(c_int32_t) :: port = 0_c_int32_t
        integer(c_int32_t) :: index = 0_c_int32_t
        integer(c_int32_t) :: type = 0_c_int32_t
        integer(c_int32_t) :: chosen = 0_c_int32_t
        integer(c_int8_t) :: gid(16) = 0_c_int8_t
        character(kind=c_char) :: interface(16) = c_null_char
        character(kind=c_char) :: text(64) = c_null_char
    end type sluice_gid_info

    ! sluice/device.h
    type, public, bind(c) :: sluice_choice_info
        integer(c_int32_t) :: size = 320_c_int32_t
        integer(c_int32_t) :: verdict = 0_c_int32_t
        integer(c_int32_t) :: port = 0_c_int32_t
        integer(c_int32_t) :: distance = 0_c_int32_t
        integer(c_int32_t) :: place = 0_c_int32_t
        integer(c_int32_t) :: equals = 0_c_int32_t
        integer(c_int32_t) :: local_rank = 0_c_int32_t
        integer(c_int32_t) :: reserved = 0_c_int32_t
        character(kind=c_char) :: source(32) = c_null_char
        character(kind=c_char) :: rank_source(64) = c_null_char
        character(kind=c_char) :: reason(192) = c_null_char
    end type sluice_choice_info

    ! sluice/mr.h
    type, public, bind(c) :: sluice_sge
        integer(c_int64_t) :: addr = 0_c_int64_t
        integer(c_int32_t) :: length = 0_c_int32_t
        integer(c_int32_t) :: lkey = 0_c_int32_t
    end type sluice_sge

    ! sluice/mr.h
    type, public, bind(c) :: sluice_remote_mr
        integer(c_int64_t) :: addr = 0_c_int64_t
        integer(c_int64_t) :: length = 0_c_int64_t
        integer(c_int32_t) :: rkey = 0_c_int32_t
        integer(c_int32_t) :: reserved(3) = 0_c_int32_t
    end type sluice_remote_mr

    ! sluice/mr.h
    type, public, bind(c) :: sluice_peer_remote_mr
        integer(c_int32_t) :: peer = 0_c_int32_t
        integer(c_int32_t) :: generation = 0_c_int32_t
        type(sluice_remote_mr) :: remote = sluice_remote_mr()
    end type sluice_peer_remote_mr

    ! sluice/mr_cache.h
    type, public, bind(c) :: sluice_mr_cache_attr
        integer(c_int32_t) :: size = 16_c_int32_t
        integer(c_int32_t) :: max_regions = 0_c_int32_t
        integer(c_int64_t) :: max_bytes = 0_c_int64_t
    end type sluice_mr_cache_attr

    ! sluice/mr_cache.h
    type, public, bind(c) :: sluice_mr_cache_info
        integer(c_int32_t) :: size = 48_c_int32_t
        integer(c_int32_t) :: regions = 0_c_int32_t
        integer(c_int32_t) :: used = 0_c_int32_t
        integer(c_int32_t) :: retired = 0_c_int32_t
        integer(c_int64_t) :: bytes = 0_c_int64_t
        integer(c_int64_t) :: hits = 0_c_int64_t
        integer(c_int64_t) :: misses = 0_c_int64_t
        integer(c_int64_t) :: evictions = 0_c_int64_t
    end type sluice_mr_cache_info

    ! sluice/allocator.h
    type, public, bind(c) :: sluice_allocator_attr
        integer(c_int32_t) :: size = 32_c_int32_t
        integer(c_int32_t) :: flags = 0_c_int32_t
        integer(c_int32_t) :: numa_node = 0_c_int32_t
        integer(c_int32_t) :: thread_blocks = 0_c_int32_t
        integer(c_int64_t) :: slab_bytes = 0_c_int64_t
        integer(c_int64_t) :: max_bytes = 0_c_int64_t
    end type sluice_allocator_attr

    ! sluice/allocator.h
    type, public, bind(c) :: sluice_allocator_info
        integer(c_int32_t) :: size = 56_c_int32_t
        integer(c_int32_t) :: slabs = 0_c_int32_t
        integer(c_int32_t) :: regions = 0_c_int32_t
        integer(c_int32_t) :: released = 0_c_int32_t
        integer(c_int64_t) :: registered_bytes = 0_c_int64_t
        integer(c_int64_t) :: blocks = 0_c_int64_t
        integer(c_int64_t) :: block_bytes = 0_c_int64_t
        integer(c_int64_t) :: kept_bytes = 0_c_int64_t
        integer(c_int64_t) :: registrations = 0_c_int64_t
    end type sluice_allocator_info

    ! sluice/endpoint.h
    type, public, bind(c) :: sluice_endpoint
        integer(c_int8_t) :: bytes(384) = 0_c_int8_t
    end type sluice_endpoint

    ! sluice/blocks.h
    type, public, bind(c) :: sluice_layout
        integer(c_int32_t) :: kind = 0_c_int32_t
        integer(c_int32_t) :: count = 0_c_int32_t
        integer(c_int64_t) :: bytes = 0_c_int64_t
        integer(c_int64_t) :: stride = 0_c_int64_t
        type(c_ptr) :: indices = c_null_ptr
        integer(c_int64_t) :: reserved(2) = 0_c_int64_t
    end type sluice_layout

    ! sluice/blocks.h
    type, public, bind(c) :: sluice_blocks
        integer(c_int32_t) :: size = 112_c_int32_t
        integer(c_int32_t) :: flags = 0_c_int32_t
        type(sluice_layout) :: local = sluice_layout()
        type(sluice_layout) :: remote = sluice_layout()
        integer(c_int64_t) :: local_length = 0_c_int64_t
    end type sluice_blocks

    ! sluice/request.h
    type, public, bind(c) :: sluice_request
        integer(c_int32_t) :: opcode = 0_c_int32_t
        integer(c_int32_t) :: peer = 0_c_int32_t
        integer(c_int32_t) :: flags = 0_c_int32_t
        integer(c_int32_t) :: immediate = 0_c_int32_t
        type(c_ptr) :: sges = c_null_ptr
        integer(c_int32_t) :: sge_count = 0_c_int32_t
        integer(c_int32_t) :: reserved = 0_c_int32_t
        type(sluice_sge) :: sge = sluice_sge()
        type(sluice_remote_mr) :: remote = sluice_remote_mr()
        integer(c_int64_t) :: user_data = 0_c_int64_t
        integer(c_int64_t) :: operand(2) = 0_c_int64_t
        type(c_ptr) :: blocks = c_null_ptr
        integer(c_int64_t) :: reserved2(2) = 0_c_int64_t
    end type sluice_request

    ! sluice/request.h
    type, public, bind(c) :: sluice_completion
        integer(c_int64_t) :: user_data = 0_c_int64_t
        integer(c_int64_t) :: bytes = 0_c_int64_t
        integer(c_int32_t) :: peer = 0_c_int32_t
        integer(c_int32_t) :: opcode = 0_c_int32_t
        integer(c_int32_t) :: flags = 0_c_int32_t
        integer(c_int32_t) :: immediate = 0_c_int32_t
        integer(c_int32_t) :: error = 0_c_int32_t
        integer(c_int32_t) :: error_class = 0_c_int32_t
        integer(c_int32_t) :: status = 0_c_int32_t
        integer(c_int32_t) :: cause = 0_c_int32_t
        integer(c_int32_t) :: vendor = 0_c_int32_t
        integer(c_int32_t) :: reserved(3) = 0_c_int32_t
    end type sluice_completion

    ! sluice/request.h
    type, public, bind(c) :: sluice_handle
        integer(c_int64_t) :: id = 0_c_int64_t
        integer(c_int64_t) :: owner = 0_c_int64_t
        integer(c_int64_t) :: reserved(2) = 0_c_int64_t
    end type sluice_handle

    ! sluice/channel.h
    type, public, bind(c) :: sluice_channel_attr
        integer(c_int32_t) :: size = 144_c_int32_t
        integer(c_int32_t) :: flags = 0_c_int32_t
        integer(c_int32_t) :: send_depth = 0_c_int32_t
        integer(c_int32_t) :: receive_depth = 0_c_int32_t
        integer(c_int32_t) :: max_sge = 0_c_int32_t
        integer(c_int32_t) :: max_inline = 0_c_int32_t
        integer(c_int32_t) :: access = 0_c_int32_t
        integer(c_int32_t) :: read_depth = 0_c_int32_t
        integer(c_int64_t) :: max_message = 0_c_int64_t
        integer(c_int64_t) :: keepalive = 0_c_int64_t
        integer(c_int64_t) :: spin_time = 0_c_int64_t
        integer(c_int32_t) :: wait_mode = 0_c_int32_t
        integer(c_int32_t) :: arrival_tags = 0_c_int32_t
        integer(c_int32_t) :: queue_pairs = 0_c_int32_t
        integer(c_int32_t) :: stripe_least = 0_c_int32_t
        type(c_ptr) :: mr_cache = c_null_ptr
        integer(c_int64_t) :: staging = 0_c_int64_t
        integer(c_int32_t) :: receive_pool = 0_c_int32_t
        integer(c_int32_t) :: receive_pool_low = 0_c_int32_t
        integer(c_int32_t) :: path_mtu = 0_c_int32_t
        integer(c_int32_t) :: pkey = 0_c_int32_t
        integer(c_int32_t) :: service_level = 0_c_int32_t
        integer(c_int32_t) :: traffic_class = 0_c_int32_t
        integer(c_int32_t) :: flow_label = 0_c_int32_t
        integer(c_int32_t) :: hop_limit = 0_c_int32_t
        integer(c_int32_t) :: path_bits = 0_c_int32_t
        integer(c_int32_t) :: psn = 0_c_int32_t
        integer(c_int32_t) :: ack_timeout = 0_c_int32_t
        integer(c_int32_t) :: retry_count = 0_c_int32_t
        integer(c_int32_t) :: rnr_timer = 0_c_int32_t
        integer(c_int32_t) :: rnr_retry = 0_c_int32_t
    end type sluice_channel_attr

    ! sluice/channel.h
    type, public, bind(c) :: sluice_channel_info
        integer(c_int32_t) :: size = 248_c_int32_t
        integer(c_int32_t) :: level = 0_c_int32_t
        integer(c_int32_t) :: send_depth = 0_c_int32_t
        integer(c_int32_t) :: receive_depth = 0_c_int32_t
        integer(c_int32_t) :: max_sge = 0_c_int32_t
        integer(c_int32_t) :: max_inline = 0_c_int32_t
        integer(c_int64_t) :: max_message = 0_c_int64_t
        integer(c_int32_t) :: read_depth = 0_c_int32_t
        integer(c_int32_t) :: remote_read_depth = 0_c_int32_t
        integer(c_int32_t) :: queue_pairs = 0_c_int32_t
        integer(c_int32_t) :: stripe_least = 0_c_int32_t
        integer(c_int64_t) :: staging = 0_c_int64_t
        character(kind=c_char) :: address(64) = c_null_char
        character(kind=c_char) :: remote_address(64) = c_null_char
        integer(c_int32_t) :: qpn = 0_c_int32_t
        integer(c_int32_t) :: remote_qpn = 0_c_int32_t
        integer(c_int32_t) :: psn = 0_c_int32_t
        integer(c_int32_t) :: remote_psn = 0_c_int32_t
        integer(c_int32_t) :: path_mtu = 0_c_int32_t
        integer(c_int32_t) :: port = 0_c_int32_t
        integer(c_int32_t) :: gid_index = 0_c_int32_t
        integer(c_int32_t) :: pkey = 0_c_int32_t
        integer(c_int32_t) :: service_level = 0_c_int32_t
        integer(c_int32_t) :: traffic_class = 0_c_int32_t
        integer(c_int32_t) :: flow_label = 0_c_int32_t
        integer(c_int32_t) :: hop_limit = 0_c_int32_t
        integer(c_int32_t) :: ack_timeout = 0_c_int32_t
        integer(c_int32_t) :: retry_count = 0_c_int32_t
        integer(c_int32_t) :: rnr_timer = 0_c_int32_t
        integer(c_int32_t) :: rnr_retry = 0_c_int32_t
    end type sluice_channel_info

    ! sluice/scope.h
    type, public, bind(c) :: sluice_scope_report
        integer(c_int32_t) :: size = 48_c_int32_t
        integer(c_int32_t) :: flags = 0_c_int32_t
        integer(c_int32_t) :: said = 0_c_int32_t
        integer(c_int32_t) :: error = 0_c_int32_t
        integer(c_int32_t) :: posted = 0_c_int32_t
        integer(c_int32_t) :: failed = 0_c_int32_t
        integer(c_int32_t) :: unseen = 0_c_int32_t
        integer(c_int32_t) :: lost = 0_c_int32_t
        type(c_ptr) :: failures = c_null_ptr
        integer(c_int32_t) :: capacity = 0_c_int32_t
        integer(c_int32_t) :: count = 0_c_int32_t
    end type sluice_scope_report

    ! sluice/counters.h
    type, public, bind(c) :: sluice_counters
        integer(c_int32_t) :: size = 856_c_int32_t
        integer(c_int32_t) :: reserved = 0_c_int32_t
        integer(c_int64_t) :: requests(32) = 0_c_int64_t
        integer(c_int64_t) :: bytes(32) = 0_c_int64_t
        integer(c_int64_t) :: failed(32) = 0_c_int64_t
        integer(c_int64_t) :: refused = 0_c_int64_t
        integer(c_int64_t) :: queue_full = 0_c_int64_t
        integer(c_int64_t) :: forgotten = 0_c_int64_t
        integer(c_int64_t) :: resets = 0_c_int64_t
        integer(c_int64_t) :: discarded = 0_c_int64_t
        integer(c_int64_t) :: polls = 0_c_int64_t
        integer(c_int64_t) :: sleeps = 0_c_int64_t
        integer(c_int64_t) :: wakes = 0_c_int64_t
        integer(c_int64_t) :: arrivals = 0_c_int64_t
        integer(c_int64_t) :: strays = 0_c_int64_t
    end type sluice_counters

    ! sluice/histogram.h
    type, public, bind(c) :: sluice_histogram
        integer(c_int32_t) :: size = 9256_c_int32_t
        integer(c_int32_t) :: reserved = 0_c_int32_t
        integer(c_int64_t) :: count = 0_c_int64_t
        integer(c_int64_t) :: sum = 0_c_int64_t
        integer(c_int64_t) :: min = 0_c_int64_t
        integer(c_int64_t) :: max = 0_c_int64_t
        integer(c_int64_t) :: buckets(1152) = 0_c_int64_t
    end type sluice_histogram

    ! sluice/connect.h
    type, public, bind(c) :: sluice_private_data
        integer(c_int32_t) :: bytes = 0_c_int32_t
        integer(c_int8_t) :: data(1024) = 0_c_int8_t
    end type sluice_private_data

    ! sluice/connect.h
    type, public, bind(c) :: sluice_listen_attr
        integer(c_int32_t) :: size = 24_c_int32_t
        integer(c_int32_t) :: flags = 0_c_int32_t
        integer(c_int32_t) :: backlog = 0_c_int32_t
        integer(c_int32_t) :: fd = 0_c_int32_t
        type(c_ptr) :: secret_file = c_null_ptr
    end type sluice_listen_attr

    ! sluice/connect.h
    type, public, bind(c) :: sluice_connect_attr
        integer(c_int32_t) :: size = 32_c_int32_t
        integer(c_int32_t) :: flags = 0_c_int32_t
        type(c_ptr) :: secret_file = c_null_ptr
        type(c_ptr) :: own = c_null_ptr
        type(c_ptr) :: peer = c_null_ptr
    end type sluice_connect_attr

    ! sluice/connect.h
    type, public, bind(c) :: sluice_accept_attr
        integer(c_int32_t) :: size = 16_c_int32_t
        integer(c_int32_t) :: flags = 0_c_int32_t
        type(c_ptr) :: own = c_null_ptr
    end type sluice_accept_attr

    ! sluice/connect.h
    type, public, bind(c) :: sluice_incoming_info
        integer(c_int32_t) :: size = 1108_c_int32_t
        integer(c_int32_t) :: version = 0_c_int32_t
        integer(c_int32_t) :: channels = 0_c_int32_t
        integer(c_int32_t) :: proven = 0_c_int32_t
        character(kind=c_char) :: address(64) = c_null_char
        type(sluice_private_data) :: private_data = sluice_private_data()
    end type sluice_incoming_info

    ! sluice/connect.h
    type, public, bind(c) :: sluice_admitted
        integer(c_int32_t) :: size = 120_c_int32_t
        integer(c_int32_t) :: error = 0_c_int32_t
        integer(c_int64_t) :: user_data = 0_c_int64_t
        type(c_ptr) :: channel = c_null_ptr
        type(c_ptr) :: multichannel = c_null_ptr
        character(kind=c_char) :: address(64) = c_null_char
        type(c_ptr) :: peers = c_null_ptr
        integer(c_int32_t) :: peer_capacity = 0_c_int32_t
        integer(c_int32_t) :: peer_count = 0_c_int32_t
        integer(c_int32_t) :: peer = 0_c_int32_t
        integer(c_int32_t) :: reserved = 0_c_int32_t
    end type sluice_admitted

    ! sluice/exchange.h
    type, public, bind(c) :: sluice_exchange_attr
        integer(c_int32_t) :: size = 48_c_int32_t
        integer(c_int32_t) :: kind = 0_c_int32_t
        integer(c_int32_t) :: rank = 0_c_int32_t
        integer(c_int32_t) :: ranks = 0_c_int32_t
        type(c_ptr) :: root = c_null_ptr
        type(c_ptr) :: host_file = c_null_ptr
        type(c_ptr) :: secret_file = c_null_ptr
        type(c_ptr) :: job = c_null_ptr
    end type sluice_exchange_attr

    ! sluice/exchange.h
    type, public, bind(c) :: sluice_exchange_info
        integer(c_int32_t) :: size = 144_c_int32_t
        integer(c_int32_t) :: kind = 0_c_int32_t
        integer(c_int32_t) :: rank = 0_c_int32_t
        integer(c_int32_t) :: ranks = 0_c_int32_t
        character(kind=c_char) :: source(64) = c_null_char
        character(kind=c_char) :: device(64) = c_null_char
    end type sluice_exchange_info

    ! sluice/exchange.h
    type, public, bind(c) :: sluice_launch_info
        integer(c_int32_t) :: size = 504_c_int32_t
        integer(c_int32_t) :: kind = 0_c_int32_t
        integer(c_int32_t) :: rank = 0_c_int32_t
        integer(c_int32_t) :: ranks = 0_c_int32_t
        integer(c_int32_t) :: local_rank = 0_c_int32_t
        integer(c_int32_t) :: reserved = 0_c_int32_t
        character(kind=c_char) :: launcher(32) = c_null_char
        character(kind=c_char) :: source(64) = c_null_char
        character(kind=c_char) :: local_source(64) = c_null_char
        character(kind=c_char) :: root(256) = c_null_char
        character(kind=c_char) :: job(64) = c_null_char
    end type sluice_launch_info

    ! sluice/exchange.h
    type, public, bind(c) :: sluice_exchange_provider
        integer(c_int32_t) :: size = 40_c_int32_t
        integer(c_int32_t) :: reserved = 0_c_int32_t
        type(c_funptr) :: allgather = c_null_funptr
        type(c_funptr) :: alltoall = c_null_funptr
        type(c_funptr) :: barrier = c_null_funptr
        type(c_funptr) :: close = c_null_funptr
    end type sluice_exchange_provider

    ! sluice/node.h
    type, public, bind(c) :: sluice_node_attr
        integer(c_int32_t) :: size = 40_c_int32_t
        integer(c_int32_t) :: barrier = 0_c_int32_t
        type(c_ptr) :: channel = c_null_ptr
        integer(c_int32_t) :: connect = 0_c_int32_t
        integer(c_int32_t) :: peer_count = 0_c_int32_t
        type(c_ptr) :: peers = c_null_ptr
        integer(c_int32_t) :: max_connections = 0_c_int32_t
        integer(c_int32_t) :: max_ranks = 0_c_int32_t
    end type sluice_node_attr

    ! sluice/node.h
    type, public, bind(c) :: sluice_node_endpoint
        integer(c_int8_t) :: bytes(448) = 0_c_int8_t
    end type sluice_node_endpoint

    ! sluice/buffer.h
    type, public, bind(c) :: sluice_buffer_handle
        integer(c_int8_t) :: bytes(256) = 0_c_int8_t
    end type sluice_buffer_handle

    ! sluice/buffer.h
    type, public, bind(c) :: sluice_buffer_service_attr
        integer(c_int32_t) :: size = 24_c_int32_t
        integer(c_int32_t) :: max_peers = 0_c_int32_t
        type(c_ptr) :: address = c_null_ptr
        type(c_ptr) :: channel = c_null_ptr
    end type sluice_buffer_service_attr

    ! sluice/buffer.h
    type, public, bind(c) :: sluice_buffer_info
        integer(c_int32_t) :: size = 136_c_int32_t
        integer(c_int32_t) :: access = 0_c_int32_t
        integer(c_int64_t) :: id = 0_c_int64_t
        integer(c_int64_t) :: length = 0_c_int64_t
        integer(c_int8_t) :: owner(16) = 0_c_int8_t
        character(kind=c_char) :: address(64) = c_null_char
        character(kind=c_char) :: transports(32) = c_null_char
    end type sluice_buffer_info

    ! sluice/buffer.h
    type, public, bind(c) :: sluice_buffer_action
        integer(c_int32_t) :: opcode = 0_c_int32_t
        integer(c_int32_t) :: flags = 0_c_int32_t
        type(c_ptr) :: handle = c_null_ptr
        integer(c_int64_t) :: offset = 0_c_int64_t
        integer(c_int64_t) :: length = 0_c_int64_t
        type(c_ptr) :: addr = c_null_ptr
        type(c_ptr) :: mr = c_null_ptr
        integer(c_int64_t) :: user_data = 0_c_int64_t
        type(c_ptr) :: blocks = c_null_ptr
        integer(c_int64_t) :: reserved(4) = 0_c_int64_t
    end type sluice_buffer_action

    ! sluice/agent.h
    type, public, bind(c) :: sluice_agent_attr
        integer(c_int32_t) :: size = 96_c_int32_t
        integer(c_int32_t) :: flags = 0_c_int32_t
        integer(c_int32_t) :: access = 0_c_int32_t
        integer(c_int32_t) :: max_peers = 0_c_int32_t
        integer(c_int32_t) :: max_regions = 0_c_int32_t
        integer(c_int32_t) :: eager = 0_c_int32_t
        integer(c_int32_t) :: window = 0_c_int32_t
        integer(c_int32_t) :: max_waiting = 0_c_int32_t
        integer(c_int64_t) :: max_waiting_bytes = 0_c_int64_t
        integer(c_int64_t) :: quota = 0_c_int64_t
        integer(c_int64_t) :: max_message = 0_c_int64_t
        integer(c_int64_t) :: max_lease = 0_c_int64_t
        integer(c_int64_t) :: keepalive = 0_c_int64_t
        type(c_ptr) :: secret_file = c_null_ptr
        integer(c_int64_t) :: max_left_bytes = 0_c_int64_t
        integer(c_int32_t) :: receive_pool = 0_c_int32_t
        integer(c_int32_t) :: receive_share = 0_c_int32_t
    end type sluice_agent_attr

    ! sluice/agent.h
    type, public, bind(c) :: sluice_agent_info
        integer(c_int32_t) :: size = 144_c_int32_t
        integer(c_int32_t) :: peers = 0_c_int32_t
        integer(c_int32_t) :: regions = 0_c_int32_t
        integer(c_int32_t) :: held = 0_c_int32_t
        integer(c_int64_t) :: bytes = 0_c_int64_t
        integer(c_int64_t) :: allocated = 0_c_int64_t
        integer(c_int64_t) :: denied = 0_c_int64_t
        integer(c_int64_t) :: expired = 0_c_int64_t
        integer(c_int64_t) :: reclaimed = 0_c_int64_t
        integer(c_int64_t) :: late = 0_c_int64_t
        integer(c_int64_t) :: refused_late = 0_c_int64_t
        integer(c_int64_t) :: malformed = 0_c_int64_t
        integer(c_int64_t) :: oversized = 0_c_int64_t
        integer(c_int64_t) :: unasked = 0_c_int64_t
        integer(c_int64_t) :: reconnects = 0_c_int64_t
        integer(c_int64_t) :: lost = 0_c_int64_t
        integer(c_int64_t) :: messages_sent = 0_c_int64_t
        integer(c_int64_t) :: messages_arrived = 0_c_int64_t
        integer(c_int64_t) :: left_bytes = 0_c_int64_t
        integer(c_int64_t) :: turned_away = 0_c_int64_t
    end type sluice_agent_info

    ! sluice/agent.h
    type, public, bind(c) :: sluice_agent_peer_info
        integer(c_int32_t) :: size = 400_c_int32_t
        integer(c_int32_t) :: state = 0_c_int32_t
        integer(c_int32_t) :: error = 0_c_int32_t
        integer(c_int32_t) :: level = 0_c_int32_t
        integer(c_int32_t) :: access = 0_c_int32_t
        integer(c_int32_t) :: eager = 0_c_int32_t
        integer(c_int32_t) :: regions = 0_c_int32_t
        integer(c_int32_t) :: held = 0_c_int32_t
        integer(c_int64_t) :: bytes = 0_c_int64_t
        integer(c_int64_t) :: quota = 0_c_int64_t
        integer(c_int64_t) :: max_message = 0_c_int64_t
        integer(c_int64_t) :: max_lease = 0_c_int64_t
        integer(c_int64_t) :: refused = 0_c_int64_t
        integer(c_int64_t) :: reconnects = 0_c_int64_t
        character(kind=c_char) :: address(64) = c_null_char
        character(kind=c_char) :: text(256) = c_null_char
    end type sluice_agent_peer_info

    ! sluice/agent.h
    type, public, bind(c) :: sluice_agent_mr_info
        integer(c_int32_t) :: size = 56_c_int32_t
        integer(c_int32_t) :: access = 0_c_int32_t
        integer(c_int64_t) :: id = 0_c_int64_t
        integer(c_int64_t) :: lease = 0_c_int64_t
        type(sluice_remote_mr) :: remote = sluice_remote_mr()
    end type sluice_agent_mr_info

    ! sluice/agent.h
    type, public, bind(c) :: sluice_agent_local
        integer(c_int32_t) :: size = 48_c_int32_t
        integer(c_int32_t) :: reserved = 0_c_int32_t
        integer(c_int64_t) :: id = 0_c_int64_t
        type(c_ptr) :: addr = c_null_ptr
        integer(c_int64_t) :: length = 0_c_int64_t
        type(c_ptr) :: mr = c_null_ptr
        type(c_ptr) :: peer = c_null_ptr
    end type sluice_agent_local

    ! sluice/environment.h
    type, public, bind(c) :: sluice_variable_info
        integer(c_int32_t) :: size = 840_c_int32_t
        integer(c_int32_t) :: state = 0_c_int32_t
        character(kind=c_char) :: name(64) = c_null_char
        character(kind=c_char) :: what(64) = c_null_char
        character(kind=c_char) :: value(256) = c_null_char
        character(kind=c_char) :: preset(64) = c_null_char
        character(kind=c_char) :: allowed(64) = c_null_char
        character(kind=c_char) :: nearest(64) = c_null_char
        character(kind=c_char) :: reason(256) = c_null_char
    end type sluice_variable_info
    ! End of what is generated

    public :: sluice_errno, sluice_text, sluice_c_text
    public :: sluice_ns, sluice_us, sluice_ms, sluice_s

    ! Generated: names
    public :: sluice_version
    public :: sluice_version_number
    public :: sluice_last_error
    public :: sluice_status_name
    public :: sluice_error_class_name
    public :: sluice_interrupt_set
    public :: sluice_log_set
    public :: sluice_context_close
    public :: sluice_context_open
    public :: sluice_context_query
    public :: sluice_device_list_free
    public :: sluice_device_list_get
    public :: sluice_device_list_count
    public :: sluice_device_list_info
    public :: sluice_device_list_nearest
    public :: sluice_device_list_choice
    public :: sluice_device_list_port
    public :: sluice_device_list_gid
    public :: sluice_pd_free
    public :: sluice_pd_alloc
    public :: sluice_mr_register
    public :: sluice_mr_alloc
    public :: sluice_mr_register_dmabuf
    public :: sluice_mr_deregister
    public :: sluice_mr_deregister_wait
    public :: sluice_mr_release
    public :: sluice_mr_addr
    public :: sluice_mr_length
    public :: sluice_mr_lkey
    public :: sluice_mr_page_size
    public :: sluice_mr_sge
    public :: sluice_mr_sge_at
    public :: sluice_mr_remote
    public :: sluice_remote_mr_pack
    public :: sluice_remote_mr_unpack
    public :: sluice_remote_mr_slice
    public :: sluice_mr_cache_destroy
    public :: sluice_mr_cache_create
    public :: sluice_mr_cache_get
    public :: sluice_mr_cache_put
    public :: sluice_mr_cache_forget
    public :: sluice_mr_cache_query
    public :: sluice_allocator_destroy
    public :: sluice_allocator_create
    public :: sluice_allocator_release
    public :: sluice_allocator_alloc
    public :: sluice_allocator_alloc_zeroed
    public :: sluice_allocator_realloc
    public :: sluice_allocator_alloc_shared
    public :: sluice_allocator_free
    public :: sluice_allocator_free_wait
    public :: sluice_allocator_sge
    public :: sluice_allocator_mr
    public :: sluice_allocator_trim
    public :: sluice_allocator_query
    public :: sluice_prepared_channel_free
    public :: sluice_channel_close
    public :: sluice_channel_reset
    public :: sluice_prepared_channel_handshake
    public :: sluice_channel_prepare
    public :: sluice_prepared_channel_endpoint
    public :: sluice_channel_shutdown
    public :: sluice_channel_wait_connected
    public :: sluice_channel_state
    public :: sluice_channel_error
    public :: sluice_channel_query
    public :: sluice_channel_send
    public :: sluice_channel_send_immediate
    public :: sluice_channel_receive
    public :: sluice_channel_write
    public :: sluice_channel_write_immediate
    public :: sluice_channel_read
    public :: sluice_channel_compare_swap
    public :: sluice_channel_fetch_add
    public :: sluice_channel_submit
    public :: sluice_channel_post
    public :: sluice_channel_post_send
    public :: sluice_channel_post_receive
    public :: sluice_channel_post_write
    public :: sluice_channel_post_read
    public :: sluice_channel_post_compare_swap
    public :: sluice_channel_post_fetch_add
    public :: sluice_channel_poll
    public :: sluice_channel_next
    public :: sluice_channel_wait
    public :: sluice_channel_cancel
    public :: sluice_channel_detach
    public :: sluice_channel_flush
    public :: sluice_channel_fd
    public :: sluice_channel_arm
    public :: sluice_channel_wake
    public :: sluice_channel_arrivals
    public :: sluice_channel_wait_arrivals
    public :: sluice_prepared_multichannel_free
    public :: sluice_multichannel_close
    public :: sluice_prepared_multichannel_handshake
    public :: sluice_multichannel_prepare
    public :: sluice_prepared_multichannel_endpoints
    public :: sluice_multichannel_peers
    public :: sluice_multichannel_peer_add
    public :: sluice_multichannel_peer_remove
    public :: sluice_multichannel_peer_remote
    public :: sluice_multichannel_peer_state
    public :: sluice_multichannel_peer_error
    public :: sluice_multichannel_wait_connected
    public :: sluice_multichannel_peer_wait_connected
    public :: sluice_multichannel_peer_query
    public :: sluice_multichannel_peer_reset
    public :: sluice_multichannel_peer_handshake
    public :: sluice_multichannel_shutdown
    public :: sluice_multichannel_send
    public :: sluice_multichannel_send_immediate
    public :: sluice_multichannel_receive
    public :: sluice_multichannel_write
    public :: sluice_multichannel_write_immediate
    public :: sluice_multichannel_read
    public :: sluice_multichannel_compare_swap
    public :: sluice_multichannel_fetch_add
    public :: sluice_multichannel_submit
    public :: sluice_multichannel_scatter_send
    public :: sluice_multichannel_scatter_write
    public :: sluice_multichannel_gather_receive
    public :: sluice_multichannel_gather_read
    public :: sluice_multichannel_scatter_gather
    public :: sluice_multichannel_multicast_send
    public :: sluice_multichannel_multicast_write
    public :: sluice_multichannel_post
    public :: sluice_multichannel_post_send
    public :: sluice_multichannel_post_receive
    public :: sluice_multichannel_post_write
    public :: sluice_multichannel_post_read
    public :: sluice_multichannel_post_compare_swap
    public :: sluice_multichannel_post_fetch_add
    public :: sluice_multichannel_post_scatter_send
    public :: sluice_multichannel_post_scatter_write
    public :: sluice_multichannel_post_gather_receive
    public :: sluice_multichannel_post_gather_read
    public :: sluice_multichannel_post_multicast_send
    public :: sluice_multichannel_post_multicast_write
    public :: sluice_multichannel_poll
    public :: sluice_multichannel_next
    public :: sluice_multichannel_wait
    public :: sluice_multichannel_cancel
    public :: sluice_multichannel_detach
    public :: sluice_multichannel_flush
    public :: sluice_multichannel_fd
    public :: sluice_multichannel_arm
    public :: sluice_multichannel_wake
    public :: sluice_multichannel_arrivals
    public :: sluice_multichannel_wait_arrivals
    public :: sluice_multichannel_post_receive_any
    public :: sluice_multichannel_receive_any
    public :: sluice_multichannel_receive_any_room
    public :: sluice_list_free
    public :: sluice_channel_list_prepare
    public :: sluice_multichannel_list_prepare
    public :: sluice_list_aim
    public :: sluice_list_set_length
    public :: sluice_list_submit
    public :: sluice_list_post
    public :: sluice_list_wait
    public :: sluice_list_result
    public :: sluice_scope_post_list
    public :: sluice_scope_end
    public :: sluice_channel_scope_begin
    public :: sluice_multichannel_scope_begin
    public :: sluice_scope_attach
    public :: sluice_scope_post
    public :: sluice_scope_post_send
    public :: sluice_scope_post_receive
    public :: sluice_scope_post_write
    public :: sluice_scope_post_read
    public :: sluice_scope_post_compare_swap
    public :: sluice_scope_post_fetch_add
    public :: sluice_scope_post_scatter_send
    public :: sluice_scope_post_scatter_write
    public :: sluice_scope_post_gather_receive
    public :: sluice_scope_post_gather_read
    public :: sluice_scope_post_multicast_send
    public :: sluice_scope_post_multicast_write
    public :: sluice_scope_poll
    public :: sluice_scope_wait
    public :: sluice_channel_counters
    public :: sluice_multichannel_counters
    public :: sluice_multichannel_peer_counters
    public :: sluice_channel_histogram
    public :: sluice_multichannel_histogram
    public :: sluice_multichannel_peer_histogram
    public :: sluice_channel_histogram_reset
    public :: sluice_multichannel_histogram_reset
    public :: sluice_histogram_percentile
    public :: sluice_histogram_mean
    public :: sluice_histogram_bound
    public :: sluice_histogram_merge
    public :: sluice_listener_close
    public :: sluice_listen
    public :: sluice_listener_address
    public :: sluice_listener_fd
    public :: sluice_listener_wake
    public :: sluice_incoming_refuse
    public :: sluice_incoming_accept
    public :: sluice_incoming_accept_into
    public :: sluice_incoming_admit
    public :: sluice_incoming_admit_into
    public :: sluice_listener_admitted
    public :: sluice_listener_cancel
    public :: sluice_incoming_query
    public :: sluice_listener_next
    public :: sluice_accept
    public :: sluice_connect
    public :: sluice_connect_into
    public :: sluice_exchange_close
    public :: sluice_exchange_open
    public :: sluice_launch_query
    public :: sluice_exchange_wrap
    public :: sluice_exchange_query
    public :: sluice_exchange_allgather
    public :: sluice_exchange_alltoall
    public :: sluice_exchange_barrier
    public :: sluice_exchange_missing
    public :: sluice_exchange_locality
    public :: sluice_prepared_node_free
    public :: sluice_node_close
    public :: sluice_prepared_node_handshake
    public :: sluice_node_prepare
    public :: sluice_prepared_node_endpoints
    public :: sluice_node_open
    public :: sluice_node_rank
    public :: sluice_node_ranks
    public :: sluice_node_multichannel
    public :: sluice_node_pd
    public :: sluice_node_context
    public :: sluice_node_exchange
    public :: sluice_node_barrier
    public :: sluice_node_allgather
    public :: sluice_node_share_mr
    public :: sluice_node_alltoall
    public :: sluice_node_multichannel_open
    public :: sluice_node_multichannel_reconnect
    public :: sluice_node_reach
    public :: sluice_node_barrier_reset
    public :: sluice_node_peer_reset
    public :: sluice_node_peer_handshake
    public :: sluice_node_grow
    public :: sluice_node_shrink
    public :: sluice_node_own_endpoint
    public :: sluice_node_members
    public :: sluice_node_generation
    public :: sluice_node_shutdown
    public :: sluice_buffer_service_close
    public :: sluice_buffer_release
    public :: sluice_buffer_service_open
    public :: sluice_buffer_publish
    public :: sluice_buffer_publish_mr
    public :: sluice_buffer_addr
    public :: sluice_buffer_export
    public :: sluice_buffer_handle_query
    public :: sluice_buffer_read
    public :: sluice_buffer_write
    public :: sluice_buffer_submit
    public :: sluice_buffer_batch_free
    public :: sluice_buffer_batch_prepare
    public :: sluice_buffer_post
    public :: sluice_buffer_batch_post
    public :: sluice_buffer_batch_poll
    public :: sluice_buffer_batch_next
    public :: sluice_buffer_batch_wait
    public :: sluice_buffer_batch_results
    public :: sluice_buffer_batch_cancel
    public :: sluice_buffer_batch_fd
    public :: sluice_buffer_batch_arm
    public :: sluice_buffer_connection_query
    public :: sluice_buffer_remote
    public :: sluice_agent_close
    public :: sluice_agent_open
    public :: sluice_agent_listen
    public :: sluice_agent_address
    public :: sluice_agent_query
    public :: sluice_agent_peer_close
    public :: sluice_agent_connect
    public :: sluice_agent_next_peer
    public :: sluice_agent_peer_query
    public :: sluice_agent_mr_release
    public :: sluice_agent_mr_send_back
    public :: sluice_agent_request_mr
    public :: sluice_agent_mr_renew
    public :: sluice_agent_mr_query
    public :: sluice_agent_send_local_mr
    public :: sluice_agent_revoke_mr
    public :: sluice_agent_receive_remote_mr
    public :: sluice_agent_mr_peer
    public :: sluice_agent_receive_local_mr
    public :: sluice_agent_mr_read
    public :: sluice_agent_mr_write
    public :: sluice_agent_mr_compare_swap
    public :: sluice_agent_mr_fetch_add
    public :: sluice_agent_submit
    public :: sluice_agent_send
    public :: sluice_agent_flush
    public :: sluice_agent_message_free
    public :: sluice_agent_receive
    public :: sluice_agent_message_addr
    public :: sluice_agent_message_length
    public :: sluice_agent_message_peer
    public :: sluice_agent_fd
    public :: sluice_agent_arm
    public :: sluice_agent_progress
    public :: sluice_agent_wake
    public :: sluice_verbs_context
    public :: sluice_verbs_pd
    public :: sluice_verbs_mr
    public :: sluice_verbs_channel_qp
    public :: sluice_verbs_multichannel_qp
    public :: sluice_verbs_context_wrap
    public :: sluice_verbs_pd_wrap
    public :: sluice_environment_variable
    ! End of what is generated

    ! A duration in nanoseconds, of a number of any kind; what is below one is cut off.
    interface sluice_ns
        module procedure ns_of_int32, ns_of_int64, ns_of_real32, ns_of_real64
    end interface
    interface sluice_us
        module procedure us_of_int32, us_of_int64, us_of_real32, us_of_real64
    end interface
    interface sluice_ms
        module procedure ms_of_int32, ms_of_int64, ms_of_real32, ms_of_real64
    end interface
    interface sluice_s
        module procedure s_of_int32, s_of_int64, s_of_real32, s_of_real64
    end interface

    interface
        function c_errno_location() bind(c, name="__errno_location") result(outcome)
            import
            type(c_ptr) :: outcome
        end function c_errno_location
        pure function c_strlen(text) bind(c, name="strlen") result(outcome)
            import
            type(c_ptr), value :: text
            integer(c_size_t) :: outcome
        end function c_strlen
    end interface

    ! Generated: interfaces
    interface
        function c_sluice_version() bind(c, name="sluice_version") result(outcome)
            import
            type(c_ptr) :: outcome
        end function c_sluice_version
        function sluice_version_number() bind(c, name="sluice_version_number") result(outcome)
            import
            integer(c_int32_t) :: outcome
        end function sluice_version_number
        function c_sluice_last_error() bind(c, name="sluice_last_error") result(outcome)
            import
            type(c_ptr) :: outcome
        end function c_sluice_last_error
        function c_sluice_status_name(status) bind(c, name="sluice_status_name") result(outcome)
            import
            integer(c_int32_t), value :: status
            type(c_ptr) :: outcome
        end function c_sluice_status_name
        function c_sluice_error_class_name(error_class) bind(c, &
            name="sluice_error_class_name") result(outcome)
            import
            integer(c_int32_t), value :: error_class
            type(c_ptr) :: outcome
        end function c_sluice_error_class_name
        function sluice_interrupt_set(flag) bind(c, name="sluice_interrupt_set") result(outcome)
            import
            type(c_ptr), value :: flag
            type(c_ptr) :: outcome
        end function sluice_interrupt_set
        function sluice_log_set(level, function, user) bind(c, name="sluice_log_set") result( &
            outcome)
            import
            integer(c_int32_t), value :: level
            type(c_funptr), value :: function
            type(c_ptr), value :: user
            integer(c_int) :: outcome
        end function sluice_log_set
        subroutine sluice_context_close(context) bind(c, name="sluice_context_close")
            import
            type(c_ptr), value :: context
        end subroutine sluice_context_close
        function c_sluice_context_open(device, attr) bind(c, name="sluice_context_open") result( &
            outcome)
            import
            type(c_ptr), value :: device
            type(c_ptr), value :: attr
            type(c_ptr) :: outcome
        end function c_sluice_context_open
        function sluice_context_query(context, info) bind(c, name="sluice_context_query") result( &
            outcome)
            import
            type(c_ptr), value :: context
            type(sluice_context_info), intent(inout) :: info
            integer(c_int) :: outcome
        end function sluice_context_query
        subroutine sluice_device_list_free(list) bind(c, name="sluice_device_list_free")
            import
            type(c_ptr), value :: list
        end subroutine sluice_device_list_free
        function sluice_device_list_get() bind(c, name="sluice_device_list_get") result(outcome)
            import
            type(c_ptr) :: outcome
        end function sluice_device_list_get
        function sluice_device_list_count(list) bind(c, name="sluice_device_list_count") result( &
            outcome)
            import
            type(c_ptr), value :: list
            integer(c_int32_t) :: outcome
        end function sluice_device_list_count
        function sluice_device_list_info(list, index, info) bind(c, &
            name="sluice_device_list_info") result(outcome)
            import
            type(c_ptr), value :: list
            integer(c_int32_t), value :: index
            type(sluice_device_info), intent(inout) :: info
            integer(c_int) :: outcome
        end function sluice_device_list_info
        function sluice_device_list_nearest(list, local_rank) bind(c, &
            name="sluice_device_list_nearest") result(outcome)
            import
            type(c_ptr), value :: list
            integer(c_int32_t), value :: local_rank
            integer(c_int) :: outcome
        end function sluice_device_list_nearest
        function c_sluice_device_list_choice(list, index, device, info) bind(c, &
            name="sluice_device_list_choice") result(outcome)
            import
            type(c_ptr), value :: list
            integer(c_int32_t), value :: index
            type(c_ptr), value :: device
            type(sluice_choice_info), intent(inout) :: info
            integer(c_int) :: outcome
        end function c_sluice_device_list_choice
        function sluice_device_list_port(list, index, port, info) bind(c, &
            name="sluice_device_list_port") result(outcome)
            import
            type(c_ptr), value :: list
            integer(c_int32_t), value :: index
            integer(c_int32_t), value :: port
            type(sluice_port_info), intent(inout) :: info
            integer(c_int) :: outcome
        end function sluice_device_list_port
        function sluice_device_list_gid(list, index, entry, info) bind(c, &
            name="sluice_device_list_gid") result(outcome)
            import
            type(c_ptr), value :: list
            integer(c_int32_t), value :: index
            integer(c_int32_t), value :: entry
            type(sluice_gid_info), intent(inout) :: info
            integer(c_int) :: outcome
        end function sluice_device_list_gid
        subroutine sluice_pd_free(pd) bind(c, name="sluice_pd_free")
            import
            type(c_ptr), value :: pd
        end subroutine sluice_pd_free
        function sluice_pd_alloc(context) bind(c, name="sluice_pd_alloc") result(outcome)
            import
            type(c_ptr), value :: context
            type(c_ptr) :: outcome
        end function sluice_pd_alloc
        function sluice_mr_register(pd, addr, length, access) bind(c, &
            name="sluice_mr_register") result(outcome)
            import
            type(c_ptr), value :: pd
            type(c_ptr), value :: addr
            integer(c_size_t), value :: length
            integer(c_int32_t), value :: access
            type(c_ptr) :: outcome
        end function sluice_mr_register
        function sluice_mr_alloc(pd, length, access) bind(c, name="sluice_mr_alloc") result(outcome)
            import
            type(c_ptr), value :: pd
            integer(c_size_t), value :: length
            integer(c_int32_t), value :: access
            type(c_ptr) :: outcome
        end function sluice_mr_alloc
        function sluice_mr_register_dmabuf(pd, fd, offset, length, iova, access) bind(c, &
            name="sluice_mr_register_dmabuf") result(outcome)
            import
            type(c_ptr), value :: pd
            integer(c_int), value :: fd
            integer(c_int64_t), value :: offset
            integer(c_size_t), value :: length
            integer(c_int64_t), value :: iova
            integer(c_int32_t), value :: access
            type(c_ptr) :: outcome
        end function sluice_mr_register_dmabuf
        function sluice_mr_deregister(mr) bind(c, name="sluice_mr_deregister") result(outcome)
            import
            type(c_ptr), value :: mr
            integer(c_int) :: outcome
        end function sluice_mr_deregister
        function sluice_mr_deregister_wait(mr, timeout) bind(c, &
            name="sluice_mr_deregister_wait") result(outcome)
            import
            type(c_ptr), value :: mr
            integer(c_int64_t), value :: timeout
            integer(c_int) :: outcome
        end function sluice_mr_deregister_wait
        function sluice_mr_release(mr, released, argument) bind(c, &
            name="sluice_mr_release") result(outcome)
            import
            type(c_ptr), value :: mr
            type(c_funptr), value :: released
            type(c_ptr), value :: argument
            integer(c_int) :: outcome
        end function sluice_mr_release
        function sluice_mr_addr(mr) bind(c, name="sluice_mr_addr") result(outcome)
            import
            type(c_ptr), value :: mr
            type(c_ptr) :: outcome
        end function sluice_mr_addr
        function sluice_mr_length(mr) bind(c, name="sluice_mr_length") result(outcome)
            import
            type(c_ptr), value :: mr
            integer(c_size_t) :: outcome
        end function sluice_mr_length
        function sluice_mr_lkey(mr) bind(c, name="sluice_mr_lkey") result(outcome)
            import
            type(c_ptr), value :: mr
            integer(c_int32_t) :: outcome
        end function sluice_mr_lkey
        function sluice_mr_page_size(mr) bind(c, name="sluice_mr_page_size") result(outcome)
            import
            type(c_ptr), value :: mr
            integer(c_size_t) :: outcome
        end function sluice_mr_page_size
        function sluice_mr_sge(mr, offset, length, sge) bind(c, name="sluice_mr_sge") result( &
            outcome)
            import
            type(c_ptr), value :: mr
            integer(c_size_t), value :: offset
            integer(c_size_t), value :: length
            type(sluice_sge), intent(inout) :: sge
            integer(c_int) :: outcome
        end function sluice_mr_sge
        function sluice_mr_sge_at(mr, pointer, length, sge) bind(c, &
            name="sluice_mr_sge_at") result(outcome)
            import
            type(c_ptr), value :: mr
            type(c_ptr), value :: pointer
            integer(c_size_t), value :: length
            type(sluice_sge), intent(inout) :: sge
            integer(c_int) :: outcome
        end function sluice_mr_sge_at
        function sluice_mr_remote(mr, remote) bind(c, name="sluice_mr_remote") result(outcome)
            import
            type(c_ptr), value :: mr
            type(sluice_remote_mr), intent(inout) :: remote
            integer(c_int) :: outcome
        end function sluice_mr_remote
        function sluice_remote_mr_pack(remote, bytes) bind(c, &
            name="sluice_remote_mr_pack") result(outcome)
            import
            type(sluice_remote_mr), intent(in) :: remote
            integer(c_int8_t), intent(inout) :: bytes(*)
            integer(c_int) :: outcome
        end function sluice_remote_mr_pack
        function sluice_remote_mr_unpack(bytes, remote) bind(c, &
            name="sluice_remote_mr_unpack") result(outcome)
            import
            integer(c_int8_t), intent(in) :: bytes(*)
            type(sluice_remote_mr), intent(inout) :: remote
            integer(c_int) :: outcome
        end function sluice_remote_mr_unpack
        function sluice_remote_mr_slice(remote, offset, length, slice) bind(c, &
            name="sluice_remote_mr_slice") result(outcome)
            import
            type(sluice_remote_mr), intent(in) :: remote
            integer(c_int64_t), value :: offset
            integer(c_int64_t), value :: length
            type(sluice_remote_mr), intent(inout) :: slice
            integer(c_int) :: outcome
        end function sluice_remote_mr_slice
        function sluice_mr_cache_destroy(cache) bind(c, name="sluice_mr_cache_destroy") result( &
            outcome)
            import
            type(c_ptr), value :: cache
            integer(c_int) :: outcome
        end function sluice_mr_cache_destroy
        function c_sluice_mr_cache_create(pd, access, attr) bind(c, &
            name="sluice_mr_cache_create") result(outcome)
            import
            type(c_ptr), value :: pd
            integer(c_int32_t), value :: access
            type(c_ptr), value :: attr
            type(c_ptr) :: outcome
        end function c_sluice_mr_cache_create
        function sluice_mr_cache_get(cache, addr, length) bind(c, &
            name="sluice_mr_cache_get") result(outcome)
            import
            type(c_ptr), value :: cache
            type(c_ptr), value :: addr
            integer(c_size_t), value :: length
            type(c_ptr) :: outcome
        end function sluice_mr_cache_get
        function sluice_mr_cache_put(cache, mr) bind(c, name="sluice_mr_cache_put") result(outcome)
            import
            type(c_ptr), value :: cache
            type(c_ptr), value :: mr
            integer(c_int) :: outcome
        end function sluice_mr_cache_put
        function sluice_mr_cache_forget(cache, addr, length) bind(c, &
            name="sluice_mr_cache_forget") result(outcome)
            import
            type(c_ptr), value :: cache
            type(c_ptr), value :: addr
            integer(c_size_t), value :: length
            integer(c_int) :: outcome
        end function sluice_mr_cache_forget
        function sluice_mr_cache_query(cache, info) bind(c, name="sluice_mr_cache_query") result( &
            outcome)
            import
            type(c_ptr), value :: cache
            type(sluice_mr_cache_info), intent(inout) :: info
            integer(c_int) :: outcome
        end function sluice_mr_cache_query
        function sluice_allocator_destroy(allocator) bind(c, &
            name="sluice_allocator_destroy") result(outcome)
            import
            type(c_ptr), value :: allocator
            integer(c_int) :: outcome
        end function sluice_allocator_destroy
        function c_sluice_allocator_create(pd, access, attr) bind(c, &
            name="sluice_allocator_create") result(outcome)
            import
            type(c_ptr), value :: pd
            integer(c_int32_t), value :: access
            type(c_ptr), value :: attr
            type(c_ptr) :: outcome
        end function c_sluice_allocator_create
        function sluice_allocator_release(allocator, block, released, argument) bind(c, &
            name="sluice_allocator_release") result(outcome)
            import
            type(c_ptr), value :: allocator
            type(c_ptr), value :: block
            type(c_funptr), value :: released
            type(c_ptr), value :: argument
            integer(c_int) :: outcome
        end function sluice_allocator_release
        function sluice_allocator_alloc(allocator, size, align) bind(c, &
            name="sluice_allocator_alloc") result(outcome)
            import
            type(c_ptr), value :: allocator
            integer(c_size_t), value :: size
            integer(c_size_t), value :: align
            type(c_ptr) :: outcome
        end function sluice_allocator_alloc
        function sluice_allocator_alloc_zeroed(allocator, size, align) bind(c, &
            name="sluice_allocator_alloc_zeroed") result(outcome)
            import
            type(c_ptr), value :: allocator
            integer(c_size_t), value :: size
            integer(c_size_t), value :: align
            type(c_ptr) :: outcome
        end function sluice_allocator_alloc_zeroed
        function sluice_allocator_realloc(allocator, block, size, align) bind(c, &
            name="sluice_allocator_realloc") result(outcome)
            import
            type(c_ptr), value :: allocator
            type(c_ptr), value :: block
            integer(c_size_t), value :: size
            integer(c_size_t), value :: align
            type(c_ptr) :: outcome
        end function sluice_allocator_realloc
        function sluice_allocator_alloc_shared(allocator, size, remote) bind(c, &
            name="sluice_allocator_alloc_shared") result(outcome)
            import
            type(c_ptr), value :: allocator
            integer(c_size_t), value :: size
            type(sluice_remote_mr), intent(inout) :: remote
            type(c_ptr) :: outcome
        end function sluice_allocator_alloc_shared
        function sluice_allocator_free(allocator, block) bind(c, &
            name="sluice_allocator_free") result(outcome)
            import
            type(c_ptr), value :: allocator
            type(c_ptr), value :: block
            integer(c_int) :: outcome
        end function sluice_allocator_free
        function sluice_allocator_free_wait(allocator, block, timeout) bind(c, &
            name="sluice_allocator_free_wait") result(outcome)
            import
            type(c_ptr), value :: allocator
            type(c_ptr), value :: block
            integer(c_int64_t), value :: timeout
            integer(c_int) :: outcome
        end function sluice_allocator_free_wait
        function sluice_allocator_sge(allocator, pointer, length, sge) bind(c, &
            name="sluice_allocator_sge") result(outcome)
            import
            type(c_ptr), value :: allocator
            type(c_ptr), value :: pointer
            integer(c_size_t), value :: length
            type(sluice_sge), intent(inout) :: sge
            integer(c_int) :: outcome
        end function sluice_allocator_sge
        function sluice_allocator_mr(allocator, pointer) bind(c, &
            name="sluice_allocator_mr") result(outcome)
            import
            type(c_ptr), value :: allocator
            type(c_ptr), value :: pointer
            type(c_ptr) :: outcome
        end function sluice_allocator_mr
        function sluice_allocator_trim(allocator) bind(c, name="sluice_allocator_trim") result( &
            outcome)
            import
            type(c_ptr), value :: allocator
            integer(c_int) :: outcome
        end function sluice_allocator_trim
        function sluice_allocator_query(allocator, info) bind(c, &
            name="sluice_allocator_query") result(outcome)
            import
            type(c_ptr), value :: allocator
            type(sluice_allocator_info), intent(inout) :: info
            integer(c_int) :: outcome
        end function sluice_allocator_query
        subroutine sluice_prepared_channel_free(prepared) bind(c, &
            name="sluice_prepared_channel_free")
            import
            type(c_ptr), value :: prepared
        end subroutine sluice_prepared_channel_free
        subroutine sluice_channel_close(channel) bind(c, name="sluice_channel_close")
            import
            type(c_ptr), value :: channel
        end subroutine sluice_channel_close
        function sluice_channel_reset(channel) bind(c, name="sluice_channel_reset") result(outcome)
            import
            type(c_ptr), value :: channel
            type(c_ptr) :: outcome
        end function sluice_channel_reset
        function sluice_prepared_channel_handshake(prepared, remote) bind(c, &
            name="sluice_prepared_channel_handshake") result(outcome)
            import
            type(c_ptr), value :: prepared
            type(sluice_endpoint), intent(in) :: remote
            type(c_ptr) :: outcome
        end function sluice_prepared_channel_handshake
        function c_sluice_channel_prepare(pd, attr) bind(c, &
            name="sluice_channel_prepare") result(outcome)
            import
            type(c_ptr), value :: pd
            type(c_ptr), value :: attr
            type(c_ptr) :: outcome
        end function c_sluice_channel_prepare
        function sluice_prepared_channel_endpoint(prepared, endpoint) bind(c, &
            name="sluice_prepared_channel_endpoint") result(outcome)
            import
            type(c_ptr), value :: prepared
            type(sluice_endpoint), intent(inout) :: endpoint
            integer(c_int) :: outcome
        end function sluice_prepared_channel_endpoint
        function sluice_channel_shutdown(channel, deadline) bind(c, &
            name="sluice_channel_shutdown") result(outcome)
            import
            type(c_ptr), value :: channel
            integer(c_int64_t), value :: deadline
            integer(c_int) :: outcome
        end function sluice_channel_shutdown
        function sluice_channel_wait_connected(channel, timeout) bind(c, &
            name="sluice_channel_wait_connected") result(outcome)
            import
            type(c_ptr), value :: channel
            integer(c_int64_t), value :: timeout
            integer(c_int) :: outcome
        end function sluice_channel_wait_connected
        function sluice_channel_state(channel) bind(c, name="sluice_channel_state") result(outcome)
            import
            type(c_ptr), value :: channel
            integer(c_int) :: outcome
        end function sluice_channel_state
        function sluice_channel_error(channel, error) bind(c, &
            name="sluice_channel_error") result(outcome)
            import
            type(c_ptr), value :: channel
            type(sluice_error), intent(inout) :: error
            integer(c_int) :: outcome
        end function sluice_channel_error
        function sluice_channel_query(channel, info) bind(c, name="sluice_channel_query") result( &
            outcome)
            import
            type(c_ptr), value :: channel
            type(sluice_channel_info), intent(inout) :: info
            integer(c_int) :: outcome
        end function sluice_channel_query
        function c_sluice_channel_send(channel, sges, sge_count, deadline) bind(c, &
            name="sluice_channel_send") result(outcome)
            import
            type(c_ptr), value :: channel
            type(c_ptr), value :: sges
            integer(c_int32_t), value :: sge_count
            integer(c_int64_t), value :: deadline
            integer(c_int) :: outcome
        end function c_sluice_channel_send
        function c_sluice_channel_send_immediate(channel, sges, sge_count, immediate, &
            deadline) bind(c, name="sluice_channel_send_immediate") result(outcome)
            import
            type(c_ptr), value :: channel
            type(c_ptr), value :: sges
            integer(c_int32_t), value :: sge_count
            integer(c_int32_t), value :: immediate
            integer(c_int64_t), value :: deadline
            integer(c_int) :: outcome
        end function c_sluice_channel_send_immediate
        function c_sluice_channel_receive(channel, sges, sge_count, deadline, completion) bind( &
            c, name="sluice_channel_receive") result(outcome)
            import
            type(c_ptr), value :: channel
            type(c_ptr), value :: sges
            integer(c_int32_t), value :: sge_count
            integer(c_int64_t), value :: deadline
            type(c_ptr), value :: completion
            integer(c_int) :: outcome
        end function c_sluice_channel_receive
        function c_sluice_channel_write(channel, sges, sge_count, remote, deadline) bind(c, &
            name="sluice_channel_write") result(outcome)
            import
            type(c_ptr), value :: channel
            type(c_ptr), value :: sges
            integer(c_int32_t), value :: sge_count
            type(sluice_remote_mr), intent(in) :: remote
            integer(c_int64_t), value :: deadline
            integer(c_int) :: outcome
        end function c_sluice_channel_write
        function c_sluice_channel_write_immediate(channel, sges, sge_count, remote, immediate, &
            deadline) bind(c, name="sluice_channel_write_immediate") result(outcome)
            import
            type(c_ptr), value :: channel
            type(c_ptr), value :: sges
            integer(c_int32_t), value :: sge_count
            type(sluice_remote_mr), intent(in) :: remote
            integer(c_int32_t), value :: immediate
            integer(c_int64_t), value :: deadline
            integer(c_int) :: outcome
        end function c_sluice_channel_write_immediate
        function c_sluice_channel_read(channel, sges, sge_count, remote, deadline) bind(c, &
            name="sluice_channel_read") result(outcome)
            import
            type(c_ptr), value :: channel
            type(c_ptr), value :: sges
            integer(c_int32_t), value :: sge_count
            type(sluice_remote_mr), intent(in) :: remote
            integer(c_int64_t), value :: deadline
            integer(c_int) :: outcome
        end function c_sluice_channel_read
        function sluice_channel_compare_swap(channel, result, remote, expected, desired, &
            deadline) bind(c, name="sluice_channel_compare_swap") result(outcome)
            import
            type(c_ptr), value :: channel
            type(sluice_sge), intent(in) :: result
            type(sluice_remote_mr), intent(in) :: remote
            integer(c_int64_t), value :: expected
            integer(c_int64_t), value :: desired
            integer(c_int64_t), value :: deadline
            integer(c_int) :: outcome
        end function sluice_channel_compare_swap
        function sluice_channel_fetch_add(channel, result, remote, addend, deadline) bind(c, &
            name="sluice_channel_fetch_add") result(outcome)
            import
            type(c_ptr), value :: channel
            type(sluice_sge), intent(in) :: result
            type(sluice_remote_mr), intent(in) :: remote
            integer(c_int64_t), value :: addend
            integer(c_int64_t), value :: deadline
            integer(c_int) :: outcome
        end function sluice_channel_fetch_add
        function c_sluice_channel_submit(channel, requests, count, deadline, completions) bind( &
            c, name="sluice_channel_submit") result(outcome)
            import
            type(c_ptr), value :: channel
            type(sluice_request), intent(in) :: requests(*)
            integer(c_int32_t), value :: count
            integer(c_int64_t), value :: deadline
            type(c_ptr), value :: completions
            integer(c_int) :: outcome
        end function c_sluice_channel_submit
        function c_sluice_channel_post(channel, requests, count, deadline, handles) bind(c, &
            name="sluice_channel_post") result(outcome)
            import
            type(c_ptr), value :: channel
            type(sluice_request), intent(in) :: requests(*)
            integer(c_int32_t), value :: count
            integer(c_int64_t), value :: deadline
            type(c_ptr), value :: handles
            integer(c_int) :: outcome
        end function c_sluice_channel_post
        function c_sluice_channel_post_send(channel, sges, sge_count, deadline, handle) bind(c, &
            name="sluice_channel_post_send") result(outcome)
            import
            type(c_ptr), value :: channel
            type(c_ptr), value :: sges
            integer(c_int32_t), value :: sge_count
            integer(c_int64_t), value :: deadline
            type(c_ptr), value :: handle
            integer(c_int) :: outcome
        end function c_sluice_channel_post_send
        function c_sluice_channel_post_receive(channel, sges, sge_count, deadline, handle) bind( &
            c, name="sluice_channel_post_receive") result(outcome)
            import
            type(c_ptr), value :: channel
            type(c_ptr), value :: sges
            integer(c_int32_t), value :: sge_count
            integer(c_int64_t), value :: deadline
            type(c_ptr), value :: handle
            integer(c_int) :: outcome
        end function c_sluice_channel_post_receive
        function c_sluice_channel_post_write(channel, sges, sge_count, remote, deadline, &
            handle) bind(c, name="sluice_channel_post_write") result(outcome)
            import
            type(c_ptr), value :: channel
            type(c_ptr), value :: sges
            integer(c_int32_t), value :: sge_count
            type(sluice_remote_mr), intent(in) :: remote
            integer(c_int64_t), value :: deadline
            type(c_ptr), value :: handle
            integer(c_int) :: outcome
        end function c_sluice_channel_post_write
        function c_sluice_channel_post_read(channel, sges, sge_count, remote, deadline, &
            handle) bind(c, name="sluice_channel_post_read") result(outcome)
            import
            type(c_ptr), value :: channel
            type(c_ptr), value :: sges
            integer(c_int32_t), value :: sge_count
            type(sluice_remote_mr), intent(in) :: remote
            integer(c_int64_t), value :: deadline
            type(c_ptr), value :: handle
            integer(c_int) :: outcome
        end function c_sluice_channel_post_read
        function c_sluice_channel_post_compare_swap(channel, result, remote, expected, desired, &
            deadline, handle) bind(c, name="sluice_channel_post_compare_swap") result(outcome)
            import
            type(c_ptr), value :: channel
            type(sluice_sge), intent(in) :: result
            type(sluice_remote_mr), intent(in) :: remote
            integer(c_int64_t), value :: expected
            integer(c_int64_t), value :: desired
            integer(c_int64_t), value :: deadline
            type(c_ptr), value :: handle
            integer(c_int) :: outcome
        end function c_sluice_channel_post_compare_swap
        function c_sluice_channel_post_fetch_add(channel, result, remote, addend, deadline, &
            handle) bind(c, name="sluice_channel_post_fetch_add") result(outcome)
            import
            type(c_ptr), value :: channel
            type(sluice_sge), intent(in) :: result
            type(sluice_remote_mr), intent(in) :: remote
            integer(c_int64_t), value :: addend
            integer(c_int64_t), value :: deadline
            type(c_ptr), value :: handle
            integer(c_int) :: outcome
        end function c_sluice_channel_post_fetch_add
        function sluice_channel_poll(channel, completions, count) bind(c, &
            name="sluice_channel_poll") result(outcome)
            import
            type(c_ptr), value :: channel
            type(sluice_completion), intent(inout) :: completions(*)
            integer(c_int32_t), value :: count
            integer(c_int) :: outcome
        end function sluice_channel_poll
        function sluice_channel_next(channel, timeout, completion) bind(c, &
            name="sluice_channel_next") result(outcome)
            import
            type(c_ptr), value :: channel
            integer(c_int64_t), value :: timeout
            type(sluice_completion), intent(inout) :: completion
            integer(c_int) :: outcome
        end function sluice_channel_next
        function sluice_channel_wait(channel, handle, timeout, completion) bind(c, &
            name="sluice_channel_wait") result(outcome)
            import
            type(c_ptr), value :: channel
            type(sluice_handle), intent(in) :: handle
            integer(c_int64_t), value :: timeout
            type(sluice_completion), intent(inout) :: completion
            integer(c_int) :: outcome
        end function sluice_channel_wait
        function sluice_channel_cancel(channel, handle, completion) bind(c, &
            name="sluice_channel_cancel") result(outcome)
            import
            type(c_ptr), value :: channel
            type(sluice_handle), intent(in) :: handle
            type(sluice_completion), intent(inout) :: completion
            integer(c_int) :: outcome
        end function sluice_channel_cancel
        function sluice_channel_detach(channel, handle) bind(c, &
            name="sluice_channel_detach") result(outcome)
            import
            type(c_ptr), value :: channel
            type(sluice_handle), intent(in) :: handle
            integer(c_int) :: outcome
        end function sluice_channel_detach
        function sluice_channel_flush(channel, timeout) bind(c, &
            name="sluice_channel_flush") result(outcome)
            import
            type(c_ptr), value :: channel
            integer(c_int64_t), value :: timeout
            integer(c_int) :: outcome
        end function sluice_channel_flush
        function sluice_channel_fd(channel) bind(c, name="sluice_channel_fd") result(outcome)
            import
            type(c_ptr), value :: channel
            integer(c_int) :: outcome
        end function sluice_channel_fd
        function c_sluice_channel_arm(channel, due) bind(c, name="sluice_channel_arm") result( &
            outcome)
            import
            type(c_ptr), value :: channel
            type(c_ptr), value :: due
            integer(c_int) :: outcome
        end function c_sluice_channel_arm
        function sluice_channel_wake(channel) bind(c, name="sluice_channel_wake") result(outcome)
            import
            type(c_ptr), value :: channel
            integer(c_int) :: outcome
        end function sluice_channel_wake
        function sluice_channel_arrivals(channel, tag, count) bind(c, &
            name="sluice_channel_arrivals") result(outcome)
            import
            type(c_ptr), value :: channel
            integer(c_int32_t), value :: tag
            integer(c_int64_t), intent(out) :: count
            integer(c_int) :: outcome
        end function sluice_channel_arrivals
        function sluice_channel_wait_arrivals(channel, tag, count, timeout) bind(c, &
            name="sluice_channel_wait_arrivals") result(outcome)
            import
            type(c_ptr), value :: channel
            integer(c_int32_t), value :: tag
            integer(c_int64_t), value :: count
            integer(c_int64_t), value :: timeout
            integer(c_int) :: outcome
        end function sluice_channel_wait_arrivals
        subroutine sluice_prepared_multichannel_free(prepared) bind(c, &
            name="sluice_prepared_multichannel_free")
            import
            type(c_ptr), value :: prepared
        end subroutine sluice_prepared_multichannel_free
        subroutine sluice_multichannel_close(multichannel) bind(c, name="sluice_multichannel_close")
            import
            type(c_ptr), value :: multichannel
        end subroutine sluice_multichannel_close
        function sluice_prepared_multichannel_handshake(prepared, remotes, count) bind(c, &
            name="sluice_prepared_multichannel_handshake") result(outcome)
            import
            type(c_ptr), value :: prepared
            type(sluice_endpoint), intent(in) :: remotes(*)
            integer(c_int32_t), value :: count
            type(c_ptr) :: outcome
        end function sluice_prepared_multichannel_handshake
        function c_sluice_multichannel_prepare(pd, peers, attr) bind(c, &
            name="sluice_multichannel_prepare") result(outcome)
            import
            type(c_ptr), value :: pd
            integer(c_int32_t), value :: peers
            type(c_ptr), value :: attr
            type(c_ptr) :: outcome
        end function c_sluice_multichannel_prepare
        function sluice_prepared_multichannel_endpoints(prepared, endpoints, count) bind(c, &
            name="sluice_prepared_multichannel_endpoints") result(outcome)
            import
            type(c_ptr), value :: prepared
            type(sluice_endpoint), intent(inout) :: endpoints(*)
            integer(c_int32_t), value :: count
            integer(c_int) :: outcome
        end function sluice_prepared_multichannel_endpoints
        function sluice_multichannel_peers(multichannel) bind(c, &
            name="sluice_multichannel_peers") result(outcome)
            import
            type(c_ptr), value :: multichannel
            integer(c_int32_t) :: outcome
        end function sluice_multichannel_peers
        function sluice_multichannel_peer_add(multichannel, endpoint) bind(c, &
            name="sluice_multichannel_peer_add") result(outcome)
            import
            type(c_ptr), value :: multichannel
            type(sluice_endpoint), intent(inout) :: endpoint
            integer(c_int) :: outcome
        end function sluice_multichannel_peer_add
        function sluice_multichannel_peer_remove(multichannel, peer) bind(c, &
            name="sluice_multichannel_peer_remove") result(outcome)
            import
            type(c_ptr), value :: multichannel
            integer(c_int32_t), value :: peer
            integer(c_int) :: outcome
        end function sluice_multichannel_peer_remove
        function sluice_multichannel_peer_remote(multichannel, peer, remote, tagged) bind(c, &
            name="sluice_multichannel_peer_remote") result(outcome)
            import
            type(c_ptr), value :: multichannel
            integer(c_int32_t), value :: peer
            type(sluice_remote_mr), intent(in) :: remote
            type(sluice_peer_remote_mr), intent(inout) :: tagged
            integer(c_int) :: outcome
        end function sluice_multichannel_peer_remote
        function sluice_multichannel_peer_state(multichannel, peer) bind(c, &
            name="sluice_multichannel_peer_state") result(outcome)
            import
            type(c_ptr), value :: multichannel
            integer(c_int32_t), value :: peer
            integer(c_int) :: outcome
        end function sluice_multichannel_peer_state
        function sluice_multichannel_peer_error(multichannel, peer, error) bind(c, &
            name="sluice_multichannel_peer_error") result(outcome)
            import
            type(c_ptr), value :: multichannel
            integer(c_int32_t), value :: peer
            type(sluice_error), intent(inout) :: error
            integer(c_int) :: outcome
        end function sluice_multichannel_peer_error
        function sluice_multichannel_wait_connected(multichannel, timeout) bind(c, &
            name="sluice_multichannel_wait_connected") result(outcome)
            import
            type(c_ptr), value :: multichannel
            integer(c_int64_t), value :: timeout
            integer(c_int) :: outcome
        end function sluice_multichannel_wait_connected
        function sluice_multichannel_peer_wait_connected(multichannel, peer, timeout) bind(c, &
            name="sluice_multichannel_peer_wait_connected") result(outcome)
            import
            type(c_ptr), value :: multichannel
            integer(c_int32_t), value :: peer
            integer(c_int64_t), value :: timeout
            integer(c_int) :: outcome
        end function sluice_multichannel_peer_wait_connected
        function sluice_multichannel_peer_query(multichannel, peer, info) bind(c, &
            name="sluice_multichannel_peer_query") result(outcome)
            import
            type(c_ptr), value :: multichannel
            integer(c_int32_t), value :: peer
            type(sluice_channel_info), intent(inout) :: info
            integer(c_int) :: outcome
        end function sluice_multichannel_peer_query
        function sluice_multichannel_peer_reset(multichannel, peer, endpoint) bind(c, &
            name="sluice_multichannel_peer_reset") result(outcome)
            import
            type(c_ptr), value :: multichannel
            integer(c_int32_t), value :: peer
            type(sluice_endpoint), intent(inout) :: endpoint
            integer(c_int) :: outcome
        end function sluice_multichannel_peer_reset
        function sluice_multichannel_peer_handshake(multichannel, peer, remote) bind(c, &
            name="sluice_multichannel_peer_handshake") result(outcome)
            import
            type(c_ptr), value :: multichannel
            integer(c_int32_t), value :: peer
            type(sluice_endpoint), intent(in) :: remote
            integer(c_int) :: outcome
        end function sluice_multichannel_peer_handshake
        function sluice_multichannel_shutdown(multichannel, deadline) bind(c, &
            name="sluice_multichannel_shutdown") result(outcome)
            import
            type(c_ptr), value :: multichannel
            integer(c_int64_t), value :: deadline
            integer(c_int) :: outcome
        end function sluice_multichannel_shutdown
        function c_sluice_multichannel_send(multichannel, peer, sges, sge_count, deadline) bind( &
            c, name="sluice_multichannel_send") result(outcome)
            import
            type(c_ptr), value :: multichannel
            integer(c_int32_t), value :: peer
            type(c_ptr), value :: sges
            integer(c_int32_t), value :: sge_count
            integer(c_int64_t), value :: deadline
            integer(c_int) :: outcome
        end function c_sluice_multichannel_send
        function c_sluice_multichannel_send_immediate(multichannel, peer, sges, sge_count, &
            immediate, deadline) bind(c, name="sluice_multichannel_send_immediate") result(outcome)
            import
            type(c_ptr), value :: multichannel
            integer(c_int32_t), value :: peer
            type(c_ptr), value :: sges
            integer(c_int32_t), value :: sge_count
            integer(c_int32_t), value :: immediate
            integer(c_int64_t), value :: deadline
            integer(c_int) :: outcome
        end function c_sluice_multichannel_send_immediate
        function c_sluice_multichannel_receive(multichannel, peer, sges, sge_count, deadline, &
            completion) bind(c, name="sluice_multichannel_receive") result(outcome)
            import
            type(c_ptr), value :: multichannel
            integer(c_int32_t), value :: peer
            type(c_ptr), value :: sges
            integer(c_int32_t), value :: sge_count
            integer(c_int64_t), value :: deadline
            type(c_ptr), value :: completion
            integer(c_int) :: outcome
        end function c_sluice_multichannel_receive
        function c_sluice_multichannel_write(multichannel, peer, sges, sge_count, remote, &
            deadline) bind(c, name="sluice_multichannel_write") result(outcome)
            import
            type(c_ptr), value :: multichannel
            integer(c_int32_t), value :: peer
            type(c_ptr), value :: sges
            integer(c_int32_t), value :: sge_count
            type(sluice_remote_mr), intent(in) :: remote
            integer(c_int64_t), value :: deadline
            integer(c_int) :: outcome
        end function c_sluice_multichannel_write
        function c_sluice_multichannel_write_immediate(multichannel, peer, sges, sge_count, &
            remote, immediate, deadline) bind(c, &
            name="sluice_multichannel_write_immediate") result(outcome)
            import
            type(c_ptr), value :: multichannel
            integer(c_int32_t), value :: peer
            type(c_ptr), value :: sges
            integer(c_int32_t), value :: sge_count
            type(sluice_remote_mr), intent(in) :: remote
            integer(c_int32_t), value :: immediate
            integer(c_int64_t), value :: deadline
            integer(c_int) :: outcome
        end function c_sluice_multichannel_write_immediate
        function c_sluice_multichannel_read(multichannel, peer, sges, sge_count, remote, &
            deadline) bind(c, name="sluice_multichannel_read") result(outcome)
            import
            type(c_ptr), value :: multichannel
            integer(c_int32_t), value :: peer
            type(c_ptr), value :: sges
            integer(c_int32_t), value :: sge_count
            type(sluice_remote_mr), intent(in) :: remote
            integer(c_int64_t), value :: deadline
            integer(c_int) :: outcome
        end function c_sluice_multichannel_read
        function sluice_multichannel_compare_swap(multichannel, peer, result, remote, expected, &
            desired, deadline) bind(c, name="sluice_multichannel_compare_swap") result(outcome)
            import
            type(c_ptr), value :: multichannel
            integer(c_int32_t), value :: peer
            type(sluice_sge), intent(in) :: result
            type(sluice_remote_mr), intent(in) :: remote
            integer(c_int64_t), value :: expected
            integer(c_int64_t), value :: desired
            integer(c_int64_t), value :: deadline
            integer(c_int) :: outcome
        end function sluice_multichannel_compare_swap
        function sluice_multichannel_fetch_add(multichannel, peer, result, remote, addend, &
            deadline) bind(c, name="sluice_multichannel_fetch_add") result(outcome)
            import
            type(c_ptr), value :: multichannel
            integer(c_int32_t), value :: peer
            type(sluice_sge), intent(in) :: result
            type(sluice_remote_mr), intent(in) :: remote
            integer(c_int64_t), value :: addend
            integer(c_int64_t), value :: deadline
            integer(c_int) :: outcome
        end function sluice_multichannel_fetch_add
        function c_sluice_multichannel_submit(multichannel, requests, count, deadline, &
            completions) bind(c, name="sluice_multichannel_submit") result(outcome)
            import
            type(c_ptr), value :: multichannel
            type(sluice_request), intent(in) :: requests(*)
            integer(c_int32_t), value :: count
            integer(c_int64_t), value :: deadline
            type(c_ptr), value :: completions
            integer(c_int) :: outcome
        end function c_sluice_multichannel_submit
        function c_sluice_multichannel_scatter_send(multichannel, requests, count, deadline, &
            completions) bind(c, name="sluice_multichannel_scatter_send") result(outcome)
            import
            type(c_ptr), value :: multichannel
            type(sluice_request), intent(in) :: requests(*)
            integer(c_int32_t), value :: count
            integer(c_int64_t), value :: deadline
            type(c_ptr), value :: completions
            integer(c_int) :: outcome
        end function c_sluice_multichannel_scatter_send
        function c_sluice_multichannel_scatter_write(multichannel, requests, count, deadline, &
            completions) bind(c, name="sluice_multichannel_scatter_write") result(outcome)
            import
            type(c_ptr), value :: multichannel
            type(sluice_request), intent(in) :: requests(*)
            integer(c_int32_t), value :: count
            integer(c_int64_t), value :: deadline
            type(c_ptr), value :: completions
            integer(c_int) :: outcome
        end function c_sluice_multichannel_scatter_write
        function c_sluice_multichannel_gather_receive(multichannel, requests, count, deadline, &
            completions) bind(c, name="sluice_multichannel_gather_receive") result(outcome)
            import
            type(c_ptr), value :: multichannel
            type(sluice_request), intent(in) :: requests(*)
            integer(c_int32_t), value :: count
            integer(c_int64_t), value :: deadline
            type(c_ptr), value :: completions
            integer(c_int) :: outcome
        end function c_sluice_multichannel_gather_receive
        function c_sluice_multichannel_gather_read(multichannel, requests, count, deadline, &
            completions) bind(c, name="sluice_multichannel_gather_read") result(outcome)
            import
            type(c_ptr), value :: multichannel
            type(sluice_request), intent(in) :: requests(*)
            integer(c_int32_t), value :: count
            integer(c_int64_t), value :: deadline
            type(c_ptr), value :: completions
            integer(c_int) :: outcome
        end function c_sluice_multichannel_gather_read
        function c_sluice_multichannel_scatter_gather(multichannel, sends, send_count, receives, &
            receive_count, deadline, completions) bind(c, &
            name="sluice_multichannel_scatter_gather") result(outcome)
            import
            type(c_ptr), value :: multichannel
            type(c_ptr), value :: sends
            integer(c_int32_t), value :: send_count
            type(c_ptr), value :: receives
            integer(c_int32_t), value :: receive_count
            integer(c_int64_t), value :: deadline
            type(c_ptr), value :: completions
            integer(c_int) :: outcome
        end function c_sluice_multichannel_scatter_gather
        function c_sluice_multichannel_multicast_send(multichannel, request, peers, count, &
            deadline, completions) bind(c, name="sluice_multichannel_multicast_send") result( &
            outcome)
            import
            type(c_ptr), value :: multichannel
            type(sluice_request), intent(in) :: request
            integer(c_int32_t), intent(in) :: peers(*)
            integer(c_int32_t), value :: count
            integer(c_int64_t), value :: deadline
            type(c_ptr), value :: completions
            integer(c_int) :: outcome
        end function c_sluice_multichannel_multicast_send
        function c_sluice_multichannel_multicast_write(multichannel, request, remotes, count, &
            deadline, completions) bind(c, name="sluice_multichannel_multicast_write") result( &
            outcome)
            import
            type(c_ptr), value :: multichannel
            type(sluice_request), intent(in) :: request
            type(sluice_peer_remote_mr), intent(in) :: remotes(*)
            integer(c_int32_t), value :: count
            integer(c_int64_t), value :: deadline
            type(c_ptr), value :: completions
            integer(c_int) :: outcome
        end function c_sluice_multichannel_multicast_write
        function c_sluice_multichannel_post(multichannel, requests, count, deadline, &
            handles) bind(c, name="sluice_multichannel_post") result(outcome)
            import
            type(c_ptr), value :: multichannel
            type(sluice_request), intent(in) :: requests(*)
            integer(c_int32_t), value :: count
            integer(c_int64_t), value :: deadline
            type(c_ptr), value :: handles
            integer(c_int) :: outcome
        end function c_sluice_multichannel_post
        function c_sluice_multichannel_post_send(multichannel, peer, sges, sge_count, deadline, &
            handle) bind(c, name="sluice_multichannel_post_send") result(outcome)
            import
            type(c_ptr), value :: multichannel
            integer(c_int32_t), value :: peer
            type(c_ptr), value :: sges
            integer(c_int32_t), value :: sge_count
            integer(c_int64_t), value :: deadline
            type(c_ptr), value :: handle
            integer(c_int) :: outcome
        end function c_sluice_multichannel_post_send
        function c_sluice_multichannel_post_receive(multichannel, peer, sges, sge_count, &
            deadline, handle) bind(c, name="sluice_multichannel_post_receive") result(outcome)
            import
            type(c_ptr), value :: multichannel
            integer(c_int32_t), value :: peer
            type(c_ptr), value :: sges
            integer(c_int32_t), value :: sge_count
            integer(c_int64_t), value :: deadline
            type(c_ptr), value :: handle
            integer(c_int) :: outcome
        end function c_sluice_multichannel_post_receive
        function c_sluice_multichannel_post_write(multichannel, peer, sges, sge_count, remote, &
            deadline, handle) bind(c, name="sluice_multichannel_post_write") result(outcome)
            import
            type(c_ptr), value :: multichannel
            integer(c_int32_t), value :: peer
            type(c_ptr), value :: sges
            integer(c_int32_t), value :: sge_count
            type(sluice_remote_mr), intent(in) :: remote
            integer(c_int64_t), value :: deadline
            type(c_ptr), value :: handle
            integer(c_int) :: outcome
        end function c_sluice_multichannel_post_write
        function c_sluice_multichannel_post_read(multichannel, peer, sges, sge_count, remote, &
            deadline, handle) bind(c, name="sluice_multichannel_post_read") result(outcome)
            import
            type(c_ptr), value :: multichannel
            integer(c_int32_t), value :: peer
            type(c_ptr), value :: sges
            integer(c_int32_t), value :: sge_count
            type(sluice_remote_mr), intent(in) :: remote
            integer(c_int64_t), value :: deadline
            type(c_ptr), value :: handle
            integer(c_int) :: outcome
        end function c_sluice_multichannel_post_read
        function c_sluice_multichannel_post_compare_swap(multichannel, peer, result, remote, &
            expected, desired, deadline, handle) bind(c, &
            name="sluice_multichannel_post_compare_swap") result(outcome)
            import
            type(c_ptr), value :: multichannel
            integer(c_int32_t), value :: peer
            type(sluice_sge), intent(in) :: result
            type(sluice_remote_mr), intent(in) :: remote
            integer(c_int64_t), value :: expected
            integer(c_int64_t), value :: desired
            integer(c_int64_t), value :: deadline
            type(c_ptr), value :: handle
            integer(c_int) :: outcome
        end function c_sluice_multichannel_post_compare_swap
        function c_sluice_multichannel_post_fetch_add(multichannel, peer, result, remote, &
            addend, deadline, handle) bind(c, name="sluice_multichannel_post_fetch_add") result( &
            outcome)
            import
            type(c_ptr), value :: multichannel
            integer(c_int32_t), value :: peer
            type(sluice_sge), intent(in) :: result
            type(sluice_remote_mr), intent(in) :: remote
            integer(c_int64_t), value :: addend
            integer(c_int64_t), value :: deadline
            type(c_ptr), value :: handle
            integer(c_int) :: outcome
        end function c_sluice_multichannel_post_fetch_add
        function c_sluice_multichannel_post_scatter_send(multichannel, requests, count, &
            deadline, handles) bind(c, name="sluice_multichannel_post_scatter_send") result(outcome)
            import
            type(c_ptr), value :: multichannel
            type(sluice_request), intent(in) :: requests(*)
            integer(c_int32_t), value :: count
            integer(c_int64_t), value :: deadline
            type(c_ptr), value :: handles
            integer(c_int) :: outcome
        end function c_sluice_multichannel_post_scatter_send
        function c_sluice_multichannel_post_scatter_write(multichannel, requests, count, &
            deadline, handles) bind(c, name="sluice_multichannel_post_scatter_write") result( &
            outcome)
            import
            type(c_ptr), value :: multichannel
            type(sluice_request), intent(in) :: requests(*)
            integer(c_int32_t), value :: count
            integer(c_int64_t), value :: deadline
            type(c_ptr), value :: handles
            integer(c_int) :: outcome
        end function c_sluice_multichannel_post_scatter_write
        function c_sluice_multichannel_post_gather_receive(multichannel, requests, count, &
            deadline, handles) bind(c, name="sluice_multichannel_post_gather_receive") result( &
            outcome)
            import
            type(c_ptr), value :: multichannel
            type(sluice_request), intent(in) :: requests(*)
            integer(c_int32_t), value :: count
            integer(c_int64_t), value :: deadline
            type(c_ptr), value :: handles
            integer(c_int) :: outcome
        end function c_sluice_multichannel_post_gather_receive
        function c_sluice_multichannel_post_gather_read(multichannel, requests, count, deadline, &
            handles) bind(c, name="sluice_multichannel_post_gather_read") result(outcome)
            import
            type(c_ptr), value :: multichannel
            type(sluice_request), intent(in) :: requests(*)
            integer(c_int32_t), value :: count
            integer(c_int64_t), value :: deadline
            type(c_ptr), value :: handles
            integer(c_int) :: outcome
        end function c_sluice_multichannel_post_gather_read
        function c_sluice_multichannel_post_multicast_send(multichannel, request, peers, count, &
            deadline, handles) bind(c, name="sluice_multichannel_post_multicast_send") result( &
            outcome)
            import
            type(c_ptr), value :: multichannel
            type(sluice_request), intent(in) :: request
            integer(c_int32_t), intent(in) :: peers(*)
            integer(c_int32_t), value :: count
            integer(c_int64_t), value :: deadline
            type(c_ptr), value :: handles
            integer(c_int) :: outcome
        end function c_sluice_multichannel_post_multicast_send
        function c_sluice_multichannel_post_multicast_write(multichannel, request, remotes, &
            count, deadline, handles) bind(c, &
            name="sluice_multichannel_post_multicast_write") result(outcome)
            import
            type(c_ptr), value :: multichannel
            type(sluice_request), intent(in) :: request
            type(sluice_peer_remote_mr), intent(in) :: remotes(*)
            integer(c_int32_t), value :: count
            integer(c_int64_t), value :: deadline
            type(c_ptr), value :: handles
            integer(c_int) :: outcome
        end function c_sluice_multichannel_post_multicast_write
        function sluice_multichannel_poll(multichannel, completions, count) bind(c, &
            name="sluice_multichannel_poll") result(outcome)
            import
            type(c_ptr), value :: multichannel
            type(sluice_completion), intent(inout) :: completions(*)
            integer(c_int32_t), value :: count
            integer(c_int) :: outcome
        end function sluice_multichannel_poll
        function sluice_multichannel_next(multichannel, timeout, completion) bind(c, &
            name="sluice_multichannel_next") result(outcome)
            import
            type(c_ptr), value :: multichannel
            integer(c_int64_t), value :: timeout
            type(sluice_completion), intent(inout) :: completion
            integer(c_int) :: outcome
        end function sluice_multichannel_next
        function sluice_multichannel_wait(multichannel, handle, timeout, completion) bind(c, &
            name="sluice_multichannel_wait") result(outcome)
            import
            type(c_ptr), value :: multichannel
            type(sluice_handle), intent(in) :: handle
            integer(c_int64_t), value :: timeout
            type(sluice_completion), intent(inout) :: completion
            integer(c_int) :: outcome
        end function sluice_multichannel_wait
        function sluice_multichannel_cancel(multichannel, handle, completion) bind(c, &
            name="sluice_multichannel_cancel") result(outcome)
            import
            type(c_ptr), value :: multichannel
            type(sluice_handle), intent(in) :: handle
            type(sluice_completion), intent(inout) :: completion
            integer(c_int) :: outcome
        end function sluice_multichannel_cancel
        function sluice_multichannel_detach(multichannel, handle) bind(c, &
            name="sluice_multichannel_detach") result(outcome)
            import
            type(c_ptr), value :: multichannel
            type(sluice_handle), intent(in) :: handle
            integer(c_int) :: outcome
        end function sluice_multichannel_detach
        function sluice_multichannel_flush(multichannel, timeout) bind(c, &
            name="sluice_multichannel_flush") result(outcome)
            import
            type(c_ptr), value :: multichannel
            integer(c_int64_t), value :: timeout
            integer(c_int) :: outcome
        end function sluice_multichannel_flush
        function sluice_multichannel_fd(multichannel) bind(c, &
            name="sluice_multichannel_fd") result(outcome)
            import
            type(c_ptr), value :: multichannel
            integer(c_int) :: outcome
        end function sluice_multichannel_fd
        function c_sluice_multichannel_arm(multichannel, due) bind(c, &
            name="sluice_multichannel_arm") result(outcome)
            import
            type(c_ptr), value :: multichannel
            type(c_ptr), value :: due
            integer(c_int) :: outcome
        end function c_sluice_multichannel_arm
        function sluice_multichannel_wake(multichannel) bind(c, &
            name="sluice_multichannel_wake") result(outcome)
            import
            type(c_ptr), value :: multichannel
            integer(c_int) :: outcome
        end function sluice_multichannel_wake
        function sluice_multichannel_arrivals(multichannel, tag, count) bind(c, &
            name="sluice_multichannel_arrivals") result(outcome)
            import
            type(c_ptr), value :: multichannel
            integer(c_int32_t), value :: tag
            integer(c_int64_t), intent(out) :: count
            integer(c_int) :: outcome
        end function sluice_multichannel_arrivals
        function sluice_multichannel_wait_arrivals(multichannel, tag, count, timeout) bind(c, &
            name="sluice_multichannel_wait_arrivals") result(outcome)
            import
            type(c_ptr), value :: multichannel
            integer(c_int32_t), value :: tag
            integer(c_int64_t), value :: count
            integer(c_int64_t), value :: timeout
            integer(c_int) :: outcome
        end function sluice_multichannel_wait_arrivals
        function c_sluice_multichannel_post_receive_any(multichannel, requests, count, &
            handles) bind(c, name="sluice_multichannel_post_receive_any") result(outcome)
            import
            type(c_ptr), value :: multichannel
            type(sluice_request), intent(in) :: requests(*)
            integer(c_int32_t), value :: count
            type(c_ptr), value :: handles
            integer(c_int) :: outcome
        end function c_sluice_multichannel_post_receive_any
        function c_sluice_multichannel_receive_any(multichannel, sges, sge_count, deadline, &
            completion) bind(c, name="sluice_multichannel_receive_any") result(outcome)
            import
            type(c_ptr), value :: multichannel
            type(c_ptr), value :: sges
            integer(c_int32_t), value :: sge_count
            integer(c_int64_t), value :: deadline
            type(sluice_completion), intent(inout) :: completion
            integer(c_int) :: outcome
        end function c_sluice_multichannel_receive_any
        function sluice_multichannel_receive_any_room(multichannel) bind(c, &
            name="sluice_multichannel_receive_any_room") result(outcome)
            import
            type(c_ptr), value :: multichannel
            integer(c_int) :: outcome
        end function sluice_multichannel_receive_any_room
        subroutine sluice_list_free(list) bind(c, name="sluice_list_free")
            import
            type(c_ptr), value :: list
        end subroutine sluice_list_free
        function sluice_channel_list_prepare(channel, requests, count) bind(c, &
            name="sluice_channel_list_prepare") result(outcome)
            import
            type(c_ptr), value :: channel
            type(sluice_request), intent(in) :: requests(*)
            integer(c_int32_t), value :: count
            type(c_ptr) :: outcome
        end function sluice_channel_list_prepare
        function sluice_multichannel_list_prepare(multichannel, requests, count) bind(c, &
            name="sluice_multichannel_list_prepare") result(outcome)
            import
            type(c_ptr), value :: multichannel
            type(sluice_request), intent(in) :: requests(*)
            integer(c_int32_t), value :: count
            type(c_ptr) :: outcome
        end function sluice_multichannel_list_prepare
        function c_sluice_list_aim(list, index, sge, remote_offset) bind(c, &
            name="sluice_list_aim") result(outcome)
            import
            type(c_ptr), value :: list
            integer(c_int32_t), value :: index
            type(c_ptr), value :: sge
            integer(c_int64_t), value :: remote_offset
            integer(c_int) :: outcome
        end function c_sluice_list_aim
        function sluice_list_set_length(list, index, length) bind(c, &
            name="sluice_list_set_length") result(outcome)
            import
            type(c_ptr), value :: list
            integer(c_int32_t), value :: index
            integer(c_int64_t), value :: length
            integer(c_int) :: outcome
        end function sluice_list_set_length
        function c_sluice_list_submit(list, deadline, completions) bind(c, &
            name="sluice_list_submit") result(outcome)
            import
            type(c_ptr), value :: list
            integer(c_int64_t), value :: deadline
            type(c_ptr), value :: completions
            integer(c_int) :: outcome
        end function c_sluice_list_submit
        function sluice_list_post(list, deadline, completions) bind(c, &
            name="sluice_list_post") result(outcome)
            import
            type(c_ptr), value :: list
            integer(c_int64_t), value :: deadline
            type(c_ptr), value :: completions
            integer(c_int) :: outcome
        end function sluice_list_post
        function sluice_list_wait(list, timeout) bind(c, name="sluice_list_wait") result(outcome)
            import
            type(c_ptr), value :: list
            integer(c_int64_t), value :: timeout
            integer(c_int) :: outcome
        end function sluice_list_wait
        function sluice_list_result(list) bind(c, name="sluice_list_result") result(outcome)
            import
            type(c_ptr), value :: list
            integer(c_int) :: outcome
        end function sluice_list_result
        function c_sluice_scope_post_list(scope, list, handles) bind(c, &
            name="sluice_scope_post_list") result(outcome)
            import
            type(c_ptr), value :: scope
            type(c_ptr), value :: list
            type(c_ptr), value :: handles
            integer(c_int) :: outcome
        end function c_sluice_scope_post_list
        function c_sluice_scope_end(scope, report) bind(c, name="sluice_scope_end") result(outcome)
            import
            type(c_ptr), value :: scope
            type(c_ptr), value :: report
            integer(c_int) :: outcome
        end function c_sluice_scope_end
        function sluice_channel_scope_begin(channel, deadline) bind(c, &
            name="sluice_channel_scope_begin") result(outcome)
            import
            type(c_ptr), value :: channel
            integer(c_int64_t), value :: deadline
            type(c_ptr) :: outcome
        end function sluice_channel_scope_begin
        function sluice_multichannel_scope_begin(multichannel, deadline) bind(c, &
            name="sluice_multichannel_scope_begin") result(outcome)
            import
            type(c_ptr), value :: multichannel
            integer(c_int64_t), value :: deadline
            type(c_ptr) :: outcome
        end function sluice_multichannel_scope_begin
        function sluice_scope_attach(scope, report) bind(c, name="sluice_scope_attach") result( &
            outcome)
            import
            type(c_ptr), value :: scope
            type(c_ptr), value :: report
            type(c_ptr) :: outcome
        end function sluice_scope_attach
        function c_sluice_scope_post(scope, requests, count, handles) bind(c, &
            name="sluice_scope_post") result(outcome)
            import
            type(c_ptr), value :: scope
            type(sluice_request), intent(in) :: requests(*)
            integer(c_int32_t), value :: count
            type(c_ptr), value :: handles
            integer(c_int) :: outcome
        end function c_sluice_scope_post
        function c_sluice_scope_post_send(scope, peer, sges, sge_count, handle) bind(c, &
            name="sluice_scope_post_send") result(outcome)
            import
            type(c_ptr), value :: scope
            integer(c_int32_t), value :: peer
            type(c_ptr), value :: sges
            integer(c_int32_t), value :: sge_count
            type(c_ptr), value :: handle
            integer(c_int) :: outcome
        end function c_sluice_scope_post_send
        function c_sluice_scope_post_receive(scope, peer, sges, sge_count, handle) bind(c, &
            name="sluice_scope_post_receive") result(outcome)
            import
            type(c_ptr), value :: scope
            integer(c_int32_t), value :: peer
            type(c_ptr), value :: sges
            integer(c_int32_t), value :: sge_count
            type(c_ptr), value :: handle
            integer(c_int) :: outcome
        end function c_sluice_scope_post_receive
        function c_sluice_scope_post_write(scope, peer, sges, sge_count, remote, handle) bind(c, &
            name="sluice_scope_post_write") result(outcome)
            import
            type(c_ptr), value :: scope
            integer(c_int32_t), value :: peer
            type(c_ptr), value :: sges
            integer(c_int32_t), value :: sge_count
            type(sluice_remote_mr), intent(in) :: remote
            type(c_ptr), value :: handle
            integer(c_int) :: outcome
        end function c_sluice_scope_post_write
        function c_sluice_scope_post_read(scope, peer, sges, sge_count, remote, handle) bind(c, &
            name="sluice_scope_post_read") result(outcome)
            import
            type(c_ptr), value :: scope
            integer(c_int32_t), value :: peer
            type(c_ptr), value :: sges
            integer(c_int32_t), value :: sge_count
            type(sluice_remote_mr), intent(in) :: remote
            type(c_ptr), value :: handle
            integer(c_int) :: outcome
        end function c_sluice_scope_post_read
        function c_sluice_scope_post_compare_swap(scope, peer, result, remote, expected, &
            desired, handle) bind(c, name="sluice_scope_post_compare_swap") result(outcome)
            import
            type(c_ptr), value :: scope
            integer(c_int32_t), value :: peer
            type(sluice_sge), intent(in) :: result
            type(sluice_remote_mr), intent(in) :: remote
            integer(c_int64_t), value :: expected
            integer(c_int64_t), value :: desired
            type(c_ptr), value :: handle
            integer(c_int) :: outcome
        end function c_sluice_scope_post_compare_swap
        function c_sluice_scope_post_fetch_add(scope, peer, result, remote, addend, handle) bind( &
            c, name="sluice_scope_post_fetch_add") result(outcome)
            import
            type(c_ptr), value :: scope
            integer(c_int32_t), value :: peer
            type(sluice_sge), intent(in) :: result
            type(sluice_remote_mr), intent(in) :: remote
            integer(c_int64_t), value :: addend
            type(c_ptr), value :: handle
            integer(c_int) :: outcome
        end function c_sluice_scope_post_fetch_add
        function c_sluice_scope_post_scatter_send(scope, requests, count, handles) bind(c, &
            name="sluice_scope_post_scatter_send") result(outcome)
            import
            type(c_ptr), value :: scope
            type(sluice_request), intent(in) :: requests(*)
            integer(c_int32_t), value :: count
            type(c_ptr), value :: handles
            integer(c_int) :: outcome
        end function c_sluice_scope_post_scatter_send
        function c_sluice_scope_post_scatter_write(scope, requests, count, handles) bind(c, &
            name="sluice_scope_post_scatter_write") result(outcome)
            import
            type(c_ptr), value :: scope
            type(sluice_request), intent(in) :: requests(*)
            integer(c_int32_t), value :: count
            type(c_ptr), value :: handles
            integer(c_int) :: outcome
        end function c_sluice_scope_post_scatter_write
        function c_sluice_scope_post_gather_receive(scope, requests, count, handles) bind(c, &
            name="sluice_scope_post_gather_receive") result(outcome)
            import
            type(c_ptr), value :: scope
            type(sluice_request), intent(in) :: requests(*)
            integer(c_int32_t), value :: count
            type(c_ptr), value :: handles
            integer(c_int) :: outcome
        end function c_sluice_scope_post_gather_receive
        function c_sluice_scope_post_gather_read(scope, requests, count, handles) bind(c, &
            name="sluice_scope_post_gather_read") result(outcome)
            import
            type(c_ptr), value :: scope
            type(sluice_request), intent(in) :: requests(*)
            integer(c_int32_t), value :: count
            type(c_ptr), value :: handles
            integer(c_int) :: outcome
        end function c_sluice_scope_post_gather_read
        function c_sluice_scope_post_multicast_send(scope, request, peers, count, handles) bind( &
            c, name="sluice_scope_post_multicast_send") result(outcome)
            import
            type(c_ptr), value :: scope
            type(sluice_request), intent(in) :: request
            integer(c_int32_t), intent(in) :: peers(*)
            integer(c_int32_t), value :: count
            type(c_ptr), value :: handles
            integer(c_int) :: outcome
        end function c_sluice_scope_post_multicast_send
        function c_sluice_scope_post_multicast_write(scope, request, remotes, count, &
            handles) bind(c, name="sluice_scope_post_multicast_write") result(outcome)
            import
            type(c_ptr), value :: scope
            type(sluice_request), intent(in) :: request
            type(sluice_peer_remote_mr), intent(in) :: remotes(*)
            integer(c_int32_t), value :: count
            type(c_ptr), value :: handles
            integer(c_int) :: outcome
        end function c_sluice_scope_post_multicast_write
        function sluice_scope_poll(scope, completions, count) bind(c, &
            name="sluice_scope_poll") result(outcome)
            import
            type(c_ptr), value :: scope
            type(sluice_completion), intent(inout) :: completions(*)
            integer(c_int32_t), value :: count
            integer(c_int) :: outcome
        end function sluice_scope_poll
        function sluice_scope_wait(scope, handle, timeout, completion) bind(c, &
            name="sluice_scope_wait") result(outcome)
            import
            type(c_ptr), value :: scope
            type(sluice_handle), intent(in) :: handle
            integer(c_int64_t), value :: timeout
            type(sluice_completion), intent(inout) :: completion
            integer(c_int) :: outcome
        end function sluice_scope_wait
        function sluice_channel_counters(channel, counters) bind(c, &
            name="sluice_channel_counters") result(outcome)
            import
            type(c_ptr), value :: channel
            type(sluice_counters), intent(inout) :: counters
            integer(c_int) :: outcome
        end function sluice_channel_counters
        function sluice_multichannel_counters(multichannel, counters) bind(c, &
            name="sluice_multichannel_counters") result(outcome)
            import
            type(c_ptr), value :: multichannel
            type(sluice_counters), intent(inout) :: counters
            integer(c_int) :: outcome
        end function sluice_multichannel_counters
        function sluice_multichannel_peer_counters(multichannel, peer, counters) bind(c, &
            name="sluice_multichannel_peer_counters") result(outcome)
            import
            type(c_ptr), value :: multichannel
            integer(c_int32_t), value :: peer
            type(sluice_counters), intent(inout) :: counters
            integer(c_int) :: outcome
        end function sluice_multichannel_peer_counters
        function sluice_channel_histogram(channel, opcode, histogram) bind(c, &
            name="sluice_channel_histogram") result(outcome)
            import
            type(c_ptr), value :: channel
            integer(c_int32_t), value :: opcode
            type(sluice_histogram), intent(inout) :: histogram
            integer(c_int) :: outcome
        end function sluice_channel_histogram
        function sluice_multichannel_histogram(multichannel, opcode, histogram) bind(c, &
            name="sluice_multichannel_histogram") result(outcome)
            import
            type(c_ptr), value :: multichannel
            integer(c_int32_t), value :: opcode
            type(sluice_histogram), intent(inout) :: histogram
            integer(c_int) :: outcome
        end function sluice_multichannel_histogram
        function sluice_multichannel_peer_histogram(multichannel, peer, opcode, histogram) bind( &
            c, name="sluice_multichannel_peer_histogram") result(outcome)
            import
            type(c_ptr), value :: multichannel
            integer(c_int32_t), value :: peer
            integer(c_int32_t), value :: opcode
            type(sluice_histogram), intent(inout) :: histogram
            integer(c_int) :: outcome
        end function sluice_multichannel_peer_histogram
        function sluice_channel_histogram_reset(channel) bind(c, &
            name="sluice_channel_histogram_reset") result(outcome)
            import
            type(c_ptr), value :: channel
            integer(c_int) :: outcome
        end function sluice_channel_histogram_reset
        function sluice_multichannel_histogram_reset(multichannel) bind(c, &
            name="sluice_multichannel_histogram_reset") result(outcome)
            import
            type(c_ptr), value :: multichannel
            integer(c_int) :: outcome
        end function sluice_multichannel_histogram_reset
        function sluice_histogram_percentile(histogram, percent) bind(c, &
            name="sluice_histogram_percentile") result(outcome)
            import
            type(sluice_histogram), intent(in) :: histogram
            real(c_double), value :: percent
            integer(c_int64_t) :: outcome
        end function sluice_histogram_percentile
        function sluice_histogram_mean(histogram) bind(c, name="sluice_histogram_mean") result( &
            outcome)
            import
            type(sluice_histogram), intent(in) :: histogram
            integer(c_int64_t) :: outcome
        end function sluice_histogram_mean
        function sluice_histogram_bound(bucket) bind(c, name="sluice_histogram_bound") result( &
            outcome)
            import
            integer(c_int32_t), value :: bucket
            integer(c_int64_t) :: outcome
        end function sluice_histogram_bound
        function sluice_histogram_merge(histogram, other) bind(c, &
            name="sluice_histogram_merge") result(outcome)
            import
            type(sluice_histogram), intent(inout) :: histogram
            type(sluice_histogram), intent(in) :: other
            integer(c_int) :: outcome
        end function sluice_histogram_merge
        subroutine sluice_listener_close(listener) bind(c, name="sluice_listener_close")
            import
            type(c_ptr), value :: listener
        end subroutine sluice_listener_close
        function c_sluice_listen(address, attr) bind(c, name="sluice_listen") result(outcome)
            import
            character(kind=c_char), intent(in) :: address(*)
            type(c_ptr), value :: attr
            type(c_ptr) :: outcome
        end function c_sluice_listen
        function c_sluice_listener_address(listener, text, size) bind(c, &
            name="sluice_listener_address") result(outcome)
            import
            type(c_ptr), value :: listener
            type(c_ptr), value :: text
            integer(c_size_t), value :: size
            integer(c_int) :: outcome
        end function c_sluice_listener_address
        function sluice_listener_fd(listener) bind(c, name="sluice_listener_fd") result(outcome)
            import
            type(c_ptr), value :: listener
            integer(c_int) :: outcome
        end function sluice_listener_fd
        function sluice_listener_wake(listener) bind(c, name="sluice_listener_wake") result(outcome)
            import
            type(c_ptr), value :: listener
            integer(c_int) :: outcome
        end function sluice_listener_wake
        subroutine c_sluice_incoming_refuse(incoming, reason) bind(c, name="sluice_incoming_refuse")
            import
            type(c_ptr), value :: incoming
            type(c_ptr), value :: reason
        end subroutine c_sluice_incoming_refuse
        function c_sluice_incoming_accept(incoming, pd, attr, options, deadline) bind(c, &
            name="sluice_incoming_accept") result(outcome)
            import
            type(c_ptr), value :: incoming
            type(c_ptr), value :: pd
            type(c_ptr), value :: attr
            type(c_ptr), value :: options
            integer(c_int64_t), value :: deadline
            type(c_ptr) :: outcome
        end function c_sluice_incoming_accept
        function c_sluice_incoming_accept_into(incoming, multichannel, options, deadline, peers, &
            count) bind(c, name="sluice_incoming_accept_into") result(outcome)
            import
            type(c_ptr), value :: incoming
            type(c_ptr), value :: multichannel
            type(c_ptr), value :: options
            integer(c_int64_t), value :: deadline
            integer(c_int32_t), intent(inout) :: peers(*)
            integer(c_int32_t), value :: count
            integer(c_int) :: outcome
        end function c_sluice_incoming_accept_into
        function c_sluice_incoming_admit(incoming, pd, attr, options, deadline, user_data) bind( &
            c, name="sluice_incoming_admit") result(outcome)
            import
            type(c_ptr), value :: incoming
            type(c_ptr), value :: pd
            type(c_ptr), value :: attr
            type(c_ptr), value :: options
            integer(c_int64_t), value :: deadline
            integer(c_int64_t), value :: user_data
            integer(c_int) :: outcome
        end function c_sluice_incoming_admit
        function c_sluice_incoming_admit_into(incoming, multichannel, options, deadline, &
            user_data) bind(c, name="sluice_incoming_admit_into") result(outcome)
            import
            type(c_ptr), value :: incoming
            type(c_ptr), value :: multichannel
            type(c_ptr), value :: options
            integer(c_int64_t), value :: deadline
            integer(c_int64_t), value :: user_data
            integer(c_int) :: outcome
        end function c_sluice_incoming_admit_into
        function sluice_listener_admitted(listener, timeout, admitted) bind(c, &
            name="sluice_listener_admitted") result(outcome)
            import
            type(c_ptr), value :: listener
            integer(c_int64_t), value :: timeout
            type(sluice_admitted), intent(inout) :: admitted
            integer(c_int) :: outcome
        end function sluice_listener_admitted
        function sluice_listener_cancel(listener, user_data) bind(c, &
            name="sluice_listener_cancel") result(outcome)
            import
            type(c_ptr), value :: listener
            integer(c_int64_t), value :: user_data
            integer(c_int) :: outcome
        end function sluice_listener_cancel
        function sluice_incoming_query(incoming, info) bind(c, &
            name="sluice_incoming_query") result(outcome)
            import
            type(c_ptr), value :: incoming
            type(sluice_incoming_info), intent(inout) :: info
            integer(c_int) :: outcome
        end function sluice_incoming_query
        function sluice_listener_next(listener, timeout) bind(c, &
            name="sluice_listener_next") result(outcome)
            import
            type(c_ptr), value :: listener
            integer(c_int64_t), value :: timeout
            type(c_ptr) :: outcome
        end function sluice_listener_next
        function c_sluice_accept(listener, pd, attr, timeout) bind(c, &
            name="sluice_accept") result(outcome)
            import
            type(c_ptr), value :: listener
            type(c_ptr), value :: pd
            type(c_ptr), value :: attr
            integer(c_int64_t), value :: timeout
            type(c_ptr) :: outcome
        end function c_sluice_accept
        function c_sluice_connect(address, pd, attr, options, deadline) bind(c, &
            name="sluice_connect") result(outcome)
            import
            character(kind=c_char), intent(in) :: address(*)
            type(c_ptr), value :: pd
            type(c_ptr), value :: attr
            type(c_ptr), value :: options
            integer(c_int64_t), value :: deadline
            type(c_ptr) :: outcome
        end function c_sluice_connect
        function c_sluice_connect_into(address, multichannel, options, deadline, peers, &
            count) bind(c, name="sluice_connect_into") result(outcome)
            import
            character(kind=c_char), intent(in) :: address(*)
            type(c_ptr), value :: multichannel
            type(c_ptr), value :: options
            integer(c_int64_t), value :: deadline
            integer(c_int32_t), intent(inout) :: peers(*)
            integer(c_int32_t), value :: count
            integer(c_int) :: outcome
        end function c_sluice_connect_into
        subroutine sluice_exchange_close(exchange) bind(c, name="sluice_exchange_close")
            import
            type(c_ptr), value :: exchange
        end subroutine sluice_exchange_close
        function c_sluice_exchange_open(attr, deadline) bind(c, &
            name="sluice_exchange_open") result(outcome)
            import
            type(c_ptr), value :: attr
            integer(c_int64_t), value :: deadline
            type(c_ptr) :: outcome
        end function c_sluice_exchange_open
        function sluice_launch_query(info) bind(c, name="sluice_launch_query") result(outcome)
            import
            type(sluice_launch_info), intent(inout) :: info
            integer(c_int) :: outcome
        end function sluice_launch_query
        function sluice_exchange_wrap(provider, argument, rank, ranks) bind(c, &
            name="sluice_exchange_wrap") result(outcome)
            import
            type(sluice_exchange_provider), intent(in) :: provider
            type(c_ptr), value :: argument
            integer(c_int32_t), value :: rank
            integer(c_int32_t), value :: ranks
            type(c_ptr) :: outcome
        end function sluice_exchange_wrap
        function sluice_exchange_query(exchange, info) bind(c, &
            name="sluice_exchange_query") result(outcome)
            import
            type(c_ptr), value :: exchange
            type(sluice_exchange_info), intent(inout) :: info
            integer(c_int) :: outcome
        end function sluice_exchange_query
        function sluice_exchange_allgather(exchange, own, all, bytes, deadline) bind(c, &
            name="sluice_exchange_allgather") result(outcome)
            import
            type(c_ptr), value :: exchange
            type(c_ptr), value :: own
            type(c_ptr), value :: all
            integer(c_size_t), value :: bytes
            integer(c_int64_t), value :: deadline
            integer(c_int) :: outcome
        end function sluice_exchange_allgather
        function sluice_exchange_alltoall(exchange, to, from, bytes, deadline) bind(c, &
            name="sluice_exchange_alltoall") result(outcome)
            import
            type(c_ptr), value :: exchange
            type(c_ptr), value :: to
            type(c_ptr), value :: from
            integer(c_size_t), value :: bytes
            integer(c_int64_t), value :: deadline
            integer(c_int) :: outcome
        end function sluice_exchange_alltoall
        function sluice_exchange_barrier(exchange, deadline) bind(c, &
            name="sluice_exchange_barrier") result(outcome)
            import
            type(c_ptr), value :: exchange
            integer(c_int64_t), value :: deadline
            integer(c_int) :: outcome
        end function sluice_exchange_barrier
        function c_sluice_exchange_missing(exchange, ranks, capacity) bind(c, &
            name="sluice_exchange_missing") result(outcome)
            import
            type(c_ptr), value :: exchange
            type(c_ptr), value :: ranks
            integer(c_int32_t), value :: capacity
            integer(c_int) :: outcome
        end function c_sluice_exchange_missing
        function sluice_exchange_locality(exchange, local_rank, local_ranks, deadline) bind(c, &
            name="sluice_exchange_locality") result(outcome)
            import
            type(c_ptr), value :: exchange
            integer(c_int32_t), intent(out) :: local_rank
            integer(c_int32_t), intent(out) :: local_ranks
            integer(c_int64_t), value :: deadline
            integer(c_int) :: outcome
        end function sluice_exchange_locality
        subroutine sluice_prepared_node_free(prepared) bind(c, name="sluice_prepared_node_free")
            import
            type(c_ptr), value :: prepared
        end subroutine sluice_prepared_node_free
        subroutine sluice_node_close(node) bind(c, name="sluice_node_close")
            import
            type(c_ptr), value :: node
        end subroutine sluice_node_close
        function sluice_prepared_node_handshake(prepared, remotes, ranks) bind(c, &
            name="sluice_prepared_node_handshake") result(outcome)
            import
            type(c_ptr), value :: prepared
            type(sluice_node_endpoint), intent(in) :: remotes(*)
            integer(c_int32_t), value :: ranks
            type(c_ptr) :: outcome
        end function sluice_prepared_node_handshake
        function c_sluice_node_prepare(pd, rank, ranks, attr) bind(c, &
            name="sluice_node_prepare") result(outcome)
            import
            type(c_ptr), value :: pd
            integer(c_int32_t), value :: rank
            integer(c_int32_t), value :: ranks
            type(c_ptr), value :: attr
            type(c_ptr) :: outcome
        end function c_sluice_node_prepare
        function sluice_prepared_node_endpoints(prepared, endpoints, ranks) bind(c, &
            name="sluice_prepared_node_endpoints") result(outcome)
            import
            type(c_ptr), value :: prepared
            type(sluice_node_endpoint), intent(inout) :: endpoints(*)
            integer(c_int32_t), value :: ranks
            integer(c_int) :: outcome
        end function sluice_prepared_node_endpoints
        function c_sluice_node_open(pd, exchange, attr, deadline) bind(c, &
            name="sluice_node_open") result(outcome)
            import
            type(c_ptr), value :: pd
            type(c_ptr), value :: exchange
            type(c_ptr), value :: attr
            integer(c_int64_t), value :: deadline
            type(c_ptr) :: outcome
        end function c_sluice_node_open
        function sluice_node_rank(node) bind(c, name="sluice_node_rank") result(outcome)
            import
            type(c_ptr), value :: node
            integer(c_int) :: outcome
        end function sluice_node_rank
        function sluice_node_ranks(node) bind(c, name="sluice_node_ranks") result(outcome)
            import
            type(c_ptr), value :: node
            integer(c_int) :: outcome
        end function sluice_node_ranks
        function sluice_node_multichannel(node) bind(c, name="sluice_node_multichannel") result( &
            outcome)
            import
            type(c_ptr), value :: node
            type(c_ptr) :: outcome
        end function sluice_node_multichannel
        function sluice_node_pd(node) bind(c, name="sluice_node_pd") result(outcome)
            import
            type(c_ptr), value :: node
            type(c_ptr) :: outcome
        end function sluice_node_pd
        function sluice_node_context(node) bind(c, name="sluice_node_context") result(outcome)
            import
            type(c_ptr), value :: node
            type(c_ptr) :: outcome
        end function sluice_node_context
        function sluice_node_exchange(node) bind(c, name="sluice_node_exchange") result(outcome)
            import
            type(c_ptr), value :: node
            type(c_ptr) :: outcome
        end function sluice_node_exchange
        function c_sluice_node_barrier(node, ranks, count, algorithm, deadline) bind(c, &
            name="sluice_node_barrier") result(outcome)
            import
            type(c_ptr), value :: node
            type(c_ptr), value :: ranks
            integer(c_int32_t), value :: count
            integer(c_int32_t), value :: algorithm
            integer(c_int64_t), value :: deadline
            integer(c_int) :: outcome
        end function c_sluice_node_barrier
        function sluice_node_allgather(node, own, all, bytes, deadline) bind(c, &
            name="sluice_node_allgather") result(outcome)
            import
            type(c_ptr), value :: node
            type(c_ptr), value :: own
            type(c_ptr), value :: all
            integer(c_size_t), value :: bytes
            integer(c_int64_t), value :: deadline
            integer(c_int) :: outcome
        end function sluice_node_allgather
        function sluice_node_share_mr(node, mr, remotes, deadline) bind(c, &
            name="sluice_node_share_mr") result(outcome)
            import
            type(c_ptr), value :: node
            type(c_ptr), value :: mr
            type(sluice_peer_remote_mr), intent(inout) :: remotes(*)
            integer(c_int64_t), value :: deadline
            integer(c_int) :: outcome
        end function sluice_node_share_mr
        function sluice_node_alltoall(node, own, all, bytes, deadline) bind(c, &
            name="sluice_node_alltoall") result(outcome)
            import
            type(c_ptr), value :: node
            type(c_ptr), value :: own
            type(c_ptr), value :: all
            integer(c_size_t), value :: bytes
            integer(c_int64_t), value :: deadline
            integer(c_int) :: outcome
        end function sluice_node_alltoall
        function c_sluice_node_multichannel_open(node, attr, deadline) bind(c, &
            name="sluice_node_multichannel_open") result(outcome)
            import
            type(c_ptr), value :: node
            type(c_ptr), value :: attr
            integer(c_int64_t), value :: deadline
            type(c_ptr) :: outcome
        end function c_sluice_node_multichannel_open
        function sluice_node_multichannel_reconnect(node, multichannel, deadline) bind(c, &
            name="sluice_node_multichannel_reconnect") result(outcome)
            import
            type(c_ptr), value :: node
            type(c_ptr), value :: multichannel
            integer(c_int64_t), value :: deadline
            integer(c_int) :: outcome
        end function sluice_node_multichannel_reconnect
        function sluice_node_reach(node, ranks, count, deadline) bind(c, &
            name="sluice_node_reach") result(outcome)
            import
            type(c_ptr), value :: node
            integer(c_int32_t), intent(in) :: ranks(*)
            integer(c_int32_t), value :: count
            integer(c_int64_t), value :: deadline
            integer(c_int) :: outcome
        end function sluice_node_reach
        function sluice_node_barrier_reset(node) bind(c, &
            name="sluice_node_barrier_reset") result(outcome)
            import
            type(c_ptr), value :: node
            integer(c_int) :: outcome
        end function sluice_node_barrier_reset
        function sluice_node_peer_reset(node, rank, endpoint) bind(c, &
            name="sluice_node_peer_reset") result(outcome)
            import
            type(c_ptr), value :: node
            integer(c_int32_t), value :: rank
            type(sluice_node_endpoint), intent(inout) :: endpoint
            integer(c_int) :: outcome
        end function sluice_node_peer_reset
        function sluice_node_peer_handshake(node, rank, remote) bind(c, &
            name="sluice_node_peer_handshake") result(outcome)
            import
            type(c_ptr), value :: node
            integer(c_int32_t), value :: rank
            type(sluice_node_endpoint), intent(in) :: remote
            integer(c_int) :: outcome
        end function sluice_node_peer_handshake
        function sluice_node_grow(node, endpoints, count) bind(c, &
            name="sluice_node_grow") result(outcome)
            import
            type(c_ptr), value :: node
            type(sluice_node_endpoint), intent(in) :: endpoints(*)
            integer(c_int32_t), value :: count
            integer(c_int) :: outcome
        end function sluice_node_grow
        function sluice_node_shrink(node, ranks, count) bind(c, &
            name="sluice_node_shrink") result(outcome)
            import
            type(c_ptr), value :: node
            integer(c_int32_t), intent(in) :: ranks(*)
            integer(c_int32_t), value :: count
            integer(c_int) :: outcome
        end function sluice_node_shrink
        function sluice_node_own_endpoint(node, endpoint) bind(c, &
            name="sluice_node_own_endpoint") result(outcome)
            import
            type(c_ptr), value :: node
            type(sluice_node_endpoint), intent(inout) :: endpoint
            integer(c_int) :: outcome
        end function sluice_node_own_endpoint
        function sluice_node_members(node, ranks, room) bind(c, &
            name="sluice_node_members") result(outcome)
            import
            type(c_ptr), value :: node
            integer(c_int32_t), intent(inout) :: ranks(*)
            integer(c_int32_t), value :: room
            integer(c_int64_t) :: outcome
        end function sluice_node_members
        function sluice_node_generation(node) bind(c, name="sluice_node_generation") result(outcome)
            import
            type(c_ptr), value :: node
            integer(c_int64_t) :: outcome
        end function sluice_node_generation
        function sluice_node_shutdown(node, deadline) bind(c, &
            name="sluice_node_shutdown") result(outcome)
            import
            type(c_ptr), value :: node
            integer(c_int64_t), value :: deadline
            integer(c_int) :: outcome
        end function sluice_node_shutdown
        subroutine sluice_buffer_service_close(service) bind(c, name="sluice_buffer_service_close")
            import
            type(c_ptr), value :: service
        end subroutine sluice_buffer_service_close
        subroutine sluice_buffer_release(buffer) bind(c, name="sluice_buffer_release")
            import
            type(c_ptr), value :: buffer
        end subroutine sluice_buffer_release
        function c_sluice_buffer_service_open(pds, count, attr) bind(c, &
            name="sluice_buffer_service_open") result(outcome)
            import
            type(c_ptr), intent(in) :: pds(*)
            integer(c_int32_t), value :: count
            type(c_ptr), value :: attr
            type(c_ptr) :: outcome
        end function c_sluice_buffer_service_open
        function sluice_buffer_publish(service, addr, length, access) bind(c, &
            name="sluice_buffer_publish") result(outcome)
            import
            type(c_ptr), value :: service
            type(c_ptr), value :: addr
            integer(c_size_t), value :: length
            integer(c_int32_t), value :: access
            type(c_ptr) :: outcome
        end function sluice_buffer_publish
        function sluice_buffer_publish_mr(service, mr, offset, length, access) bind(c, &
            name="sluice_buffer_publish_mr") result(outcome)
            import
            type(c_ptr), value :: service
            type(c_ptr), value :: mr
            integer(c_size_t), value :: offset
            integer(c_size_t), value :: length
            integer(c_int32_t), value :: access
            type(c_ptr) :: outcome
        end function sluice_buffer_publish_mr
        function sluice_buffer_addr(buffer) bind(c, name="sluice_buffer_addr") result(outcome)
            import
            type(c_ptr), value :: buffer
            type(c_ptr) :: outcome
        end function sluice_buffer_addr
        function sluice_buffer_export(buffer, handle) bind(c, &
            name="sluice_buffer_export") result(outcome)
            import
            type(c_ptr), value :: buffer
            type(sluice_buffer_handle), intent(inout) :: handle
            integer(c_int) :: outcome
        end function sluice_buffer_export
        function sluice_buffer_handle_query(handle, info) bind(c, &
            name="sluice_buffer_handle_query") result(outcome)
            import
            type(sluice_buffer_handle), intent(in) :: handle
            type(sluice_buffer_info), intent(inout) :: info
            integer(c_int) :: outcome
        end function sluice_buffer_handle_query
        function sluice_buffer_read(service, handle, offset, mr, addr, length, deadline) bind(c, &
            name="sluice_buffer_read") result(outcome)
            import
            type(c_ptr), value :: service
            type(sluice_buffer_handle), intent(in) :: handle
            integer(c_int64_t), value :: offset
            type(c_ptr), value :: mr
            type(c_ptr), value :: addr
            integer(c_int64_t), value :: length
            integer(c_int64_t), value :: deadline
            integer(c_int) :: outcome
        end function sluice_buffer_read
        function sluice_buffer_write(service, handle, offset, mr, addr, length, deadline) bind( &
            c, name="sluice_buffer_write") result(outcome)
            import
            type(c_ptr), value :: service
            type(sluice_buffer_handle), intent(in) :: handle
            integer(c_int64_t), value :: offset
            type(c_ptr), value :: mr
            type(c_ptr), value :: addr
            integer(c_int64_t), value :: length
            integer(c_int64_t), value :: deadline
            integer(c_int) :: outcome
        end function sluice_buffer_write
        function c_sluice_buffer_submit(service, actions, count, deadline, completions) bind(c, &
            name="sluice_buffer_submit") result(outcome)
            import
            type(c_ptr), value :: service
            type(sluice_buffer_action), intent(in) :: actions(*)
            integer(c_int32_t), value :: count
            integer(c_int64_t), value :: deadline
            type(c_ptr), value :: completions
            integer(c_int) :: outcome
        end function c_sluice_buffer_submit
        subroutine sluice_buffer_batch_free(batch) bind(c, name="sluice_buffer_batch_free")
            import
            type(c_ptr), value :: batch
        end subroutine sluice_buffer_batch_free
        function sluice_buffer_batch_prepare(service, actions, count) bind(c, &
            name="sluice_buffer_batch_prepare") result(outcome)
            import
            type(c_ptr), value :: service
            type(sluice_buffer_action), intent(in) :: actions(*)
            integer(c_int32_t), value :: count
            type(c_ptr) :: outcome
        end function sluice_buffer_batch_prepare
        function sluice_buffer_post(service, actions, count, deadline) bind(c, &
            name="sluice_buffer_post") result(outcome)
            import
            type(c_ptr), value :: service
            type(sluice_buffer_action), intent(in) :: actions(*)
            integer(c_int32_t), value :: count
            integer(c_int64_t), value :: deadline
            type(c_ptr) :: outcome
        end function sluice_buffer_post
        function sluice_buffer_batch_post(batch, deadline) bind(c, &
            name="sluice_buffer_batch_post") result(outcome)
            import
            type(c_ptr), value :: batch
            integer(c_int64_t), value :: deadline
            integer(c_int) :: outcome
        end function sluice_buffer_batch_post
        function sluice_buffer_batch_poll(batch, completions, count) bind(c, &
            name="sluice_buffer_batch_poll") result(outcome)
            import
            type(c_ptr), value :: batch
            type(sluice_completion), intent(inout) :: completions(*)
            integer(c_int32_t), value :: count
            integer(c_int) :: outcome
        end function sluice_buffer_batch_poll
        function sluice_buffer_batch_next(batch, timeout, completion) bind(c, &
            name="sluice_buffer_batch_next") result(outcome)
            import
            type(c_ptr), value :: batch
            integer(c_int64_t), value :: timeout
            type(sluice_completion), intent(inout) :: completion
            integer(c_int) :: outcome
        end function sluice_buffer_batch_next
        function sluice_buffer_batch_wait(batch, timeout) bind(c, &
            name="sluice_buffer_batch_wait") result(outcome)
            import
            type(c_ptr), value :: batch
            integer(c_int64_t), value :: timeout
            integer(c_int) :: outcome
        end function sluice_buffer_batch_wait
        function c_sluice_buffer_batch_results(batch, completions) bind(c, &
            name="sluice_buffer_batch_results") result(outcome)
            import
            type(c_ptr), value :: batch
            type(c_ptr), value :: completions
            integer(c_int) :: outcome
        end function c_sluice_buffer_batch_results
        function sluice_buffer_batch_cancel(batch) bind(c, &
            name="sluice_buffer_batch_cancel") result(outcome)
            import
            type(c_ptr), value :: batch
            integer(c_int) :: outcome
        end function sluice_buffer_batch_cancel
        function sluice_buffer_batch_fd(batch) bind(c, name="sluice_buffer_batch_fd") result( &
            outcome)
            import
            type(c_ptr), value :: batch
            integer(c_int) :: outcome
        end function sluice_buffer_batch_fd
        function c_sluice_buffer_batch_arm(batch, due) bind(c, &
            name="sluice_buffer_batch_arm") result(outcome)
            import
            type(c_ptr), value :: batch
            type(c_ptr), value :: due
            integer(c_int) :: outcome
        end function c_sluice_buffer_batch_arm
        function sluice_buffer_connection_query(service, handle, info) bind(c, &
            name="sluice_buffer_connection_query") result(outcome)
            import
            type(c_ptr), value :: service
            type(sluice_buffer_handle), intent(in) :: handle
            type(sluice_channel_info), intent(inout) :: info
            integer(c_int) :: outcome
        end function sluice_buffer_connection_query
        function sluice_buffer_remote(service, handle, pd, remote) bind(c, &
            name="sluice_buffer_remote") result(outcome)
            import
            type(c_ptr), value :: service
            type(sluice_buffer_handle), intent(in) :: handle
            type(c_ptr), value :: pd
            type(sluice_remote_mr), intent(inout) :: remote
            integer(c_int) :: outcome
        end function sluice_buffer_remote
        subroutine sluice_agent_close(agent) bind(c, name="sluice_agent_close")
            import
            type(c_ptr), value :: agent
        end subroutine sluice_agent_close
        function c_sluice_agent_open(pd, attr) bind(c, name="sluice_agent_open") result(outcome)
            import
            type(c_ptr), value :: pd
            type(c_ptr), value :: attr
            type(c_ptr) :: outcome
        end function c_sluice_agent_open
        function c_sluice_agent_listen(agent, address, attr) bind(c, &
            name="sluice_agent_listen") result(outcome)
            import
            type(c_ptr), value :: agent
            character(kind=c_char), intent(in) :: address(*)
            type(c_ptr), value :: attr
            integer(c_int) :: outcome
        end function c_sluice_agent_listen
        function c_sluice_agent_address(agent, text, size) bind(c, &
            name="sluice_agent_address") result(outcome)
            import
            type(c_ptr), value :: agent
            type(c_ptr), value :: text
            integer(c_size_t), value :: size
            integer(c_int) :: outcome
        end function c_sluice_agent_address
        function sluice_agent_query(agent, info) bind(c, name="sluice_agent_query") result(outcome)
            import
            type(c_ptr), value :: agent
            type(sluice_agent_info), intent(inout) :: info
            integer(c_int) :: outcome
        end function sluice_agent_query
        subroutine sluice_agent_peer_close(peer) bind(c, name="sluice_agent_peer_close")
            import
            type(c_ptr), value :: peer
        end subroutine sluice_agent_peer_close
        function c_sluice_agent_connect(agent, address, options, deadline) bind(c, &
            name="sluice_agent_connect") result(outcome)
            import
            type(c_ptr), value :: agent
            character(kind=c_char), intent(in) :: address(*)
            type(c_ptr), value :: options
            integer(c_int64_t), value :: deadline
            type(c_ptr) :: outcome
        end function c_sluice_agent_connect
        function sluice_agent_next_peer(agent, timeout) bind(c, &
            name="sluice_agent_next_peer") result(outcome)
            import
            type(c_ptr), value :: agent
            integer(c_int64_t), value :: timeout
            type(c_ptr) :: outcome
        end function sluice_agent_next_peer
        function sluice_agent_peer_query(peer, info) bind(c, &
            name="sluice_agent_peer_query") result(outcome)
            import
            type(c_ptr), value :: peer
            type(sluice_agent_peer_info), intent(inout) :: info
            integer(c_int) :: outcome
        end function sluice_agent_peer_query
        function sluice_agent_mr_release(mr, deadline) bind(c, &
            name="sluice_agent_mr_release") result(outcome)
            import
            type(c_ptr), value :: mr
            integer(c_int64_t), value :: deadline
            integer(c_int) :: outcome
        end function sluice_agent_mr_release
        function sluice_agent_mr_send_back(mr, deadline) bind(c, &
            name="sluice_agent_mr_send_back") result(outcome)
            import
            type(c_ptr), value :: mr
            integer(c_int64_t), value :: deadline
            integer(c_int) :: outcome
        end function sluice_agent_mr_send_back
        function sluice_agent_request_mr(peer, length, access, lease, deadline) bind(c, &
            name="sluice_agent_request_mr") result(outcome)
            import
            type(c_ptr), value :: peer
            integer(c_int64_t), value :: length
            integer(c_int32_t), value :: access
            integer(c_int64_t), value :: lease
            integer(c_int64_t), value :: deadline
            type(c_ptr) :: outcome
        end function sluice_agent_request_mr
        function sluice_agent_mr_renew(mr, lease, deadline) bind(c, &
            name="sluice_agent_mr_renew") result(outcome)
            import
            type(c_ptr), value :: mr
            integer(c_int64_t), value :: lease
            integer(c_int64_t), value :: deadline
            integer(c_int) :: outcome
        end function sluice_agent_mr_renew
        function sluice_agent_mr_query(mr, info) bind(c, name="sluice_agent_mr_query") result( &
            outcome)
            import
            type(c_ptr), value :: mr
            type(sluice_agent_mr_info), intent(inout) :: info
            integer(c_int) :: outcome
        end function sluice_agent_mr_query
        function c_sluice_agent_send_local_mr(peer, mr, offset, length, access, lease, deadline, &
            id) bind(c, name="sluice_agent_send_local_mr") result(outcome)
            import
            type(c_ptr), value :: peer
            type(c_ptr), value :: mr
            integer(c_size_t), value :: offset
            integer(c_size_t), value :: length
            integer(c_int32_t), value :: access
            integer(c_int64_t), value :: lease
            integer(c_int64_t), value :: deadline
            type(c_ptr), value :: id
            integer(c_int) :: outcome
        end function c_sluice_agent_send_local_mr
        function sluice_agent_revoke_mr(peer, id) bind(c, name="sluice_agent_revoke_mr") result( &
            outcome)
            import
            type(c_ptr), value :: peer
            integer(c_int64_t), value :: id
            integer(c_int) :: outcome
        end function sluice_agent_revoke_mr
        function sluice_agent_receive_remote_mr(agent, peer, timeout) bind(c, &
            name="sluice_agent_receive_remote_mr") result(outcome)
            import
            type(c_ptr), value :: agent
            type(c_ptr), value :: peer
            integer(c_int64_t), value :: timeout
            type(c_ptr) :: outcome
        end function sluice_agent_receive_remote_mr
        function sluice_agent_mr_peer(mr) bind(c, name="sluice_agent_mr_peer") result(outcome)
            import
            type(c_ptr), value :: mr
            type(c_ptr) :: outcome
        end function sluice_agent_mr_peer
        function sluice_agent_receive_local_mr(agent, peer, timeout, local) bind(c, &
            name="sluice_agent_receive_local_mr") result(outcome)
            import
            type(c_ptr), value :: agent
            type(c_ptr), value :: peer
            integer(c_int64_t), value :: timeout
            type(sluice_agent_local), intent(inout) :: local
            integer(c_int) :: outcome
        end function sluice_agent_receive_local_mr
        function c_sluice_agent_mr_read(mr, offset, sges, sge_count, deadline) bind(c, &
            name="sluice_agent_mr_read") result(outcome)
            import
            type(c_ptr), value :: mr
            integer(c_int64_t), value :: offset
            type(c_ptr), value :: sges
            integer(c_int32_t), value :: sge_count
            integer(c_int64_t), value :: deadline
            integer(c_int) :: outcome
        end function c_sluice_agent_mr_read
        function c_sluice_agent_mr_write(mr, offset, sges, sge_count, deadline) bind(c, &
            name="sluice_agent_mr_write") result(outcome)
            import
            type(c_ptr), value :: mr
            integer(c_int64_t), value :: offset
            type(c_ptr), value :: sges
            integer(c_int32_t), value :: sge_count
            integer(c_int64_t), value :: deadline
            integer(c_int) :: outcome
        end function c_sluice_agent_mr_write
        function sluice_agent_mr_compare_swap(mr, offset, result, expected, desired, &
            deadline) bind(c, name="sluice_agent_mr_compare_swap") result(outcome)
            import
            type(c_ptr), value :: mr
            integer(c_int64_t), value :: offset
            type(sluice_sge), intent(in) :: result
            integer(c_int64_t), value :: expected
            integer(c_int64_t), value :: desired
            integer(c_int64_t), value :: deadline
            integer(c_int) :: outcome
        end function sluice_agent_mr_compare_swap
        function sluice_agent_mr_fetch_add(mr, offset, result, addend, deadline) bind(c, &
            name="sluice_agent_mr_fetch_add") result(outcome)
            import
            type(c_ptr), value :: mr
            integer(c_int64_t), value :: offset
            type(sluice_sge), intent(in) :: result
            integer(c_int64_t), value :: addend
            integer(c_int64_t), value :: deadline
            integer(c_int) :: outcome
        end function sluice_agent_mr_fetch_add
        function c_sluice_agent_submit(peer, requests, count, deadline, completions) bind(c, &
            name="sluice_agent_submit") result(outcome)
            import
            type(c_ptr), value :: peer
            type(sluice_request), intent(in) :: requests(*)
            integer(c_int32_t), value :: count
            integer(c_int64_t), value :: deadline
            type(c_ptr), value :: completions
            integer(c_int) :: outcome
        end function c_sluice_agent_submit
        function sluice_agent_send(peer, bytes, length, deadline) bind(c, &
            name="sluice_agent_send") result(outcome)
            import
            type(c_ptr), value :: peer
            type(c_ptr), intent(in) :: bytes(*)
            integer(c_size_t), value :: length
            integer(c_int64_t), value :: deadline
            integer(c_int) :: outcome
        end function sluice_agent_send
        function sluice_agent_flush(peer, timeout) bind(c, name="sluice_agent_flush") result( &
            outcome)
            import
            type(c_ptr), value :: peer
            integer(c_int64_t), value :: timeout
            integer(c_int) :: outcome
        end function sluice_agent_flush
        subroutine sluice_agent_message_free(message) bind(c, name="sluice_agent_message_free")
            import
            type(c_ptr), value :: message
        end subroutine sluice_agent_message_free
        function sluice_agent_receive(agent, peer, timeout) bind(c, &
            name="sluice_agent_receive") result(outcome)
            import
            type(c_ptr), value :: agent
            type(c_ptr), value :: peer
            integer(c_int64_t), value :: timeout
            type(c_ptr) :: outcome
        end function sluice_agent_receive
        function sluice_agent_message_addr(message) bind(c, &
            name="sluice_agent_message_addr") result(outcome)
            import
            type(c_ptr), value :: message
            type(c_ptr) :: outcome
        end function sluice_agent_message_addr
        function sluice_agent_message_length(message) bind(c, &
            name="sluice_agent_message_length") result(outcome)
            import
            type(c_ptr), value :: message
            integer(c_size_t) :: outcome
        end function sluice_agent_message_length
        function sluice_agent_message_peer(message) bind(c, &
            name="sluice_agent_message_peer") result(outcome)
            import
            type(c_ptr), value :: message
            type(c_ptr) :: outcome
        end function sluice_agent_message_peer
        function sluice_agent_fd(agent) bind(c, name="sluice_agent_fd") result(outcome)
            import
            type(c_ptr), value :: agent
            integer(c_int) :: outcome
        end function sluice_agent_fd
        function c_sluice_agent_arm(agent, due) bind(c, name="sluice_agent_arm") result(outcome)
            import
            type(c_ptr), value :: agent
            type(c_ptr), value :: due
            integer(c_int) :: outcome
        end function c_sluice_agent_arm
        function sluice_agent_progress(agent) bind(c, name="sluice_agent_progress") result(outcome)
            import
            type(c_ptr), value :: agent
            integer(c_int) :: outcome
        end function sluice_agent_progress
        function sluice_agent_wake(agent) bind(c, name="sluice_agent_wake") result(outcome)
            import
            type(c_ptr), value :: agent
            integer(c_int) :: outcome
        end function sluice_agent_wake
        function sluice_verbs_context(context) bind(c, name="sluice_verbs_context") result(outcome)
            import
            type(c_ptr), value :: context
            type(c_ptr) :: outcome
        end function sluice_verbs_context
        function sluice_verbs_pd(pd) bind(c, name="sluice_verbs_pd") result(outcome)
            import
            type(c_ptr), value :: pd
            type(c_ptr) :: outcome
        end function sluice_verbs_pd
        function sluice_verbs_mr(mr) bind(c, name="sluice_verbs_mr") result(outcome)
            import
            type(c_ptr), value :: mr
            type(c_ptr) :: outcome
        end function sluice_verbs_mr
        function sluice_verbs_channel_qp(channel) bind(c, name="sluice_verbs_channel_qp") result( &
            outcome)
            import
            type(c_ptr), value :: channel
            type(c_ptr) :: outcome
        end function sluice_verbs_channel_qp
        function sluice_verbs_multichannel_qp(multichannel, peer) bind(c, &
            name="sluice_verbs_multichannel_qp") result(outcome)
            import
            type(c_ptr), value :: multichannel
            integer(c_int32_t), value :: peer
            type(c_ptr) :: outcome
        end function sluice_verbs_multichannel_qp
        function c_sluice_verbs_context_wrap(ibv, attr) bind(c, &
            name="sluice_verbs_context_wrap") result(outcome)
            import
            type(c_ptr), value :: ibv
            type(c_ptr), value :: attr
            type(c_ptr) :: outcome
        end function c_sluice_verbs_context_wrap
        function sluice_verbs_pd_wrap(context, ibv) bind(c, name="sluice_verbs_pd_wrap") result( &
            outcome)
            import
            type(c_ptr), value :: context
            type(c_ptr), value :: ibv
            type(c_ptr) :: outcome
        end function sluice_verbs_pd_wrap
        function sluice_environment_variable(index, info) bind(c, &
            name="sluice_environment_variable") result(outcome)
            import
            integer(c_int32_t), value :: index
            type(sluice_variable_info), intent(inout) :: info
            integer(c_int) :: outcome
        end function sluice_environment_variable
    end interface
    ! End of what is generated

contains

    ! The errno value of this thread: why a call that makes an object returned c_null_ptr. It is
    ! to be asked for at once: other calls, and output of Fortran, change it.
    function sluice_errno() result(value)
        integer(c_int) :: value
        integer(c_int), pointer :: place

        call c_f_pointer(c_errno_location(), place)
        value = place
    end function sluice_errno

    ! The text of a component of a type, such as the name of a device, or of an error.
    pure function sluice_text(characters) result(text)
        character(kind=c_char), intent(in) :: characters(:)
        character(:), allocatable :: text
        integer :: i, length

        length = size(characters)
        do i = 1, size(characters)
            if (characters(i) == c_null_char) then
                length = i - 1
                exit
            end if
        end do
        allocate (character(length) :: text)
        do i = 1, length
            text(i:i) = characters(i)
        end do
    end function sluice_text

    ! Writes text as C has it, and returns its address, for components such as the address of an
    ! attribute. room must stay as long as that is used, and has room for one character more than
    ! the text has without blanks at its end; of a longer one as much is taken as there is room.
    function sluice_c_text(text, room) result(address)
        character(*), intent(in) :: text
        character(kind=c_char), intent(inout), target :: room(:)
        type(c_ptr) :: address
        integer :: i, length

        length = min(len_trim(text), size(room) - 1)
        do i = 1, length
            room(i) = text(i:i)
        end do
        room(length + 1) = c_null_char
        address = c_loc(room(1))
    end function sluice_c_text

    ! Text of the library.
    function text_at(address) result(text)
        type(c_ptr), intent(in) :: address
        character(:), allocatable :: text
        character(kind=c_char), pointer :: characters(:)

        if (.not. c_associated(address)) then
            text = ''
            return
        end if
        call c_f_pointer(address, characters, [c_strlen(address) + 1])
        text = sluice_text(characters)
    end function text_at

    ! Generated: functions
    function sluice_version() result(outcome)
        character(:), allocatable :: outcome

        outcome = text_at(c_sluice_version())
    end function sluice_version

    function sluice_last_error() result(outcome)
        character(:), allocatable :: outcome

        outcome = text_at(c_sluice_last_error())
    end function sluice_last_error

    function sluice_status_name(status) result(outcome)
        integer(c_int32_t), intent(in) :: status
        character(:), allocatable :: outcome

        outcome = text_at(c_sluice_status_name(status))
    end function sluice_status_name

    function sluice_error_class_name(error_class) result(outcome)
        integer(c_int32_t), intent(in) :: error_class
        character(:), allocatable :: outcome

        outcome = text_at(c_sluice_error_class_name(error_class))
    end function sluice_error_class_name

    function sluice_context_open(device, attr) result(outcome)
        character(*), intent(in), optional :: device
        type(sluice_context_attr), intent(in), optional, target :: attr
        type(c_ptr) :: outcome
        character(kind=c_char), allocatable, target :: device_c(:)
        type(c_ptr) :: device_at
        type(c_ptr) :: attr_at

        device_at = c_null_ptr
        if (present(device)) then
            allocate (device_c(len_trim(device) + 1))
            device_at = sluice_c_text(device, device_c)
        end if
        attr_at = c_null_ptr
        if (present(attr)) attr_at = c_loc(attr)
        outcome = c_sluice_context_open(device_at, attr_at)
    end function sluice_context_open

    function sluice_device_list_choice(list, index, device, info) result(outcome)
        type(c_ptr), intent(in) :: list
        integer(c_int32_t), intent(in) :: index
        character(*), intent(in), optional :: device
        type(sluice_choice_info), intent(inout) :: info
        integer(c_int) :: outcome
        character(kind=c_char), allocatable, target :: device_c(:)
        type(c_ptr) :: device_at

        device_at = c_null_ptr
        if (present(device)) then
            allocate (device_c(len_trim(device) + 1))
            device_at = sluice_c_text(device, device_c)
        end if
        outcome = c_sluice_device_list_choice(list, index, device_at, info)
    end function sluice_device_list_choice

    function sluice_mr_cache_create(pd, access, attr) result(outcome)
        type(c_ptr), intent(in) :: pd
        integer(c_int32_t), intent(in) :: access
        type(sluice_mr_cache_attr), intent(in), optional, target :: attr
        type(c_ptr) :: outcome
        type(c_ptr) :: attr_at

        attr_at = c_null_ptr
        if (present(attr)) attr_at = c_loc(attr)
        outcome = c_sluice_mr_cache_create(pd, access, attr_at)
    end function sluice_mr_cache_create

    function sluice_allocator_create(pd, access, attr) result(outcome)
        type(c_ptr), intent(in) :: pd
        integer(c_int32_t), intent(in) :: access
        type(sluice_allocator_attr), intent(in), optional, target :: attr
        type(c_ptr) :: outcome
        type(c_ptr) :: attr_at

        attr_at = c_null_ptr
        if (present(attr)) attr_at = c_loc(attr)
        outcome = c_sluice_allocator_create(pd, access, attr_at)
    end function sluice_allocator_create

    function sluice_channel_prepare(pd, attr) result(outcome)
        type(c_ptr), intent(in) :: pd
        type(sluice_channel_attr), intent(in), optional, target :: attr
        type(c_ptr) :: outcome
        type(c_ptr) :: attr_at

        attr_at = c_null_ptr
        if (present(attr)) attr_at = c_loc(attr)
        outcome = c_sluice_channel_prepare(pd, attr_at)
    end function sluice_channel_prepare

    function sluice_channel_send(channel, sges, sge_count, deadline) result(outcome)
        type(c_ptr), intent(in) :: channel
        type(sluice_sge), intent(in), optional, target :: sges(*)
        integer(c_int32_t), intent(in) :: sge_count
        integer(c_int64_t), intent(in) :: deadline
        integer(c_int) :: outcome
        type(c_ptr) :: sges_at

        sges_at = c_null_ptr
        if (present(sges)) sges_at = c_loc(sges(1))
        outcome = c_sluice_channel_send(channel, sges_at, sge_count, deadline)
    end function sluice_channel_send

    function sluice_channel_send_immediate(channel, sges, sge_count, immediate, deadline) result( &
        outcome)
        type(c_ptr), intent(in) :: channel
        type(sluice_sge), intent(in), optional, target :: sges(*)
        integer(c_int32_t), intent(in) :: sge_count
        integer(c_int32_t), intent(in) :: immediate
        integer(c_int64_t), intent(in) :: deadline
        integer(c_int) :: outcome
        type(c_ptr) :: sges_at

        sges_at = c_null_ptr
        if (present(sges)) sges_at = c_loc(sges(1))
        outcome = c_sluice_channel_send_immediate(channel, sges_at, sge_count, immediate, deadline)
    end function sluice_channel_send_immediate

    function sluice_channel_receive(channel, sges, sge_count, deadline, completion) result(outcome)
        type(c_ptr), intent(in) :: channel
        type(sluice_sge), intent(in), optional, target :: sges(*)
        integer(c_int32_t), intent(in) :: sge_count
        integer(c_int64_t), intent(in) :: deadline
        type(sluice_completion), intent(inout), optional, target :: completion
        integer(c_int) :: outcome
        type(c_ptr) :: sges_at
        type(c_ptr) :: completion_at

        sges_at = c_null_ptr
        if (present(sges)) sges_at = c_loc(sges(1))
        completion_at = c_null_ptr
        if (present(completion)) completion_at = c_loc(completion)
        outcome = c_sluice_channel_receive(channel, sges_at, sge_count, deadline, completion_at)
    end function sluice_channel_receive

    function sluice_channel_write(channel, sges, sge_count, remote, deadline) result(outcome)
        type(c_ptr), intent(in) :: channel
        type(sluice_sge), intent(in), optional, target :: sges(*)
        integer(c_int32_t), intent(in) :: sge_count
        type(sluice_remote_mr), intent(in) :: remote
        integer(c_int64_t), intent(in) :: deadline
        integer(c_int) :: outcome
        type(c_ptr) :: sges_at

        sges_at = c_null_ptr
        if (present(sges)) sges_at = c_loc(sges(1))
        outcome = c_sluice_channel_write(channel, sges_at, sge_count, remote, deadline)
    end function sluice_channel_write

    function sluice_channel_write_immediate(channel, sges, sge_count, remote, immediate, &
        deadline) result(outcome)
        type(c_ptr), intent(in) :: channel
        type(sluice_sge), intent(in), optional, target :: sges(*)
        integer(c_int32_t), intent(in) :: sge_count
        type(sluice_remote_mr), intent(in) :: remote
        integer(c_int32_t), intent(in) :: immediate
        integer(c_int64_t), intent(in) :: deadline
        integer(c_int) :: outcome
        type(c_ptr) :: sges_at

        sges_at = c_null_ptr
        if (present(sges)) sges_at = c_loc(sges(1))
        outcome = c_sluice_channel_write_immediate(channel, sges_at, sge_count, remote, &
            immediate, deadline)
    end function sluice_channel_write_immediate

    function sluice_channel_read(channel, sges, sge_count, remote, deadline) result(outcome)
        type(c_ptr), intent(in) :: channel
        type(sluice_sge), intent(in), optional, target :: sges(*)
        integer(c_int32_t), intent(in) :: sge_count
        type(sluice_remote_mr), intent(in) :: remote
        integer(c_int64_t), intent(in) :: deadline
        integer(c_int) :: outcome
        type(c_ptr) :: sges_at

        sges_at = c_null_ptr
        if (present(sges)) sges_at = c_loc(sges(1))
        outcome = c_sluice_channel_read(channel, sges_at, sge_count, remote, deadline)
    end function sluice_channel_read

    function sluice_channel_submit(channel, requests, count, deadline, completions) result(outcome)
        type(c_ptr), intent(in) :: channel
        type(sluice_request), intent(in) :: requests(*)
        integer(c_int32_t), intent(in) :: count
        integer(c_int64_t), intent(in) :: deadline
        type(sluice_completion), intent(inout), optional, target :: completions(*)
        integer(c_int) :: outcome
        type(c_ptr) :: completions_at

        completions_at = c_null_ptr
        if (present(completions)) completions_at = c_loc(completions(1))
        outcome = c_sluice_channel_submit(channel, requests, count, deadline, completions_at)
    end function sluice_channel_submit

    function sluice_channel_post(channel, requests, count, deadline, handles) result(outcome)
        type(c_ptr), intent(in) :: channel
        type(sluice_request), intent(in) :: requests(*)
        integer(c_int32_t), intent(in) :: count
        integer(c_int64_t), intent(in) :: deadline
        type(sluice_handle), intent(inout), optional, target :: handles(*)
        integer(c_int) :: outcome
        type(c_ptr) :: handles_at

        handles_at = c_null_ptr
        if (present(handles)) handles_at = c_loc(handles(1))
        outcome = c_sluice_channel_post(channel, requests, count, deadline, handles_at)
    end function sluice_channel_post

    function sluice_channel_post_send(channel, sges, sge_count, deadline, handle) result(outcome)
        type(c_ptr), intent(in) :: channel
        type(sluice_sge), intent(in), optional, target :: sges(*)
        integer(c_int32_t), intent(in) :: sge_count
        integer(c_int64_t), intent(in) :: deadline
        type(sluice_handle), intent(inout), optional, target :: handle
        integer(c_int) :: outcome
        type(c_ptr) :: sges_at
        type(c_ptr) :: handle_at

        sges_at = c_null_ptr
        if (present(sges)) sges_at = c_loc(sges(1))
        handle_at = c_null_ptr
        if (present(handle)) handle_at = c_loc(handle)
        outcome = c_sluice_channel_post_send(channel, sges_at, sge_count, deadline, handle_at)
    end function sluice_channel_post_send

    function sluice_channel_post_receive(channel, sges, sge_count, deadline, handle) result(outcome)
        type(c_ptr), intent(in) :: channel
        type(sluice_sge), intent(in), optional, target :: sges(*)
        integer(c_int32_t), intent(in) :: sge_count
        integer(c_int64_t), intent(in) :: deadline
        type(sluice_handle), intent(inout), optional, target :: handle
        integer(c_int) :: outcome
        type(c_ptr) :: sges_at
        type(c_ptr) :: handle_at

        sges_at = c_null_ptr
        if (present(sges)) sges_at = c_loc(sges(1))
        handle_at = c_null_ptr
        if (present(handle)) handle_at = c_loc(handle)
        outcome = c_sluice_channel_post_receive(channel, sges_at, sge_count, deadline, handle_at)
    end function sluice_channel_post_receive

    function sluice_channel_post_write(channel, sges, sge_count, remote, deadline, &
        handle) result(outcome)
        type(c_ptr), intent(in) :: channel
        type(sluice_sge), intent(in), optional, target :: sges(*)
        integer(c_int32_t), intent(in) :: sge_count
        type(sluice_remote_mr), intent(in) :: remote
        integer(c_int64_t), intent(in) :: deadline
        type(sluice_handle), intent(inout), optional, target :: handle
        integer(c_int) :: outcome
        type(c_ptr) :: sges_at
        type(c_ptr) :: handle_at

        sges_at = c_null_ptr
        if (present(sges)) sges_at = c_loc(sges(1))
        handle_at = c_null_ptr
        if (present(handle)) handle_at = c_loc(handle)
        outcome = c_sluice_channel_post_write(channel, sges_at, sge_count, remote, deadline, &
            handle_at)
    end function sluice_channel_post_write

    function sluice_channel_post_read(channel, sges, sge_count, remote, deadline, handle) result( &
        outcome)
        type(c_ptr), intent(in) :: channel
        type(sluice_sge), intent(in), optional, target :: sges(*)
        integer(c_int32_t), intent(in) :: sge_count
        type(sluice_remote_mr), intent(in) :: remote
        integer(c_int64_t), intent(in) :: deadline
        type(sluice_handle), intent(inout), optional, target :: handle
        integer(c_int) :: outcome
        type(c_ptr) :: sges_at
        type(c_ptr) :: handle_at

        sges_at = c_null_ptr
        if (present(sges)) sges_at = c_loc(sges(1))
        handle_at = c_null_ptr
        if (present(handle)) handle_at = c_loc(handle)
        outcome = c_sluice_channel_post_read(channel, sges_at, sge_count, remote, deadline, &
            handle_at)
    end function sluice_channel_post_read

    function sluice_channel_post_compare_swap(channel, result, remote, expected, desired, &
        deadline, handle) result(outcome)
        type(c_ptr), intent(in) :: channel
        type(sluice_sge), intent(in) :: result
        type(sluice_remote_mr), intent(in) :: remote
        integer(c_int64_t), intent(in) :: expected
        integer(c_int64_t), intent(in) :: desired
        integer(c_int64_t), intent(in) :: deadline
        type(sluice_handle), intent(inout), optional, target :: handle
        integer(c_int) :: outcome
        type(c_ptr) :: handle_at

        handle_at = c_null_ptr
        if (present(handle)) handle_at = c_loc(handle)
        outcome = c_sluice_channel_post_compare_swap(channel, result, remote, expected, desired, &
            deadline, handle_at)
    end function sluice_channel_post_compare_swap

    function sluice_channel_post_fetch_add(channel, result, remote, addend, deadline, &
        handle) result(outcome)
        type(c_ptr), intent(in) :: channel
        type(sluice_sge), intent(in) :: result
        type(sluice_remote_mr), intent(in) :: remote
        integer(c_int64_t), intent(in) :: addend
        integer(c_int64_t), intent(in) :: deadline
        type(sluice_handle), intent(inout), optional, target :: handle
        integer(c_int) :: outcome
        type(c_ptr) :: handle_at

        handle_at = c_null_ptr
        if (present(handle)) handle_at = c_loc(handle)
        outcome = c_sluice_channel_post_fetch_add(channel, result, remote, addend, deadline, &
            handle_at)
    end function sluice_channel_post_fetch_add

    function sluice_channel_arm(channel, due) result(outcome)
        type(c_ptr), intent(in) :: channel
        integer(c_int64_t), intent(out), optional, target :: due
        integer(c_int) :: outcome
        type(c_ptr) :: due_at

        due_at = c_null_ptr
        if (present(due)) due_at = c_loc(due)
        outcome = c_sluice_channel_arm(channel, due_at)
    end function sluice_channel_arm

    function sluice_multichannel_prepare(pd, peers, attr) result(outcome)
        type(c_ptr), intent(in) :: pd
        integer(c_int32_t), intent(in) :: peers
        type(sluice_channel_attr), intent(in), optional, target :: attr
        type(c_ptr) :: outcome
        type(c_ptr) :: attr_at

        attr_at = c_null_ptr
        if (present(attr)) attr_at = c_loc(attr)
        outcome = c_sluice_multichannel_prepare(pd, peers, attr_at)
    end function sluice_multichannel_prepare

    function sluice_multichannel_send(multichannel, peer, sges, sge_count, deadline) result(outcome)
        type(c_ptr), intent(in) :: multichannel
        integer(c_int32_t), intent(in) :: peer
        type(sluice_sge), intent(in), optional, target :: sges(*)
        integer(c_int32_t), intent(in) :: sge_count
        integer(c_int64_t), intent(in) :: deadline
        integer(c_int) :: outcome
        type(c_ptr) :: sges_at

        sges_at = c_null_ptr
        if (present(sges)) sges_at = c_loc(sges(1))
        outcome = c_sluice_multichannel_send(multichannel, peer, sges_at, sge_count, deadline)
    end function sluice_multichannel_send

    function sluice_multichannel_send_immediate(multichannel, peer, sges, sge_count, immediate, &
        deadline) result(outcome)
        type(c_ptr), intent(in) :: multichannel
        integer(c_int32_t), intent(in) :: peer
        type(sluice_sge), intent(in), optional, target :: sges(*)
        integer(c_int32_t), intent(in) :: sge_count
        integer(c_int32_t), intent(in) :: immediate
        integer(c_int64_t), intent(in) :: deadline
        integer(c_int) :: outcome
        type(c_ptr) :: sges_at

        sges_at = c_null_ptr
        if (present(sges)) sges_at = c_loc(sges(1))
        outcome = c_sluice_multichannel_send_immediate(multichannel, peer, sges_at, sge_count, &
            immediate, deadline)
    end function sluice_multichannel_send_immediate

    function sluice_multichannel_receive(multichannel, peer, sges, sge_count, deadline, &
        completion) result(outcome)
        type(c_ptr), intent(in) :: multichannel
        integer(c_int32_t), intent(in) :: peer
        type(sluice_sge), intent(in), optional, target :: sges(*)
        integer(c_int32_t), intent(in) :: sge_count
        integer(c_int64_t), intent(in) :: deadline
        type(sluice_completion), intent(inout), optional, target :: completion
        integer(c_int) :: outcome
        type(c_ptr) :: sges_at
        type(c_ptr) :: completion_at

        sges_at = c_null_ptr
        if (present(sges)) sges_at = c_loc(sges(1))
        completion_at = c_null_ptr
        if (present(completion)) completion_at = c_loc(completion)
        outcome = c_sluice_multichannel_receive(multichannel, peer, sges_at, sge_count, &
            deadline, completion_at)
    end function sluice_multichannel_receive

    function sluice_multichannel_write(multichannel, peer, sges, sge_count, remote, &
        deadline) result(outcome)
        type(c_ptr), intent(in) :: multichannel
        integer(c_int32_t), intent(in) :: peer
        type(sluice_sge), intent(in), optional, target :: sges(*)
        integer(c_int32_t), intent(in) :: sge_count
        type(sluice_remote_mr), intent(in) :: remote
        integer(c_int64_t), intent(in) :: deadline
        integer(c_int) :: outcome
        type(c_ptr) :: sges_at

        sges_at = c_null_ptr
        if (present(sges)) sges_at = c_loc(sges(1))
        outcome = c_sluice_multichannel_write(multichannel, peer, sges_at, sge_count, remote, &
            deadline)
    end function sluice_multichannel_write

    function sluice_multichannel_write_immediate(multichannel, peer, sges, sge_count, remote, &
        immediate, deadline) result(outcome)
        type(c_ptr), intent(in) :: multichannel
        integer(c_int32_t), intent(in) :: peer
        type(sluice_sge), intent(in), optional, target :: sges(*)
        integer(c_int32_t), intent(in) :: sge_count
        type(sluice_remote_mr), intent(in) :: remote
        integer(c_int32_t), intent(in) :: immediate
        integer(c_int64_t), intent(in) :: deadline
        integer(c_int) :: outcome
        type(c_ptr) :: sges_at

        sges_at = c_null_ptr
        if (present(sges)) sges_at = c_loc(sges(1))
        outcome = c_sluice_multichannel_write_immediate(multichannel, peer, sges_at, sge_count, &
            remote, immediate, deadline)
    end function sluice_multichannel_write_immediate

    function sluice_multichannel_read(multichannel, peer, sges, sge_count, remote, &
        deadline) result(outcome)
        type(c_ptr), intent(in) :: multichannel
        integer(c_int32_t), intent(in) :: peer
        type(sluice_sge), intent(in), optional, target :: sges(*)
        integer(c_int32_t), intent(in) :: sge_count
        type(sluice_remote_mr), intent(in) :: remote
        integer(c_int64_t), intent(in) :: deadline
        integer(c_int) :: outcome
        type(c_ptr) :: sges_at

        sges_at = c_null_ptr
        if (present(sges)) sges_at = c_loc(sges(1))
        outcome = c_sluice_multichannel_read(multichannel, peer, sges_at, sge_count, remote, &
            deadline)
    end function sluice_multichannel_read

    function sluice_multichannel_submit(multichannel, requests, count, deadline, &
        completions) result(outcome)
        type(c_ptr), intent(in) :: multichannel
        type(sluice_request), intent(in) :: requests(*)
        integer(c_int32_t), intent(in) :: count
        integer(c_int64_t), intent(in) :: deadline
        type(sluice_completion), intent(inout), optional, target :: completions(*)
        integer(c_int) :: outcome
        type(c_ptr) :: completions_at

        completions_at = c_null_ptr
        if (present(completions)) completions_at = c_loc(completions(1))
        outcome = c_sluice_multichannel_submit(multichannel, requests, count, deadline, &
            completions_at)
    end function sluice_multichannel_submit

    function sluice_multichannel_scatter_send(multichannel, requests, count, deadline, &
        completions) result(outcome)
        type(c_ptr), intent(in) :: multichannel
        type(sluice_request), intent(in) :: requests(*)
        integer(c_int32_t), intent(in) :: count
        integer(c_int64_t), intent(in) :: deadline
        type(sluice_completion), intent(inout), optional, target :: completions(*)
        integer(c_int) :: outcome
        type(c_ptr) :: completions_at

        completions_at = c_null_ptr
        if (present(completions)) completions_at = c_loc(completions(1))
        outcome = c_sluice_multichannel_scatter_send(multichannel, requests, count, deadline, &
            completions_at)
    end function sluice_multichannel_scatter_send

    function sluice_multichannel_scatter_write(multichannel, requests, count, deadline, &
        completions) result(outcome)
        type(c_ptr), intent(in) :: multichannel
        type(sluice_request), intent(in) :: requests(*)
        integer(c_int32_t), intent(in) :: count
        integer(c_int64_t), intent(in) :: deadline
        type(sluice_completion), intent(inout), optional, target :: completions(*)
        integer(c_int) :: outcome
        type(c_ptr) :: completions_at

        completions_at = c_null_ptr
        if (present(completions)) completions_at = c_loc(completions(1))
        outcome = c_sluice_multichannel_scatter_write(multichannel, requests, count, deadline, &
            completions_at)
    end function sluice_multichannel_scatter_write

    function sluice_multichannel_gather_receive(multichannel, requests, count, deadline, &
        completions) result(outcome)
        type(c_ptr), intent(in) :: multichannel
        type(sluice_request), intent(in) :: requests(*)
        integer(c_int32_t), intent(in) :: count
        integer(c_int64_t), intent(in) :: deadline
        type(sluice_completion), intent(inout), optional, target :: completions(*)
        integer(c_int) :: outcome
        type(c_ptr) :: completions_at

        completions_at = c_null_ptr
        if (present(completions)) completions_at = c_loc(completions(1))
        outcome = c_sluice_multichannel_gather_receive(multichannel, requests, count, deadline, &
            completions_at)
    end function sluice_multichannel_gather_receive

    function sluice_multichannel_gather_read(multichannel, requests, count, deadline, &
        completions) result(outcome)
        type(c_ptr), intent(in) :: multichannel
        type(sluice_request), intent(in) :: requests(*)
        integer(c_int32_t), intent(in) :: count
        integer(c_int64_t), intent(in) :: deadline
        type(sluice_completion), intent(inout), optional, target :: completions(*)
        integer(c_int) :: outcome
        type(c_ptr) :: completions_at

        completions_at = c_null_ptr
        if (present(completions)) completions_at = c_loc(completions(1))
        outcome = c_sluice_multichannel_gather_read(multichannel, requests, count, deadline, &
            completions_at)
    end function sluice_multichannel_gather_read

    function sluice_multichannel_scatter_gather(multichannel, sends, send_count, receives, &
        receive_count, deadline, completions) result(outcome)
        type(c_ptr), intent(in) :: multichannel
        type(sluice_request), intent(in), optional, target :: sends(*)
        integer(c_int32_t), intent(in) :: send_count
        type(sluice_request), intent(in), optional, target :: receives(*)
        integer(c_int32_t), intent(in) :: receive_count
        integer(c_int64_t), intent(in) :: deadline
        type(sluice_completion), intent(inout), optional, target :: completions(*)
        integer(c_int) :: outcome
        type(c_ptr) :: sends_at
        type(c_ptr) :: receives_at
        type(c_ptr) :: completions_at

        sends_at = c_null_ptr
        if (present(sends)) sends_at = c_loc(sends(1))
        receives_at = c_null_ptr
        if (present(receives)) receives_at = c_loc(receives(1))
        completions_at = c_null_ptr
        if (present(completions)) completions_at = c_loc(completions(1))
        outcome = c_sluice_multichannel_scatter_gather(multichannel, sends_at, send_count, &
            receives_at, receive_count, deadline, completions_at)
    end function sluice_multichannel_scatter_gather

    function sluice_multichannel_multicast_send(multichannel, request, peers, count, deadline, &
        completions) result(outcome)
        type(c_ptr), intent(in) :: multichannel
        type(sluice_request), intent(in) :: request
        integer(c_int32_t), intent(in) :: peers(*)
        integer(c_int32_t), intent(in) :: count
        integer(c_int64_t), intent(in) :: deadline
        type(sluice_completion), intent(inout), optional, target :: completions(*)
        integer(c_int) :: outcome
        type(c_ptr) :: completions_at

        completions_at = c_null_ptr
        if (present(completions)) completions_at = c_loc(completions(1))
        outcome = c_sluice_multichannel_multicast_send(multichannel, request, peers, count, &
            deadline, completions_at)
    end function sluice_multichannel_multicast_send

    function sluice_multichannel_multicast_write(multichannel, request, remotes, count, &
        deadline, completions) result(outcome)
        type(c_ptr), intent(in) :: multichannel
        type(sluice_request), intent(in) :: request
        type(sluice_peer_remote_mr), intent(in) :: remotes(*)
        integer(c_int32_t), intent(in) :: count
        integer(c_int64_t), intent(in) :: deadline
        type(sluice_completion), intent(inout), optional, target :: completions(*)
        integer(c_int) :: outcome
        type(c_ptr) :: completions_at

        completions_at = c_null_ptr
        if (present(completions)) completions_at = c_loc(completions(1))
        outcome = c_sluice_multichannel_multicast_write(multichannel, request, remotes, count, &
            deadline, completions_at)
    end function sluice_multichannel_multicast_write

    function sluice_multichannel_post(multichannel, requests, count, deadline, handles) result( &
        outcome)
        type(c_ptr), intent(in) :: multichannel
        type(sluice_request), intent(in) :: requests(*)
        integer(c_int32_t), intent(in) :: count
        integer(c_int64_t), intent(in) :: deadline
        type(sluice_handle), intent(inout), optional, target :: handles(*)
        integer(c_int) :: outcome
        type(c_ptr) :: handles_at

        handles_at = c_null_ptr
        if (present(handles)) handles_at = c_loc(handles(1))
        outcome = c_sluice_multichannel_post(multichannel, requests, count, deadline, handles_at)
    end function sluice_multichannel_post

    function sluice_multichannel_post_send(multichannel, peer, sges, sge_count, deadline, &
        handle) result(outcome)
        type(c_ptr), intent(in) :: multichannel
        integer(c_int32_t), intent(in) :: peer
        type(sluice_sge), intent(in), optional, target :: sges(*)
        integer(c_int32_t), intent(in) :: sge_count
        integer(c_int64_t), intent(in) :: deadline
        type(sluice_handle), intent(inout), optional, target :: handle
        integer(c_int) :: outcome
        type(c_ptr) :: sges_at
        type(c_ptr) :: handle_at

        sges_at = c_null_ptr
        if (present(sges)) sges_at = c_loc(sges(1))
        handle_at = c_null_ptr
        if (present(handle)) handle_at = c_loc(handle)
        outcome = c_sluice_multichannel_post_send(multichannel, peer, sges_at, sge_count, &
            deadline, handle_at)
    end function sluice_multichannel_post_send

    function sluice_multichannel_post_receive(multichannel, peer, sges, sge_count, deadline, &
        handle) result(outcome)
        type(c_ptr), intent(in) :: multichannel
        integer(c_int32_t), intent(in) :: peer
        type(sluice_sge), intent(in), optional, target :: sges(*)
        integer(c_int32_t), intent(in) :: sge_count
        integer(c_int64_t), intent(in) :: deadline
        type(sluice_handle), intent(inout), optional, target :: handle
        integer(c_int) :: outcome
        type(c_ptr) :: sges_at
        type(c_ptr) :: handle_at

        sges_at = c_null_ptr
        if (present(sges)) sges_at = c_loc(sges(1))
        handle_at = c_null_ptr
        if (present(handle)) handle_at = c_loc(handle)
        outcome = c_sluice_multichannel_post_receive(multichannel, peer, sges_at, sge_count, &
            deadline, handle_at)
    end function sluice_multichannel_post_receive

    function sluice_multichannel_post_write(multichannel, peer, sges, sge_count, remote, &
        deadline, handle) result(outcome)
        type(c_ptr), intent(in) :: multichannel
        integer(c_int32_t), intent(in) :: peer
        type(sluice_sge), intent(in), optional, target :: sges(*)
        integer(c_int32_t), intent(in) :: sge_count
        type(sluice_remote_mr), intent(in) :: remote
        integer(c_int64_t), intent(in) :: deadline
        type(sluice_handle), intent(inout), optional, target :: handle
        integer(c_int) :: outcome
        type(c_ptr) :: sges_at
        type(c_ptr) :: handle_at

        sges_at = c_null_ptr
        if (present(sges)) sges_at = c_loc(sges(1))
        handle_at = c_null_ptr
        if (present(handle)) handle_at = c_loc(handle)
        outcome = c_sluice_multichannel_post_write(multichannel, peer, sges_at, sge_count, &
            remote, deadline, handle_at)
    end function sluice_multichannel_post_write

    function sluice_multichannel_post_read(multichannel, peer, sges, sge_count, remote, &
        deadline, handle) result(outcome)
        type(c_ptr), intent(in) :: multichannel
        integer(c_int32_t), intent(in) :: peer
        type(sluice_sge), intent(in), optional, target :: sges(*)
        integer(c_int32_t), intent(in) :: sge_count
        type(sluice_remote_mr), intent(in) :: remote
        integer(c_int64_t), intent(in) :: deadline
        type(sluice_handle), intent(inout), optional, target :: handle
        integer(c_int) :: outcome
        type(c_ptr) :: sges_at
        type(c_ptr) :: handle_at

        sges_at = c_null_ptr
        if (present(sges)) sges_at = c_loc(sges(1))
        handle_at = c_null_ptr
        if (present(handle)) handle_at = c_loc(handle)
        outcome = c_sluice_multichannel_post_read(multichannel, peer, sges_at, sge_count, &
            remote, deadline, handle_at)
    end function sluice_multichannel_post_read

    function sluice_multichannel_post_compare_swap(multichannel, peer, result, remote, expected, &
        desired, deadline, handle) result(outcome)
        type(c_ptr), intent(in) :: multichannel
        integer(c_int32_t), intent(in) :: peer
        type(sluice_sge), intent(in) :: result
        type(sluice_remote_mr), intent(in) :: remote
        integer(c_int64_t), intent(in) :: expected
        integer(c_int64_t), intent(in) :: desired
        integer(c_int64_t), intent(in) :: deadline
        type(sluice_handle), intent(inout), optional, target :: handle
        integer(c_int) :: outcome
        type(c_ptr) :: handle_at

        handle_at = c_null_ptr
        if (present(handle)) handle_at = c_loc(handle)
        outcome = c_sluice_multichannel_post_compare_swap(multichannel, peer, result, remote, &
            expected, desired, deadline, handle_at)
    end function sluice_multichannel_post_compare_swap

    function sluice_multichannel_post_fetch_add(multichannel, peer, result, remote, addend, &
        deadline, handle) result(outcome)
        type(c_ptr), intent(in) :: multichannel
        integer(c_int32_t), intent(in) :: peer
        type(sluice_sge), intent(in) :: result
        type(sluice_remote_mr), intent(in) :: remote
        integer(c_int64_t), intent(in) :: addend
        integer(c_int64_t), intent(in) :: deadline
        type(sluice_handle), intent(inout), optional, target :: handle
        integer(c_int) :: outcome
        type(c_ptr) :: handle_at

        handle_at = c_null_ptr
        if (present(handle)) handle_at = c_loc(handle)
        outcome = c_sluice_multichannel_post_fetch_add(multichannel, peer, result, remote, &
            addend, deadline, handle_at)
    end function sluice_multichannel_post_fetch_add

    function sluice_multichannel_post_scatter_send(multichannel, requests, count, deadline, &
        handles) result(outcome)
        type(c_ptr), intent(in) :: multichannel
        type(sluice_request), intent(in) :: requests(*)
        integer(c_int32_t), intent(in) :: count
        integer(c_int64_t), intent(in) :: deadline
        type(sluice_handle), intent(inout), optional, target :: handles(*)
        integer(c_int) :: outcome
        type(c_ptr) :: handles_at

        handles_at = c_null_ptr
        if (present(handles)) handles_at = c_loc(handles(1))
        outcome = c_sluice_multichannel_post_scatter_send(multichannel, requests, count, &
            deadline, handles_at)
    end function sluice_multichannel_post_scatter_send

    function sluice_multichannel_post_scatter_write(multichannel, requests, count, deadline, &
        handles) result(outcome)
        type(c_ptr), intent(in) :: multichannel
        type(sluice_request), intent(in) :: requests(*)
        integer(c_int32_t), intent(in) :: count
        integer(c_int64_t), intent(in) :: deadline
        type(sluice_handle), intent(inout), optional, target :: handles(*)
        integer(c_int) :: outcome
        type(c_ptr) :: handles_at

        handles_at = c_null_ptr
        if (present(handles)) handles_at = c_loc(handles(1))
        outcome = c_sluice_multichannel_post_scatter_write(multichannel, requests, count, &
            deadline, handles_at)
    end function sluice_multichannel_post_scatter_write

    function sluice_multichannel_post_gather_receive(multichannel, requests, count, deadline, &
        handles) result(outcome)
        type(c_ptr), intent(in) :: multichannel
        type(sluice_request), intent(in) :: requests(*)
        integer(c_int32_t), intent(in) :: count
        integer(c_int64_t), intent(in) :: deadline
        type(sluice_handle), intent(inout), optional, target :: handles(*)
        integer(c_int) :: outcome
        type(c_ptr) :: handles_at

        handles_at = c_null_ptr
        if (present(handles)) handles_at = c_loc(handles(1))
        outcome = c_sluice_multichannel_post_gather_receive(multichannel, requests, count, &
            deadline, handles_at)
    end function sluice_multichannel_post_gather_receive

    function sluice_multichannel_post_gather_read(multichannel, requests, count, deadline, &
        handles) result(outcome)
        type(c_ptr), intent(in) :: multichannel
        type(sluice_request), intent(in) :: requests(*)
        integer(c_int32_t), intent(in) :: count
        integer(c_int64_t), intent(in) :: deadline
        type(sluice_handle), intent(inout), optional, target :: handles(*)
        integer(c_int) :: outcome
        type(c_ptr) :: handles_at

        handles_at = c_null_ptr
        if (present(handles)) handles_at = c_loc(handles(1))
        outcome = c_sluice_multichannel_post_gather_read(multichannel, requests, count, &
            deadline, handles_at)
    end function sluice_multichannel_post_gather_read

    function sluice_multichannel_post_multicast_send(multichannel, request, peers, count, &
        deadline, handles) result(outcome)
        type(c_ptr), intent(in) :: multichannel
        type(sluice_request), intent(in) :: request
        integer(c_int32_t), intent(in) :: peers(*)
        integer(c_int32_t), intent(in) :: count
        integer(c_int64_t), intent(in) :: deadline
        type(sluice_handle), intent(inout), optional, target :: handles(*)
        integer(c_int) :: outcome
        type(c_ptr) :: handles_at

        handles_at = c_null_ptr
        if (present(handles)) handles_at = c_loc(handles(1))
        outcome = c_sluice_multichannel_post_multicast_send(multichannel, request, peers, count, &
            deadline, handles_at)
    end function sluice_multichannel_post_multicast_send

    function sluice_multichannel_post_multicast_write(multichannel, request, remotes, count, &
        deadline, handles) result(outcome)
        type(c_ptr), intent(in) :: multichannel
        type(sluice_request), intent(in) :: request
        type(sluice_peer_remote_mr), intent(in) :: remotes(*)
        integer(c_int32_t), intent(in) :: count
        integer(c_int64_t), intent(in) :: deadline
        type(sluice_handle), intent(inout), optional, target :: handles(*)
        integer(c_int) :: outcome
        type(c_ptr) :: handles_at

        handles_at = c_null_ptr
        if (present(handles)) handles_at = c_loc(handles(1))
        outcome = c_sluice_multichannel_post_multicast_write(multichannel, request, remotes, &
            count, deadline, handles_at)
    end function sluice_multichannel_post_multicast_write

    function sluice_multichannel_arm(multichannel, due) result(outcome)
        type(c_ptr), intent(in) :: multichannel
        integer(c_int64_t), intent(out), optional, target :: due
        integer(c_int) :: outcome
        type(c_ptr) :: due_at

        due_at = c_null_ptr
        if (present(due)) due_at = c_loc(due)
        outcome = c_sluice_multichannel_arm(multichannel, due_at)
    end function sluice_multichannel_arm

    function sluice_multichannel_post_receive_any(multichannel, requests, count, handles) result( &
        outcome)
        type(c_ptr), intent(in) :: multichannel
        type(sluice_request), intent(in) :: requests(*)
        integer(c_int32_t), intent(in) :: count
        type(sluice_handle), intent(inout), optional, target :: handles(*)
        integer(c_int) :: outcome
        type(c_ptr) :: handles_at

        handles_at = c_null_ptr
        if (present(handles)) handles_at = c_loc(handles(1))
        outcome = c_sluice_multichannel_post_receive_any(multichannel, requests, count, handles_at)
    end function sluice_multichannel_post_receive_any

    function sluice_multichannel_receive_any(multichannel, sges, sge_count, deadline, &
        completion) result(outcome)
        type(c_ptr), intent(in) :: multichannel
        type(sluice_sge), intent(in), optional, target :: sges(*)
        integer(c_int32_t), intent(in) :: sge_count
        integer(c_int64_t), intent(in) :: deadline
        type(sluice_completion), intent(inout) :: completion
        integer(c_int) :: outcome
        type(c_ptr) :: sges_at

        sges_at = c_null_ptr
        if (present(sges)) sges_at = c_loc(sges(1))
        outcome = c_sluice_multichannel_receive_any(multichannel, sges_at, sge_count, deadline, &
            completion)
    end function sluice_multichannel_receive_any

    function sluice_list_aim(list, index, sge, remote_offset) result(outcome)
        type(c_ptr), intent(in) :: list
        integer(c_int32_t), intent(in) :: index
        type(sluice_sge), intent(in), optional, target :: sge
        integer(c_int64_t), intent(in) :: remote_offset
        integer(c_int) :: outcome
        type(c_ptr) :: sge_at

        sge_at = c_null_ptr
        if (present(sge)) sge_at = c_loc(sge)
        outcome = c_sluice_list_aim(list, index, sge_at, remote_offset)
    end function sluice_list_aim

    function sluice_list_submit(list, deadline, completions) result(outcome)
        type(c_ptr), intent(in) :: list
        integer(c_int64_t), intent(in) :: deadline
        type(sluice_completion), intent(inout), optional, target :: completions(*)
        integer(c_int) :: outcome
        type(c_ptr) :: completions_at

        completions_at = c_null_ptr
        if (present(completions)) completions_at = c_loc(completions(1))
        outcome = c_sluice_list_submit(list, deadline, completions_at)
    end function sluice_list_submit

    function sluice_scope_post_list(scope, list, handles) result(outcome)
        type(c_ptr), intent(in) :: scope
        type(c_ptr), intent(in) :: list
        type(sluice_handle), intent(inout), optional, target :: handles(*)
        integer(c_int) :: outcome
        type(c_ptr) :: handles_at

        handles_at = c_null_ptr
        if (present(handles)) handles_at = c_loc(handles(1))
        outcome = c_sluice_scope_post_list(scope, list, handles_at)
    end function sluice_scope_post_list

    function sluice_scope_end(scope, report) result(outcome)
        type(c_ptr), intent(in) :: scope
        type(sluice_scope_report), intent(inout), optional, target :: report
        integer(c_int) :: outcome
        type(c_ptr) :: report_at

        report_at = c_null_ptr
        if (present(report)) report_at = c_loc(report)
        outcome = c_sluice_scope_end(scope, report_at)
    end function sluice_scope_end

    function sluice_scope_post(scope, requests, count, handles) result(outcome)
        type(c_ptr), intent(in) :: scope
        type(sluice_request), intent(in) :: requests(*)
        integer(c_int32_t), intent(in) :: count
        type(sluice_handle), intent(inout), optional, target :: handles(*)
        integer(c_int) :: outcome
        type(c_ptr) :: handles_at

        handles_at = c_null_ptr
        if (present(handles)) handles_at = c_loc(handles(1))
        outcome = c_sluice_scope_post(scope, requests, count, handles_at)
    end function sluice_scope_post

    function sluice_scope_post_send(scope, peer, sges, sge_count, handle) result(outcome)
        type(c_ptr), intent(in) :: scope
        integer(c_int32_t), intent(in) :: peer
        type(sluice_sge), intent(in), optional, target :: sges(*)
        integer(c_int32_t), intent(in) :: sge_count
        type(sluice_handle), intent(inout), optional, target :: handle
        integer(c_int) :: outcome
        type(c_ptr) :: sges_at
        type(c_ptr) :: handle_at

        sges_at = c_null_ptr
        if (present(sges)) sges_at = c_loc(sges(1))
        handle_at = c_null_ptr
        if (present(handle)) handle_at = c_loc(handle)
        outcome = c_sluice_scope_post_send(scope, peer, sges_at, sge_count, handle_at)
    end function sluice_scope_post_send

    function sluice_scope_post_receive(scope, peer, sges, sge_count, handle) result(outcome)
        type(c_ptr), intent(in) :: scope
        integer(c_int32_t), intent(in) :: peer
        type(sluice_sge), intent(in), optional, target :: sges(*)
        integer(c_int32_t), intent(in) :: sge_count
        type(sluice_handle), intent(inout), optional, target :: handle
        integer(c_int) :: outcome
        type(c_ptr) :: sges_at
        type(c_ptr) :: handle_at

        sges_at = c_null_ptr
        if (present(sges)) sges_at = c_loc(sges(1))
        handle_at = c_null_ptr
        if (present(handle)) handle_at = c_loc(handle)
        outcome = c_sluice_scope_post_receive(scope, peer, sges_at, sge_count, handle_at)
    end function sluice_scope_post_receive

    function sluice_scope_post_write(scope, peer, sges, sge_count, remote, handle) result(outcome)
        type(c_ptr), intent(in) :: scope
        integer(c_int32_t), intent(in) :: peer
        type(sluice_sge), intent(in), optional, target :: sges(*)
        integer(c_int32_t), intent(in) :: sge_count
        type(sluice_remote_mr), intent(in) :: remote
        type(sluice_handle), intent(inout), optional, target :: handle
        integer(c_int) :: outcome
        type(c_ptr) :: sges_at
        type(c_ptr) :: handle_at

        sges_at = c_null_ptr
        if (present(sges)) sges_at = c_loc(sges(1))
        handle_at = c_null_ptr
        if (present(handle)) handle_at = c_loc(handle)
        outcome = c_sluice_scope_post_write(scope, peer, sges_at, sge_count, remote, handle_at)
    end function sluice_scope_post_write

    function sluice_scope_post_read(scope, peer, sges, sge_count, remote, handle) result(outcome)
        type(c_ptr), intent(in) :: scope
        integer(c_int32_t), intent(in) :: peer
        type(sluice_sge), intent(in), optional, target :: sges(*)
        integer(c_int32_t), intent(in) :: sge_count
        type(sluice_remote_mr), intent(in) :: remote
        type(sluice_handle), intent(inout), optional, target :: handle
        integer(c_int) :: outcome
        type(c_ptr) :: sges_at
        type(c_ptr) :: handle_at

        sges_at = c_null_ptr
        if (present(sges)) sges_at = c_loc(sges(1))
        handle_at = c_null_ptr
        if (present(handle)) handle_at = c_loc(handle)
        outcome = c_sluice_scope_post_read(scope, peer, sges_at, sge_count, remote, handle_at)
    end function sluice_scope_post_read

    function sluice_scope_post_compare_swap(scope, peer, result, remote, expected, desired, &
        handle) result(outcome)
        type(c_ptr), intent(in) :: scope
        integer(c_int32_t), intent(in) :: peer
        type(sluice_sge), intent(in) :: result
        type(sluice_remote_mr), intent(in) :: remote
        integer(c_int64_t), intent(in) :: expected
        integer(c_int64_t), intent(in) :: desired
        type(sluice_handle), intent(inout), optional, target :: handle
        integer(c_int) :: outcome
        type(c_ptr) :: handle_at

        handle_at = c_null_ptr
        if (present(handle)) handle_at = c_loc(handle)
        outcome = c_sluice_scope_post_compare_swap(scope, peer, result, remote, expected, &
            desired, handle_at)
    end function sluice_scope_post_compare_swap

    function sluice_scope_post_fetch_add(scope, peer, result, remote, addend, handle) result( &
        outcome)
        type(c_ptr), intent(in) :: scope
        integer(c_int32_t), intent(in) :: peer
        type(sluice_sge), intent(in) :: result
        type(sluice_remote_mr), intent(in) :: remote
        integer(c_int64_t), intent(in) :: addend
        type(sluice_handle), intent(inout), optional, target :: handle
        integer(c_int) :: outcome
        type(c_ptr) :: handle_at

        handle_at = c_null_ptr
        if (present(handle)) handle_at = c_loc(handle)
        outcome = c_sluice_scope_post_fetch_add(scope, peer, result, remote, addend, handle_at)
    end function sluice_scope_post_fetch_add

    function sluice_scope_post_scatter_send(scope, requests, count, handles) result(outcome)
        type(c_ptr), intent(in) :: scope
        type(sluice_request), intent(in) :: requests(*)
        integer(c_int32_t), intent(in) :: count
        type(sluice_handle), intent(inout), optional, target :: handles(*)
        integer(c_int) :: outcome
        type(c_ptr) :: handles_at

        handles_at = c_null_ptr
        if (present(handles)) handles_at = c_loc(handles(1))
        outcome = c_sluice_scope_post_scatter_send(scope, requests, count, handles_at)
    end function sluice_scope_post_scatter_send

    function sluice_scope_post_scatter_write(scope, requests, count, handles) result(outcome)
        type(c_ptr), intent(in) :: scope
        type(sluice_request), intent(in) :: requests(*)
        integer(c_int32_t), intent(in) :: count
        type(sluice_handle), intent(inout), optional, target :: handles(*)
        integer(c_int) :: outcome
        type(c_ptr) :: handles_at

        handles_at = c_null_ptr
        if (present(handles)) handles_at = c_loc(handles(1))
        outcome = c_sluice_scope_post_scatter_write(scope, requests, count, handles_at)
    end function sluice_scope_post_scatter_write

    function sluice_scope_post_gather_receive(scope, requests, count, handles) result(outcome)
        type(c_ptr), intent(in) :: scope
        type(sluice_request), intent(in) :: requests(*)
        integer(c_int32_t), intent(in) :: count
        type(sluice_handle), intent(inout), optional, target :: handles(*)
        integer(c_int) :: outcome
        type(c_ptr) :: handles_at

        handles_at = c_null_ptr
        if (present(handles)) handles_at = c_loc(handles(1))
        outcome = c_sluice_scope_post_gather_receive(scope, requests, count, handles_at)
    end function sluice_scope_post_gather_receive

    function sluice_scope_post_gather_read(scope, requests, count, handles) result(outcome)
        type(c_ptr), intent(in) :: scope
        type(sluice_request), intent(in) :: requests(*)
        integer(c_int32_t), intent(in) :: count
        type(sluice_handle), intent(inout), optional, target :: handles(*)
        integer(c_int) :: outcome
        type(c_ptr) :: handles_at

        handles_at = c_null_ptr
        if (present(handles)) handles_at = c_loc(handles(1))
        outcome = c_sluice_scope_post_gather_read(scope, requests, count, handles_at)
    end function sluice_scope_post_gather_read

    function sluice_scope_post_multicast_send(scope, request, peers, count, handles) result(outcome)
        type(c_ptr), intent(in) :: scope
        type(sluice_request), intent(in) :: request
        integer(c_int32_t), intent(in) :: peers(*)
        integer(c_int32_t), intent(in) :: count
        type(sluice_handle), intent(inout), optional, target :: handles(*)
        integer(c_int) :: outcome
        type(c_ptr) :: handles_at

        handles_at = c_null_ptr
        if (present(handles)) handles_at = c_loc(handles(1))
        outcome = c_sluice_scope_post_multicast_send(scope, request, peers, count, handles_at)
    end function sluice_scope_post_multicast_send

    function sluice_scope_post_multicast_write(scope, request, remotes, count, handles) result( &
        outcome)
        type(c_ptr), intent(in) :: scope
        type(sluice_request), intent(in) :: request
        type(sluice_peer_remote_mr), intent(in) :: remotes(*)
        integer(c_int32_t), intent(in) :: count
        type(sluice_handle), intent(inout), optional, target :: handles(*)
        integer(c_int) :: outcome
        type(c_ptr) :: handles_at

        handles_at = c_null_ptr
        if (present(handles)) handles_at = c_loc(handles(1))
        outcome = c_sluice_scope_post_multicast_write(scope, request, remotes, count, handles_at)
    end function sluice_scope_post_multicast_write

    function sluice_listen(address, attr) result(outcome)
        character(*), intent(in) :: address
        type(sluice_listen_attr), intent(in), optional, target :: attr
        type(c_ptr) :: outcome
        type(c_ptr) :: attr_at

        attr_at = c_null_ptr
        if (present(attr)) attr_at = c_loc(attr)
        outcome = c_sluice_listen(trim(address) // c_null_char, attr_at)
    end function sluice_listen

    function sluice_listener_address(listener, text) result(outcome)
        type(c_ptr), intent(in) :: listener
        character(*), intent(out), optional :: text
        integer(c_int) :: outcome
        character(kind=c_char), target :: text_c(TEXT_BYTES)
        type(c_ptr) :: text_at

        text_at = c_null_ptr
        text_c = c_null_char
        if (present(text)) text_at = c_loc(text_c)
        outcome = c_sluice_listener_address(listener, text_at, int(TEXT_BYTES, c_size_t))
        if (present(text)) text = sluice_text(text_c)
    end function sluice_listener_address

    subroutine sluice_incoming_refuse(incoming, reason)
        type(c_ptr), intent(in) :: incoming
        character(*), intent(in), optional :: reason
        character(kind=c_char), allocatable, target :: reason_c(:)
        type(c_ptr) :: reason_at

        reason_at = c_null_ptr
        if (present(reason)) then
            allocate (reason_c(len_trim(reason) + 1))
            reason_at = sluice_c_text(reason, reason_c)
        end if
        call c_sluice_incoming_refuse(incoming, reason_at)
    end subroutine sluice_incoming_refuse

    function sluice_incoming_accept(incoming, pd, attr, options, deadline) result(outcome)
        type(c_ptr), intent(in) :: incoming
        type(c_ptr), intent(in) :: pd
        type(sluice_channel_attr), intent(in), optional, target :: attr
        type(sluice_accept_attr), intent(in), optional, target :: options
        integer(c_int64_t), intent(in) :: deadline
        type(c_ptr) :: outcome
        type(c_ptr) :: attr_at
        type(c_ptr) :: options_at

        attr_at = c_null_ptr
        if (present(attr)) attr_at = c_loc(attr)
        options_at = c_null_ptr
        if (present(options)) options_at = c_loc(options)
        outcome = c_sluice_incoming_accept(incoming, pd, attr_at, options_at, deadline)
    end function sluice_incoming_accept

    function sluice_incoming_accept_into(incoming, multichannel, options, deadline, peers, &
        count) result(outcome)
        type(c_ptr), intent(in) :: incoming
        type(c_ptr), intent(in) :: multichannel
        type(sluice_accept_attr), intent(in), optional, target :: options
        integer(c_int64_t), intent(in) :: deadline
        integer(c_int32_t), intent(inout) :: peers(*)
        integer(c_int32_t), intent(in) :: count
        integer(c_int) :: outcome
        type(c_ptr) :: options_at

        options_at = c_null_ptr
        if (present(options)) options_at = c_loc(options)
        outcome = c_sluice_incoming_accept_into(incoming, multichannel, options_at, deadline, &
            peers, count)
    end function sluice_incoming_accept_into

    function sluice_incoming_admit(incoming, pd, attr, options, deadline, user_data) result(outcome)
        type(c_ptr), intent(in) :: incoming
        type(c_ptr), intent(in) :: pd
        type(sluice_channel_attr), intent(in), optional, target :: attr
        type(sluice_accept_attr), intent(in), optional, target :: options
        integer(c_int64_t), intent(in) :: deadline
        integer(c_int64_t), intent(in) :: user_data
        integer(c_int) :: outcome
        type(c_ptr) :: attr_at
        type(c_ptr) :: options_at

        attr_at = c_null_ptr
        if (present(attr)) attr_at = c_loc(attr)
        options_at = c_null_ptr
        if (present(options)) options_at = c_loc(options)
        outcome = c_sluice_incoming_admit(incoming, pd, attr_at, options_at, deadline, user_data)
    end function sluice_incoming_admit

    function sluice_incoming_admit_into(incoming, multichannel, options, deadline, &
        user_data) result(outcome)
        type(c_ptr), intent(in) :: incoming
        type(c_ptr), intent(in) :: multichannel
        type(sluice_accept_attr), intent(in), optional, target :: options
        integer(c_int64_t), intent(in) :: deadline
        integer(c_int64_t), intent(in) :: user_data
        integer(c_int) :: outcome
        type(c_ptr) :: options_at

        options_at = c_null_ptr
        if (present(options)) options_at = c_loc(options)
        outcome = c_sluice_incoming_admit_into(incoming, multichannel, options_at, deadline, &
            user_data)
    end function sluice_incoming_admit_into

    function sluice_accept(listener, pd, attr, timeout) result(outcome)
        type(c_ptr), intent(in) :: listener
        type(c_ptr), intent(in) :: pd
        type(sluice_channel_attr), intent(in), optional, target :: attr
        integer(c_int64_t), intent(in) :: timeout
        type(c_ptr) :: outcome
        type(c_ptr) :: attr_at

        attr_at = c_null_ptr
        if (present(attr)) attr_at = c_loc(attr)
        outcome = c_sluice_accept(listener, pd, attr_at, timeout)
    end function sluice_accept

    function sluice_connect(address, pd, attr, options, deadline) result(outcome)
        character(*), intent(in) :: address
        type(c_ptr), intent(in) :: pd
        type(sluice_channel_attr), intent(in), optional, target :: attr
        type(sluice_connect_attr), intent(in), optional, target :: options
        integer(c_int64_t), intent(in) :: deadline
        type(c_ptr) :: outcome
        type(c_ptr) :: attr_at
        type(c_ptr) :: options_at

        attr_at = c_null_ptr
        if (present(attr)) attr_at = c_loc(attr)
        options_at = c_null_ptr
        if (present(options)) options_at = c_loc(options)
        outcome = c_sluice_connect(trim(address) // c_null_char, pd, attr_at, options_at, deadline)
    end function sluice_connect

    function sluice_connect_into(address, multichannel, options, deadline, peers, count) result( &
        outcome)
        character(*), intent(in) :: address
        type(c_ptr), intent(in) :: multichannel
        type(sluice_connect_attr), intent(in), optional, target :: options
        integer(c_int64_t), intent(in) :: deadline
        integer(c_int32_t), intent(inout) :: peers(*)
        integer(c_int32_t), intent(in) :: count
        integer(c_int) :: outcome
        type(c_ptr) :: options_at

        options_at = c_null_ptr
        if (present(options)) options_at = c_loc(options)
        outcome = c_sluice_connect_into(trim(address) // c_null_char, multichannel, options_at, &
            deadline, peers, count)
    end function sluice_connect_into

    function sluice_exchange_open(attr, deadline) result(outcome)
        type(sluice_exchange_attr), intent(in), optional, target :: attr
        integer(c_int64_t), intent(in) :: deadline
        type(c_ptr) :: outcome
        type(c_ptr) :: attr_at

        attr_at = c_null_ptr
        if (present(attr)) attr_at = c_loc(attr)
        outcome = c_sluice_exchange_open(attr_at, deadline)
    end function sluice_exchange_open

    function sluice_exchange_missing(exchange, ranks, capacity) result(outcome)
        type(c_ptr), intent(in) :: exchange
        integer(c_int32_t), intent(inout), optional, target :: ranks(*)
        integer(c_int32_t), intent(in) :: capacity
        integer(c_int) :: outcome
        type(c_ptr) :: ranks_at

        ranks_at = c_null_ptr
        if (present(ranks)) ranks_at = c_loc(ranks(1))
        outcome = c_sluice_exchange_missing(exchange, ranks_at, capacity)
    end function sluice_exchange_missing

    function sluice_node_prepare(pd, rank, ranks, attr) result(outcome)
        type(c_ptr), intent(in) :: pd
        integer(c_int32_t), intent(in) :: rank
        integer(c_int32_t), intent(in) :: ranks
        type(sluice_node_attr), intent(in), optional, target :: attr
        type(c_ptr) :: outcome
        type(c_ptr) :: attr_at

        attr_at = c_null_ptr
        if (present(attr)) attr_at = c_loc(attr)
        outcome = c_sluice_node_prepare(pd, rank, ranks, attr_at)
    end function sluice_node_prepare

    function sluice_node_open(pd, exchange, attr, deadline) result(outcome)
        type(c_ptr), intent(in) :: pd
        type(c_ptr), intent(in) :: exchange
        type(sluice_node_attr), intent(in), optional, target :: attr
        integer(c_int64_t), intent(in) :: deadline
        type(c_ptr) :: outcome
        type(c_ptr) :: attr_at

        attr_at = c_null_ptr
        if (present(attr)) attr_at = c_loc(attr)
        outcome = c_sluice_node_open(pd, exchange, attr_at, deadline)
    end function sluice_node_open

    function sluice_node_barrier(node, ranks, count, algorithm, deadline) result(outcome)
        type(c_ptr), intent(in) :: node
        integer(c_int32_t), intent(in), optional, target :: ranks(*)
        integer(c_int32_t), intent(in) :: count
        integer(c_int32_t), intent(in) :: algorithm
        integer(c_int64_t), intent(in) :: deadline
        integer(c_int) :: outcome
        type(c_ptr) :: ranks_at

        ranks_at = c_null_ptr
        if (present(ranks)) ranks_at = c_loc(ranks(1))
        outcome = c_sluice_node_barrier(node, ranks_at, count, algorithm, deadline)
    end function sluice_node_barrier

    function sluice_node_multichannel_open(node, attr, deadline) result(outcome)
        type(c_ptr), intent(in) :: node
        type(sluice_channel_attr), intent(in), optional, target :: attr
        integer(c_int64_t), intent(in) :: deadline
        type(c_ptr) :: outcome
        type(c_ptr) :: attr_at

        attr_at = c_null_ptr
        if (present(attr)) attr_at = c_loc(attr)
        outcome = c_sluice_node_multichannel_open(node, attr_at, deadline)
    end function sluice_node_multichannel_open

    function sluice_buffer_service_open(pds, count, attr) result(outcome)
        type(c_ptr), intent(in) :: pds(*)
        integer(c_int32_t), intent(in) :: count
        type(sluice_buffer_service_attr), intent(in), optional, target :: attr
        type(c_ptr) :: outcome
        type(c_ptr) :: attr_at

        attr_at = c_null_ptr
        if (present(attr)) attr_at = c_loc(attr)
        outcome = c_sluice_buffer_service_open(pds, count, attr_at)
    end function sluice_buffer_service_open

    function sluice_buffer_submit(service, actions, count, deadline, completions) result(outcome)
        type(c_ptr), intent(in) :: service
        type(sluice_buffer_action), intent(in) :: actions(*)
        integer(c_int32_t), intent(in) :: count
        integer(c_int64_t), intent(in) :: deadline
        type(sluice_completion), intent(inout), optional, target :: completions(*)
        integer(c_int) :: outcome
        type(c_ptr) :: completions_at

        completions_at = c_null_ptr
        if (present(completions)) completions_at = c_loc(completions(1))
        outcome = c_sluice_buffer_submit(service, actions, count, deadline, completions_at)
    end function sluice_buffer_submit

    function sluice_buffer_batch_results(batch, completions) result(outcome)
        type(c_ptr), intent(in) :: batch
        type(sluice_completion), intent(inout), optional, target :: completions(*)
        integer(c_int) :: outcome
        type(c_ptr) :: completions_at

        completions_at = c_null_ptr
        if (present(completions)) completions_at = c_loc(completions(1))
        outcome = c_sluice_buffer_batch_results(batch, completions_at)
    end function sluice_buffer_batch_results

    function sluice_buffer_batch_arm(batch, due) result(outcome)
        type(c_ptr), intent(in) :: batch
        integer(c_int64_t), intent(out), optional, target :: due
        integer(c_int) :: outcome
        type(c_ptr) :: due_at

        due_at = c_null_ptr
        if (present(due)) due_at = c_loc(due)
        outcome = c_sluice_buffer_batch_arm(batch, due_at)
    end function sluice_buffer_batch_arm

    function sluice_agent_open(pd, attr) result(outcome)
        type(c_ptr), intent(in) :: pd
        type(sluice_agent_attr), intent(in), optional, target :: attr
        type(c_ptr) :: outcome
        type(c_ptr) :: attr_at

        attr_at = c_null_ptr
        if (present(attr)) attr_at = c_loc(attr)
        outcome = c_sluice_agent_open(pd, attr_at)
    end function sluice_agent_open

    function sluice_agent_listen(agent, address, attr) result(outcome)
        type(c_ptr), intent(in) :: agent
        character(*), intent(in) :: address
        type(sluice_listen_attr), intent(in), optional, target :: attr
        integer(c_int) :: outcome
        type(c_ptr) :: attr_at

        attr_at = c_null_ptr
        if (present(attr)) attr_at = c_loc(attr)
        outcome = c_sluice_agent_listen(agent, trim(address) // c_null_char, attr_at)
    end function sluice_agent_listen

    function sluice_agent_address(agent, text) result(outcome)
        type(c_ptr), intent(in) :: agent
        character(*), intent(out), optional :: text
        integer(c_int) :: outcome
        character(kind=c_char), target :: text_c(TEXT_BYTES)
        type(c_ptr) :: text_at

        text_at = c_null_ptr
        text_c = c_null_char
        if (present(text)) text_at = c_loc(text_c)
        outcome = c_sluice_agent_address(agent, text_at, int(TEXT_BYTES, c_size_t))
        if (present(text)) text = sluice_text(text_c)
    end function sluice_agent_address

    function sluice_agent_connect(agent, address, options, deadline) result(outcome)
        type(c_ptr), intent(in) :: agent
        character(*), intent(in) :: address
        type(sluice_connect_attr), intent(in), optional, target :: options
        integer(c_int64_t), intent(in) :: deadline
        type(c_ptr) :: outcome
        type(c_ptr) :: options_at

        options_at = c_null_ptr
        if (present(options)) options_at = c_loc(options)
        outcome = c_sluice_agent_connect(agent, trim(address) // c_null_char, options_at, deadline)
    end function sluice_agent_connect

    function sluice_agent_send_local_mr(peer, mr, offset, length, access, lease, deadline, &
        id) result(outcome)
        type(c_ptr), intent(in) :: peer
        type(c_ptr), intent(in) :: mr
        integer(c_size_t), intent(in) :: offset
        integer(c_size_t), intent(in) :: length
        integer(c_int32_t), intent(in) :: access
        integer(c_int64_t), intent(in) :: lease
        integer(c_int64_t), intent(in) :: deadline
        integer(c_int64_t), intent(out), optional, target :: id
        integer(c_int) :: outcome
        type(c_ptr) :: id_at

        id_at = c_null_ptr
        if (present(id)) id_at = c_loc(id)
        outcome = c_sluice_agent_send_local_mr(peer, mr, offset, length, access, lease, &
            deadline, id_at)
    end function sluice_agent_send_local_mr

    function sluice_agent_mr_read(mr, offset, sges, sge_count, deadline) result(outcome)
        type(c_ptr), intent(in) :: mr
        integer(c_int64_t), intent(in) :: offset
        type(sluice_sge), intent(in), optional, target :: sges(*)
        integer(c_int32_t), intent(in) :: sge_count
        integer(c_int64_t), intent(in) :: deadline
        integer(c_int) :: outcome
        type(c_ptr) :: sges_at

        sges_at = c_null_ptr
        if (present(sges)) sges_at = c_loc(sges(1))
        outcome = c_sluice_agent_mr_read(mr, offset, sges_at, sge_count, deadline)
    end function sluice_agent_mr_read

    function sluice_agent_mr_write(mr, offset, sges, sge_count, deadline) result(outcome)
        type(c_ptr), intent(in) :: mr
        integer(c_int64_t), intent(in) :: offset
        type(sluice_sge), intent(in), optional, target :: sges(*)
        integer(c_int32_t), intent(in) :: sge_count
        integer(c_int64_t), intent(in) :: deadline
        integer(c_int) :: outcome
        type(c_ptr) :: sges_at

        sges_at = c_null_ptr
        if (present(sges)) sges_at = c_loc(sges(1))
        outcome = c_sluice_agent_mr_write(mr, offset, sges_at, sge_count, deadline)
    end function sluice_agent_mr_write

    function sluice_agent_submit(peer, requests, count, deadline, completions) result(outcome)
        type(c_ptr), intent(in) :: peer
        type(sluice_request), intent(in) :: requests(*)
        integer(c_int32_t), intent(in) :: count
        integer(c_int64_t), intent(in) :: deadline
        type(sluice_completion), intent(inout), optional, target :: completions(*)
        integer(c_int) :: outcome
        type(c_ptr) :: completions_at

        completions_at = c_null_ptr
        if (present(completions)) completions_at = c_loc(completions(1))
        outcome = c_sluice_agent_submit(peer, requests, count, deadline, completions_at)
    end function sluice_agent_submit

    function sluice_agent_arm(agent, due) result(outcome)
        type(c_ptr), intent(in) :: agent
        integer(c_int64_t), intent(out), optional, target :: due
        integer(c_int) :: outcome
        type(c_ptr) :: due_at

        due_at = c_null_ptr
        if (present(due)) due_at = c_loc(due)
        outcome = c_sluice_agent_arm(agent, due_at)
    end function sluice_agent_arm

    function sluice_verbs_context_wrap(ibv, attr) result(outcome)
        type(c_ptr), intent(in) :: ibv
        type(sluice_context_attr), intent(in), optional, target :: attr
        type(c_ptr) :: outcome
        type(c_ptr) :: attr_at

        attr_at = c_null_ptr
        if (present(attr)) attr_at = c_loc(attr)
        outcome = c_sluice_verbs_context_wrap(ibv, attr_at)
    end function sluice_verbs_context_wrap
    ! End of what is generated

    pure function ns_of_int32(n) result(nanoseconds)
        integer(c_int32_t), intent(in) :: n
        integer(c_int64_t) :: nanoseconds

        nanoseconds = int(n, c_int64_t)
    end function ns_of_int32

    pure function ns_of_int64(n) result(nanoseconds)
        integer(c_int64_t), intent(in) :: n
        integer(c_int64_t) :: nanoseconds

        nanoseconds = int(n, c_int64_t)
    end function ns_of_int64

    pure function ns_of_real32(n) result(nanoseconds)
        real(real32), intent(in) :: n
        integer(c_int64_t) :: nanoseconds

        nanoseconds = int(real(n, real64) * 1.0_real64, c_int64_t)
    end function ns_of_real32

    pure function ns_of_real64(n) result(nanoseconds)
        real(real64), intent(in) :: n
        integer(c_int64_t) :: nanoseconds

        nanoseconds = int(real(n, real64) * 1.0_real64, c_int64_t)
    end function ns_of_real64

    pure function us_of_int32(n) result(microseconds)
        integer(c_int32_t), intent(in) :: n
        integer(c_int64_t) :: microseconds

        microseconds = int(n, c_int64_t) * 1000_c_int64_t
    end function us_of_int32

    pure function us_of_int64(n) result(microseconds)
        integer(c_int64_t), intent(in) :: n
        integer(c_int64_t) :: microseconds

        microseconds = int(n, c_int64_t) * 1000_c_int64_t
    end function us_of_int64

    pure function us_of_real32(n) result(microseconds)
        real(real32), intent(in) :: n
        integer(c_int64_t) :: microseconds

        microseconds = int(real(n, real64) * 1000.0_real64, c_int64_t)
    end function us_of_real32

    pure function us_of_real64(n) result(microseconds)
        real(real64), intent(in) :: n
        integer(c_int64_t) :: microseconds

        microseconds = int(real(n, real64) * 1000.0_real64, c_int64_t)
    end function us_of_real64

    pure function ms_of_int32(n) result(milliseconds)
        integer(c_int32_t), intent(in) :: n
        integer(c_int64_t) :: milliseconds

        milliseconds = int(n, c_int64_t) * 1000000_c_int64_t
    end function ms_of_int32

    pure function ms_of_int64(n) result(milliseconds)
        integer(c_int64_t), intent(in) :: n
        integer(c_int64_t) :: milliseconds

        milliseconds = int(n, c_int64_t) * 1000000_c_int64_t
    end function ms_of_int64

    pure function ms_of_real32(n) result(milliseconds)
        real(real32), intent(in) :: n
        integer(c_int64_t) :: milliseconds

        milliseconds = int(real(n, real64) * 1000000.0_real64, c_int64_t)
    end function ms_of_real32

    pure function ms_of_real64(n) result(milliseconds)
        real(real64), intent(in) :: n
        integer(c_int64_t) :: milliseconds

        milliseconds = int(real(n, real64) * 1000000.0_real64, c_int64_t)
    end function ms_of_real64

    pure function s_of_int32(n) result(seconds)
        integer(c_int32_t), intent(in) :: n
        integer(c_int64_t) :: seconds

        seconds = int(n, c_int64_t) * 1000000000_c_int64_t
    end function s_of_int32

    pure function s_of_int64(n) result(seconds)
        integer(c_int64_t), intent(in) :: n
        integer(c_int64_t) :: seconds

        seconds = int(n, c_int64_t) * 1000000000_c_int64_t
    end function s_of_int64

    pure function s_of_real32(n) result(seconds)
        real(real32), intent(in) :: n
        integer(c_int64_t) :: seconds

        seconds = int(real(n, real64) * 1000000000.0_real64, c_int64_t)
    end function s_of_real32

    pure function s_of_real64(n) result(seconds)
        real(real64), intent(in) :: n
        integer(c_int64_t) :: seconds

        seconds = int(real(n, real64) * 1000000000.0_real64, c_int64_t)
    end function s_of_real64
end module sluice
