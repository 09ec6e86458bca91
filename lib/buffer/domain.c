/* SPDX-License-Identifier: MIT */
/* The domains of a service, and the ways to an owner. */
#include "config.h"

#include "buffer/service.h"
#include "connect/address.h"

int slu_not_a_buffer_service(const struct sluice_buffer_service *service)
{
    return slu_misuse(EINVAL, "not a buffer service%s", slu_none_hint(service));
}

bool slu_buffer_has_domain(const struct sluice_buffer_service *service, const struct sluice_pd *pd)
{
    for (uint32_t i = 0; i < service->domain_count; i++)
        if (service->domains[i].pd == pd)
            return true;
    return false;
}

int slu_buffer_find_way(const struct sluice_buffer_service *service,
                        const struct slu_buffer_name *name, const struct sluice_pd *pd,
                        struct slu_buffer_way *way)
{
    char owner[SLU_ADDRESS_TEXT];

    for (uint32_t i = 0; i < service->domain_count; i++) {
        if (pd != NULL && service->domains[i].pd != pd)
            continue;
        for (uint32_t k = 0; k < name->way_count; k++) {
            if (name->ways[k].transport == service->domains[i].transport) {
                *way = name->ways[k];
                return (int)i;
            }
        }
    }
    return slu_fail(EPROTOTYPE, "the owner at %s is on %s alone, and %s not",
                    slu_address_text(&name->addresses[0], owner),
                    slu_buffer_transport_name(name->ways[0].transport),
                    pd != NULL ? "the domain of this side" : "this service");
}
