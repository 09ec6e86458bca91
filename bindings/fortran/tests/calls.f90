! SPDX-License-Identifier: MIT
!
! What the module adds to the calls of C, and a life of a program within one process, in TAP.
! Operands of one expression may be evaluated in any order: what a call has written is looked at
! in a later statement.
program calls
    use, intrinsic :: iso_fortran_env, only: real32, real64
    use sluice
    use, intrinsic :: iso_c_binding
    implicit none

    integer :: count = 0, status
    integer(c_int64_t) :: deadline
    type(c_ptr) :: context, pd

    deadline = sluice_s(30)
    call durations()
    call texts()
    call defaults()
    call failures()
    context = sluice_context_open('soft')
    call ok(c_associated(context), 'a context by name')
    pd = sluice_pd_alloc(context)
    call ok(c_associated(pd), 'a domain')
    call descriptions()
    call messages()
    call many()
    call lists()
    call by_address()
    call by_name()
    call ranks()
    call sluice_pd_free(pd)
    call sluice_context_close(context)
    print '(a, i0)', '1..', count

contains

    subroutine ok(condition, name)
        logical, intent(in) :: condition
        character(*), intent(in) :: name

        count = count + 1
        print '(a, i0, 2a)', merge('ok     ', 'not ok ', condition), count, ' - ', name
        if (.not. condition) print '(2a)', '# ', sluice_last_error()
    end subroutine ok

    subroutine durations()
        call ok(sluice_ns(7) == 7, 'nanoseconds')
        call ok(sluice_us(7) == 7000 .and. sluice_us(0.5_real64) == 500, 'microseconds')
        call ok(sluice_ms(7_c_int64_t) == 7000000 .and. sluice_ms(0.25_real32) == 250000, &
            'milliseconds')
        call ok(sluice_s(30) == 30000000000_c_int64_t .and. sluice_s(1.5_real32) == 1500000000_c_int64_t, &
            'seconds')
        call ok(sluice_s(0.0000000019_real64) == 1, 'what is below a nanosecond is cut off')
        call ok(SLUICE_FOREVER == huge(0_c_int64_t), 'for ever')
    end subroutine durations

    subroutine texts()
        character(kind=c_char), target :: room(4)
        character(kind=c_char), pointer :: there(:)

        call ok(sluice_text([character(kind=c_char) :: 'a', 'b', c_null_char, 'c']) == 'ab', &
            'a text ends')
        call ok(len(sluice_text([character(kind=c_char) :: 'a', 'b'])) == 2, 'or has no end')
        call c_f_pointer(sluice_c_text('ab  ', room), there, [4])
        call ok(all(there(1:3) == [character(kind=c_char) :: 'a', 'b', c_null_char]), &
            'a text for C has no blanks at its end')
        call c_f_pointer(sluice_c_text('abcdef', room), there, [4])
        call ok(all(there == [character(kind=c_char) :: 'a', 'b', 'c', c_null_char]), &
            'a text for C has no more than there is room')
        call ok(index(sluice_version(), '.') > 0, 'the version')
        call ok(sluice_status_name(SLUICE_STATUS_REM_ACCESS_ERR) == 'remote access error', &
            'the name of a status')
        call ok(sluice_error_class_name(SLUICE_CLASS_PEER_LOST) == 'peer lost', 'the name of a class')
    end subroutine texts

    subroutine defaults()
        type(sluice_channel_attr) :: attr
        type(sluice_request) :: request

        call ok(attr%size == c_sizeof(attr) .and. attr%send_depth == 0, 'attributes have their size')
        call ok(.not. c_associated(attr%mr_cache), 'and no pointer')
        request = sluice_request(opcode=SLUICE_OP_SEND, peer=3)
        call ok(request%peer == 3 .and. request%user_data == 0 .and. request%sge%length == 0, &
            'a request is zero but for what it is given')
    end subroutine defaults

    subroutine failures()
        type(c_ptr) :: none
        type(sluice_channel_attr) :: attr

        none = sluice_context_open('nosuch0')
        call ok(sluice_errno() == SLUICE_ENODEV, 'errno of what makes an object')
        call ok(.not. c_associated(none) .and. index(sluice_last_error(), 'nosuch0') > 0, &
            'its text names the device')
        attr%size = 1
        none = sluice_channel_prepare(c_null_ptr, attr)
        call ok(sluice_errno() == SLUICE_EINVAL .and. .not. c_associated(none), 'a wrong size')
        call ok(sluice_mr_deregister(c_null_ptr) == 0, 'no object may be ended')
        call ok(sluice_channel_shutdown(c_null_ptr, 0_c_int64_t) == -SLUICE_EINVAL, 'but not used')
    end subroutine failures

    subroutine descriptions()
        type(sluice_context_info) :: info
        type(sluice_device_info) :: device
        type(c_ptr) :: list

        call ok(sluice_context_query(context, info) == 0, 'a context describes itself')
        call ok(sluice_text(info%device) == 'soft' .and. sluice_text(info%transport) == 'soft', &
            'by name and transport')
        list = sluice_device_list_get()
        call ok(sluice_device_list_count(list) >= 1, 'devices')
        call ok(sluice_device_list_info(list, sluice_device_list_count(list) - 1, device) == 0, &
            'the last one')
        call ok(sluice_text(device%name) == 'soft', 'is soft')
        call sluice_device_list_free(list)
    end subroutine descriptions

    ! Two channels of this process, each the peer of the other.
    subroutine messages()
        integer(c_int32_t), target :: words(16)
        type(c_ptr) :: prepared(2), channels(2), mr
        type(sluice_endpoint) :: endpoints(2)
        type(sluice_sge) :: from, to
        type(sluice_remote_mr) :: remote, part
        type(sluice_handle) :: handle
        type(sluice_completion) :: got
        type(sluice_error) :: error
        integer(c_int8_t) :: packed(SLUICE_REMOTE_MR_BYTES)
        integer :: i

        words = [(i, i=1, 16)]
        mr = sluice_mr_register(pd, c_loc(words), int(64, c_size_t), ior(SLUICE_ACCESS_LOCAL_WRITE, &
            ior(SLUICE_ACCESS_REMOTE_WRITE, SLUICE_ACCESS_REMOTE_READ)))
        call ok(c_associated(mr), 'an array is registered')
        call ok(sluice_mr_sge(mr, 0_c_size_t, 16_c_size_t, from) == 0 .and. &
            sluice_mr_sge(mr, 32_c_size_t, 16_c_size_t, to) == 0, 'and its parts are named')
        call ok(sluice_mr_sge(mr, 60_c_size_t, 16_c_size_t, to) == -SLUICE_ERANGE, 'within it')
        do i = 1, 2
            prepared(i) = sluice_channel_prepare(pd)
            if (sluice_prepared_channel_endpoint(prepared(i), endpoints(i)) /= 0) stop 1
        end do
        do i = 1, 2
            channels(i) = sluice_prepared_channel_handshake(prepared(i), endpoints(3 - i))
        end do
        call ok(all([(c_associated(channels(i)), i=1, 2)]), 'channels')
        call ok(sluice_channel_post_receive(channels(2), [to], 1, deadline, handle) == 0, 'a receive')
        call ok(sluice_channel_send(channels(1), [from], 1, deadline) == 0, 'a send')
        status = sluice_channel_wait(channels(2), handle, deadline, got)
        call ok(status == 0 .and. got%error == 0 .and. got%bytes == 16 .and. &
            all(words(9:12) == [1, 2, 3, 4]), 'it has arrived')
        status = sluice_channel_post_receive(channels(2), sge_count=0, deadline=deadline)
        call ok(status == 0, 'a receive without memory')
        call ok(sluice_channel_send(channels(1), sge_count=0, deadline=deadline) == 0, &
            'a message of no bytes')
        call ok(sluice_mr_remote(mr, remote) == 0, 'a handle')
        call ok(sluice_remote_mr_pack(remote, packed) == 0, 'is packed')
        status = sluice_remote_mr_unpack(packed, part)
        call ok(status == 0 .and. part%addr == remote%addr .and. part%rkey == remote%rkey, &
            'and unpacked')
        call ok(sluice_remote_mr_slice(remote, 48_c_int64_t, 16_c_int64_t, part) == 0, 'a part')
        status = sluice_channel_write(channels(1), [from], 1, part, deadline)
        call ok(status == 0 .and. all(words(13:16) == [1, 2, 3, 4]), 'is written')
        call ok(sluice_channel_error(channels(1), error) == 0, 'no channel has failed')
        part%rkey = part%rkey + 1
        call ok(sluice_channel_write(channels(1), [from], 1, part, deadline) == -SLUICE_EACCES, &
            'a wrong key')
        status = sluice_channel_error(channels(1), error)
        call ok(status == 1 .and. error%error_class == SLUICE_CLASS_ACCESS .and. sluice_text(error%text) /= '', &
            'is kept, and told')
        call sluice_channel_close(channels(1))
        call sluice_channel_close(channels(2))
        call ok(sluice_mr_deregister(mr) == 0, 'memory ends')
    end subroutine messages

    ! A multichannel with two peers, which are each other.
    subroutine pair(multichannel)
        type(c_ptr), intent(out) :: multichannel
        type(c_ptr) :: prepared
        type(sluice_endpoint) :: endpoints(2)

        prepared = sluice_multichannel_prepare(pd, 2)
        call ok(sluice_prepared_multichannel_endpoints(prepared, endpoints, 2) == 0, 'endpoints')
        multichannel = sluice_prepared_multichannel_handshake(prepared, endpoints([2, 1]), 2)
        call ok(c_associated(multichannel), 'a multichannel')
    end subroutine pair

    subroutine many()
        type(c_ptr) :: multichannel, mr
        integer(c_int64_t), pointer :: words(:)
        type(sluice_request) :: sends(2), receives(2)
        type(sluice_completion) :: completions(4)
        integer :: i

        call pair(multichannel)
        mr = sluice_mr_alloc(pd, 32_c_size_t, SLUICE_ACCESS_LOCAL_WRITE)
        call c_f_pointer(sluice_mr_addr(mr), words, [4])
        words = [11, 22, 0, 0]
        do i = 1, 2
            sends(i) = sluice_request(peer=i - 1, sge_count=1, user_data=i)
            receives(i) = sluice_request(peer=i - 1, sge_count=1, user_data=10 + i)
            if (sluice_mr_sge(mr, int(8 * i - 8, c_size_t), 8_c_size_t, sends(i)%sge) /= 0 .or. &
                sluice_mr_sge(mr, int(8 * i + 8, c_size_t), 8_c_size_t, receives(i)%sge) /= 0) stop 1
        end do
        status = sluice_multichannel_scatter_gather(multichannel, sends, 2, receives, 2, deadline, &
            completions)
        call ok(status == 0, 'scatter and gather')
        call ok(all(words(3:4) == [22, 11]) .and. &
            all(completions%user_data == [1, 2, 11, 12]) .and. all(completions%bytes == 8), &
            'in the order of requests')
        call ok(sluice_multichannel_scatter_gather(multichannel, receives=receives, &
            receive_count=0, send_count=0, deadline=deadline) == 0, 'of nothing')
        sends(1)%opcode = SLUICE_OP_RECEIVE
        call ok(sluice_multichannel_scatter_send(multichannel, sends, 2, deadline) == -SLUICE_EINVAL, &
            'a wrong opcode')
        call sluice_multichannel_close(multichannel)
        call ok(sluice_mr_deregister(mr) == 0, 'its memory ends')
    end subroutine many

    subroutine lists()
        type(c_ptr) :: multichannel, mr, list, scope
        integer(c_int64_t), pointer :: words(:)
        type(sluice_request) :: requests(2)
        type(sluice_completion), target :: completions(2)
        integer :: i

        call pair(multichannel)
        mr = sluice_mr_alloc(pd, 16_c_size_t, SLUICE_ACCESS_LOCAL_WRITE)
        call c_f_pointer(sluice_mr_addr(mr), words, [2])
        words = [5, 0]
        do i = 1, 2
            requests(i) = sluice_request(opcode=merge(SLUICE_OP_SEND, SLUICE_OP_RECEIVE, i == 1), &
                peer=i - 1, sge_count=1)
            if (sluice_mr_sge(mr, int(8 * i - 8, c_size_t), 8_c_size_t, requests(i)%sge) /= 0) stop 1
        end do
        list = sluice_multichannel_list_prepare(multichannel, requests, 2)
        call ok(c_associated(list), 'a prepared list')
        status = sluice_list_submit(list, deadline)
        call ok(status == 0 .and. words(2) == 5, 'is submitted')
        words = [6, 0]
        call ok(sluice_list_post(list, deadline, c_loc(completions)) == 0, 'and posted')
        status = sluice_list_wait(list, deadline)
        call ok(status == 0 .and. words(2) == 6, 'and waited for')
        call ok(sluice_list_result(list) == 0, 'and has succeeded')
        call ok(all(completions%bytes == 8), 'with its results')
        call ok(sluice_list_set_length(list, 0, 4_c_int64_t) == 0, 'is made shorter')
        scope = sluice_multichannel_scope_begin(multichannel, deadline)
        status = sluice_scope_post_list(scope, list)
        call ok(status == 2 .and. sluice_scope_end(scope) == 0, 'and posted in a scope')
        call sluice_list_free(list)
        call sluice_multichannel_close(multichannel)
        call ok(sluice_mr_deregister(mr) == 0, 'the memory of a list ends')
    end subroutine lists

    subroutine by_address()
        type(c_ptr) :: listener, none
        type(sluice_listen_attr) :: attr
        character(kind=c_char), target :: room(2)
        character(64) :: address
        integer :: port

        attr%secret_file = sluice_c_text('', room)
        listener = sluice_listen('127.0.0.1:0', attr)
        call ok(c_associated(listener), 'a listener')
        port = sluice_listener_address(listener, address)
        call ok(port > 0 .and. index(address, '127.0.0.1:') == 1, 'has an address')
        call ok(sluice_listener_address(listener) == port, 'and a port')
        none = sluice_listener_next(listener, 0_c_int64_t)
        call ok(sluice_errno() == SLUICE_ETIMEDOUT .and. .not. c_associated(none), 'nobody comes')
        call sluice_listener_close(listener)
    end subroutine by_address

    subroutine by_name()
        type(c_ptr) :: service, buffer
        type(sluice_buffer_handle) :: handle
        type(sluice_buffer_service_attr) :: attr
        character(kind=c_char), target :: room(16)
        integer(c_int64_t), target :: words(4)
        integer(c_int64_t), pointer :: published(:)

        attr%address = sluice_c_text('127.0.0.1:0', room)
        service = sluice_buffer_service_open([pd], 1, attr)
        call ok(c_associated(service), 'a service of buffers')
        buffer = sluice_buffer_publish(service, c_null_ptr, 32_c_size_t, &
            ior(SLUICE_ACCESS_REMOTE_READ, SLUICE_ACCESS_REMOTE_WRITE))
        call ok(sluice_buffer_export(buffer, handle) == 0, 'the handle of a buffer')
        call c_f_pointer(sluice_buffer_addr(buffer), published, [4])
        published = [1, 2, 3, 4]
        words = 0
        status = sluice_buffer_read(service, handle, 8_c_int64_t, c_null_ptr, c_loc(words), &
            16_c_int64_t, deadline)
        call ok(status == 0 .and. all(words == [2, 3, 0, 0]), 'is read by it')
        call sluice_buffer_release(buffer)
        call sluice_buffer_service_close(service)
    end subroutine by_name

    ! A job of one rank.
    subroutine ranks()
        type(sluice_exchange_attr) :: attr
        type(sluice_channel_attr) :: counting
        type(c_ptr) :: exchange, node, more
        integer(c_int64_t), target :: own, every(1)
        integer(c_int32_t) :: missing(1)

        attr%rank = SLUICE_ZERO
        attr%ranks = 1
        exchange = sluice_exchange_open(attr, deadline)
        call ok(c_associated(exchange), 'an exchange')
        node = sluice_node_open(pd, exchange, deadline=deadline)
        call ok(c_associated(node), 'a node')
        call ok(sluice_node_rank(node) == 0 .and. sluice_node_ranks(node) == 1, 'of one rank')
        call ok(sluice_node_barrier(node, count=0, algorithm=SLUICE_BARRIER_DEFAULT, &
            deadline=deadline) == 0, 'a barrier of all')
        call ok(sluice_node_barrier(node, [0], 1, SLUICE_BARRIER_TREE, deadline) == 0, 'and of some')
        own = 42
        status = sluice_node_allgather(node, c_loc(own), c_loc(every), 8_c_size_t, deadline)
        call ok(status == 0 .and. every(1) == 42, 'an allgather')
        own = 43
        status = sluice_node_alltoall(node, c_loc(own), c_loc(every), 8_c_size_t, deadline)
        call ok(status == 0 .and. every(1) == 43, 'an alltoall')
        counting%arrival_tags = 1
        more = sluice_node_multichannel_open(node, counting, deadline)
        call ok(c_associated(more), 'a multichannel that counts arrivals')
        call ok(sluice_node_multichannel_reconnect(node, more, deadline) == 0, 'and has lost none')
        call sluice_multichannel_close(more)
        call ok(sluice_exchange_missing(exchange, missing, 1) == 0, 'nobody is missing')
        call sluice_node_close(node)
        call sluice_exchange_close(exchange)
    end subroutine ranks
end program calls
