/* SPDX-License-Identifier: BSD-2-Clause */
/* throws.cc: exceptions all the time, through frames with and without something to clean up. */
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>

static volatile unsigned long cleaned;

struct Cleans {
	~Cleans() { cleaned = cleaned + 1; }
};

__attribute__((noinline)) static void throws_below(int depth)
{
	Cleans cleans;

	if (depth == 0)
		throw std::runtime_error("sold out");
	throws_below(depth - 1);
}

__attribute__((noinline)) static unsigned long catches(int depth)
{
	try {
		throws_below(depth);
	} catch (const std::runtime_error &error) {
		return std::string(error.what()).size();
	}
	return 0;
}

int main(int argc, char **argv)
{
	auto end = std::chrono::steady_clock::now() + std::chrono::seconds(argc > 1 ? atoi(argv[1]) : 1);
	unsigned long sum = 0;

	while (std::chrono::steady_clock::now() < end)
		for (int i = 0; i < 100; i++)
			sum += catches(i % 8);
	return sum == 0;
}
