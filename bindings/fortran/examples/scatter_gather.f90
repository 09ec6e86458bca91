! SPDX-License-Identifier: MIT
!
! Rank 0 scatters the blocks of a file, all ranks digest them, and rank 0 gathers the digests: as
! examples/03-scatter-gather.c, with the ranks of any launcher.
!
!     gfortran -c $(pkg-config --variable=fortran_source sluice)
!     gfortran -o scatter_gather scatter_gather.f90 sluice.o $(pkg-config --libs sluice libsodium)
!     sluice-launch -n 4 ./scatter_gather [FILE]
!
! In each round rank 0 sends a different block to each rank, itself included, and receives the
! digests of the round before. In the end it digests the whole file alone and compares. Without a
! FILE the data is 64 MiB of reproducible noise.
module digests
    use, intrinsic :: iso_c_binding
    implicit none

    integer, parameter :: DIGEST = 32

    ! Of libsodium.
    interface
        function sodium_init() bind(c) result(outcome)
            import
            integer(c_int) :: outcome
        end function sodium_init
        function crypto_generichash(out, outlen, in, inlen, key, keylen) bind(c) result(outcome)
            import
            integer(c_int8_t), intent(out) :: out(*)
            integer(c_size_t), value :: outlen
            integer(c_int8_t), intent(in) :: in(*)
            integer(c_long_long), value :: inlen
            type(c_ptr), value :: key
            integer(c_size_t), value :: keylen
            integer(c_int) :: outcome
        end function crypto_generichash
        subroutine randombytes_buf_deterministic(buf, size, seed) bind(c)
            import
            type(c_ptr), value :: buf
            integer(c_size_t), value :: size
            character(kind=c_char), intent(in) :: seed(*)
        end subroutine randombytes_buf_deterministic
    end interface

contains

    function digest_of(bytes) result(value)
        integer(c_int8_t), contiguous, intent(in) :: bytes(:)
        integer(c_int8_t) :: value(DIGEST)

        if (crypto_generichash(value, int(DIGEST, c_size_t), bytes, &
            size(bytes, kind=c_long_long), c_null_ptr, 0_c_size_t) /= 0) error stop 'no digest'
    end function digest_of
end module digests

program scatter_gather
    use, intrinsic :: iso_fortran_env, only: error_unit
    use digests
    use sluice
    implicit none

    integer(c_int64_t), parameter :: BLOCK = 1048576 ! bytes
    integer(c_int64_t) :: deadline                   ! of a round
    type(c_ptr) :: node, all, mr
    integer(c_int64_t) :: rank, ranks
    character(4096) :: name

    deadline = sluice_s(60)
    if (command_argument_count() > 1) call give_up('usage: scatter_gather [FILE]')
    name = ''
    call get_command_argument(1, name)
    if (sodium_init() < 0) call give_up('libsodium cannot be used')

    node = sluice_node_open(c_null_ptr, c_null_ptr, deadline=deadline)
    if (.not. c_associated(node)) call fail('join the other ranks')
    all = sluice_node_multichannel(node)
    rank = sluice_node_rank(node)
    ranks = sluice_node_ranks(node)
    if (rank == 0) then
        call give_and_take()
    else
        call work()
    end if
    ! Shut down first: closing at once would break the connections for ranks still at work.
    if (sluice_node_shutdown(node, deadline) /= 0) call fail('shut down')
    call sluice_node_close(node)

