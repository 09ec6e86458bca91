/* SPDX-License-Identifier: MIT */
/*
 * Memory of a file without its pages: the file was cut after it was registered, or it has no pages
 * yet and its file system is full. A request of a peer then ends with an error of its class, and no
 * thread gets the signal that an access to such a page raises. A device has pinned the pages of the
 * former, and does not register the latter.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../support/pair.h"

#define MIB ((size_t)1024 * 1024)
#define FOLDER_BYTES "64k"

/* The operation, by channel 0; the file is on the other side, except for the last two. */
enum deed { WRITE_INTO, READ_FROM, ADD_TO, RECEIVE_INTO, SEND_FROM, READ_INTO, DEEDS };

static const size_t lengths[] = {8, 300, 64 * 1024, MIB};

/* How often the library has asked the kernel for pages before it touches them. */
static atomic_uint checks;
/* As before Linux 6.11: the list of mappings is a text and nothing else. */
static bool without_queries;

int madvise(void *addr, size_t length, int advice)
{
    if (advice == MADV_POPULATE_READ || advice == MADV_POPULATE_WRITE) {
        atomic_fetch_add(&checks, 1);
    }
    return (int)syscall(SYS_madvise, addr, length, advice);
}

int ioctl(int fd, unsigned long request, ...)
{
    va_list list;
    va_start(list, request);
    void *argument = va_arg(list, void *);
    va_end(list);
    if (without_queries && _IOC_TYPE(request) == 'f' && _IOC_NR(request) == 17) {
        errno = ENOTTY;
        return -1;
    }
    return (int)syscall(SYS_ioctl, fd, request, argument);
}

struct file {
    int fd;
    uint8_t *bytes;
    size_t length;
    struct sluice_mr *mr;
};

static bool file_is_near(enum deed deed)
{
    return deed == SEND_FROM || deed == READ_INTO;
}

static void file_map(struct file *file, int fd, size_t length, struct sluice_pd *pd)
{
    *file = (struct file){.fd = fd, .length = length};
    require(fd >= 0 && ftruncate(fd, (off_t)length) == 0, "%s", strerror(errno));
    file->bytes = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    require(file->bytes != MAP_FAILED, "%s", strerror(errno));
    file->mr =
        made(sluice_mr_register(pd, file->bytes, length, ACCESS_ALL | SLUICE_ACCESS_REMOTE_ATOMIC));
}

static void file_close(struct file *file)
{
    require_ok(sluice_mr_deregister(file->mr));
    munmap(file->bytes, file->length);
    close(file->fd);
}

struct scene {
    struct pair pair;
    struct file file;
    struct memory memory; /* the other end of what is done */
    struct sluice_handle receive;
    enum deed deed;
    size_t length;
};

static void scene_open(struct scene *scene, enum deed deed, int fd, size_t length, size_t bytes)
{
    memset(scene, 0, sizeof(*scene));
    scene->deed = deed;
    scene->length = length;
    pair_open(&scene->pair, NULL);
    file_map(&scene->file, fd, bytes, scene->pair.sides.pds[file_is_near(deed) ? 0 : 1]);
    memory_open(&scene->memory, scene->pair.sides.pds[file_is_near(deed) ? 1 : 0], length);
    pattern_fill(scene->memory.bytes, length, deed);
}

static void scene_close(struct scene *scene)
{
    memory_check_guards(&scene->memory);
    memory_close(&scene->memory);
    file_close(&scene->file);
    pair_close(&scene->pair);
}

static int act(struct scene *scene, size_t offset)
{
    struct sluice_channel *channel = scene->pair.channels[0];
    struct sluice_sge other = memory_sge(&scene->memory, 0, scene->length);
    struct sluice_remote_mr remote;
    struct sluice_sge of_file;
    require_ok(sluice_mr_sge(scene->file.mr, offset, scene->length, &of_file));
    require_ok(sluice_mr_remote(scene->file.mr, &remote));
    require_ok(sluice_remote_mr_slice(&remote, offset, scene->length, &remote));
    struct sluice_remote_mr far = memory_remote(&scene->memory, 0, scene->length);
    struct sluice_request receive =
        request_of(SLUICE_OP_RECEIVE, 0, scene->deed == SEND_FROM ? &other : &of_file);
    if (scene->deed == RECEIVE_INTO || scene->deed == SEND_FROM) {
        scene->receive = post(scene->pair.channels[1], &receive);
    }
    switch (scene->deed) {
    case WRITE_INTO:
        return sluice_channel_write(channel, &other, 1, &remote, DEADLINE);
    case READ_FROM:
        return sluice_channel_read(channel, &other, 1, &remote, DEADLINE);
    case ADD_TO:
        return sluice_channel_fetch_add(channel, &other, &remote, 5, DEADLINE);
    case RECEIVE_INTO:
        return sluice_channel_send(channel, &other, 1, DEADLINE);
    case SEND_FROM:
        return sluice_channel_send(channel, &of_file, 1, DEADLINE);
    default:
        return sluice_channel_read(channel, &of_file, 1, &far, DEADLINE);
    }
}

