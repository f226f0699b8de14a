/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * coroutines.cc: coroutines of C++20 that yield from within a loop and are resumed by main.
 */
#include <coroutine>
#include <cstdlib>
#include <ctime>
#include <exception>

struct numbers {
	struct promise_type {
		unsigned int value = 0;

		numbers get_return_object()
		{
			return numbers{ handle::from_promise(*this) };
		}
		std::suspend_always initial_suspend()
		{
			return {};
		}
		std::suspend_always final_suspend() noexcept
		{
			return {};
		}
		std::suspend_always yield_value(unsigned int v)
		{
			value = v;
			return {};
		}
		void return_void()
		{
		}
		void unhandled_exception()
		{
			std::terminate();
		}
	};
	using handle = std::coroutine_handle<promise_type>;
	handle self;
};

__attribute__((noinline)) static unsigned int leaf(unsigned int seed)
{
	for (unsigned int i = 0; i < 20000; i++)
		__asm__ volatile("" : "+r"(seed));
	return seed;
}

static numbers counts(unsigned int seed)
{
	for (;;)
		co_yield leaf(seed++);
}

__attribute__((noinline)) static void resumes(numbers &n)
{
	n.self.resume();
	__asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv)
{
	time_t end = time(nullptr) + (argc > 1 ? atoi(argv[1]) : 1);
	numbers n = counts(1);

	while (time(nullptr) < end)
		resumes(n);
	n.self.destroy();
}
