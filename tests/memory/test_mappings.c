/* SPDX-License-Identifier: MIT */
/*
 * One region over several mappings: adjoining ones serve as one, of any kinds; a hole, or a part
 * without the requested rights, is one error that names the memory.
 */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../support/pair.h"

/* The kernel maps from the top, so nothing else is mapped into a hole down here. */
#define PLACE ((uint8_t *)(uintptr_t)0x40000000)
#define PARTS 3
#define PART_BYTES ((size_t)64 * 1024) /* whole pages, of any size that a processor has */
#define BYTES (PARTS * PART_BYTES)

/* Private memory on both sides of private memory, or of a file in memory that is shared. */
static void map_parts(bool file)
{
    int fd = memfd_create("part", MFD_CLOEXEC);
    require(fd >= 0 && ftruncate(fd, PART_BYTES) == 0, "%s", strerror(errno));
    for (size_t i = 0; i < PARTS; i++) {
        bool shared = file && i == 1;
        uint8_t *part =
            mmap(PLACE + i * PART_BYTES, PART_BYTES, PROT_READ | PROT_WRITE,
                 MAP_FIXED_NOREPLACE | (shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS),
                 shared ? fd : -1, 0);
        require(part == PLACE + i * PART_BYTES, "%s", strerror(errno));
    }
    close(fd);
}

static void unmap_parts(void)
{
    munmap(PLACE, BYTES);
}

static void protect_middle(int rights)
{
    require(mprotect(PLACE + PART_BYTES, PART_BYTES, rights) == 0, "%s", strerror(errno));
}

static struct sluice_mr *register_parts(struct sluice_pd *pd, uint32_t access)
{
    struct sluice_mr *mr = made(sluice_mr_register(pd, PLACE, BYTES, access));
    return mr;
}

/* Requires that the text has the address and the length of the range. */
static void require_refused(struct sluice_pd *pd, uint32_t access)
{
    char words[64];
    require_null(sluice_mr_register(pd, PLACE, BYTES, access), EFAULT, "not mapped");
    snprintf(words, sizeof(words), "%p", (void *)PLACE);
    require(strstr(sluice_last_error(), words), "no %s: %s", words, sluice_last_error());
    snprintf(words, sizeof(words), "%zu bytes", BYTES);
    require(strstr(sluice_last_error(), words), "no %s: %s", words, sluice_last_error());
}

/* Sends a part of the region into memory of the other side, which must then have its pattern. */
static void send_from(const struct pair *pair, struct sluice_mr *mr, size_t offset, size_t length)
{
    struct memory target;
    struct sluice_sge from;
    memory_open(&target, pair->sides.pds[1], length);
    struct sluice_sge to = memory_sge(&target, 0, length);
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, &to);
    struct sluice_handle handle = post(pair->channels[1], &receive);
    require_ok(sluice_mr_sge(mr, offset, length, &from));
    require_ok(sluice_channel_send(pair->channels[0], &from, 1, DEADLINE));
    await(pair->channels[1], handle, SLUICE_CLASS_NONE);
    require(memcmp(target.bytes, PLACE + offset, length) == 0, "other bytes from %zu on", offset);
    memory_close(&target);
}

static void receive_into(const struct pair *pair, struct sluice_mr *mr, size_t offset,
                         size_t length, uint64_t key)
{
    struct memory source;
    struct sluice_sge to;
    memory_open(&source, pair->sides.pds[1], length);
    struct sluice_sge from = memory_sge(&source, 0, length);
    require_ok(sluice_mr_sge(mr, offset, length, &to));
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, &to);
    struct sluice_handle handle = post(pair->channels[0], &receive);
    pattern_fill(source.bytes, length, key);
    require_ok(sluice_channel_send(pair->channels[1], &from, 1, DEADLINE));
    await(pair->channels[0], handle, SLUICE_CLASS_NONE);
    pattern_check(PLACE + offset, length, key);
    memory_close(&source);
}

