/* SPDX-License-Identifier: MIT */
#include <sluice.h>

#ifdef IGNORED_ALLOC /* expect: -Wunused-result */
void alloc_nothing(struct sluice_pd *pd)
{
    sluice_mr_alloc(pd, 4096, SLUICE_ACCESS_LOCAL_WRITE);
}
#endif

#ifdef IGNORED_REGISTER_DMABUF /* expect: -Wunused-result */
void register_nothing(struct sluice_pd *pd, int fd)
{
    sluice_mr_register_dmabuf(pd, fd, 0, 4096, 0, SLUICE_ACCESS_LOCAL_WRITE);
}
#endif

#ifdef IGNORED_REGISTER /* expect: -Wunused-result */
void register_nothing(struct sluice_pd *pd, void *buffer)
{
    sluice_mr_register(pd, buffer, 4096, SLUICE_ACCESS_LOCAL_WRITE);
}
#endif

#ifdef IGNORED_SGE /* expect: -Wunused-result */
void make_blindly(const struct sluice_mr *mr, struct sluice_sge *sge)
{
    sluice_mr_sge(mr, 4096, 4096, sge);
}
#endif

#ifdef IGNORED_SLICE /* expect: -Wunused-result */
void cut_blindly(const struct sluice_remote_mr *remote, struct sluice_remote_mr *slice)
{
    sluice_remote_mr_slice(remote, 0, 64, slice);
}
#endif

#ifdef IGNORED_UNPACK /* expect: -Wunused-result */
void believe(const uint8_t bytes[SLUICE_REMOTE_MR_BYTES], struct sluice_remote_mr *remote)
{
    sluice_remote_mr_unpack(bytes, remote);
}
#endif

#ifdef OF_CONTEXT /* expect: -Wincompatible-pointer-types */
struct sluice_mr *register_with_context(struct sluice_context *context, void *buffer)
{
    return sluice_mr_register(context, buffer, 4096, SLUICE_ACCESS_LOCAL_WRITE);
}
#endif

#ifdef WRITE_TO_LOCAL /* expect: -Wincompatible-pointer-types */
int write_to_local(struct sluice_channel *channel, const struct sluice_sge *sge,
                   const struct sluice_mr *mr)
{
    return sluice_channel_write(channel, sge, 1, mr, SLUICE_S(1));
}
#endif
