/* SPDX-License-Identifier: MIT */
/*
 * Dmabufs that soft cannot register, and why; an exporter that is called again after a signal or a
 * lock, or that stops giving access at some time: then requests with its memory fail, and all
 * others go on. The exporter is notified of each access, and of its direction.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../support/process.h"
#include "dmabuf/exporters.h"

#define PAGE ((size_t)4096)
#define OFFSET (PAGE + 8)
#define LENGTH (4 * PAGE)
#define WHOLE (8 * PAGE)
#define IOVA (UINT64_C(0x100000) + 8)

static bool is_device(void)
{
    return !device_is_soft();
}

static struct sluice_mr *make(struct sluice_pd *pd, const struct dmabuf *dmabuf)
{
    return sluice_mr_register_dmabuf(pd, dmabuf->fd, OFFSET, LENGTH, IOVA, ACCESS_ALL);
}

/* A file that can be mapped is not therefore a dmabuf. */
TEST(files_that_are_not_dmabufs, .unless = is_device)
{
    struct sides sides;
    int pipes[2];
    int memfd = memfd_create("test", MFD_CLOEXEC);
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    int folder = open("/", O_RDONLY | O_CLOEXEC);
    sides_open(&sides);
    require(memfd >= 0 && file >= 0 && folder >= 0 && pipe(pipes) == 0, "%s", strerror(errno));
    require(ftruncate(memfd, WHOLE) == 0, "%s", strerror(errno));
    int fds[] = {memfd, file, folder, pipes[0]};
    for (size_t i = 0; i < COUNT(fds); i++) {
        require_null(sluice_mr_register_dmabuf(sides.pds[0], fds[i], 0, PAGE, 0, 0), EINVAL,
                     "fd no dmabuf");
        close(fds[i]);
    }
    close(pipes[1]);
    sides_close(&sides);
}

TEST(ranges_beyond_the_end, .unless = is_device)
{
    struct sides sides;
    sides_open(&sides);
    for (enum exporter exporter = 0; exporter < EXPORTERS; exporter++) {
        struct dmabuf dmabuf;
        if (!exporter_is_there(exporter)) {
            continue;
        }
        dmabuf_open(&dmabuf, exporter, WHOLE, 1);
        require_null(sluice_mr_register_dmabuf(sides.pds[0], dmabuf.fd, 0, WHOLE + 1, 0, 0), EINVAL,
                     "32769 bytes offset 0 beyond 32768 bytes");
        require_null(sluice_mr_register_dmabuf(sides.pds[0], dmabuf.fd, WHOLE, 1, 0, 0), EINVAL,
                     "1 bytes offset 0x8000 beyond");
        require_null(
            sluice_mr_register_dmabuf(sides.pds[0], dmabuf.fd, WHOLE - 10, 11, PAGE - 10, 0),
            EINVAL, "beyond");
        /* All of it, and its last byte. */
        struct sluice_mr *all =
            sluice_mr_register_dmabuf(sides.pds[0], dmabuf.fd, 0, WHOLE, 0, ACCESS_ALL);
        struct sluice_mr *last =
            sluice_mr_register_dmabuf(sides.pds[0], dmabuf.fd, WHOLE - 1, 1, PAGE - 1, 0);
        require(all && last, "%s: %s", exporter_name(exporter), sluice_last_error());
        require_ok(sluice_mr_deregister(all));
        require_ok(sluice_mr_deregister(last));
        dmabuf_close(&dmabuf);
    }
    sides_close(&sides);
}

/* An exporter that refuses to map, or to begin an access. */
TEST(dmabufs_that_the_processor_cannot_access, .unless = is_device)
{
    static const struct {
        struct pretence pretence;
        int error;
        const char *words;
    } cases[] = {
        {{.map_error = ENODEV}, EOPNOTSUPP, "soft fd exporter No such device"},
        {{.map_error = EINVAL}, EOPNOTSUPP, "soft fd exporter Invalid argument"},
        {{.map_error = EPERM}, EOPNOTSUPP, "soft fd exporter not permitted"},
        {{.map_error = ENOMEM}, ENOMEM, "no memory to map 16384 bytes"},
        {{.error = EIO, .errors = -1}, EOPNOTSUPP, "soft fd exporter Input/output"},
        {{.error = ENOMEM, .errors = -1}, ENOMEM, "no memory"},
        {{.error = EIO, .errors = -1, .ends_only = true}, EOPNOTSUPP, "Input/output"},
        /* The exporter reports a larger size; an access to its last page would kill the program. */
        {{.size = WHOLE + LENGTH}, EOPNOTSUPP, "soft fd exporter Bad address"},
    };
    struct sides sides;
    struct dmabuf dmabuf;
    sides_open(&sides);
    dmabuf_open(&dmabuf, EXPORTER_PRETENDED, WHOLE, 1);
    int fds = count_fds();
    for (size_t i = 0; i < COUNT(cases); i++) {
        uint64_t offset = cases[i].pretence.size != 0 ? WHOLE - PAGE + 8 : OFFSET;
        *dmabuf.pretence = cases[i].pretence;
        require_null(
            sluice_mr_register_dmabuf(sides.pds[0], dmabuf.fd, offset, LENGTH, IOVA, ACCESS_ALL),
            cases[i].error, cases[i].words);
        require(dmabuf.pretence->mappings == 0, "case %zu: it is mapped", i);
        require(count_fds() == fds, "case %zu: %d descriptors, were %d", i, count_fds(), fds);
    }
    sides_close(&sides);
    *dmabuf.pretence = (struct pretence){0};
    dmabuf_close(&dmabuf);
}

