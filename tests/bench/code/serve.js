// SPDX-License-Identifier: BSD-2-Clause
// serve.js PORT: an HTTP server that answers with rows as JSON.
"use strict";
const http = require("http");
const rows = Array.from({ length: 20 }, (_, i) => ({ id: i, name: `row ${i}`, tags: ["a", "b", String(i)] }));

http.createServer((request, response) => {
	const sorted = rows.slice().sort((a, b) => (a.name < b.name ? -1 : 1));
	response.end(JSON.stringify(sorted));
}).listen(Number(process.argv[2]), "127.0.0.1");
