! SPDX-License-Identifier: MIT
!
! An MPI program: every rank scatters a block to each rank, itself included, and gathers one from
! each, all at once. MPI starts the processes and exchanges the endpoints; the blocks go over sluice.
!
!     mpifort -c $(pkg-config --variable=fortran_source sluice)
!     mpifort -o mpi_blocks mpi_blocks.f90 sluice.o $(pkg-config --libs sluice)
!     mpirun -n 4 ./mpi_blocks
program mpi_blocks
    use, intrinsic :: iso_c_binding
    use mpi
    use sluice
    implicit none

    integer(c_int64_t), parameter :: BLOCK = 1048576, WORDS = BLOCK / 4 ! bytes; integers
    integer, parameter :: TIMES = 10
    integer(c_int32_t), pointer :: memory(:, :) ! blocks for all, and then blocks of all
    type(c_ptr) :: context, pd, mr, every
    integer :: rank, ranks, error, i

    call MPI_Init(error)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)

    context = sluice_context_open()
    if (.not. c_associated(context)) call fail('open the device')
    pd = sluice_pd_alloc(context)
    mr = sluice_mr_alloc(pd, int(2 * ranks * BLOCK, c_size_t), SLUICE_ACCESS_LOCAL_WRITE)
    if (.not. c_associated(mr)) call fail('allocate memory')
    call c_f_pointer(sluice_mr_addr(mr), memory, [WORDS, int(2 * ranks, c_int64_t)])
    call connect()
    do i = 1, ranks
        memory(:, i) = value_of(rank, i - 1)
    end do
    call scatter_and_gather()
    do i = 1, ranks
        if (any(memory(:, ranks + i) /= value_of(i - 1, rank))) call fail('find what was sent')
    end do

    call MPI_Barrier(MPI_COMM_WORLD, error) ! whoever closes first takes the channel from others
    call sluice_multichannel_close(every)
    error = sluice_mr_deregister(mr)
    call sluice_pd_free(pd)
    call sluice_context_close(context)
    if (rank == 0) print '(a)', 'all blocks are right'
    call MPI_Finalize(error)

contains

    ! Returns the content of a block of one rank for another.
    pure function value_of(from, to) result(value)
        integer, intent(in) :: from, to
        integer(c_int32_t) :: value

        value = 1000 * from + to + 1
    end function value_of

    ! Connects all ranks. Rank i needs our endpoint i: an all-to-all of their bytes.
    subroutine connect()
        type(sluice_endpoint) :: ours(ranks), theirs(ranks)
        integer(c_int8_t) :: given(SLUICE_ENDPOINT_BYTES, ranks), taken(SLUICE_ENDPOINT_BYTES, ranks)
        type(c_ptr) :: prepared

        prepared = sluice_multichannel_prepare(pd, ranks)
        if (.not. c_associated(prepared)) call fail('prepare')
        if (sluice_prepared_multichannel_endpoints(prepared, ours, ranks) /= 0) call fail('prepare')
        do i = 1, ranks
            given(:, i) = ours(i)%bytes
        end do
        call MPI_Alltoall(given, SLUICE_ENDPOINT_BYTES, MPI_BYTE, taken, SLUICE_ENDPOINT_BYTES, &
            MPI_BYTE, MPI_COMM_WORLD, error)
        do i = 1, ranks
            theirs(i)%bytes = taken(:, i)
        end do
        every = sluice_prepared_multichannel_handshake(prepared, theirs, ranks)
        if (.not. c_associated(every)) call fail('connect')
        ! A message that arrives before a rank's handshake would take a second longer.
        call MPI_Barrier(MPI_COMM_WORLD, error)
    end subroutine connect

    subroutine scatter_and_gather()
        type(sluice_request) :: requests(2 * ranks)
        double precision :: begin

        do i = 1, 2 * ranks
            requests(i) = sluice_request(peer=mod(i - 1, ranks), sge_count=1)
            if (sluice_mr_sge(mr, int((i - 1) * BLOCK, c_size_t), int(BLOCK, c_size_t), &
                requests(i)%sge) /= 0) call fail('name the memory')
        end do
        begin = MPI_Wtime()
        do i = 1, TIMES
            if (sluice_multichannel_scatter_gather(every, requests(:ranks), ranks, &
                requests(ranks + 1:), ranks, sluice_s(30)) /= 0) call fail('scatter and gather')
        end do
        if (rank == 0) print '(2(i0, a), f0.0, a)', ranks, ' ranks, each scattered ', ranks, &
            ' blocks of 1 MiB: ', TIMES * ranks * dble(BLOCK) / (MPI_Wtime() - begin) / 1d6, &
            ' MB/s per rank'
    end subroutine scatter_and_gather

    subroutine fail(what)
        character(*), intent(in) :: what

        print '(a, i0, 4a)', 'mpi_blocks: rank ', rank, ': ', what, ': ', sluice_last_error()
        call MPI_Abort(MPI_COMM_WORLD, 1, error) ! the others would wait for us
    end subroutine fail
end program mpi_blocks