TEST(no_descriptor_is_left, .unless = is_device)
{
    struct rlimit limit, less;
    struct sides sides;
    struct dmabuf dmabuf;
    sides_open(&sides);
    dmabuf_open(&dmabuf, EXPORTER_PRETENDED, WHOLE, 1);
    require(getrlimit(RLIMIT_NOFILE, &limit) == 0, "%s", strerror(errno));
    less = limit;
    less.rlim_cur = 64;
    require(setrlimit(RLIMIT_NOFILE, &less) == 0, "%s", strerror(errno));
    int fds[64];
    size_t count = 0;
    while (count < COUNT(fds) && (fds[count] = dup(dmabuf.fd)) >= 0) {
        count++;
    }
    require_null(make(sides.pds[0], &dmabuf), EMFILE, "dmabuf file descriptor");
    require(dmabuf.pretence->mappings == 0, "it is mapped");
    while (count > 0) {
        close(fds[--count]);
    }
    require(setrlimit(RLIMIT_NOFILE, &limit) == 0, "%s", strerror(errno));
    struct sluice_mr *mr = made(make(sides.pds[0], &dmabuf));
    require_ok(sluice_mr_deregister(mr));
    dmabuf_close(&dmabuf);
    sides_close(&sides);
}

/* A pair, ordinary memory at the first end, and a dmabuf at each. */
struct rig {
    struct pair pair;
    struct memory host;
    struct dmabuf dmabufs[2];
    struct sluice_mr *mrs[2];
};

static void rig_open(struct rig *rig)
{
    pair_open(&rig->pair, NULL);
    memory_open(&rig->host, rig->pair.sides.pds[0], LENGTH);
    for (int i = 0; i < 2; i++) {
        dmabuf_open(&rig->dmabufs[i], EXPORTER_PRETENDED, WHOLE, 1);
        rig->mrs[i] = made(make(rig->pair.sides.pds[i], &rig->dmabufs[i]));
        dmabuf_close_fd(&rig->dmabufs[i]);
        rig->dmabufs[i].pretence->starts = rig->dmabufs[i].pretence->ends = 0;
        rig->dmabufs[i].pretence->writes = 0;
    }
}

static void rig_close(struct rig *rig)
{
    for (int i = 0; i < 2; i++) {
        require_ok(sluice_mr_deregister(rig->mrs[i]));
        dmabuf_close(&rig->dmabufs[i]);
    }
    memory_close(&rig->host);
    pair_close(&rig->pair);
}

static struct sluice_sge own_sge(const struct rig *rig, int end, size_t length)
{
    struct sluice_sge sge;
    require_ok(sluice_mr_sge(rig->mrs[end], 0, length, &sge));
    return sge;
}

static struct sluice_remote_mr far_remote(const struct rig *rig, size_t length)
{
    struct sluice_remote_mr remote;
    require_ok(sluice_mr_remote(rig->mrs[1], &remote));
    remote.length = length;
    return remote;
}

enum way { WAY_SEND, WAY_RECEIVE, WAY_WRITE, WAY_READ, WAY_WRITE_FROM, WAY_READ_TO, WAYS };

/* The end that has the dmabuf, and whether it is written to. */
static const struct {
    int end;
    bool writes;
    int wanted; /* result for the first end, if its exporter refuses */
} ways[WAYS] = {
    [WAY_SEND] = {0, false, -EFAULT},       [WAY_RECEIVE] = {1, true, -EMSGSIZE},
    [WAY_WRITE] = {1, true, -EACCES},       [WAY_READ] = {1, false, -EACCES},
    [WAY_WRITE_FROM] = {0, false, -EFAULT}, [WAY_READ_TO] = {0, true, -EFAULT},
};

