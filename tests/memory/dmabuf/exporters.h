/* SPDX-License-Identifier: MIT */
/*
 * Dmabufs of all exporters at hand: the kernel, where it has udmabuf and dma_heap, and a pretended
 * exporter, which exists on every machine and is strict: between a SYNC_END and the next SYNC_START
 * the library's mappings cannot be accessed, and after a SYNC_START for reading they can only be
 * read. Tests order its failures. Programs that use it are linked with --wrap for the functions it
 * replaces: see local.mk.
 */
#ifndef TEST_DMABUF_EXPORTERS_H
#define TEST_DMABUF_EXPORTERS_H

#include "../../support/pair.h"

enum exporter { EXPORTER_PRETENDED, EXPORTER_UDMABUF, EXPORTER_HEAP, EXPORTERS };

/*
 * Returns whether there is one. With SLUICE_TEST_DMABUF=all those of the kernel must exist; the
 * pretended one exists where the processor accesses its memory.
 */
bool exporter_is_there(enum exporter exporter);
const char *exporter_name(enum exporter exporter);

/* The behaviour of the pretended exporter, and the calls that it got. */
struct pretence {
    int error;      /* of DMA_BUF_IOCTL_SYNC */
    int errors;     /* number of failures; negative: for ever */
    bool ends_only; /* SYNC_START does not fail */
    int map_error;  /* of mmap() */
    long long size; /* as lseek() returns it; 0: the true one */
    unsigned starts;
    unsigned ends;
    unsigned writes; /* of the starts: also for writing */
    unsigned mappings;
};

struct dmabuf {
    enum exporter exporter;
    int fd; /* the program's descriptor; -1: it has closed it */
    uint8_t *bytes;
    size_t length;
    struct pretence *pretence; /* NULL: it is real */
    int view_fd;               /* through which we access bytes */
};

/* Opens a dmabuf of whole pages, which hold the pattern. */
void dmabuf_open(struct dmabuf *dmabuf, enum exporter exporter, size_t length, uint64_t pattern);
/* Opens a dmabuf that can only be read, as a heap and the pretended exporter have them. */
void dmabuf_open_read_only(struct dmabuf *dmabuf, enum exporter exporter, size_t length);
/* Closes the program's descriptor of it. */
void dmabuf_close_fd(struct dmabuf *dmabuf);
/*
 * Returns the calls that the pretended exporter got. Waits until the memory is not being accessed:
 * the side that sent a reply may end its access after the reply has arrived.
 */
struct pretence dmabuf_told(const struct dmabuf *dmabuf);
/* Begins and ends an access of ours to its bytes. */
void dmabuf_begin(const struct dmabuf *dmabuf);
void dmabuf_end(const struct dmabuf *dmabuf);
/* Closes it, and fails the test if a mapping of it is left. */
void dmabuf_close(struct dmabuf *dmabuf);

#endif