static bool has_status(struct sluice_channel *channel, uint32_t status)
{
    return channel_error(channel).status == status;
}

/* Requires that the request ends with the class on both sides, and that both can connect again. */
static void require_fails(struct scene *scene, size_t offset)
{
    struct sluice_channel *near = scene->pair.channels[0], *far = scene->pair.channels[1];
    int result = act(scene, offset);
    switch (scene->deed) {
    case RECEIVE_INTO:
        require(result < 0 && has_status(near, SLUICE_STATUS_REM_OP_ERR), "%d: %s", result,
                channel_error(near).text);
        await(far, scene->receive, SLUICE_CLASS_LOCAL);
        break;
    case SEND_FROM:
    case READ_INTO:
        require_result(result, -EFAULT);
        require(has_status(near, SLUICE_STATUS_LOC_PROT_ERR), "%s", channel_error(near).text);
        break;
    default:
        require_result(result, -EACCES);
        require(channel_error(near).error_class == SLUICE_CLASS_ACCESS, "%s",
                channel_error(near).text);
    }
    pair_reset(&scene->pair);
    pair_works(&scene->pair);
}

/* A posted receive ends as well. */
static void require_succeeds(struct scene *scene, size_t offset)
{
    require_ok(act(scene, offset));
    if (scene->deed == RECEIVE_INTO || scene->deed == SEND_FROM) {
        await(scene->pair.channels[1], scene->receive, SLUICE_CLASS_NONE);
    }
}

static bool has_such_length(enum deed deed, size_t length)
{
    return deed != ADD_TO || length == 8;
}

static int memory_file(void)
{
    return memfd_create("file", MFD_CLOEXEC);
}

/* All of it is cut off, or its second half. */
static void cut(enum deed deed, size_t length, bool half)
{
    struct scene scene;
    scene_open(&scene, deed, memory_file(), length, 2 * length < 8192 ? 8192 : 2 * length);
    require_succeeds(&scene, 0);
    require(ftruncate(scene.file.fd, half ? (off_t)scene.file.length / 2 : 0) == 0, "%s",
            strerror(errno));
    if (device_is_soft()) {
        require_fails(&scene, half ? scene.file.length / 2 : 0);
    }
    if (half || !device_is_soft()) {
        require_succeeds(&scene, 0);
    }
    scene_close(&scene);
}

TEST(files_that_were_cut, .times = DEEDS)
{
    for (size_t i = 0; i < COUNT(lengths); i++) {
        if (has_such_length((enum deed)_i, lengths[i])) {
            cut((enum deed)_i, lengths[i], false);
            cut((enum deed)_i, lengths[i], true);
        }
    }
}

/* Existing pages are passed on, and the rest of the message is the error. */
TEST(file_that_is_cut_inside_a_message, .times = DEEDS)
{
    struct scene scene;
    if (_i == ADD_TO || !device_is_soft()) {
        return;
    }
    scene_open(&scene, (enum deed)_i, memory_file(), MIB, MIB);
    require_succeeds(&scene, 0);
    require(ftruncate(scene.file.fd, (off_t)MIB / 2) == 0, "%s", strerror(errno));
    require_fails(&scene, 0);
    scene_close(&scene);
}

/* Mounts a file system of our own, in a mount namespace. Returns false if that is not permitted. */
static bool mount_small(const char *folder)
{
    return (unshare(CLONE_NEWNS) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0) &&
           mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", folder, "tmpfs", 0, "size=" FOLDER_BYTES) == 0;
}

static int open_in(const char *folder, const char *name)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

static void fill(int fd)
{
    static const uint8_t page[4096];
    while (write(fd, page, sizeof(page)) > 0) {
    }
    require(errno == ENOSPC, "%s", strerror(errno));
}

/* Whether the operation needs pages that cannot be allocated; reads get zeros. */
static bool needs_pages(enum deed deed)
{
    return deed != READ_FROM && deed != SEND_FROM;
}

