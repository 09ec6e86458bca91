# SPDX-License-Identifier: MIT
# Public headers, one a line, sorted. What stands here is installed.
include_HEADERS = %D%/sluice.h

pkginclude_HEADERS = \
	%D%/sluice/agent.h \
	%D%/sluice/allocator.h \
	%D%/sluice/blocks.h \
	%D%/sluice/buffer.h \
	%D%/sluice/channel.h \
	%D%/sluice/connect.h \
	%D%/sluice/context.h \
	%D%/sluice/counters.h \
	%D%/sluice/device.h \
	%D%/sluice/endpoint.h \
	%D%/sluice/environment.h \
	%D%/sluice/error.h \
	%D%/sluice/exchange.h \
	%D%/sluice/histogram.h \
	%D%/sluice/list.h \
	%D%/sluice/log.h \
	%D%/sluice/macros.h \
	%D%/sluice/mpi.h \
	%D%/sluice/mr.h \
	%D%/sluice/mr_cache.h \
	%D%/sluice/multichannel.h \
	%D%/sluice/node.h \
	%D%/sluice/pd.h \
	%D%/sluice/request.h \
	%D%/sluice/scope.h \
	%D%/sluice/time.h \
	%D%/sluice/verbs.h \
	%D%/sluice/version.h
