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
 * Whether there is one. The kernel's, which SLUICE_TEST_DMABUF=all says that there are, are
 * then there; and the pretended one is where the processor is to use its memory.
 */
bool exporter_is_there(enum exporter exporter);
const char *exporter_name(enum exporter exporter);

/* How the pretended exporter behaves, and what it was asked. */
struct pretence {
    int error;      /* of DMA_BUF_IOCTL_SYNC */
    int errors;     /* number of failures; negative: for ever */
    bool ends_only; /* SYNC_START does not fail */
    int map_error;  /* of mmap() */
    long long size; /* as lseek() has it; 0: as it is */
    unsigned starts;
    unsigned ends;
    unsigned writes; /* of the starts: also for writing */
    unsigned mappings;
};

struct dmabuf {
    enum exporter exporter;
    int fd; /* as the program has it; -1: it has closed it */
    uint8_t *bytes;
    size_t length;
    struct pretence *pretence; /* NULL: it is real */
    int view_fd;               /* by which bytes are ours to touch */
};

/* A dmabuf of whole pages, which hold the pattern. */
void dmabuf_open(struct dmabuf *dmabuf, enum exporter exporter, size_t length, uint64_t pattern);
/* Opens a dmabuf that can only be read, as a heap and the pretended exporter have them. */
void dmabuf_open_read_only(struct dmabuf *dmabuf, enum exporter exporter, size_t length);
/* The program has no descriptor of it any more. */
void dmabuf_close_fd(struct dmabuf *dmabuf);
/*
 * Returns the calls that the pretended exporter got. Waits until the memory is not being accessed:
 * the side that sent a reply may end its access after the reply has arrived.
 */
struct pretence dmabuf_told(const struct dmabuf *dmabuf);
/* We are about to touch its bytes, and are done with it. */
void dmabuf_begin(const struct dmabuf *dmabuf);
void dmabuf_end(const struct dmabuf *dmabuf);
/* Fails the test if a mapping of it is left. */
void dmabuf_close(struct dmabuf *dmabuf);

#endif