contains

    ! The worker: receives a block into one half of its memory while it digests the block in the
    ! other half. An empty message ends it.
    subroutine work()
        integer(c_int8_t), pointer, contiguous :: memory(:)
        type(sluice_sge) :: halves(0:1), answer
        type(sluice_handle) :: handles(0:1)
        type(sluice_completion) :: got
        integer(c_int64_t) :: first
        integer :: half

        mr = sluice_mr_alloc(sluice_node_pd(node), int(2 * BLOCK + DIGEST, c_size_t), &
            SLUICE_ACCESS_LOCAL_WRITE)
        if (.not. c_associated(mr)) call fail('allocate memory')
        call c_f_pointer(sluice_mr_addr(mr), memory, [2 * BLOCK + DIGEST])
        if (sluice_mr_sge(mr, 0_c_size_t, int(BLOCK, c_size_t), halves(0)) /= 0 .or. &
            sluice_mr_sge(mr, int(BLOCK, c_size_t), int(BLOCK, c_size_t), halves(1)) /= 0 .or. &
            sluice_mr_sge(mr, int(2 * BLOCK, c_size_t), int(DIGEST, c_size_t), answer) /= 0) &
            call fail('name the memory')
        if (sluice_multichannel_post_receive(all, 0, [halves(0)], 1, deadline, handles(0)) /= 0) &
            call fail('post the first receive')
        half = 0
        do
            if (sluice_multichannel_wait(all, handles(half), deadline, got) /= 0) &
                call fail('wait for a block')
            if (got%error /= 0) &
                call give_up('receive a block: ' // sluice_error_class_name(got%error_class))
            if (got%bytes == 0) exit
            if (sluice_multichannel_post_receive(all, 0, [halves(1 - half)], 1, deadline, &
                handles(1 - half)) /= 0) call fail('post a receive')
            first = half * BLOCK + 1
            memory(2 * BLOCK + 1:) = digest_of(memory(first:first + got%bytes - 1))
            if (sluice_multichannel_send(all, 0, [answer], 1, deadline) /= 0) call fail('send a digest')
            half = 1 - half
        end do
        if (sluice_mr_deregister(mr) /= 0) call fail('end the memory')
    end subroutine work

    ! Rank 0. Its memory has the file, the digests, and the block for rank 0 itself.
    subroutine give_and_take()
        integer(c_int8_t), pointer, contiguous :: memory(:)
        type(sluice_context_info) :: info
        integer(c_int64_t) :: bytes, blocks, digests_at, own_at
        integer :: unit, status

        bytes = 64 * BLOCK
        if (name /= '') then
            open (newunit=unit, file=name, access='stream', form='unformatted', action='read', &
                status='old', iostat=status)
            if (status /= 0) call give_up(trim(name) // ': it cannot be read')
            inquire (unit=unit, size=bytes)
        end if
        blocks = (bytes + BLOCK - 1) / BLOCK
        digests_at = bytes
        own_at = digests_at + blocks * DIGEST
        mr = sluice_mr_alloc(sluice_node_pd(node), int(own_at + BLOCK, c_size_t), &
            SLUICE_ACCESS_LOCAL_WRITE)
        if (.not. c_associated(mr)) call fail('allocate memory')
        call c_f_pointer(sluice_mr_addr(mr), memory, [own_at + BLOCK])
        if (name /= '') then
            status = 0
            if (bytes > 0) read (unit, iostat=status) memory(:bytes)
            if (status /= 0) call give_up(trim(name) // ': the file could not be read')
            close (unit)
        else
            call randombytes_buf_deterministic(sluice_mr_addr(mr), int(bytes, c_size_t), &
                [character(kind=c_char) :: 's', 'l', 'u', 'i', 'c', 'e', spread(c_null_char, 1, 26)])
        end if
        if (sluice_context_query(sluice_node_context(node), info) /= 0) call fail('ask the context')
        print '(i0, 4a, i0, a, i0, a)', ranks, ' processes on device ', sluice_text(info%device), &
            ' (' // sluice_text(info%transport), '), ', bytes, ' bytes in ', blocks, ' blocks'
        call rounds(memory, bytes, blocks, digests_at, own_at)
        call compare(memory, bytes, blocks, digests_at)
        if (sluice_mr_deregister(mr) /= 0) call fail('end the memory')
    end subroutine give_and_take

    ! Sends block b of the data to rank (b + 1) modulo ranks. The last round, for which no blocks are
    ! left, has the empty messages and the last digests.
    subroutine rounds(memory, bytes, blocks, digests_at, own_at)
        integer(c_int8_t), contiguous, intent(inout) :: memory(:)
        integer(c_int64_t), intent(in) :: bytes, blocks, digests_at, own_at
        type(sluice_request) :: sends(ranks), receives(ranks)
        integer :: send_count, receive_count
        integer(c_int64_t) :: round, last, i, turn, to, own, length

        last = (blocks + ranks - 1) / ranks
        do round = 0, last
            send_count = 0
            receive_count = 0
            own = -1
            do i = 0, ranks - 1
                to = mod(i + 1, ranks)
                turn = round * ranks + i
                if (turn < blocks) then
                    length = min(BLOCK, bytes - turn * BLOCK)
                    call add(sends, send_count, to, turn * BLOCK, length)
                    if (to == 0) then
                        own = turn
                        call add(receives, receive_count, 0_c_int64_t, own_at, length)
                    end if
                else if (round == last .and. to /= 0) then
                    call add(sends, send_count, to, 0_c_int64_t, 0_c_int64_t)
                end if
                if (round > 0 .and. turn - ranks < blocks .and. to /= 0) &
                    call add(receives, receive_count, to, digests_at + (turn - ranks) * DIGEST, &
                    int(DIGEST, c_int64_t))
            end do
            if (sluice_multichannel_scatter_gather(all, sends, send_count, receives, receive_count, &
                deadline) /= 0) call fail('scatter and gather')
            if (own >= 0) then
                length = min(BLOCK, bytes - own * BLOCK)
                memory(digests_at + own * DIGEST + 1:digests_at + (own + 1) * DIGEST) = &
                    digest_of(memory(own_at + 1:own_at + length))
            end if
        end do
    end subroutine rounds

    ! Adds a request. An empty message needs no memory.
    subroutine add(list, count, peer, offset, length)
        type(sluice_request), intent(inout) :: list(:)
        integer, intent(inout) :: count
        integer(c_int64_t), intent(in) :: peer, offset, length

        count = count + 1
        list(count) = sluice_request(peer=int(peer, c_int32_t))
        if (length == 0) return
        list(count)%sge_count = 1
        if (sluice_mr_sge(mr, int(offset, c_size_t), int(length, c_size_t), list(count)%sge) /= 0) &
            call fail('name the memory')
    end subroutine add

    ! Digests all blocks alone, and compares.
    subroutine compare(memory, bytes, blocks, digests_at)
        integer(c_int8_t), contiguous, intent(in) :: memory(:)
        integer(c_int64_t), intent(in) :: bytes, blocks, digests_at
        integer(c_int64_t) :: i, at
        integer(c_int8_t) :: whole(DIGEST)

        do i = 0, blocks - 1
            at = digests_at + i * DIGEST
            whole = digest_of(memory(i * BLOCK + 1:min((i + 1) * BLOCK, bytes)))
            if (any(whole /= memory(at + 1:at + DIGEST))) call give_up('digests differ')
        end do
        whole = digest_of(memory(digests_at + 1:digests_at + blocks * DIGEST))
        print '(2a)', hex(whole), ': digests agree'
    end subroutine compare

    pure function hex(bytes) result(text)
        integer(c_int8_t), intent(in) :: bytes(:)
        character(2 * size(bytes)) :: text
        character(16), parameter :: FIGURES = '0123456789abcdef'
        integer :: i, byte

        do i = 1, size(bytes)
            byte = iand(int(bytes(i)), 255)
            text(2 * i - 1:2 * i - 1) = FIGURES(byte / 16 + 1:byte / 16 + 1)
            text(2 * i:2 * i) = FIGURES(mod(byte, 16) + 1:mod(byte, 16) + 1)
        end do
    end function hex

    subroutine fail(what)
        character(*), intent(in) :: what

        call give_up(what // ': ' // sluice_last_error())
    end subroutine fail

    subroutine give_up(text)
        character(*), intent(in) :: text

        write (error_unit, '(2a)') 'scatter_gather: ', text
        stop 1
    end subroutine give_up
end program scatter_gather
