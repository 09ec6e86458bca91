/* SPDX-License-Identifier: MIT */
/*
 * Runs a target of the fuzzer as a test: all inputs of its corpus, and then variations of them that
 * are the same each time. An input that ends the program is kept in a file, which the failure
 * names: tests/test_fuzz_NAME FILE... runs it alone.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/suite.h"
#include "fuzz.h"

#define MOST_FILES 256
#define SEED 0x51a1ceULL

struct file {
    char *name;
    uint8_t *bytes;
    size_t size;
};

/* Files of the corpus, sorted by name, so that the variations are the same everywhere. */
static struct file files[MOST_FILES];
static int file_count;

/* State that the process running the inputs shares with its parent, which outlives it. */
static struct {
    char name[256];
    uint8_t bytes[FUZZ_MOST];
    size_t size;
    unsigned taken;
} * shown;

static struct file read_file(const char *path)
{
    struct file file = {.name = strdup(path), .bytes = malloc(FUZZ_MOST + 1)};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = 0;
    require(file.name && file.bytes, "no memory");
    require(fd >= 0, "%s: %s", path, strerror(errno));
    do {
        file.size += (size_t)got;
        got = read(fd, file.bytes + file.size, FUZZ_MOST + 1 - file.size);
    } while (got > 0);
    require(got == 0 && file.size <= FUZZ_MOST, "%s is not a file of at most %d bytes", path,
            FUZZ_MOST);
    close(fd);
    return file;
}

static int is_input(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void read_corpus(void)
{
    struct dirent **entries;
    char path[4096];
    snprintf(path, sizeof(path), FUZZ_CORPUS "/%s", fuzz_name);
    file_count = scandir(path, &entries, is_input, alphasort);
    require(file_count > 0 && file_count <= MOST_FILES, "%s has %d inputs", path, file_count);
    for (int i = 0; i < file_count; i++) {
        snprintf(path, sizeof(path), FUZZ_CORPUS "/%s/%s", fuzz_name, entries[i]->d_name);
        files[i] = read_file(path);
        free(entries[i]);
    }
    free(entries);
}

static void run(const char *name, const uint8_t *bytes, size_t size)
{
    snprintf(shown->name, sizeof(shown->name), "%s", name);
    memcpy(shown->bytes, bytes, size);
    shown->size = size;
    LLVMFuzzerTestOneInput(shown->bytes, size);
    shown->taken = fuzz_taken;
}

static uint64_t drawn;

/* xorshift64*: returns 0 to below - 1. */
static size_t draw(size_t below)
{
    drawn ^= drawn >> 12;
    drawn ^= drawn << 25;
    drawn ^= drawn >> 27;
    return below > 0 ? (size_t)((drawn * 0x2545f4914f6cdd1dULL) >> 33) % below : 0;
}

/* Changes the bytes. Returns their new number. */

static size_t flip_bit(uint8_t *bytes, size_t size)
{
    if (size > 0) {
        bytes[draw(size)] ^= (uint8_t)(1 << draw(8));
    }
    return size;
}

static size_t set_byte(uint8_t *bytes, size_t size)
{
    if (size > 0) {
        bytes[draw(size)] = (uint8_t)draw(256);
    }
    return size;
}

/* Sets a number of 2, 4 or 8 bytes to an edge of its range. */
static size_t set_number(uint8_t *bytes, size_t size)
{
    static const uint8_t edges[] = {0x00, 0xff, 0x7f, 0x80, 0x01};
    size_t width = (size_t)2 << draw(3);
    if (size < width) {
        return size;
    }
    uint8_t *at = bytes + draw(size - width + 1);
    uint8_t edge = edges[draw(COUNT(edges))];
    memset(at, edge == 0x7f ? 0xff : edge == 0x80 || edge == 0x01 ? 0 : edge, width);
    at[edge == 0x01 ? width - 1 : 0] = edge;
    return size;
}

static size_t cut(uint8_t *bytes, size_t size)
{
    size_t at = draw(size), count = draw(size - at + 1);
    memmove(bytes + at, bytes + at + count, size - at - count);
    return size - count;
}

static size_t insert(uint8_t *bytes, size_t size, const uint8_t *from, size_t count)
{
    size_t at = draw(size + 1);
    if (count > FUZZ_MOST - size) {
        return size;
    }
    memmove(bytes + at + count, bytes + at, size - at);
    memcpy(bytes + at, from, count);
    return size + count;
}

static size_t repeat(uint8_t *bytes, size_t size)
{
    uint8_t piece[64];
    size_t count = draw(size < sizeof(piece) ? size : sizeof(piece));
    memcpy(piece, bytes + draw(size - count + 1), count);
    return insert(bytes, size, piece, count);
}

static size_t graft(uint8_t *bytes, size_t size)
{
    const struct file *other = &files[draw((size_t)file_count)];
    size_t at = draw(other->size), count = draw(other->size - at + 1);
    return insert(bytes, size, other->bytes + at, count);
}

static size_t (*const changes[])(uint8_t *, size_t) = {flip_bit, set_byte, set_number,
                                                       cut,      repeat,   graft};

static void run_corpus(void)
{
    for (int i = 0; i < file_count; i++) {
        run(files[i].name, files[i].bytes, files[i].size);
    }
}

static void run_changed(void)
{
    static uint8_t bytes[FUZZ_MOST];
    int count = short_run() ? 2000 : 20000;
    drawn = SEED;
    for (int i = 0; i < count; i++) {
        const struct file *file = &files[draw((size_t)file_count)];
        size_t size = file->size;
        char name[64];
        memcpy(bytes, file->bytes, size);
        for (size_t left = 1 + draw(4); left > 0; left--) {
            size = changes[draw(COUNT(changes))](bytes, size);
        }
        snprintf(name, sizeof(name), "change %d", i);
        run(name, bytes, size);
    }
}

static const char *keep_input(char path[64])
{
    snprintf(path, 64, "tests/fuzz_%s.input", fuzz_name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0 || write(fd, shown->bytes, shown->size) != (ssize_t)shown->size) {
        return "nowhere";
    }
    close(fd);
    return path;
}

/* Runs the inputs in a process of its own, which a fault may end in any way. */
static void run_apart(void (*inputs)(void))
{
    char path[64];
    int status;
    shown = mmap(NULL, sizeof(*shown), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    require(shown != MAP_FAILED, "%s", strerror(errno));
    fflush(NULL);
    pid_t process = fork();
    require(process >= 0, "%s", strerror(errno));
    if (process == 0) {
        inputs();
        _exit(0);
    }
    require(waitpid(process, &status, 0) == process, "%s", strerror(errno));
    require(status == 0, "%s: %s %d; the input is kept in %s", shown->name,
            WIFSIGNALED(status) ? "signal" : "exit status",
            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), keep_input(path));
}

TEST(corpus)
{
    read_corpus();
    run_apart(run_corpus);
    require(shown->taken > 0, "none of %d inputs of the corpus is taken", file_count);
}

TEST(changed)
{
    read_corpus();
    run_apart(run_changed);
}

int main(int argc, char **argv)
{
    static const struct tests groups[] = {{"inputs", WIRE_SELF, 60}};
    for (int i = 1; i < argc; i++) {
        struct file file = read_file(argv[i]);
        LLVMFuzzerTestOneInput(file.bytes, file.size);
        printf("%s: all holds, %s\n", file.name, fuzz_taken > 0 ? "taken" : "not taken");
    }
    return argc > 1 ? EXIT_SUCCESS : run_groups("fuzz", groups, COUNT(groups));
}
