-- SPDX-License-Identifier: BSD-2-Clause
-- Recursion, a sort that calls back, and patterns.
local function recurses(depth)
	if depth > 0 then return recurses(depth - 1) + 1 end
	local sum = 0
	for i = 1, 1000 do sum = sum + i end
	return sum
end

local finish = os.time() + tonumber(arg[1])
while os.time() < finish do
	recurses(10)
	local goods = {}
	for i = 1, 200 do goods[i] = i * 7919 % 1009 end
	table.sort(goods, function(a, b) return a < b end)
	string.gsub(string.rep("goods7919 ", 20), "(%a+)(%d+)", "%2%1")
end
