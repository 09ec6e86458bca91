/* SPDX-License-Identifier: MIT */
/*
 * What a program in C++17 puts around sluice: objects that end themselves, errors that
 * are thrown, and blocks of memory as spans.
 */
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <sluice.h>

namespace peers
{

/* What the library says of its last failure in this thread. */
struct error : std::runtime_error {
    explicit error(const std::string &what) : std::runtime_error(what + ": " + sluice_last_error())
    {
    }
};

inline void check(int result, const char *what)
{
    if (result < 0)
        throw error(what);
}

/* An object of the library that Close ends. */
template <auto Close> struct closer {
    template <typename Object> void operator()(Object *object) const
    {
        Close(object);
    }
};
template <typename Object, auto Close> using owned = std::unique_ptr<Object, closer<Close>>;

using context = owned<sluice_context, sluice_context_close>;
using pd = owned<sluice_pd, sluice_pd_free>;
using mr = owned<sluice_mr, sluice_mr_deregister>;
using prepared = owned<sluice_prepared_multichannel, sluice_prepared_multichannel_free>;
using multichannel = owned<sluice_multichannel, sluice_multichannel_close>;

/* Takes what a call of the library made; NULL is its failure. */
template <typename Owned> Owned take(typename Owned::pointer object, const char *what)
{
    if (object == nullptr)
        throw error(what);
    return Owned(object);
}

/* Some elements that belong to somebody else, as std::span of C++20. */
template <typename T> class span
{
  public:
    span(T *first, std::size_t count) : first_(first), count_(count)
    {
    }
    T *begin() const
    {
        return first_;
    }
    T *end() const
    {
        return first_ + count_;
    }
    std::size_t size_bytes() const
    {
        return count_ * sizeof(T);
    }

  private:
    T *first_;
    std::size_t count_;
};

/* Registered memory for elements of T, which are handed out in blocks of one size. */
template <typename T> class memory
{
  public:
    memory(sluice_pd *domain, std::size_t blocks, std::size_t block)
        : block_(block), mr_(take<mr>(sluice_mr_alloc(domain, blocks * block * sizeof(T),
                                                      SLUICE_ACCESS_LOCAL_WRITE),
                                      "allocate memory"))
    {
    }

    span<T> operator[](std::size_t i) const
    {
        return {static_cast<T *>(sluice_mr_addr(mr_.get())) + i * block_, block_};
    }

    /* The request that sends a block to a peer, or receives it from there. */
    sluice_request request(std::uint32_t peer, std::size_t i) const
    {
        sluice_request request{};
        request.peer = peer;
        request.sge_count = 1;
        check(
            sluice_mr_sge_at(mr_.get(), (*this)[i].begin(), (*this)[i].size_bytes(), &request.sge),
            "name a block");
        return request;
    }

  private:
    std::size_t block_;
    mr mr_;
};

/* Peers that are this process itself; between processes the endpoints would travel. */
inline multichannel connect(sluice_pd *domain, std::uint32_t count)
{
    auto ready = take<prepared>(sluice_multichannel_prepare(domain, count, nullptr), "prepare");
    std::vector<sluice_endpoint> endpoints(count);

    check(sluice_prepared_multichannel_endpoints(ready.get(), endpoints.data(), count), "describe");
    /* The handshake consumes what was prepared, whatever becomes of it. */
    return take<multichannel>(
        sluice_prepared_multichannel_handshake(ready.release(), endpoints.data(), count),
        "connect");
}

inline void scatter_gather(const multichannel &all, const std::vector<sluice_request> &sends,
                           const std::vector<sluice_request> &receives)
{
    std::vector<sluice_completion> done(sends.size() + receives.size());

    check(sluice_multichannel_scatter_gather(
              all.get(), sends.data(), static_cast<std::uint32_t>(sends.size()), receives.data(),
              static_cast<std::uint32_t>(receives.size()), SLUICE_S(30), done.data()),
          "scatter and gather");
    for (const auto &completion : done)
        if (completion.error != 0)
            throw std::runtime_error("peer " + std::to_string(completion.peer) + ": " +
                                     sluice_error_class_name(completion.error_class));
}

} // namespace peers
