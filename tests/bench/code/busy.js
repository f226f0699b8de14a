// SPDX-License-Identifier: BSD-2-Clause
// busy.js SECONDS: work that spreads over compiled JavaScript, V8's runtime and its libraries.
"use strict";
const crypto = require("crypto");
const zlib = require("zlib");
const end = Date.now() + Number(process.argv[2]) * 1000;
const rows = Array.from({ length: 2000 }, (_, i) => ({ id: i, name: `row ${i * 7919 % 2000}`, tags: ["a", "b", String(i)] }));

function sortRows() { return rows.slice().sort((a, b) => (a.name < b.name ? -1 : 1)).map((r) => r.id); }
function copyRows() { return JSON.parse(JSON.stringify(rows)).length; }
function matchRows() { return rows.filter((r) => /(\d+)(?:1|3|5)$/.test(r.name)).length; }
function hashRows() { return crypto.createHash("sha256").update(JSON.stringify(rows)).digest("hex"); }
function packRows() { return zlib.deflateSync(JSON.stringify(rows)).length; }
function countWords() {
	const words = new Map();
	for (const r of rows)
		for (const w of r.name.split(" "))
			words.set(w, (words.get(w) || 0) + 1);
	return words.size;
}
const work = [sortRows, copyRows, matchRows, hashRows, packRows, countWords];
for (let i = 0; Date.now() < end; i++)
	work[i % work.length]();
