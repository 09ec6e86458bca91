/* SPDX-License-Identifier: MIT */
/*
 * Descriptors of our own. Guarantee: none of them is 0, 1 or 2, also in a
 * program that closed its standard streams, whose next line of output would
 * otherwise go to a peer; all are closed by exec(3); and those that are kept
 * are closed in a child of fork(2), so that a connection ends with its owner.
 *
 * Nothing else in the library makes a descriptor, and tests/check-style.sh
 * looks for it. All of these return -1 or NULL with errno, and take no memory
 * that is not told of.
 */
#ifndef SLU_DESCRIPTOR_H
#define SLU_DESCRIPTOR_H

#include <dirent.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>

struct ifaddrs;

/* These are kept: slu_fd_close() closes them. */
int slu_fd_stream(int family); /* a TCP socket that does not block */
int slu_fd_accept(int listener, struct sockaddr *address, socklen_t *length); /* likewise */
int slu_fd_epoll(void);
int slu_fd_event(void);                              /* an eventfd that does not block */
int slu_fd_timer(void);                              /* a timerfd that does not block */
int slu_fd_memory(const char *name, unsigned flags); /* a memfd; flags beside MFD_CLOEXEC */
int slu_fd_duplicate(int fd);                        /* of the program's */
/*
 * recv(2) from a Unix socket, without waiting, and the descriptor that came with the bytes,
 * or -1. What else came is closed.
 */
ssize_t slu_fd_receive(int socket, void *bytes, size_t size, int *fd);
/* Keeps errno. */
void slu_fd_close(int fd);

/*
 * Another library has made this one for us, and closes it. It is kept until it
 * is let go, which comes first. 0, or -1 and ENOMEM; fd may be -1, for none.
 */
int slu_fd_adopt(int fd);
void slu_fd_disown(int fd);

/*
 * To read something, and then close(2), fclose(3), closedir(3). flags beside O_CLOEXEC.
 * Whatever that waits for, nobody else does.
 */
int slu_fd_open(const char *path, int flags);
FILE *slu_fd_read_file(const char *path);
DIR *slu_fd_read_folder(const char *path);
/* What a small file of the kernel begins with, as a string; empty if there is no such file. */
void slu_fd_read_text(const char *path, char *text, size_t size);

/*
 * Between these two, 0, 1 and 2 are taken if they were free, so that no other
 * library gets them for us: what stands there meanwhile can neither be read nor
 * written, as if it were closed. They may be nested, and from any thread, but are
 * not for what may never end: a program that closed them to open others in their
 * place would not get these.
 */
void slu_fd_guard(void);
void slu_fd_unguard(void);

/*
 * From now on the calling thread, which has to be one of ours, has descriptors of its
 * own, and none of the process, if the kernel can do that (Linux 5.9): what other
 * libraries open in it needs no guard. It calls nothing of this file any more.
 */
void slu_fd_go_apart(void);

/* getaddrinfo(3) and getifaddrs(3), guarded. */
int slu_fd_find_addresses(const char *host, const char *port, const struct addrinfo *hints,
                          struct addrinfo **list);
int slu_fd_list_interfaces(struct ifaddrs **list);
/* if_indextoname(3) and pthread_setname_np(3), which open something for a moment, likewise. */
const char *slu_fd_interface_name(unsigned index, char *name);
void slu_fd_name_thread(pthread_t thread, const char *name);

/*
 * Around fork(2). Before it nobody is amid making or closing one; the child
 * closes all that are kept, and makes no other use of them.
 */
void slu_fd_before_fork(void);
void slu_fd_in_parent(void);
void slu_fd_in_child(void);

#endif
