# SPDX-License-Identifier: MIT
# Manual pages, one a line, sorted.
dist_man1_MANS = \
	%D%/sluice-info.1 \
	%D%/sluice-launch.1 \
	%D%/sluice-perf.1

dist_man3_MANS = \
	%D%/SLUICE_MS.3 \
	%D%/SLUICE_SCOPE.3 \
	%D%/sluice_agent_connect.3 \
	%D%/sluice_agent_open.3 \
	%D%/sluice_agent_request_mr.3 \
	%D%/sluice_agent_send.3 \
	%D%/sluice_agent_send_local_mr.3 \
	%D%/sluice_allocator_alloc.3 \
	%D%/sluice_allocator_create.3 \
	%D%/sluice_buffer_post.3 \
	%D%/sluice_buffer_publish.3 \
	%D%/sluice_buffer_submit.3 \
	%D%/sluice_channel_arrivals.3 \
	%D%/sluice_channel_cancel.3 \
	%D%/sluice_channel_compare_swap.3 \
	%D%/sluice_channel_counters.3 \
	%D%/sluice_channel_error.3 \
	%D%/sluice_channel_histogram.3 \
	%D%/sluice_channel_list_prepare.3 \
	%D%/sluice_channel_next.3 \
	%D%/sluice_channel_fd.3 \
	%D%/sluice_channel_post.3 \
	%D%/sluice_channel_prepare.3 \
	%D%/sluice_channel_query.3 \
	%D%/sluice_channel_send.3 \
	%D%/sluice_channel_post_send.3 \
	%D%/sluice_channel_shutdown.3 \
	%D%/sluice_channel_submit.3 \
	%D%/sluice_channel_wait_connected.3 \
	%D%/sluice_connect.3 \
	%D%/sluice_context_open.3 \
	%D%/sluice_device_list_get.3 \
	%D%/sluice_environment_variable.3 \
	%D%/sluice_exchange_allgather.3 \
	%D%/sluice_launch_query.3 \
	%D%/sluice_exchange_open.3 \
	%D%/sluice_exchange_open_mpi.3 \
	%D%/sluice_incoming_admit.3 \
	%D%/sluice_interrupt_set.3 \
	%D%/sluice_last_error.3 \
	%D%/sluice_listen.3 \
	%D%/sluice_load_acquire64.3 \
	%D%/sluice_log_set.3 \
	%D%/sluice_mr_cache_create.3 \
	%D%/sluice_mr_register.3 \
	%D%/sluice_mr_register_dmabuf.3 \
	%D%/sluice_mr_release.3 \
	%D%/sluice_multichannel_cancel.3 \
	%D%/sluice_multichannel_multicast_send.3 \
	%D%/sluice_multichannel_next.3 \
	%D%/sluice_multichannel_peer_add.3 \
	%D%/sluice_multichannel_peer_reset.3 \
	%D%/sluice_multichannel_post.3 \
	%D%/sluice_multichannel_prepare.3 \
	%D%/sluice_multichannel_receive_any.3 \
	%D%/sluice_multichannel_scatter_send.3 \
	%D%/sluice_multichannel_post_scatter_send.3 \
	%D%/sluice_multichannel_send.3 \
	%D%/sluice_multichannel_post_send.3 \
	%D%/sluice_node_allgather.3 \
	%D%/sluice_node_barrier.3 \
	%D%/sluice_node_multichannel_open.3 \
	%D%/sluice_node_grow.3 \
	%D%/sluice_node_open.3 \
	%D%/sluice_node_peer_reset.3 \
	%D%/sluice_node_reach.3 \
	%D%/sluice_pd_alloc.3 \
	%D%/sluice_remote_mr_pack.3 \
	%D%/sluice_scope_end.3 \
	%D%/sluice_scope_post_scatter_send.3 \
	%D%/sluice_scope_post_send.3 \
	%D%/sluice_verbs_context.3 \
	%D%/sluice_version.3

dist_man7_MANS = \
	%D%/sluice.7 \
	%D%/sluice_blocks.7 \
	%D%/sluice_concurrency.7 \
	%D%/sluice_environment.7 \
	%D%/sluice_errors.7 \
	%D%/sluice_fortran.7 \
	%D%/sluice_memory.7 \
	%D%/sluice_mpi.7 \
	%D%/sluice_security.7 \
	%D%/sluice_tracing.7 \
	%D%/sluice_transports.7 \
	%D%/sluice_tutorial.7

# A page is found under every name of its NAME section: for each name that is
# not the page's own, install makes a file that leads to the page.
for_each_alias = \
	for page in $(dist_man3_MANS); do \
	  test -f $$page || page=$(srcdir)/$$page; \
	  base=`basename $$page`; \
	  for name in `sed -n '/^\.Sh NAME/,/^\.Nd/s/^\.Nm \([A-Za-z0-9_]*\).*/\1/p' $$page`; do \
	    test $$name.3 = $$base || {

install-man-aliases:
	@$(MKDIR_P) '$(DESTDIR)$(man3dir)'
	@set -e; $(for_each_alias) echo ".so man3/$$base" >'$(DESTDIR)$(man3dir)'/$$name.3; }; done; done

uninstall-man-aliases:
	@$(for_each_alias) rm -f '$(DESTDIR)$(man3dir)'/$$name.3; }; done; done

install-data-hook: install-man-aliases

uninstall-hook: uninstall-man-aliases

.PHONY: install-man-aliases uninstall-man-aliases
