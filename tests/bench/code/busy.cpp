// SPDX-License-Identifier: BSD-2-Clause
// Templates and the standard library: what a C++ compiler is busy with for half a minute and more.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>
template <int N> struct table {
	std::map<std::string, std::vector<std::unique_ptr<std::pair<int, std::string>>>> rows;
	std::unordered_map<std::string, std::function<int(const std::string &)>> calls;
	std::variant<int, std::string, std::vector<int>> value;
	int work(const std::string &text)
	{
		std::regex form("[a-z]{" + std::to_string(N) + "}");
		calls[text] = [this](const std::string &t) { return N + (int)rows[t].size(); };
		std::vector<std::string> sorted;
		for (auto &row : rows)
			sorted.push_back(row.first + std::to_string(N));
		std::sort(sorted.begin(), sorted.end(),
			  [](auto &a, auto &b) { return a.size() + N < b.size(); });
		value = (int)std::regex_match(text, form);
		return std::visit([](auto &v) { return (int)sizeof(v) + N; }, value) + calls[text](text);
	}
};
template <int N> int all(const std::string &text)
{
	if constexpr (N == 0)
		return 0;
	else
		return table<N>().work(text) + all<N - 1>(text);
}
int run(const std::string &text)
{
	return all<200>(text);
}
