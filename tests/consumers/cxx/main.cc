/* SPDX-License-Identifier: MIT */
/* Scatters blocks of numbers to some peers, gathers them again, and adds them up. */
#include <exception>
#include <iostream>
#include <numeric>

#include "peers.hh"

static constexpr std::uint32_t count = 4;
static constexpr std::size_t block = 1000;

static void run()
{
    auto context = peers::take<peers::context>(sluice_context_open(nullptr, nullptr), "open");
    auto pd = peers::take<peers::pd>(sluice_pd_alloc(context.get()), "allocate a domain");
    peers::memory<std::uint64_t> memory(pd.get(), 2 * count, block);
    auto all = peers::connect(pd.get(), count);
    std::vector<sluice_request> sends, receives;
    std::uint64_t sum = 0;

    for (std::uint32_t i = 0; i < count; i++) {
        auto numbers = memory[i];
        std::iota(numbers.begin(), numbers.end(), i * block + 1);
        sends.push_back(memory.request(i, i));
        receives.push_back(memory.request(i, count + i));
    }
    peers::scatter_gather(all, sends, receives);
    for (std::uint32_t i = 0; i < count; i++) {
        auto numbers = memory[count + i];
        sum = std::accumulate(numbers.begin(), numbers.end(), sum);
    }
    std::cout << "c++ adds up: " << sum << '\n';
}

/* An error of the library is an exception of ours, and leaves nothing behind. */
static void fail()
{
    try {
        peers::take<peers::context>(sluice_context_open("no such device", nullptr), "open");
    } catch (const peers::error &error) {
        std::cout << "as it should: " << (*error.what() != '\0') << '\n';
    }
}

int main()
{
    try {
        run();
        fail();
        return 0;
    } catch (const std::exception &exception) {
        std::cerr << "blocks: " << exception.what() << '\n';
        return 1;
    }
}
