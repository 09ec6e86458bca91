/* SPDX-License-Identifier: MIT */
/* The simulated calls, with the prototypes of the real ones. */
#ifndef SIM_CALLS_H
#define SIM_CALLS_H

#include <dirent.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <time.h>

#include "process.h"

/* The address of a host in the network of hosts, in host byte order. */
uint32_t sim_host_address(const struct sim_host *host);
/* Makes a descriptor of a file of the host, which it takes over. */
int sim_file_make(int real);

extern char *sim_environ[];

/* descriptor.c */
int sys_close(int fd);
int sys_fcntl(int fd, int command, ...);
ssize_t sys_read(int fd, void *bytes, size_t count);
ssize_t sys_write(int fd, const void *bytes, size_t count);
int sys_poll(struct pollfd *fds, nfds_t count, int timeout);
int sys_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const void *mask);
int sys_nanosleep(const struct timespec *time, struct timespec *left);
int sys_epoll_create1(int flags);
int sys_epoll_ctl(int epoll_fd, int operation, int fd, struct epoll_event *event);
int sys_epoll_wait(int fd, struct epoll_event *events, int most, int timeout);
int sys_eventfd(unsigned initial, int flags);
int sys_timerfd_create(int clock, int flags);
int sys_timerfd_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *old);

/* socket.c */
int sys_socket(int family, int type, int protocol);
int sys_bind(int fd, const struct sockaddr *address, socklen_t length);
int sys_listen(int fd, int backlog);
int sys_connect(int fd, const struct sockaddr *address, socklen_t length);
int sys_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);
int sys_getsockname(int fd, struct sockaddr *address, socklen_t *length);
int sys_getpeername(int fd, struct sockaddr *address, socklen_t *length);
int sys_shutdown(int fd, int how);
int sys_setsockopt(int fd, int level, int name, const void *value, socklen_t length);
int sys_getsockopt(int fd, int level, int name, void *value, socklen_t *length);
ssize_t sys_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t sys_send(int fd, const void *bytes, size_t count, int flags);
ssize_t sys_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t sys_recv(int fd, void *bytes, size_t count, int flags);

/* heap.c */
void *sys_malloc(size_t bytes);
void *sys_calloc(size_t count, size_t bytes);
void *sys_aligned_alloc(size_t alignment, size_t bytes);
void *sys_realloc(void *memory, size_t bytes);
void sys_free(void *memory);
char *sys_strdup(const char *text);
ssize_t sys_getdelim(char **line, size_t *room, int delimiter, FILE *file);
ssize_t sys_getline(char **line, size_t *room, FILE *file);

/* memory.c */
int sys_memfd_create(const char *name, unsigned flags);
int sys_ftruncate(int fd, off_t bytes);
int sys_fallocate(int fd, int mode, off_t offset, off_t bytes);
int sys_fstat(int fd, struct stat *status);
int sys_fstatfs(int fd, struct statfs *status);
off_t sys_lseek(int fd, off_t offset, int whence);
int sys_ioctl(int fd, unsigned long request, ...);
void *sys_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);
int sys_munmap(void *address, size_t bytes);
int sys_madvise(void *address, size_t bytes, int advice);
int sys_msync(void *address, size_t bytes, int flags);
ssize_t sys_process_vm_readv(pid_t pid, const struct iovec *to, unsigned long to_count,
                             const struct iovec *from, unsigned long from_count,
                             unsigned long flags);

/* thread.c */
int sys_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                       void *argument);
pthread_t sys_pthread_self(void);
int sys_pthread_cancel(pthread_t thread);
int sys_pthread_clockjoin_np(pthread_t thread, void **result, clockid_t clock,
                             const struct timespec *until);
int sys_pthread_join(pthread_t thread, void **result);
int sys_pthread_detach(pthread_t thread);
int sys_pthread_setname_np(pthread_t thread, const char *name);
int sys_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr);
int sys_pthread_mutex_destroy(pthread_mutex_t *mutex);
int sys_pthread_mutex_lock(pthread_mutex_t *mutex);
int sys_pthread_mutex_trylock(pthread_mutex_t *mutex);
int sys_pthread_mutex_unlock(pthread_mutex_t *mutex);
int sys_pthread_cond_init(pthread_cond_t *condition, const pthread_condattr_t *attr);
int sys_pthread_cond_destroy(pthread_cond_t *condition);
int sys_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex);
int sys_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                               const struct timespec *until);
int sys_pthread_cond_signal(pthread_cond_t *condition);
int sys_pthread_cond_broadcast(pthread_cond_t *condition);
int sys_pthread_once(pthread_once_t *once, void (*run)(void));
int sys_pthread_key_create(pthread_key_t *key, void (*end)(void *value));
int sys_pthread_setspecific(pthread_key_t key, const void *value);
int sys_pthread_setcancelstate(int state, int *old);
int *sys_errno_location(void);
void *sys_tls_get_addr(const uint64_t *module_and_offset);

/* files.c */
int sys_open(const char *path, int flags, ...);
int sys_stat(const char *path, struct stat *status);
int sys_access(const char *path, int mode);
FILE *sys_fdopen(int fd, const char *mode);
DIR *sys_fdopendir(int fd);
char *sys_getenv(const char *name);
pid_t sys_getpid(void);
uid_t sys_geteuid(void);
int sys_uname(struct utsname *name);
int sys_gethostname(char *name, size_t room);
int sys_getrlimit(int resource, struct rlimit *limit);
int sys_setrlimit(int resource, const struct rlimit *limit);
int sys_sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set);
int sys_sched_yield(void);
long sys_sysconf(int name);
int sys_prctl(int option, ...);
long sys_syscall(long number, ...);
ssize_t sys_getrandom(void *bytes, size_t count, unsigned flags);
int sys_clock_gettime(clockid_t clock, struct timespec *time);
int sys_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                    struct addrinfo **list);
int sys_getifaddrs(struct ifaddrs **list);
void sys_freeifaddrs(struct ifaddrs *list);
long sys_strtol(const char *text, char **end, int base);
unsigned long sys_strtoul(const char *text, char **end, int base);
void sys_abort(void) __attribute__((noreturn));
int sys_zero(void);
void *sys_null(void);
const char *sys_dlerror(void);
int sys_no_device(void);

#endif