static int go(struct rig *rig, enum way way, size_t length, struct sluice_completion *received)
{
    struct sluice_channel *channel = rig->pair.channels[0];
    struct sluice_sge host = memory_sge(&rig->host, 0, length);
    struct sluice_sge own = own_sge(rig, 0, length), far = own_sge(rig, 1, length);
    struct sluice_remote_mr remote = far_remote(rig, length);
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, &far);
    struct sluice_handle handle;
    struct memory other;
    int result;
    switch (way) {
    case WAY_WRITE:
        return sluice_channel_write(channel, &host, 1, &remote, DEADLINE);
    case WAY_READ:
        return sluice_channel_read(channel, &host, 1, &remote, DEADLINE);
    default:
        break;
    }
    memory_open(&other, rig->pair.sides.pds[1], length);
    struct sluice_sge plain = memory_sge(&other, 0, length);
    remote = memory_remote(&other, 0, length);
    if (way == WAY_WRITE_FROM) {
        result = sluice_channel_write(channel, &own, 1, &remote, DEADLINE);
    } else if (way == WAY_READ_TO) {
        result = sluice_channel_read(channel, &own, 1, &remote, DEADLINE);
    } else {
        receive.sges = way == WAY_SEND ? &plain : &far;
        handle = post(rig->pair.channels[1], &receive);
        result = sluice_channel_send(channel, way == WAY_SEND ? &own : &host, 1, DEADLINE);
        require_ok(sluice_channel_wait(rig->pair.channels[1], &handle, DEADLINE, received));
    }
    memory_close(&other);
    return result;
}

static const size_t sizes[] = {8, 100, 1000, LENGTH};

/*
 * Access for reading is announced as such, and access for writing as both; the other dmabuf gets no
 * call.
 */
TEST(exporter_gets_each_access, .times = WAYS, .unless = is_device)
{
    struct rig rig;
    rig_open(&rig);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        struct sluice_completion received = {0};
        unsigned before = dmabuf_told(&rig.dmabufs[ways[_i].end]).starts;
        require_ok(go(&rig, (enum way)_i, sizes[i], &received));
        struct pretence told = dmabuf_told(&rig.dmabufs[ways[_i].end]);
        struct pretence other = dmabuf_told(&rig.dmabufs[!ways[_i].end]);
        require(told.starts > before, "%zu bytes: no SYNC_START", sizes[i]);
        require(told.writes == (ways[_i].writes ? told.starts : 0), "%u of %u were to write",
                told.writes, told.starts);
        require(other.starts == 0, "SYNC_START of the other dmabuf");
    }
    rig_close(&rig);
}

/* A refused sync is repeated, as the kernel's documentation requires. */
TEST(interrupted_sync_is_repeated, .times = WAYS, .unless = is_device)
{
    struct rig rig;
    rig_open(&rig);
    struct pretence *pretence = rig.dmabufs[ways[_i].end].pretence;
    for (int i = 0; i < 4; i++) {
        struct sluice_completion received = {0};
        dmabuf_told(&rig.dmabufs[ways[_i].end]);
        pretence->error = i % 2 == 0 ? EINTR : EAGAIN;
        pretence->errors = 5;
        pretence->ends_only = i >= 2;
        require_ok(go(&rig, (enum way)_i, 1000, &received));
        require(dmabuf_told(&rig.dmabufs[ways[_i].end]).errors == 0, "it was not asked");
    }
    rig_close(&rig);
}

/*
 * If the exporter refuses the begin of an access, memory is not accessed; if it refuses the end,
 * the data do not count.
 */
TEST(refused_access_fails_its_requests, .times = 2 * WAYS, .unless = is_device)
{
    enum way way = (enum way)(_i % WAYS);
    bool ends_only = _i >= WAYS;
    struct rig rig;
    rig_open(&rig);
    require_ok(sluice_log_set(SLUICE_LOG_NONE, NULL, NULL)); /* the log has it as an error */
    struct pretence *pretence = rig.dmabufs[ways[way].end].pretence;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        struct sluice_completion received = {0};
        dmabuf_told(&rig.dmabufs[ways[way].end]);
        pretence->error = EIO;
        pretence->errors = -1;
        pretence->ends_only = ends_only;
        int result = go(&rig, way, sizes[i], &received);
        /* Data that were only read are complete, even if the end of the access fails. */
        if (ends_only && !ways[way].writes) {
            require_result(result, 0);
        } else {
            require_result(result, ways[way].wanted);
            require(way > WAY_RECEIVE || received.status != SLUICE_STATUS_SUCCESS,
                    "it was received");
        }
        /* The exporter gives access again. */
        dmabuf_told(&rig.dmabufs[ways[way].end]);
        pretence->errors = 0;
        pair_reset(&rig.pair);
        require_ok(go(&rig, way, sizes[i], &received));
    }
    rig_close(&rig);
}

int main(void)
{
    return run_tests("dmabuf_refused", 30);
}
