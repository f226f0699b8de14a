// SPDX-License-Identifier: BSD-2-Clause
// service.js PORT FLAG: answers with a little work. Once the file FLAG exists, the heap is nearly full of live data.
const fs = require('fs');
const http = require('http');
const live = [];

function rows(name) {
	const made = [];

	for (let i = 0; i < 2000; i++)
		made.push({ i, s: name + i });
	return made;
}

setInterval(() => {
	if (!fs.existsSync(process.argv[3]))
		return;
	for (let n = 0; n < 60 && process.memoryUsage().heapUsed < 50e6; n++)
		live.push(rows('x'));
	for (let k = 0; k < 20; k++)
		live[Math.floor(Math.random() * live.length)] = rows('y');
}, 30);
http.createServer((request, answer) => answer.end(JSON.stringify(rows('a').slice(0, 500))))
	.listen(Number(process.argv[2]), '127.0.0.1');