static void write_and_read(const struct pair *pair, struct sluice_mr *mr, size_t offset,
                           size_t length, uint64_t key)
{
    struct memory other;
    struct sluice_remote_mr remote;
    memory_open(&other, pair->sides.pds[1], length);
    struct sluice_sge sge = memory_sge(&other, 0, length);
    require_ok(sluice_mr_remote(mr, &remote));
    require_ok(sluice_remote_mr_slice(&remote, offset, length, &remote));
    pattern_fill(other.bytes, length, key);
    require_ok(sluice_channel_write(pair->channels[1], &sge, 1, &remote, DEADLINE));
    pattern_check(PLACE + offset, length, key);
    memset(other.bytes, 0, length);
    require_ok(sluice_channel_read(pair->channels[1], &sge, 1, &remote, DEADLINE));
    pattern_check(other.bytes, length, key);
    memory_close(&other);
}

TEST(adjoining_mappings_are_one_region)
{
    /* All of it, and a few bytes on both sides of each boundary. */
    static const struct {
        size_t offset, length;
    } ranges[] = {{0, BYTES}, {PART_BYTES - 8, 16}, {2 * PART_BYTES - 3000, 6000}};
    struct pair pair;
    map_parts(true);
    pair_open(&pair, NULL);
    struct sluice_mr *mr = register_parts(pair.sides.pds[0], ACCESS_ALL);
    for (uint32_t i = 0; i < COUNT(ranges); i++) {
        write_and_read(&pair, mr, ranges[i].offset, ranges[i].length, 10 + i);
        receive_into(&pair, mr, ranges[i].offset, ranges[i].length, 20 + i);
        send_from(&pair, mr, ranges[i].offset, ranges[i].length);
    }
    require_ok(sluice_mr_deregister(mr));
    pair_close(&pair);
    unmap_parts();
}

/*
 * The mapping can be sent from, but not registered to receive. It is private: Linux 6.1 pins memory
 * for devices as if it were written, which shared memory does not allow.
 */
TEST(one_mapping_is_read_only)
{
    struct pair pair;
    map_parts(false);
    pattern_fill(PLACE, BYTES, 1);
    protect_middle(PROT_READ);
    pair_open(&pair, NULL);
    require_refused(pair.sides.pds[0], SLUICE_ACCESS_LOCAL_WRITE);
    require_refused(pair.sides.pds[0], ACCESS_ALL);
    struct sluice_mr *mr = register_parts(pair.sides.pds[0], 0);
    send_from(&pair, mr, 0, BYTES);
    require_ok(sluice_mr_deregister(mr));
    pattern_check(PLACE, BYTES, 1);
    pair_close(&pair);
    unmap_parts();
}

TEST(one_mapping_has_no_rights)
{
    struct pair pair;
    map_parts(true);
    pattern_fill(PLACE, BYTES, 1);
    protect_middle(PROT_NONE);
    pair_open(&pair, NULL);
    require_refused(pair.sides.pds[0], 0);
    require_refused(pair.sides.pds[0], ACCESS_ALL);
    protect_middle(PROT_READ | PROT_WRITE);
    pattern_check(PLACE, BYTES, 1);
    pair_works(&pair);
    pair_close(&pair);
    unmap_parts();
}

/* When the hole is filled all of it can be used. */
TEST(a_hole_between_mappings)
{
    struct pair pair;
    map_parts(true);
    pair_open(&pair, NULL);
    munmap(PLACE + PART_BYTES, PART_BYTES);
    require_refused(pair.sides.pds[0], 0);
    require_refused(pair.sides.pds[0], ACCESS_ALL);
    uint8_t *part = mmap(PLACE + PART_BYTES, PART_BYTES, PROT_READ | PROT_WRITE,
                         MAP_FIXED_NOREPLACE | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(part == PLACE + PART_BYTES, "%s", strerror(errno));
    struct sluice_mr *mr = register_parts(pair.sides.pds[0], ACCESS_ALL);
    write_and_read(&pair, mr, 0, BYTES, 3);
    require_ok(sluice_mr_deregister(mr));
    pair_close(&pair);
    unmap_parts();
}

int main(void)
{
    return run_tests("mappings", 60);
}
