<?php // SPDX-License-Identifier: BSD-2-Clause
// Recursion, a sort that calls back, and strings. No regular expressions: PCRE compiles them.
function recurses($depth)
{
	return $depth == 0 ? array_sum(range(1, 100)) : recurses($depth - 1) + 1;
}

for ($end = microtime(true) + (int)$argv[1]; microtime(true) < $end;) {
	recurses(10);
	$goods = range(0, 200);
	usort($goods, fn($a, $b) => $a * 7919 % 1009 <=> $b * 7919 % 1009);
	strlen(str_replace('goods', 'wares', strrev(str_repeat('goods7919 ', 20))));
}
