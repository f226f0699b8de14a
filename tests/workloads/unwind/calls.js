// SPDX-License-Identifier: BSD-2-Clause
// calls.js: recursion down to a leaf, a sort that calls back, and a regular expression.
let sink = 0;
function leaf(turns) { for (let i = 0; i < turns; i++) sink = (sink + i) | 0; }
function recurses(depth) { if (depth === 0) leaf(5000); else recurses(depth - 1); return sink; }
function sortsGoods() {
	const goods = Array.from({ length: 100 }, (_, i) => i * 7919 % 1009);
	goods.sort((a, b) => { leaf(50); return a - b; });
	return /([a-z]+)[0-9]+$/.test("goods".repeat(20) + goods[0]);
}
for (const end = Date.now() + 1000 * Number(process.argv[2]); Date.now() < end;) {
	recurses(10);
	sortsGoods();
}