static void on_full(const char *folder, enum deed deed, size_t length)
{
    struct scene scene;
    int fd = open_in(folder, "sparse");
    scene_open(&scene, deed, fd, length, length < 4096 ? 4096 : length);
    int filler = open_in(folder, "filler");
    fill(filler);
    if (needs_pages(deed)) {
        require_fails(&scene, 0);
    }
    require(ftruncate(filler, 0) == 0, "%s", strerror(errno));
    if (length <= 4096) {
        require_succeeds(&scene, 0);
    }
    close(filler);
    scene_close(&scene);
}

TEST(file_systems_that_are_full, .times = DEEDS)
{
    char folder[] = "/tmp/sluice-files.XXXXXX";
    if (!device_is_soft()) {
        return; /* registering takes all pages, or fails */
    }
    require(mkdtemp(folder), "%s", strerror(errno));
    if (mount_small(folder)) {
        for (size_t i = 0; i < COUNT(lengths); i++) {
            if (has_such_length((enum deed)_i, lengths[i])) {
                on_full(folder, (enum deed)_i, lengths[i]);
            }
        }
        require(umount2(folder, MNT_DETACH) == 0, "%s", strerror(errno));
    }
    rmdir(folder);
}

/* Memory that processes share without a file keeps its pages, so it needs no check. */
TEST(shared_memory_without_a_file, .times = DEEDS)
{
    struct scene scene;
    struct file *file = &scene.file;
    scene_open(&scene, (enum deed)_i, memory_file(), 8, 8192);
    require_ok(sluice_mr_deregister(file->mr));
    munmap(file->bytes, file->length);
    file->bytes =
        mmap(NULL, file->length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    require(file->bytes != MAP_FAILED, "%s", strerror(errno));
    file->mr =
        sluice_mr_register(scene.pair.sides.pds[file_is_near(scene.deed) ? 0 : 1], file->bytes,
                           file->length, ACCESS_ALL | SLUICE_ACCESS_REMOTE_ATOMIC);
    require(file->mr, "%s", sluice_last_error());
    require_succeeds(&scene, 4096);
    scene_close(&scene);
}

/* Registers other memory in place of the file. */
static void replace_file(struct scene *scene, void *bytes, size_t length)
{
    struct file *file = &scene->file;
    require_ok(sluice_mr_deregister(file->mr));
    file->mr = made(sluice_mr_register(scene->pair.sides.pds[file_is_near(scene->deed) ? 0 : 1],
                                       bytes, length, ACCESS_ALL | SLUICE_ACCESS_REMOTE_ATOMIC));
}

/* A file that is mapped privately loses its pages, too, even those that were written before. */
TEST(private_copies_of_a_file_that_was_cut, .times = DEEDS)
{
    struct scene scene;
    scene_open(&scene, (enum deed)_i, memory_file(), 8, 8192);
    uint8_t *bytes = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE, scene.file.fd, 0);
    require(bytes != MAP_FAILED, "%s", strerror(errno));
    bytes[4096] = 1;
    replace_file(&scene, bytes, 8192);
    require_succeeds(&scene, 4096);
    require(ftruncate(scene.file.fd, 4096) == 0, "%s", strerror(errno));
    if (device_is_soft()) {
        require_fails(&scene, 4096);
    }
    scene_close(&scene);
    munmap(bytes, 8192);
}

/* The file of the program that runs cannot be cut, so its variables need no check. */
static void use_variables(enum deed deed)
{
    static uint64_t data = 1, zero;
    struct scene scene;
    scene_open(&scene, deed, memory_file(), 8, 8192);
    require_succeeds(&scene, 0);
    /* Over TCP the kernel itself reads the bytes to send. */
    require(!device_is_soft() || !needs_pages(deed) || atomic_load(&checks) > 0,
            "a file was not checked");
    replace_file(&scene, &data, sizeof(data));
    atomic_store(&checks, 0);
    require_succeeds(&scene, 0);
    replace_file(&scene, &zero, sizeof(zero));
    require_succeeds(&scene, 0);
    require(atomic_load(&checks) == 0, "%u checks", atomic_load(&checks));
    scene_close(&scene);
}

TEST(variables_of_the_program, .times = DEEDS)
{
    use_variables((enum deed)_i);
}

TEST(variables_as_an_older_kernel_lists_them, .times = DEEDS)
{
    without_queries = true;
    use_variables((enum deed)_i);
    without_queries = false;
}

int main(void)
{
    return run_tests("files", 60);
}
