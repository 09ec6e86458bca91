/* SPDX-License-Identifier: MIT */
/*
 * Descriptors of the library. None of them is 0, 1 or 2, even in a program that closed its standard
 * streams: its next line of output would otherwise go to a peer. All are closed by exec(3). Those
 * that are kept are closed in a child of fork(2), so that a connection ends with its owner.
 *
 * No other code of the library makes descriptors; tests/check-style.sh checks that. All functions
 * return -1 or NULL with errno, and allocate only the memory that is mentioned.
 */
#ifndef SLU_DESCRIPTOR_H
#define SLU_DESCRIPTOR_H

#include <dirent.h>
#include <netdb.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

struct ifaddrs;

/* These make kept descriptors, which slu_fd_close() closes. */
int slu_fd_stream(int family); /* a TCP socket that does not block */
int slu_fd_accept(int listener, struct sockaddr *address, socklen_t *length); /* likewise */
int slu_fd_epoll(void);
int slu_fd_event(void);                              /* an eventfd that does not block */
int slu_fd_timer(void);                              /* a timerfd that does not block */
int slu_fd_memory(const char *name, unsigned flags); /* a memfd; flags are added to MFD_CLOEXEC */
int slu_fd_duplicate(int fd);                        /* of a descriptor of the program */
/*
 * Receives from a Unix socket by recv(2), without blocking, and sets *fd to the descriptor that
 * came with the bytes, or -1. Further descriptors are closed.
 */
ssize_t slu_fd_receive(int socket, void *bytes, size_t size, int *fd);
/* Keeps errno. */
void slu_fd_close(int fd);

/*
 * Keeps a descriptor that another library made and closes. slu_fd_disown() must come before it is
 * closed. Returns 0, or -1 with ENOMEM. fd may be -1, for none.
 */
int slu_fd_adopt(int fd);
void slu_fd_disown(int fd);

/*
 * Open something to read; the caller closes it by close(2), fclose(3) or closedir(3). flags are
 * added to O_CLOEXEC. No lock is held while the system call blocks.
 */
int slu_fd_open(const char *path, int flags);
FILE *slu_fd_read_file(const char *path);
DIR *slu_fd_read_folder(const char *path);
/*
 * Returns how many file descriptors the process may still open, and sets *limit to how many it may
 * have open: both UINT64_MAX if there is no limit, or it is not known. Keeps errno.
 */
uint64_t slu_fd_count_left(uint64_t *limit);
/* Reads the beginning of a small file of the kernel as a string; empty if there is no such file. */
void slu_fd_read_text(const char *path, char *text, size_t size);

/*
 * Between these two calls, 0, 1 and 2 are occupied if they were free, so that no other library gets
 * them. Reading or writing them fails meanwhile, as if they were closed. Calls may be nested, and
 * come from any thread. They must not surround what may never end: a program that closes standard
 * streams to open others in their place would not get these numbers.
 */
void slu_fd_guard(void);
void slu_fd_unguard(void);

/*
 * Gives the calling thread, which must be one of the library, a descriptor table of its own without
 * the descriptors of the process, if the kernel can (Linux 5.9). What other libraries open in it
 * then needs no guard. The thread must not call any function of this file afterwards.
 */
void slu_fd_unshare(void);

/* getaddrinfo(3) and getifaddrs(3) with a guard. */
int slu_fd_find_addresses(const char *host, const char *port, const struct addrinfo *hints,
                          struct addrinfo **list);
int slu_fd_list_interfaces(struct ifaddrs **list);
/*
 * if_indextoname(3) and pthread_setname_np(3) with a guard, since they open a descriptor for a
 * moment.
 */
const char *slu_fd_interface_name(unsigned index, char *name);
void slu_fd_name_thread(pthread_t thread, const char *name);

/*
 * Called around fork(2), so that no thread is making or closing a kept descriptor during it. The
 * child closes all kept descriptors and does not use them otherwise.
 */
void slu_fd_before_fork(void);
void slu_fd_in_parent(void);
void slu_fd_in_child(void);

#endif
