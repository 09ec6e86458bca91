! SPDX-License-Identifier: MIT
! A rank of any number of ranks: each has some squares, sends them to the next one, and adds up
! those of the one before.
program squares
    use, intrinsic :: iso_c_binding
    use sluice
    implicit none
    integer, parameter :: count = 10
    integer(c_size_t), parameter :: bytes = count * 8
    type(c_ptr) :: node, mr
    type(sluice_request) :: send(1), receive(1)
    real(c_double), pointer :: numbers(:, :)
    integer(c_int64_t) :: rank, ranks
    integer :: i

    node = sluice_node_open(c_null_ptr, c_null_ptr, deadline=sluice_s(60))
    if (.not. c_associated(node)) call fail('join the other ranks')
    rank = sluice_node_rank(node)
    ranks = sluice_node_ranks(node)
    mr = sluice_mr_alloc(sluice_node_pd(node), 2 * bytes, SLUICE_ACCESS_LOCAL_WRITE)
    if (.not. c_associated(mr)) call fail('allocate memory')
    call c_f_pointer(sluice_mr_addr(mr), numbers, [count, 2])
    do i = 1, count
        numbers(i, 1) = real(i, c_double)**2
    end do

    send(1)%sge_count = 1
    send(1)%peer = int(mod(rank + 1, ranks))
    receive(1)%sge_count = 1
    receive(1)%peer = int(mod(rank + ranks - 1, ranks))
    if (sluice_mr_sge(mr, 0_c_size_t, bytes, send(1)%sge) /= 0) call fail('name the memory')
    if (sluice_mr_sge(mr, bytes, bytes, receive(1)%sge) /= 0) call fail('name the memory')
    if (sluice_multichannel_scatter_gather(sluice_node_multichannel(node), send, 1, receive, 1, &
        sluice_s(60)) /= 0) call fail('scatter and gather')
    print '(a, f6.1)', 'fortran adds up:', sum(numbers(:, 2))

    if (sluice_node_shutdown(node, sluice_s(60)) /= 0) call fail('shut down')
    if (sluice_mr_deregister(mr) /= 0) call fail('end the memory')
    call sluice_node_close(node)

contains

    subroutine fail(what)
        character(*), intent(in) :: what

        print '(3a)', what, ': ', sluice_last_error()
        stop 1
    end subroutine fail
end program squares
