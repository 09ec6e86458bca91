! SPDX-License-Identifier: MIT
!
! Ways of use in Fortran, for bench/usage, which runs it as two ranks:
!
!     ways COUNT
!
! Rank 0 prints a line for each way: its name, a blank and its median in microseconds, of parts of
! COUNT iterations each. An echo is there and back.
program ways
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: error_unit
    use sluice
    implicit none

    integer, parameter :: PARTS = 5, MIDDLE = 3 ! the median is the third of five
    integer, parameter :: PLACE = 64           ! bytes between messages
    integer, parameter :: ECHO = 1, EXCHANGE = 2, WRITES = 3
    integer(c_size_t), parameter :: MESSAGE = 8
    integer(c_int64_t) :: deadline
    integer :: iterations, me, other
    type(c_ptr) :: node, all, mr, channel
    type(sluice_sge) :: from(1), to(1)
    type(sluice_request) :: send(1), receive(1)
    type(sluice_peer_remote_mr) :: remotes(0:1)
    type(sluice_remote_mr) :: remote
    character(16) :: argument

    call get_command_argument(1, argument)
    read (argument, *) iterations
    deadline = sluice_s(30)
    node = sluice_node_open(c_null_ptr, c_null_ptr, deadline=deadline)
    call must(merge(0, -1, c_associated(node)), 'join the other rank')
    all = sluice_node_multichannel(node)
    me = sluice_node_rank(node)
    other = 1 - me
    call name_memory()
    call connect()

    call measure('echo_blocking', ECHO)
    call measure('exchange_step', EXCHANGE)
    call measure('channel_write', WRITES)
    call meet()

    call sluice_channel_close(channel)
    call must(sluice_node_shutdown(node, deadline), 'shut down')
    call must(sluice_mr_deregister(mr), 'end the memory')
    call sluice_node_close(node)

contains

    subroutine name_memory()
        mr = sluice_mr_alloc(sluice_node_pd(node), int(4 * PLACE, c_size_t), &
            ior(SLUICE_ACCESS_LOCAL_WRITE, SLUICE_ACCESS_REMOTE_WRITE))
        call must(merge(0, -1, c_associated(mr)), 'allocate memory')
        call must(sluice_mr_sge(mr, 0_c_size_t, MESSAGE, from(1)), 'name a message')
        call must(sluice_mr_sge(mr, int(PLACE, c_size_t), MESSAGE, to(1)), 'name a place')
        send(1) = sluice_request(peer=other, sge_count=1, sge=from(1))
        receive(1) = sluice_request(peer=other, sge_count=1, sge=to(1))
        call must(sluice_node_share_mr(node, mr, remotes, deadline), 'share the memory')
        call must(sluice_remote_mr_slice(remotes(other)%remote, int(2 * PLACE, c_int64_t), &
            int(MESSAGE, c_int64_t), remote), 'name memory of the other')
    end subroutine name_memory

    ! A channel to the other rank, whose endpoints go by the node.
    subroutine connect()
        type(c_ptr) :: prepared
        type(sluice_endpoint), target :: own, both(0:1)

        prepared = sluice_channel_prepare(sluice_node_pd(node))
        call must(merge(0, -1, c_associated(prepared)), 'prepare')
        call must(sluice_prepared_channel_endpoint(prepared, own), 'have an endpoint')
        call must(sluice_node_allgather(node, c_loc(own), c_loc(both), c_sizeof(own), deadline), &
            'exchange endpoints')
        channel = sluice_prepared_channel_handshake(prepared, both(other))
        call must(merge(0, -1, c_associated(channel)), 'connect')
        call must(sluice_channel_wait_connected(channel, deadline), 'wait for the connection')
    end subroutine connect

    subroutine meet()
        call must(sluice_node_barrier(node, count=0, algorithm=SLUICE_BARRIER_DEFAULT, &
            deadline=deadline), 'meet')
    end subroutine meet

    ! While rank 0 writes, rank 1 waits in the next barrier.
    subroutine step(way)
        integer, intent(in) :: way

        select case (way)
          case (ECHO)
            if (me == 0) call must(sluice_channel_send(channel, from, 1, deadline), 'send')
            call must(sluice_channel_receive(channel, to, 1, deadline), 'receive')
            if (me == 1) call must(sluice_channel_send(channel, from, 1, deadline), 'send back')
          case (EXCHANGE)
            call must(sluice_multichannel_scatter_gather(all, send, 1, receive, 1, deadline), &
                'exchange')
          case (WRITES)
            if (me == 0) call must(sluice_channel_write(channel, from, 1, remote, deadline), 'write')
        end select
    end subroutine step

    subroutine measure(name, way)
        character(*), intent(in) :: name
        integer, intent(in) :: way
        integer(c_int64_t) :: begin, end, rate
        double precision :: times(PARTS)
        integer :: part, i

        do part = 1, PARTS
            call meet()
            call system_clock(begin, rate)
            do i = 1, iterations
                call step(way)
            end do
            call system_clock(end)
            times(part) = 1d6 * dble(end - begin) / dble(rate) / iterations
        end do
        if (me == 0) print '(2a, f0.3)', name, ' ', median(times)
    end subroutine measure

    pure function median(times) result(found)
        double precision, intent(in) :: times(PARTS)
        double precision :: found
        integer :: i

        found = times(1)
        do i = 1, PARTS
            if (count(times < times(i)) < MIDDLE .and. count(times <= times(i)) >= MIDDLE) &
                found = times(i)
        end do
    end function median

    subroutine must(outcome, what)
        integer, intent(in) :: outcome
        character(*), intent(in) :: what

        if (outcome >= 0) return
        write (error_unit, '(4a)') 'ways: ', what, ': ', sluice_last_error()
        stop 1
    end subroutine must
end program ways
