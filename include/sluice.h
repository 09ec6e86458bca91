/* SPDX-License-Identifier: MIT */
/*
 * sluice: RDMA channels to many peers. This header includes the whole library;
 * every header below also compiles alone. sluice(7) describes the life of a
 * program.
 */
#ifndef SLUICE_H
#define SLUICE_H

#include <sluice/agent.h>
#include <sluice/allocator.h>
#include <sluice/blocks.h>
#include <sluice/buffer.h>
#include <sluice/channel.h>
#include <sluice/connect.h>
#include <sluice/context.h>
#include <sluice/counters.h>
#include <sluice/device.h>
#include <sluice/endpoint.h>
#include <sluice/environment.h>
#include <sluice/error.h>
#include <sluice/exchange.h>
#include <sluice/histogram.h>
#include <sluice/list.h>
#include <sluice/log.h>
#include <sluice/macros.h>
#include <sluice/mr.h>
#include <sluice/mr_cache.h>
#include <sluice/multichannel.h>
#include <sluice/node.h>
#include <sluice/pd.h>
#include <sluice/request.h>
#include <sluice/scope.h>
#include <sluice/time.h>
#include <sluice/version.h>

#endif
