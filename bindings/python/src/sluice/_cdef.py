# SPDX-License-Identifier: MIT
"""What the headers of libsluice declare. Written by bindings/update: do not edit it."""

DECLARATIONS = """
/* sluice/version.h */
const char *sluice_version(void);
uint32_t sluice_version_number(void);

/* sluice/error.h */
enum sluice_status {
    SLUICE_STATUS_SUCCESS = 0,
    SLUICE_STATUS_LOC_LEN_ERR = 1,
    SLUICE_STATUS_LOC_QP_OP_ERR = 2,
    SLUICE_STATUS_LOC_PROT_ERR = 4,
    SLUICE_STATUS_WR_FLUSH_ERR = 5,
    SLUICE_STATUS_BAD_RESP_ERR = 7,
    SLUICE_STATUS_LOC_ACCESS_ERR = 8,
    SLUICE_STATUS_REM_INV_REQ_ERR = 9,
    SLUICE_STATUS_REM_ACCESS_ERR = 10,
    SLUICE_STATUS_REM_OP_ERR = 11,
    SLUICE_STATUS_RETRY_EXC_ERR = 12,
    SLUICE_STATUS_RNR_RETRY_EXC_ERR = 13,
    SLUICE_STATUS_FATAL_ERR = 19,
    SLUICE_STATUS_GENERAL_ERR = 21,
    SLUICE_STATUS_DEADLINE = 64,
    SLUICE_STATUS_PEER_CLOSED = 65,
};
enum sluice_error_class {
    SLUICE_CLASS_NONE = 0,
    SLUICE_CLASS_PEER_LOST = 1,
    SLUICE_CLASS_TIMEOUT = 2,
    SLUICE_CLASS_ACCESS = 3,
    SLUICE_CLASS_TRUNCATED = 4,
    SLUICE_CLASS_CANCELLED = 5,
    SLUICE_CLASS_LOCAL = 6,
    SLUICE_CLASS_DEVICE = 7,
    SLUICE_CLASS_PROTOCOL = 8,
};
struct sluice_error {
    uint32_t size;
    uint32_t peer;
    uint32_t opcode;
    uint32_t status;
    uint32_t error_class;
    uint32_t vendor;
    int32_t error;
    uint32_t reserved;
    char text[352];
};
const char *sluice_last_error(void);
const char *sluice_status_name(uint32_t status);
const char *sluice_error_class_name(uint32_t error_class);

/* sluice/time.h */
const volatile int *sluice_interrupt_set(const volatile int *flag);

/* sluice/log.h */
enum sluice_log_level {
    SLUICE_LOG_NONE = 0,
    SLUICE_LOG_ERROR = 1,
    SLUICE_LOG_WARN = 2,
    SLUICE_LOG_INFO = 3,
    SLUICE_LOG_DEBUG = 4,
};
typedef void (*sluice_log_function)(uint32_t level, const char *line, void *user);
int sluice_log_set(uint32_t level, sluice_log_function function, void *user);

/* sluice/context.h */
struct sluice_context;
struct sluice_context_attr {
    uint32_t size;
    uint32_t flags;
    uint32_t port;
    uint32_t gid_index;
    const char *address;
};
enum sluice_link_layer {
    SLUICE_LINK_NONE = 0,
    SLUICE_LINK_INFINIBAND = 1,
    SLUICE_LINK_ETHERNET = 2,
    SLUICE_LINK_IWARP = 3,
};
enum sluice_atomics {
    SLUICE_ATOMICS_NONE = 0,
    SLUICE_ATOMICS_DEVICE = 1,
    SLUICE_ATOMICS_GLOBAL = 2,
};
struct sluice_context_info {
    uint32_t size;
    uint32_t level;
    uint32_t max_send_depth;
    uint32_t max_receive_depth;
    uint32_t max_sge;
    uint32_t max_inline;
    uint32_t max_read_depth;
    uint32_t port;
    uint32_t link_layer;
    uint32_t active_mtu;
    int32_t gid_index;
    int32_t numa_node;
    uint32_t atomics;
    uint32_t max_read_sge;
    uint64_t max_message;
    char device[64];
    char transport[16];
    uint64_t max_region;
    uint32_t max_channels;
    uint32_t max_regions;
    uint32_t max_completions;
    uint32_t reserved;
};
void sluice_context_close(struct sluice_context *context);
struct sluice_context *sluice_context_open(const char *device, const struct sluice_context_attr
    *attr);
int sluice_context_query(const struct sluice_context *context, struct sluice_context_info
    *info);

/* sluice/device.h */
struct sluice_device_list;
enum sluice_transport_level {
    SLUICE_LEVEL_TCP = 16,
    SLUICE_LEVEL_NIC = 32,
    SLUICE_LEVEL_MEMORY = 48,
};
enum sluice_port_state {
    SLUICE_PORT_UNKNOWN = 0,
    SLUICE_PORT_DOWN = 1,
    SLUICE_PORT_INIT = 2,
    SLUICE_PORT_ARMED = 3,
    SLUICE_PORT_ACTIVE = 4,
    SLUICE_PORT_ACTIVE_DEFER = 5,
};
enum sluice_gid_type {
    SLUICE_GID_INFINIBAND = 1,
    SLUICE_GID_ROCE_V1 = 2,
    SLUICE_GID_ROCE_V2 = 3,
};
struct sluice_device_info {
    uint32_t size;
    uint32_t active;
    uint32_t ports;
    uint32_t gids;
    uint32_t level;
    int32_t numa_node;
    uint32_t vendor_id;
    uint32_t vendor_part;
    uint64_t guid;
    char name[64];
    char transport[16];
    char firmware[64];
    char description[128];
};
struct sluice_port_info {
    uint32_t size;
    uint32_t port;
    uint32_t state;
    uint32_t active;
    uint32_t link_layer;
    uint32_t lid;
    uint32_t sm_lid;
    uint32_t mtu;
    uint32_t max_mtu;
    uint32_t width;
    uint32_t speed;
    uint32_t gid_table;
    uint32_t pkey_table;
    uint32_t reserved;
    uint64_t max_message;
    char description[128];
};
struct sluice_gid_info {
    uint32_t size;
    uint32_t port;
    uint32_t index;
    uint32_t type;
    uint32_t chosen;
    uint8_t gid[16];
    char interface[16];
    char text[64];
};
enum sluice_choice_verdict {
    SLUICE_CHOICE_TAKEN = 1,
    SLUICE_CHOICE_OTHER_RANK = 2,
    SLUICE_CHOICE_FARTHER = 3,
    SLUICE_CHOICE_NOT_ACTIVE = 4,
    SLUICE_CHOICE_LAST_RESORT = 5,
    SLUICE_CHOICE_NOT_NAMED = 6,
};
struct sluice_choice_info {
    uint32_t size;
    uint32_t verdict;
    uint32_t port;
    uint32_t distance;
    uint32_t place;
    uint32_t equals;
    uint32_t local_rank;
    uint32_t reserved;
    char source[32];
    char rank_source[64];
    char reason[192];
};
void sluice_device_list_free(struct sluice_device_list *list);
struct sluice_device_list *sluice_device_list_get(void);
uint32_t sluice_device_list_count(const struct sluice_device_list *list);
int sluice_device_list_info(const struct sluice_device_list *list, uint32_t index, struct
    sluice_device_info *info);
int sluice_device_list_nearest(const struct sluice_device_list *list, uint32_t local_rank);
int sluice_device_list_choice(const struct sluice_device_list *list, uint32_t index, const char
    *device, struct sluice_choice_info *info);
int sluice_device_list_port(const struct sluice_device_list *list, uint32_t index, uint32_t
    port, struct sluice_port_info *info);
int sluice_device_list_gid(const struct sluice_device_list *list, uint32_t index, uint32_t
    entry, struct sluice_gid_info *info);

/* sluice/pd.h */
struct sluice_pd;
void sluice_pd_free(struct sluice_pd *pd);
struct sluice_pd *sluice_pd_alloc(struct sluice_context *context);

/* sluice/mr.h */
struct sluice_mr;
struct sluice_sge {
    uint64_t addr;
    uint32_t length;
    uint32_t lkey;
};
struct sluice_remote_mr {
    uint64_t addr;
    uint64_t length;
    uint32_t rkey;
    uint32_t reserved[3];
};
struct sluice_peer_remote_mr {
    uint32_t peer;
    uint32_t generation;
    struct sluice_remote_mr remote;
};
struct sluice_mr * sluice_mr_register(struct sluice_pd *pd, void *addr, size_t length, uint32_t
    access);
struct sluice_mr *sluice_mr_alloc(struct sluice_pd *pd, size_t length, uint32_t access);
struct sluice_mr * sluice_mr_register_dmabuf(struct sluice_pd *pd, int fd, uint64_t offset,
    size_t length, uint64_t iova, uint32_t access);
int sluice_mr_deregister(struct sluice_mr *mr);
int sluice_mr_deregister_wait(struct sluice_mr *mr, int64_t timeout);
int sluice_mr_release(struct sluice_mr *mr, void (*released)(void *argument), void *argument);
void *sluice_mr_addr(const struct sluice_mr *mr);
size_t sluice_mr_length(const struct sluice_mr *mr);
uint32_t sluice_mr_lkey(const struct sluice_mr *mr);
size_t sluice_mr_page_size(const struct sluice_mr *mr);
int sluice_mr_sge(const struct sluice_mr *mr, size_t offset, size_t length, struct sluice_sge
    *sge);
int sluice_mr_sge_at(const struct sluice_mr *mr, const void *pointer, size_t length, struct
    sluice_sge *sge);
int sluice_mr_remote(const struct sluice_mr *mr, struct sluice_remote_mr *remote);
int sluice_remote_mr_pack(const struct sluice_remote_mr *remote, uint8_t bytes[32]);
int sluice_remote_mr_unpack(const uint8_t bytes[32], struct sluice_remote_mr *remote);
int sluice_remote_mr_slice(const struct sluice_remote_mr *remote, uint64_t offset, uint64_t
    length, struct sluice_remote_mr *slice);

/* sluice/mr_cache.h */
struct sluice_mr_cache;
struct sluice_mr_cache_attr {
    uint32_t size;
    uint32_t max_regions;
    uint64_t max_bytes;
};
struct sluice_mr_cache_info {
    uint32_t size;
    uint32_t regions;
    uint32_t used;
    uint32_t retired;
    uint64_t bytes;
    uint64_t hits;
    uint64_t misses;
    uint64_t evictions;
};
int sluice_mr_cache_destroy(struct sluice_mr_cache *cache);
struct sluice_mr_cache *sluice_mr_cache_create(struct sluice_pd *pd, uint32_t access, const
    struct sluice_mr_cache_attr *attr);
struct sluice_mr * sluice_mr_cache_get(struct sluice_mr_cache *cache, const void *addr, size_t
    length);
int sluice_mr_cache_put(struct sluice_mr_cache *cache, struct sluice_mr *mr);
int sluice_mr_cache_forget(struct sluice_mr_cache *cache, const void *addr, size_t length);
int sluice_mr_cache_query(struct sluice_mr_cache *cache, struct sluice_mr_cache_info *info);

/* sluice/allocator.h */
struct sluice_allocator;
struct sluice_allocator_attr {
    uint32_t size;
    uint32_t flags;
    uint32_t numa_node;
    uint32_t thread_blocks;
    uint64_t slab_bytes;
    uint64_t max_bytes;
};
struct sluice_allocator_info {
    uint32_t size;
    uint32_t slabs;
    uint32_t regions;
    uint32_t released;
    uint64_t registered_bytes;
    uint64_t blocks;
    uint64_t block_bytes;
    uint64_t kept_bytes;
    uint64_t registrations;
};
int sluice_allocator_destroy(struct sluice_allocator *allocator);
struct sluice_allocator *sluice_allocator_create(struct sluice_pd *pd, uint32_t access, const
    struct sluice_allocator_attr *attr);
int sluice_allocator_release(struct sluice_allocator *allocator, void *block, void
    (*released)(void *argument), void *argument);
void *sluice_allocator_alloc(struct sluice_allocator *allocator, size_t size, size_t align);
void *sluice_allocator_alloc_zeroed(struct sluice_allocator *allocator, size_t size, size_t
    align);
void *sluice_allocator_realloc(struct sluice_allocator *allocator, void *block, size_t size,
    size_t align);
void *sluice_allocator_alloc_shared(struct sluice_allocator *allocator, size_t size, struct
    sluice_remote_mr *remote);
int sluice_allocator_free(struct sluice_allocator *allocator, void *block);
int sluice_allocator_free_wait(struct sluice_allocator *allocator, void *block, int64_t
    timeout);
int sluice_allocator_sge(struct sluice_allocator *allocator, const void *pointer, size_t length,
    struct sluice_sge *sge);
struct sluice_mr * sluice_allocator_mr(struct sluice_allocator *allocator, const void *pointer);
int sluice_allocator_trim(struct sluice_allocator *allocator);
int sluice_allocator_query(struct sluice_allocator *allocator, struct sluice_allocator_info
    *info);

/* sluice/endpoint.h */
struct sluice_endpoint {
    uint8_t bytes[384];
};

/* sluice/blocks.h */
enum sluice_layout_kind {
    SLUICE_LAYOUT_CONTIGUOUS = 0,
    SLUICE_LAYOUT_STRIDED = 1,
    SLUICE_LAYOUT_PAGED = 2,
};
struct sluice_layout {
    uint32_t kind;
    uint32_t count;
    uint64_t bytes;
    uint64_t stride;
    const uint32_t *indices;
    uint64_t reserved[2];
};
struct sluice_blocks {
    uint32_t size;
    uint32_t flags;
    struct sluice_layout local;
    struct sluice_layout remote;
    uint64_t local_length;
};

/* sluice/request.h */
enum sluice_opcode {
    SLUICE_OP_NONE = 0,
    SLUICE_OP_SEND = 1,
    SLUICE_OP_RECEIVE = 2,
    SLUICE_OP_WRITE = 3,
    SLUICE_OP_READ = 4,
    SLUICE_OP_COMPARE_SWAP = 5,
    SLUICE_OP_FETCH_ADD = 6,
};
struct sluice_blocks;
struct sluice_request {
    uint32_t opcode;
    uint32_t peer;
    uint32_t flags;
    uint32_t immediate;
    const struct sluice_sge *sges;
    uint32_t sge_count;
    uint32_t reserved;
    struct sluice_sge sge;
    struct sluice_remote_mr remote;
    uint64_t user_data;
    uint64_t operand[2];
    const struct sluice_blocks *blocks;
    uint64_t reserved2[2];
};
struct sluice_completion {
    uint64_t user_data;
    uint64_t bytes;
    uint32_t peer;
    uint32_t opcode;
    uint32_t flags;
    uint32_t immediate;
    int32_t error;
    uint32_t error_class;
    uint32_t status;
    uint32_t cause;
    uint32_t vendor;
    uint32_t reserved[3];
};
struct sluice_handle {
    uint64_t id;
    uint64_t owner;
    uint64_t reserved[2];
};

/* sluice/channel.h */
struct sluice_prepared_channel;
struct sluice_channel;
struct sluice_scope;
enum sluice_wait_mode {
    SLUICE_WAIT_ADAPTIVE = 0,
    SLUICE_WAIT_SPIN = 1,
    SLUICE_WAIT_EVENT = 2,
};
enum sluice_peer_state {
    SLUICE_STATE_PREPARED = 1,
    SLUICE_STATE_READY = 2,
    SLUICE_STATE_FAILED = 3,
    SLUICE_STATE_REMOVED = 4,
};
struct sluice_channel_attr {
    uint32_t size;
    uint32_t flags;
    uint32_t send_depth;
    uint32_t receive_depth;
    uint32_t max_sge;
    uint32_t max_inline;
    uint32_t access;
    uint32_t read_depth;
    uint64_t max_message;
    int64_t keepalive;
    int64_t spin_time;
    uint32_t wait_mode;
    uint32_t arrival_tags;
    uint32_t queue_pairs;
    uint32_t stripe_least;
    struct sluice_mr_cache *mr_cache;
    uint64_t staging;
    uint32_t receive_pool;
    uint32_t receive_pool_low;
    uint32_t path_mtu;
    uint32_t pkey;
    uint32_t service_level;
    uint32_t traffic_class;
    uint32_t flow_label;
    uint32_t hop_limit;
    uint32_t path_bits;
    uint32_t psn;
    uint32_t ack_timeout;
    uint32_t retry_count;
    uint32_t rnr_timer;
    uint32_t rnr_retry;
};
struct sluice_channel_info {
    uint32_t size;
    uint32_t level;
    uint32_t send_depth;
    uint32_t receive_depth;
    uint32_t max_sge;
    uint32_t max_inline;
    uint64_t max_message;
    uint32_t read_depth;
    uint32_t remote_read_depth;
    uint32_t queue_pairs;
    uint32_t stripe_least;
    uint64_t staging;
    char address[64];
    char remote_address[64];
    uint32_t qpn;
    uint32_t remote_qpn;
    uint32_t psn;
    uint32_t remote_psn;
    uint32_t path_mtu;
    uint32_t port;
    int32_t gid_index;
    uint32_t pkey;
    uint32_t service_level;
    uint32_t traffic_class;
    uint32_t flow_label;
    uint32_t hop_limit;
    uint32_t ack_timeout;
    uint32_t retry_count;
    uint32_t rnr_timer;
    uint32_t rnr_retry;
};
void sluice_prepared_channel_free(struct sluice_prepared_channel *prepared);
void sluice_channel_close(struct sluice_channel *channel);
struct sluice_prepared_channel *sluice_channel_reset(struct sluice_channel *channel);
struct sluice_channel *sluice_prepared_channel_handshake(struct sluice_prepared_channel
    *prepared, const struct sluice_endpoint *remote);
struct sluice_prepared_channel *sluice_channel_prepare(struct sluice_pd *pd, const struct
    sluice_channel_attr *attr);
int sluice_prepared_channel_endpoint(const struct sluice_prepared_channel *prepared, struct
    sluice_endpoint *endpoint);
int sluice_channel_shutdown(struct sluice_channel *channel, int64_t deadline);
int sluice_channel_wait_connected(struct sluice_channel *channel, int64_t timeout);
int sluice_channel_state(const struct sluice_channel *channel);
int sluice_channel_error(const struct sluice_channel *channel, struct sluice_error *error);
int sluice_channel_query(const struct sluice_channel *channel, struct sluice_channel_info
    *info);
int sluice_channel_send(struct sluice_channel *channel, const struct sluice_sge *sges, uint32_t
    sge_count, int64_t deadline);
int sluice_channel_send_immediate(struct sluice_channel *channel, const struct sluice_sge *sges,
    uint32_t sge_count, uint32_t immediate, int64_t deadline);
int sluice_channel_receive(struct sluice_channel *channel, const struct sluice_sge *sges,
    uint32_t sge_count, int64_t deadline, struct sluice_completion *completion);
int sluice_channel_write(struct sluice_channel *channel, const struct sluice_sge *sges, uint32_t
    sge_count, const struct sluice_remote_mr *remote, int64_t deadline);
int sluice_channel_write_immediate(struct sluice_channel *channel, const struct sluice_sge
    *sges, uint32_t sge_count, const struct sluice_remote_mr *remote, uint32_t immediate,
    int64_t deadline);
int sluice_channel_read(struct sluice_channel *channel, const struct sluice_sge *sges, uint32_t
    sge_count, const struct sluice_remote_mr *remote, int64_t deadline);
int sluice_channel_compare_swap(struct sluice_channel *channel, const struct sluice_sge *result,
    const struct sluice_remote_mr *remote, uint64_t expected, uint64_t desired, int64_t
    deadline);
int sluice_channel_fetch_add(struct sluice_channel *channel, const struct sluice_sge *result,
    const struct sluice_remote_mr *remote, uint64_t addend, int64_t deadline);
int sluice_channel_submit(struct sluice_channel *channel, const struct sluice_request *requests,
    uint32_t count, int64_t deadline, struct sluice_completion *completions);
int sluice_channel_post(struct sluice_channel *channel, const struct sluice_request *requests,
    uint32_t count, int64_t deadline, struct sluice_handle *handles);
int sluice_channel_post_send(struct sluice_channel *channel, const struct sluice_sge *sges,
    uint32_t sge_count, int64_t deadline, struct sluice_handle *handle);
int sluice_channel_post_receive(struct sluice_channel *channel, const struct sluice_sge *sges,
    uint32_t sge_count, int64_t deadline, struct sluice_handle *handle);
int sluice_channel_post_write(struct sluice_channel *channel, const struct sluice_sge *sges,
    uint32_t sge_count, const struct sluice_remote_mr *remote, int64_t deadline, struct
    sluice_handle *handle);
int sluice_channel_post_read(struct sluice_channel *channel, const struct sluice_sge *sges,
    uint32_t sge_count, const struct sluice_remote_mr *remote, int64_t deadline, struct
    sluice_handle *handle);
int sluice_channel_post_compare_swap(struct sluice_channel *channel, const struct sluice_sge
    *result, const struct sluice_remote_mr *remote, uint64_t expected, uint64_t desired, int64_t
    deadline, struct sluice_handle *handle);
int sluice_channel_post_fetch_add(struct sluice_channel *channel, const struct sluice_sge
    *result, const struct sluice_remote_mr *remote, uint64_t addend, int64_t deadline, struct
    sluice_handle *handle);
int sluice_channel_poll(struct sluice_channel *channel, struct sluice_completion *completions,
    uint32_t count);
int sluice_channel_next(struct sluice_channel *channel, int64_t timeout, struct
    sluice_completion *completion);
int sluice_channel_wait(struct sluice_channel *channel, const struct sluice_handle *handle,
    int64_t timeout, struct sluice_completion *completion);
int sluice_channel_cancel(struct sluice_channel *channel, const struct sluice_handle *handle,
    struct sluice_completion *completion);
int sluice_channel_detach(struct sluice_channel *channel, const struct sluice_handle *handle);
int sluice_channel_flush(struct sluice_channel *channel, int64_t timeout);
int sluice_channel_fd(const struct sluice_channel *channel);
int sluice_channel_arm(struct sluice_channel *channel, int64_t *due);
int sluice_channel_wake(struct sluice_channel *channel);
int sluice_channel_arrivals(struct sluice_channel *channel, uint32_t tag, uint64_t *count);
int sluice_channel_wait_arrivals(struct sluice_channel *channel, uint32_t tag, uint64_t count,
    int64_t timeout);

/* sluice/multichannel.h */
struct sluice_prepared_multichannel;
struct sluice_multichannel;
void sluice_prepared_multichannel_free(struct sluice_prepared_multichannel *prepared);
void sluice_multichannel_close(struct sluice_multichannel *multichannel);
struct sluice_multichannel * sluice_prepared_multichannel_handshake(struct
    sluice_prepared_multichannel *prepared, const struct sluice_endpoint *remotes, uint32_t
    count);
struct sluice_prepared_multichannel * sluice_multichannel_prepare(struct sluice_pd *pd, uint32_t
    peers, const struct sluice_channel_attr *attr);
int sluice_prepared_multichannel_endpoints(const struct sluice_prepared_multichannel *prepared,
    struct sluice_endpoint *endpoints, uint32_t count);
uint32_t sluice_multichannel_peers(const struct sluice_multichannel *multichannel);
int sluice_multichannel_peer_add(struct sluice_multichannel *multichannel, struct
    sluice_endpoint *endpoint);
int sluice_multichannel_peer_remove(struct sluice_multichannel *multichannel, uint32_t peer);
int sluice_multichannel_peer_remote(const struct sluice_multichannel *multichannel, uint32_t
    peer, const struct sluice_remote_mr *remote, struct sluice_peer_remote_mr *tagged);
int sluice_multichannel_peer_state(const struct sluice_multichannel *multichannel, uint32_t
    peer);
int sluice_multichannel_peer_error(const struct sluice_multichannel *multichannel, uint32_t
    peer, struct sluice_error *error);
int sluice_multichannel_wait_connected(struct sluice_multichannel *multichannel, int64_t
    timeout);
int sluice_multichannel_peer_wait_connected(struct sluice_multichannel *multichannel, uint32_t
    peer, int64_t timeout);
int sluice_multichannel_peer_query(const struct sluice_multichannel *multichannel, uint32_t
    peer, struct sluice_channel_info *info);
int sluice_multichannel_peer_reset(struct sluice_multichannel *multichannel, uint32_t peer,
    struct sluice_endpoint *endpoint);
int sluice_multichannel_peer_handshake(struct sluice_multichannel *multichannel, uint32_t peer,
    const struct sluice_endpoint *remote);
int sluice_multichannel_shutdown(struct sluice_multichannel *multichannel, int64_t deadline);
int sluice_multichannel_send(struct sluice_multichannel *multichannel, uint32_t peer, const
    struct sluice_sge *sges, uint32_t sge_count, int64_t deadline);
int sluice_multichannel_send_immediate(struct sluice_multichannel *multichannel, uint32_t peer,
    const struct sluice_sge *sges, uint32_t sge_count, uint32_t immediate, int64_t deadline);
int sluice_multichannel_receive(struct sluice_multichannel *multichannel, uint32_t peer, const
    struct sluice_sge *sges, uint32_t sge_count, int64_t deadline, struct sluice_completion
    *completion);
int sluice_multichannel_write(struct sluice_multichannel *multichannel, uint32_t peer, const
    struct sluice_sge *sges, uint32_t sge_count, const struct sluice_remote_mr *remote, int64_t
    deadline);
int sluice_multichannel_write_immediate(struct sluice_multichannel *multichannel, uint32_t peer,
    const struct sluice_sge *sges, uint32_t sge_count, const struct sluice_remote_mr *remote,
    uint32_t immediate, int64_t deadline);
int sluice_multichannel_read(struct sluice_multichannel *multichannel, uint32_t peer, const
    struct sluice_sge *sges, uint32_t sge_count, const struct sluice_remote_mr *remote, int64_t
    deadline);
int sluice_multichannel_compare_swap( struct sluice_multichannel *multichannel, uint32_t peer,
    const struct sluice_sge *result, const struct sluice_remote_mr *remote, uint64_t expected,
    uint64_t desired, int64_t deadline);
int sluice_multichannel_fetch_add( struct sluice_multichannel *multichannel, uint32_t peer,
    const struct sluice_sge *result, const struct sluice_remote_mr *remote, uint64_t addend,
    int64_t deadline);
int sluice_multichannel_submit(struct sluice_multichannel *multichannel, const struct
    sluice_request *requests, uint32_t count, int64_t deadline, struct sluice_completion
    *completions);
int sluice_multichannel_scatter_send(struct sluice_multichannel *multichannel, const struct
    sluice_request *requests, uint32_t count, int64_t deadline, struct sluice_completion
    *completions);
int sluice_multichannel_scatter_write(struct sluice_multichannel *multichannel, const struct
    sluice_request *requests, uint32_t count, int64_t deadline, struct sluice_completion
    *completions);
int sluice_multichannel_gather_receive(struct sluice_multichannel *multichannel, const struct
    sluice_request *requests, uint32_t count, int64_t deadline, struct sluice_completion
    *completions);
int sluice_multichannel_gather_read(struct sluice_multichannel *multichannel, const struct
    sluice_request *requests, uint32_t count, int64_t deadline, struct sluice_completion
    *completions);
int sluice_multichannel_scatter_gather(struct sluice_multichannel *multichannel, const struct
    sluice_request *sends, uint32_t send_count, const struct sluice_request *receives, uint32_t
    receive_count, int64_t deadline, struct sluice_completion *completions);
int sluice_multichannel_multicast_send( struct sluice_multichannel *multichannel, const struct
    sluice_request *request, const uint32_t *peers, uint32_t count, int64_t deadline, struct
    sluice_completion *completions);
int sluice_multichannel_multicast_write(struct sluice_multichannel *multichannel, const struct
    sluice_request *request, const struct sluice_peer_remote_mr *remotes, uint32_t count,
    int64_t deadline, struct sluice_completion *completions);
int sluice_multichannel_post(struct sluice_multichannel *multichannel, const struct
    sluice_request *requests, uint32_t count, int64_t deadline, struct sluice_handle *handles);
int sluice_multichannel_post_send(struct sluice_multichannel *multichannel, uint32_t peer, const
    struct sluice_sge *sges, uint32_t sge_count, int64_t deadline, struct sluice_handle
    *handle);
int sluice_multichannel_post_receive(struct sluice_multichannel *multichannel, uint32_t peer,
    const struct sluice_sge *sges, uint32_t sge_count, int64_t deadline, struct sluice_handle
    *handle);
int sluice_multichannel_post_write(struct sluice_multichannel *multichannel, uint32_t peer,
    const struct sluice_sge *sges, uint32_t sge_count, const struct sluice_remote_mr *remote,
    int64_t deadline, struct sluice_handle *handle);
int sluice_multichannel_post_read(struct sluice_multichannel *multichannel, uint32_t peer, const
    struct sluice_sge *sges, uint32_t sge_count, const struct sluice_remote_mr *remote, int64_t
    deadline, struct sluice_handle *handle);
int sluice_multichannel_post_compare_swap( struct sluice_multichannel *multichannel, uint32_t
    peer, const struct sluice_sge *result, const struct sluice_remote_mr *remote, uint64_t
    expected, uint64_t desired, int64_t deadline, struct sluice_handle *handle);
int sluice_multichannel_post_fetch_add(struct sluice_multichannel *multichannel, uint32_t peer,
    const struct sluice_sge *result, const struct sluice_remote_mr *remote, uint64_t addend,
    int64_t deadline, struct sluice_handle *handle);
int sluice_multichannel_post_scatter_send(struct sluice_multichannel *multichannel, const struct
    sluice_request *requests, uint32_t count, int64_t deadline, struct sluice_handle *handles);
int sluice_multichannel_post_scatter_write(struct sluice_multichannel *multichannel, const
    struct sluice_request *requests, uint32_t count, int64_t deadline, struct sluice_handle
    *handles);
int sluice_multichannel_post_gather_receive(struct sluice_multichannel *multichannel, const
    struct sluice_request *requests, uint32_t count, int64_t deadline, struct sluice_handle
    *handles);
int sluice_multichannel_post_gather_read(struct sluice_multichannel *multichannel, const struct
    sluice_request *requests, uint32_t count, int64_t deadline, struct sluice_handle *handles);
int sluice_multichannel_post_multicast_send( struct sluice_multichannel *multichannel, const
    struct sluice_request *request, const uint32_t *peers, uint32_t count, int64_t deadline,
    struct sluice_handle *handles);
int sluice_multichannel_post_multicast_write( struct sluice_multichannel *multichannel, const
    struct sluice_request *request, const struct sluice_peer_remote_mr *remotes, uint32_t count,
    int64_t deadline, struct sluice_handle *handles);
int sluice_multichannel_poll(struct sluice_multichannel *multichannel, struct sluice_completion
    *completions, uint32_t count);
int sluice_multichannel_next(struct sluice_multichannel *multichannel, int64_t timeout, struct
    sluice_completion *completion);
int sluice_multichannel_wait(struct sluice_multichannel *multichannel, const struct
    sluice_handle *handle, int64_t timeout, struct sluice_completion *completion);
int sluice_multichannel_cancel(struct sluice_multichannel *multichannel, const struct
    sluice_handle *handle, struct sluice_completion *completion);
int sluice_multichannel_detach(struct sluice_multichannel *multichannel, const struct
    sluice_handle *handle);
int sluice_multichannel_flush(struct sluice_multichannel *multichannel, int64_t timeout);
int sluice_multichannel_fd(const struct sluice_multichannel *multichannel);
int sluice_multichannel_arm(struct sluice_multichannel *multichannel, int64_t *due);
int sluice_multichannel_wake(struct sluice_multichannel *multichannel);
int sluice_multichannel_arrivals(struct sluice_multichannel *multichannel, uint32_t tag,
    uint64_t *count);
int sluice_multichannel_wait_arrivals(struct sluice_multichannel *multichannel, uint32_t tag,
    uint64_t count, int64_t timeout);
int sluice_multichannel_post_receive_any(struct sluice_multichannel *multichannel, const struct
    sluice_request *requests, uint32_t count, struct sluice_handle *handles);
int sluice_multichannel_receive_any(struct sluice_multichannel *multichannel, const struct
    sluice_sge *sges, uint32_t sge_count, int64_t deadline, struct sluice_completion
    *completion);
int sluice_multichannel_receive_any_room(const struct sluice_multichannel *multichannel);

/* sluice/list.h */
struct sluice_list;
void sluice_list_free(struct sluice_list *list);
struct sluice_list *sluice_channel_list_prepare(struct sluice_channel *channel, const struct
    sluice_request *requests, uint32_t count);
struct sluice_list *sluice_multichannel_list_prepare(struct sluice_multichannel *multichannel,
    const struct sluice_request *requests, uint32_t count);
int sluice_list_aim(struct sluice_list *list, uint32_t index, const struct sluice_sge *sge,
    uint64_t remote_offset);
int sluice_list_set_length(struct sluice_list *list, uint32_t index, uint64_t length);
int sluice_list_submit(struct sluice_list *list, int64_t deadline, struct sluice_completion
    *completions);
int sluice_list_post(struct sluice_list *list, int64_t deadline, struct sluice_completion
    *completions);
int sluice_list_wait(struct sluice_list *list, int64_t timeout);
int sluice_list_result(const struct sluice_list *list);
int sluice_scope_post_list(struct sluice_scope *scope, struct sluice_list *list, struct
    sluice_handle *handles);

/* sluice/scope.h */
struct sluice_scope_report {
    uint32_t size;
    uint32_t flags;
    int32_t said;
    int32_t error;
    uint32_t posted;
    uint32_t failed;
    uint32_t unseen;
    uint32_t lost;
    struct sluice_completion *failures;
    uint32_t capacity;
    uint32_t count;
};
int sluice_scope_end(struct sluice_scope *scope, struct sluice_scope_report *report);
struct sluice_scope *sluice_channel_scope_begin(struct sluice_channel *channel, int64_t
    deadline);
struct sluice_scope *sluice_multichannel_scope_begin(struct sluice_multichannel *multichannel,
    int64_t deadline);
struct sluice_scope *sluice_scope_attach(struct sluice_scope *scope, struct sluice_scope_report
    *report);
int sluice_scope_post(struct sluice_scope *scope, const struct sluice_request *requests,
    uint32_t count, struct sluice_handle *handles);
int sluice_scope_post_send(struct sluice_scope *scope, uint32_t peer, const struct sluice_sge
    *sges, uint32_t sge_count, struct sluice_handle *handle);
int sluice_scope_post_receive(struct sluice_scope *scope, uint32_t peer, const struct sluice_sge
    *sges, uint32_t sge_count, struct sluice_handle *handle);
int sluice_scope_post_write(struct sluice_scope *scope, uint32_t peer, const struct sluice_sge
    *sges, uint32_t sge_count, const struct sluice_remote_mr *remote, struct sluice_handle
    *handle);
int sluice_scope_post_read(struct sluice_scope *scope, uint32_t peer, const struct sluice_sge
    *sges, uint32_t sge_count, const struct sluice_remote_mr *remote, struct sluice_handle
    *handle);
int sluice_scope_post_compare_swap(struct sluice_scope *scope, uint32_t peer, const struct
    sluice_sge *result, const struct sluice_remote_mr *remote, uint64_t expected, uint64_t
    desired, struct sluice_handle *handle);
int sluice_scope_post_fetch_add(struct sluice_scope *scope, uint32_t peer, const struct
    sluice_sge *result, const struct sluice_remote_mr *remote, uint64_t addend, struct
    sluice_handle *handle);
int sluice_scope_post_scatter_send(struct sluice_scope *scope, const struct sluice_request
    *requests, uint32_t count, struct sluice_handle *handles);
int sluice_scope_post_scatter_write(struct sluice_scope *scope, const struct sluice_request
    *requests, uint32_t count, struct sluice_handle *handles);
int sluice_scope_post_gather_receive(struct sluice_scope *scope, const struct sluice_request
    *requests, uint32_t count, struct sluice_handle *handles);
int sluice_scope_post_gather_read(struct sluice_scope *scope, const struct sluice_request
    *requests, uint32_t count, struct sluice_handle *handles);
int sluice_scope_post_multicast_send(struct sluice_scope *scope, const struct sluice_request
    *request, const uint32_t *peers, uint32_t count, struct sluice_handle *handles);
int sluice_scope_post_multicast_write(struct sluice_scope *scope, const struct sluice_request
    *request, const struct sluice_peer_remote_mr *remotes, uint32_t count, struct sluice_handle
    *handles);
int sluice_scope_poll(struct sluice_scope *scope, struct sluice_completion *completions,
    uint32_t count);
int sluice_scope_wait(struct sluice_scope *scope, const struct sluice_handle *handle, int64_t
    timeout, struct sluice_completion *completion);

/* sluice/counters.h */
struct sluice_counters {
    uint32_t size;
    uint32_t reserved;
    uint64_t requests[32];
    uint64_t bytes[32];
    uint64_t failed[32];
    uint64_t refused;
    uint64_t queue_full;
    uint64_t forgotten;
    uint64_t resets;
    uint64_t discarded;
    uint64_t polls;
    uint64_t sleeps;
    uint64_t wakes;
    uint64_t arrivals;
    uint64_t strays;
};
int sluice_channel_counters(const struct sluice_channel *channel, struct sluice_counters
    *counters);
int sluice_multichannel_counters(const struct sluice_multichannel *multichannel, struct
    sluice_counters *counters);
int sluice_multichannel_peer_counters(const struct sluice_multichannel *multichannel, uint32_t
    peer, struct sluice_counters *counters);

/* sluice/histogram.h */
struct sluice_histogram {
    uint32_t size;
    uint32_t reserved;
    uint64_t count;
    uint64_t sum;
    uint64_t min;
    uint64_t max;
    uint64_t buckets[1152];
};
int sluice_channel_histogram(const struct sluice_channel *channel, uint32_t opcode, struct
    sluice_histogram *histogram);
int sluice_multichannel_histogram(const struct sluice_multichannel *multichannel, uint32_t
    opcode, struct sluice_histogram *histogram);
int sluice_multichannel_peer_histogram(const struct sluice_multichannel *multichannel, uint32_t
    peer, uint32_t opcode, struct sluice_histogram *histogram);
int sluice_channel_histogram_reset(struct sluice_channel *channel);
int sluice_multichannel_histogram_reset(struct sluice_multichannel *multichannel);
int64_t sluice_histogram_percentile(const struct sluice_histogram *histogram, double percent);
int64_t sluice_histogram_mean(const struct sluice_histogram *histogram);
int64_t sluice_histogram_bound(uint32_t bucket);
int sluice_histogram_merge(struct sluice_histogram *histogram, const struct sluice_histogram
    *other);

/* sluice/connect.h */
struct sluice_listener;
struct sluice_incoming;
struct sluice_private_data {
    uint32_t bytes;
    uint8_t data[1024];
};
struct sluice_listen_attr {
    uint32_t size;
    uint32_t flags;
    uint32_t backlog;
    int32_t fd;
    const char *secret_file;
};
struct sluice_connect_attr {
    uint32_t size;
    uint32_t flags;
    const char *secret_file;
    const struct sluice_private_data *own;
    struct sluice_private_data *peer;
};
struct sluice_accept_attr {
    uint32_t size;
    uint32_t flags;
    const struct sluice_private_data *own;
};
struct sluice_incoming_info {
    uint32_t size;
    uint32_t version;
    uint32_t channels;
    uint32_t proven;
    char address[64];
    struct sluice_private_data private_data;
};
struct sluice_admitted {
    uint32_t size;
    int32_t error;
    uint64_t user_data;
    struct sluice_channel *channel;
    struct sluice_multichannel *multichannel;
    char address[64];
    uint32_t *peers;
    uint32_t peer_capacity;
    uint32_t peer_count;
    uint32_t peer;
    uint32_t reserved;
};
void sluice_listener_close(struct sluice_listener *listener);
struct sluice_listener *sluice_listen(const char *address, const struct sluice_listen_attr
    *attr);
int sluice_listener_address(const struct sluice_listener *listener, char *text, size_t size);
int sluice_listener_fd(const struct sluice_listener *listener);
int sluice_listener_wake(struct sluice_listener *listener);
void sluice_incoming_refuse(struct sluice_incoming *incoming, const char *reason);
struct sluice_channel *sluice_incoming_accept(struct sluice_incoming *incoming, struct sluice_pd
    *pd, const struct sluice_channel_attr *attr, const struct sluice_accept_attr *options,
    int64_t deadline);
int sluice_incoming_accept_into( struct sluice_incoming *incoming, struct sluice_multichannel
    *multichannel, const struct sluice_accept_attr *options, int64_t deadline, uint32_t *peers,
    uint32_t count);
int sluice_incoming_admit(struct sluice_incoming *incoming, struct sluice_pd *pd, const struct
    sluice_channel_attr *attr, const struct sluice_accept_attr *options, int64_t deadline,
    uint64_t user_data);
int sluice_incoming_admit_into( struct sluice_incoming *incoming, struct sluice_multichannel
    *multichannel, const struct sluice_accept_attr *options, int64_t deadline, uint64_t
    user_data);
int sluice_listener_admitted(struct sluice_listener *listener, int64_t timeout, struct
    sluice_admitted *admitted);
int sluice_listener_cancel(struct sluice_listener *listener, uint64_t user_data);
int sluice_incoming_query(const struct sluice_incoming *incoming, struct sluice_incoming_info
    *info);
struct sluice_incoming *sluice_listener_next(struct sluice_listener *listener, int64_t timeout);
struct sluice_channel *sluice_accept(struct sluice_listener *listener, struct sluice_pd *pd,
    const struct sluice_channel_attr *attr, int64_t timeout);
struct sluice_channel *sluice_connect(const char *address, struct sluice_pd *pd, const struct
    sluice_channel_attr *attr, const struct sluice_connect_attr *options, int64_t deadline);
int sluice_connect_into(const char *address, struct sluice_multichannel *multichannel, const
    struct sluice_connect_attr *options, int64_t deadline, uint32_t *peers, uint32_t count);

/* sluice/exchange.h */
struct sluice_exchange;
enum sluice_exchange_kind {
    SLUICE_EXCHANGE_AUTO = 0,
    SLUICE_EXCHANGE_TCP = 1,
    SLUICE_EXCHANGE_PMIX = 2,
    SLUICE_EXCHANGE_OWN = 3,
};
struct sluice_exchange_attr {
    uint32_t size;
    uint32_t kind;
    uint32_t rank;
    uint32_t ranks;
    const char *root;
    const char *host_file;
    const char *secret_file;
    const char *job;
};
struct sluice_exchange_info {
    uint32_t size;
    uint32_t kind;
    uint32_t rank;
    uint32_t ranks;
    char source[64];
    char device[64];
};
struct sluice_launch_info {
    uint32_t size;
    uint32_t kind;
    uint32_t rank;
    uint32_t ranks;
    uint32_t local_rank;
    uint32_t reserved;
    char launcher[32];
    char source[64];
    char local_source[64];
    char root[256];
    char job[64];
};
void sluice_exchange_close(struct sluice_exchange *exchange);
struct sluice_exchange *sluice_exchange_open(const struct sluice_exchange_attr *attr, int64_t
    deadline);
int sluice_launch_query(struct sluice_launch_info *info);
struct sluice_exchange_provider {
    uint32_t size;
    uint32_t reserved;
    int (*allgather)(void *argument, const void *own, void *all, size_t bytes, int64_t deadline);
    int (*alltoall)(void *argument, const void *to, void *from, size_t bytes, int64_t deadline);
    int (*barrier)(void *argument, int64_t deadline);
    void (*close)(void *argument);
};
struct sluice_exchange *sluice_exchange_wrap(const struct sluice_exchange_provider *provider,
    void *argument, uint32_t rank, uint32_t ranks);
int sluice_exchange_query(const struct sluice_exchange *exchange, struct sluice_exchange_info
    *info);
int sluice_exchange_allgather(struct sluice_exchange *exchange, const void *own, void *all,
    size_t bytes, int64_t deadline);
int sluice_exchange_alltoall(struct sluice_exchange *exchange, const void *to, void *from,
    size_t bytes, int64_t deadline);
int sluice_exchange_barrier(struct sluice_exchange *exchange, int64_t deadline);
int sluice_exchange_missing(const struct sluice_exchange *exchange, uint32_t *ranks, uint32_t
    capacity);
int sluice_exchange_locality(struct sluice_exchange *exchange, uint32_t *local_rank, uint32_t
    *local_ranks, int64_t deadline);

/* sluice/node.h */
struct sluice_prepared_node;
struct sluice_node;
enum sluice_barrier {
    SLUICE_BARRIER_DEFAULT = 0,
    SLUICE_BARRIER_TREE = 1,
    SLUICE_BARRIER_CENTRAL = 2,
    SLUICE_BARRIER_DISSEMINATION = 3,
};
enum sluice_node_connect {
    SLUICE_NODE_CONNECT_ALL = 0,
    SLUICE_NODE_CONNECT_LAZY = 1,
};
struct sluice_node_attr {
    uint32_t size;
    uint32_t barrier;
    const struct sluice_channel_attr *channel;
    uint32_t connect;
    uint32_t peer_count;
    const uint32_t *peers;
    uint32_t max_connections;
    uint32_t max_ranks;
};
struct sluice_node_endpoint {
    uint8_t bytes[448];
};
void sluice_prepared_node_free(struct sluice_prepared_node *prepared);
void sluice_node_close(struct sluice_node *node);
struct sluice_node *sluice_prepared_node_handshake(struct sluice_prepared_node *prepared, const
    struct sluice_node_endpoint *remotes, uint32_t ranks);
struct sluice_prepared_node *sluice_node_prepare(struct sluice_pd *pd, uint32_t rank, uint32_t
    ranks, const struct sluice_node_attr *attr);
int sluice_prepared_node_endpoints(const struct sluice_prepared_node *prepared, struct
    sluice_node_endpoint *endpoints, uint32_t ranks);
struct sluice_node *sluice_node_open(struct sluice_pd *pd, struct sluice_exchange *exchange,
    const struct sluice_node_attr *attr, int64_t deadline);
int sluice_node_rank(const struct sluice_node *node);
int sluice_node_ranks(const struct sluice_node *node);
struct sluice_multichannel *sluice_node_multichannel(struct sluice_node *node);
struct sluice_pd *sluice_node_pd(const struct sluice_node *node);
struct sluice_context *sluice_node_context(const struct sluice_node *node);
struct sluice_exchange *sluice_node_exchange(const struct sluice_node *node);
int sluice_node_barrier(struct sluice_node *node, const uint32_t *ranks, uint32_t count,
    uint32_t algorithm, int64_t deadline);
int sluice_node_allgather(struct sluice_node *node, const void *own, void *all, size_t bytes,
    int64_t deadline);
int sluice_node_share_mr(struct sluice_node *node, const struct sluice_mr *mr, struct
    sluice_peer_remote_mr *remotes, int64_t deadline);
int sluice_node_alltoall(struct sluice_node *node, const void *own, void *all, size_t bytes,
    int64_t deadline);
struct sluice_multichannel *sluice_node_multichannel_open(struct sluice_node *node, const struct
    sluice_channel_attr *attr, int64_t deadline);
int sluice_node_multichannel_reconnect(struct sluice_node *node, struct sluice_multichannel
    *multichannel, int64_t deadline);
int sluice_node_reach(struct sluice_node *node, const uint32_t *ranks, uint32_t count, int64_t
    deadline);
int sluice_node_barrier_reset(struct sluice_node *node);
int sluice_node_peer_reset(struct sluice_node *node, uint32_t rank, struct sluice_node_endpoint
    *endpoint);
int sluice_node_peer_handshake(struct sluice_node *node, uint32_t rank, const struct
    sluice_node_endpoint *remote);
int sluice_node_grow(struct sluice_node *node, const struct sluice_node_endpoint *endpoints,
    uint32_t count);
int sluice_node_shrink(struct sluice_node *node, const uint32_t *ranks, uint32_t count);
int sluice_node_own_endpoint(const struct sluice_node *node, struct sluice_node_endpoint
    *endpoint);
int64_t sluice_node_members(const struct sluice_node *node, uint32_t *ranks, uint32_t room);
int64_t sluice_node_generation(const struct sluice_node *node);
int sluice_node_shutdown(struct sluice_node *node, int64_t deadline);

/* sluice/buffer.h */
struct sluice_buffer_service;
struct sluice_buffer;
struct sluice_buffer_batch;
struct sluice_buffer_handle {
    uint8_t bytes[256];
};
struct sluice_buffer_service_attr {
    uint32_t size;
    uint32_t max_peers;
    const char *address;
    const struct sluice_channel_attr *channel;
};
struct sluice_buffer_info {
    uint32_t size;
    uint32_t access;
    uint64_t id;
    uint64_t length;
    uint8_t owner[16];
    char address[64];
    char transports[32];
};
struct sluice_buffer_action {
    uint32_t opcode;
    uint32_t flags;
    const struct sluice_buffer_handle *handle;
    uint64_t offset;
    uint64_t length;
    void *addr;
    struct sluice_mr *mr;
    uint64_t user_data;
    const struct sluice_blocks *blocks;
    uint64_t reserved[4];
};
void sluice_buffer_service_close(struct sluice_buffer_service *service);
void sluice_buffer_release(struct sluice_buffer *buffer);
struct sluice_buffer_service * sluice_buffer_service_open(struct sluice_pd *const *pds, uint32_t
    count, const struct sluice_buffer_service_attr *attr);
struct sluice_buffer *sluice_buffer_publish(struct sluice_buffer_service *service, void *addr,
    size_t length, uint32_t access);
struct sluice_buffer *sluice_buffer_publish_mr(struct sluice_buffer_service *service, struct
    sluice_mr *mr, size_t offset, size_t length, uint32_t access);
void *sluice_buffer_addr(const struct sluice_buffer *buffer);
int sluice_buffer_export(const struct sluice_buffer *buffer, struct sluice_buffer_handle
    *handle);
int sluice_buffer_handle_query(const struct sluice_buffer_handle *handle, struct
    sluice_buffer_info *info);
int sluice_buffer_read(struct sluice_buffer_service *service, const struct sluice_buffer_handle
    *handle, uint64_t offset, struct sluice_mr *mr, void *addr, uint64_t length, int64_t
    deadline);
int sluice_buffer_write(struct sluice_buffer_service *service, const struct sluice_buffer_handle
    *handle, uint64_t offset, struct sluice_mr *mr, const void *addr, uint64_t length, int64_t
    deadline);
int sluice_buffer_submit(struct sluice_buffer_service *service, const struct
    sluice_buffer_action *actions, uint32_t count, int64_t deadline, struct sluice_completion
    *completions);
void sluice_buffer_batch_free(struct sluice_buffer_batch *batch);
struct sluice_buffer_batch *sluice_buffer_batch_prepare(struct sluice_buffer_service *service,
    const struct sluice_buffer_action *actions, uint32_t count);
struct sluice_buffer_batch *sluice_buffer_post(struct sluice_buffer_service *service, const
    struct sluice_buffer_action *actions, uint32_t count, int64_t deadline);
int sluice_buffer_batch_post(struct sluice_buffer_batch *batch, int64_t deadline);
int sluice_buffer_batch_poll(struct sluice_buffer_batch *batch, struct sluice_completion
    *completions, uint32_t count);
int sluice_buffer_batch_next(struct sluice_buffer_batch *batch, int64_t timeout, struct
    sluice_completion *completion);
int sluice_buffer_batch_wait(struct sluice_buffer_batch *batch, int64_t timeout);
int sluice_buffer_batch_results(const struct sluice_buffer_batch *batch, struct
    sluice_completion *completions);
int sluice_buffer_batch_cancel(struct sluice_buffer_batch *batch);
int sluice_buffer_batch_fd(struct sluice_buffer_batch *batch);
int sluice_buffer_batch_arm(struct sluice_buffer_batch *batch, int64_t *due);
int sluice_buffer_connection_query(struct sluice_buffer_service *service, const struct
    sluice_buffer_handle *handle, struct sluice_channel_info *info);
int sluice_buffer_remote(const struct sluice_buffer_service *service, const struct
    sluice_buffer_handle *handle, const struct sluice_pd *pd, struct sluice_remote_mr *remote);

/* sluice/agent.h */
struct sluice_agent;
struct sluice_agent_peer;
struct sluice_agent_mr;
struct sluice_agent_message;
struct sluice_agent_attr {
    uint32_t size;
    uint32_t flags;
    uint32_t access;
    uint32_t max_peers;
    uint32_t max_regions;
    uint32_t eager;
    uint32_t window;
    uint32_t max_waiting;
    uint64_t max_waiting_bytes;
    uint64_t quota;
    uint64_t max_message;
    int64_t max_lease;
    int64_t keepalive;
    const char *secret_file;
    uint64_t max_left_bytes;
    uint32_t receive_pool;
    uint32_t receive_share;
};
struct sluice_agent_info {
    uint32_t size;
    uint32_t peers;
    uint32_t regions;
    uint32_t held;
    uint64_t bytes;
    uint64_t allocated;
    uint64_t denied;
    uint64_t expired;
    uint64_t reclaimed;
    uint64_t late;
    uint64_t refused_late;
    uint64_t malformed;
    uint64_t oversized;
    uint64_t unasked;
    uint64_t reconnects;
    uint64_t lost;
    uint64_t messages_sent;
    uint64_t messages_arrived;
    uint64_t left_bytes;
    uint64_t turned_away;
};
enum sluice_agent_state {
    SLUICE_AGENT_PEER_CONNECTED = 1,
    SLUICE_AGENT_PEER_LOST = 2,
};
struct sluice_agent_peer_info {
    uint32_t size;
    uint32_t state;
    int32_t error;
    uint32_t level;
    uint32_t access;
    uint32_t eager;
    uint32_t regions;
    uint32_t held;
    uint64_t bytes;
    uint64_t quota;
    uint64_t max_message;
    int64_t max_lease;
    uint64_t refused;
    uint64_t reconnects;
    char address[64];
    char text[256];
};
struct sluice_agent_mr_info {
    uint32_t size;
    uint32_t access;
    uint64_t id;
    int64_t lease;
    struct sluice_remote_mr remote;
};
struct sluice_agent_local {
    uint32_t size;
    uint32_t reserved;
    uint64_t id;
    void *addr;
    uint64_t length;
    struct sluice_mr *mr;
    struct sluice_agent_peer *peer;
};
void sluice_agent_close(struct sluice_agent *agent);
struct sluice_agent *sluice_agent_open(struct sluice_pd *pd, const struct sluice_agent_attr
    *attr);
int sluice_agent_listen(struct sluice_agent *agent, const char *address, const struct
    sluice_listen_attr *attr);
int sluice_agent_address(const struct sluice_agent *agent, char *text, size_t size);
int sluice_agent_query(struct sluice_agent *agent, struct sluice_agent_info *info);
void sluice_agent_peer_close(struct sluice_agent_peer *peer);
struct sluice_agent_peer *sluice_agent_connect(struct sluice_agent *agent, const char *address,
    const struct sluice_connect_attr *options, int64_t deadline);
struct sluice_agent_peer *sluice_agent_next_peer(struct sluice_agent *agent, int64_t timeout);
int sluice_agent_peer_query(struct sluice_agent_peer *peer, struct sluice_agent_peer_info
    *info);
int sluice_agent_mr_release(struct sluice_agent_mr *mr, int64_t deadline);
int sluice_agent_mr_send_back(struct sluice_agent_mr *mr, int64_t deadline);
struct sluice_agent_mr *sluice_agent_request_mr(struct sluice_agent_peer *peer, uint64_t length,
    uint32_t access, int64_t lease, int64_t deadline);
int sluice_agent_mr_renew(struct sluice_agent_mr *mr, int64_t lease, int64_t deadline);
int sluice_agent_mr_query(struct sluice_agent_mr *mr, struct sluice_agent_mr_info *info);
int sluice_agent_send_local_mr(struct sluice_agent_peer *peer, const struct sluice_mr *mr,
    size_t offset, size_t length, uint32_t access, int64_t lease, int64_t deadline, uint64_t
    *id);
int sluice_agent_revoke_mr(struct sluice_agent_peer *peer, uint64_t id);
struct sluice_agent_mr *sluice_agent_receive_remote_mr(struct sluice_agent *agent, struct
    sluice_agent_peer *peer, int64_t timeout);
struct sluice_agent_peer *sluice_agent_mr_peer(const struct sluice_agent_mr *mr);
int sluice_agent_receive_local_mr(struct sluice_agent *agent, struct sluice_agent_peer *peer,
    int64_t timeout, struct sluice_agent_local *local);
int sluice_agent_mr_read(struct sluice_agent_mr *mr, uint64_t offset, const struct sluice_sge
    *sges, uint32_t sge_count, int64_t deadline);
int sluice_agent_mr_write(struct sluice_agent_mr *mr, uint64_t offset, const struct sluice_sge
    *sges, uint32_t sge_count, int64_t deadline);
int sluice_agent_mr_compare_swap(struct sluice_agent_mr *mr, uint64_t offset, const struct
    sluice_sge *result, uint64_t expected, uint64_t desired, int64_t deadline);
int sluice_agent_mr_fetch_add(struct sluice_agent_mr *mr, uint64_t offset, const struct
    sluice_sge *result, uint64_t addend, int64_t deadline);
int sluice_agent_submit(struct sluice_agent_peer *peer, const struct sluice_request *requests,
    uint32_t count, int64_t deadline, struct sluice_completion *completions);
int sluice_agent_send(struct sluice_agent_peer *peer, const void *bytes, size_t length, int64_t
    deadline);
int sluice_agent_flush(struct sluice_agent_peer *peer, int64_t timeout);
void sluice_agent_message_free(struct sluice_agent_message *message);
struct sluice_agent_message *sluice_agent_receive(struct sluice_agent *agent, struct
    sluice_agent_peer *peer, int64_t timeout);
void *sluice_agent_message_addr(struct sluice_agent_message *message);
size_t sluice_agent_message_length(const struct sluice_agent_message *message);
struct sluice_agent_peer * sluice_agent_message_peer(const struct sluice_agent_message
    *message);
int sluice_agent_fd(const struct sluice_agent *agent);
int sluice_agent_arm(struct sluice_agent *agent, int64_t *due);
int sluice_agent_progress(struct sluice_agent *agent);
int sluice_agent_wake(struct sluice_agent *agent);

/* sluice/verbs.h */
struct ibv_context;
struct ibv_mr;
struct ibv_pd;
struct ibv_qp;
struct ibv_context *sluice_verbs_context(const struct sluice_context *context);
struct ibv_pd *sluice_verbs_pd(const struct sluice_pd *pd);
struct ibv_mr *sluice_verbs_mr(const struct sluice_mr *mr);
struct ibv_qp *sluice_verbs_channel_qp(const struct sluice_channel *channel);
struct ibv_qp * sluice_verbs_multichannel_qp(const struct sluice_multichannel *multichannel,
    uint32_t peer);
struct sluice_context *sluice_verbs_context_wrap(struct ibv_context *ibv, const struct
    sluice_context_attr *attr);
struct sluice_pd *sluice_verbs_pd_wrap(struct sluice_context *context, struct ibv_pd *ibv);

/* sluice/environment.h */
enum sluice_variable_state {
    SLUICE_VARIABLE_UNSET = 1,
    SLUICE_VARIABLE_SET = 2,
    SLUICE_VARIABLE_WRONG = 3,
    SLUICE_VARIABLE_UNKNOWN = 4,
};
struct sluice_variable_info {
    uint32_t size;
    uint32_t state;
    char name[64];
    char what[64];
    char value[256];
    char preset[64];
    char allowed[64];
    char nearest[64];
    char reason[256];
};
int sluice_environment_variable(uint32_t index, struct sluice_variable_info *info);

/* What macros stand for. */
#define SLUICE_ZERO 4294967295
#define SLUICE_VERSION_MAJOR 1
#define SLUICE_VERSION_MINOR 0
#define SLUICE_VERSION_PATCH 0
#define SLUICE_VERSION_CODE 65536
#define SLUICE_FOREVER 9223372036854775807
#define SLUICE_CONTEXT_GID_INDEX 1
#define SLUICE_CONTEXT_FORK 2
#define SLUICE_ACCESS_LOCAL_WRITE 1
#define SLUICE_ACCESS_REMOTE_WRITE 2
#define SLUICE_ACCESS_REMOTE_READ 4
#define SLUICE_ACCESS_REMOTE_ATOMIC 8
#define SLUICE_MR_HUGE_PAGES 65536
#define SLUICE_REMOTE_MR_BYTES 32
#define SLUICE_ALLOCATOR_HUGE_PAGES 1
#define SLUICE_ALLOCATOR_NUMA_NODE 2
#define SLUICE_ALLOCATOR_MAX_ALIGN 65536
#define SLUICE_ENDPOINT_BYTES 384
#define SLUICE_IMMEDIATE 1
#define SLUICE_FENCE 2
#define SLUICE_SOLICITED 4
#define SLUICE_INLINE 8
#define SLUICE_WRITTEN 16
#define SLUICE_PEER_REMOVED 32
#define SLUICE_PLAIN_MEMORY 64
#define SLUICE_ACCESS_NONE 2147483648
#define SLUICE_CHANNEL_GLOBAL 1
#define SLUICE_CHANNEL_PSN 2
#define SLUICE_CHANNEL_HISTOGRAMS 4
#define SLUICE_CHANNEL_DROP_LONG 8
#define SLUICE_MAX_PEERS 65536
#define SLUICE_SCOPE_STRICT 1
#define SLUICE_HISTOGRAM_BUCKETS 1152
#define SLUICE_PRIVATE_DATA_BYTES 1024
#define SLUICE_MAX_CONNECT_CHANNELS 64
#define SLUICE_LISTEN_FD 1
#define SLUICE_CONNECT_WAIT 1
#define SLUICE_MAX_RANKS 65536
#define SLUICE_MAX_EXCHANGE_BYTES 1048576
#define SLUICE_NODE_ALLGATHER_BYTES 65536
#define SLUICE_NODE_ALLTOALL_BYTES 65536
#define SLUICE_NODE_ENDPOINT_BYTES 448
#define SLUICE_BUFFER_HANDLE_BYTES 256
#define SLUICE_MAX_BUFFER_PDS 4
#define SLUICE_AGENT_NO_THREAD 1

/* What _forked.py calls of the C library. */
void *mmap(void *, size_t, int, int, int, long);
int munmap(void *, size_t);
"""
