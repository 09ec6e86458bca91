/* SPDX-License-Identifier: MIT */
#include "plain_memory.h"

#include <sys/mman.h>
#include <unistd.h>

static struct sluice_channel *handshake(struct sluice_prepared_channel *prepared,
                                        const struct sluice_endpoint *remote)
{
    struct sluice_channel *channel = made(sluice_prepared_channel_handshake(prepared, remote));

    return channel;
}

void plain_connect(struct plain *work, struct sluice_channel_attr attr)
{
    struct sluice_prepared_channel *prepared[2];
    struct sluice_endpoint endpoints[2];

    attr.size = sizeof attr;
    attr.mr_cache = work->cache;
    prepared[0] = prepare_channel(work->pair.sides.pds[0], &attr, &endpoints[0]);
    attr.mr_cache = NULL;
    prepared[1] = prepare_channel(work->pair.sides.pds[1], &attr, &endpoints[1]);
    for (int i = 0; i < 2; i++)
        work->pair.channels[i] = handshake(prepared[i], &endpoints[!i]);
}

/* Returns a page; pages are 4096 bytes apart, or more. */
uint8_t *plain_page(const struct plain *work, uint32_t page)
{
    return work->bytes + page * (size_t)sysconf(_SC_PAGESIZE);
}

void plain_open(struct plain *work, uint32_t access, const struct sluice_mr_cache_attr *cache,
                struct sluice_channel_attr attr)
{
    memset(work, 0, sizeof *work);
    sides_open(&work->pair.sides);
    work->cache = made(sluice_mr_cache_create(work->pair.sides.pds[0], access, cache));
    plain_connect(work, attr);
    work->bytes = mmap(NULL, (size_t)(plain_page(work, PAGES) - plain_page(work, 0)),
                       PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(work->bytes != MAP_FAILED, "%s", strerror(errno));
    memory_open(&work->far, work->pair.sides.pds[1], PAGES * BYTES);
}

void plain_open_usual(struct plain *work)
{
    plain_open(work, ACCESS_ALL, NULL, (struct sluice_channel_attr){0});
}

struct sluice_mr_cache_info plain_query(const struct plain *work)
{
    struct sluice_mr_cache_info info = {.size = sizeof info};

    require_ok(sluice_mr_cache_query(work->cache, &info));
    return info;
}

/* Channels may be closed already; requires that no memory is pinned any more. */
void plain_close(struct plain *work)
{
    sluice_channel_close(work->pair.channels[0]);
    sluice_channel_close(work->pair.channels[1]);
    require(plain_query(work).used == 0, "%u used", plain_query(work).used);
    require_ok(sluice_mr_cache_destroy(work->cache));
    memory_close(&work->far);
    munmap(work->bytes, (size_t)(plain_page(work, PAGES) - plain_page(work, 0)));
    sides_close(&work->pair.sides);
}

/* Returns an element whose key is that of no region. */
struct sluice_sge plain_sge(const struct plain *work, uint32_t page, uint32_t length)
{
    return (struct sluice_sge){
        .addr = (uintptr_t)plain_page(work, page), .length = length, .lkey = 0x12345};
}

/* Makes a request with a page of plain memory and the same page of the peer. */
struct sluice_request plain_request(const struct plain *work, uint32_t opcode, uint32_t page,
                                    uint32_t length)
{
    struct sluice_sge sge = plain_sge(work, page, length);
    struct sluice_request request = request_of(opcode, 0, &sge);

    request.sge = sge;
    request.sges = NULL;
    request.flags = SLUICE_PLAIN_MEMORY;
    request.user_data = 100 + page;
    if (opcode > SLUICE_OP_RECEIVE)
        request.remote = memory_remote(&work->far, (size_t)page * BYTES, BYTES);
    return request;
}

int plain_forget(const struct plain *work, uint32_t page)
{
    return sluice_mr_cache_forget(work->cache, plain_page(work, page), 1);
}
