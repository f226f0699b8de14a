// SPDX-License-Identifier: BSD-2-Clause
// Zoom, search and the width of the window for a picture of `trocar flamegraph`. Without a script the
// picture stands as it was drawn. Names come only from the text of the elements, never as code.
(() => {
	"use strict";
	const svg = document.documentElement;
	const one = (at, name) => at.querySelector(name);
	const all = (at, name) => Array.from(at.querySelectorAll(name));
	const MARGIN = 10, GAP = 16, CHARACTER = 7.23, HEAD_CHARACTER = 7.9, HEIGHT = +svg.getAttribute("height");
	const NARROW = 700, NARROW_HEIGHT = +svg.dataset.narrow, ROWS = +svg.dataset.rows * 18;
	// svg.c has these: rows of the legend and of the search's field, and what a panel has above it.
	const KEY_ROW = 20, SEARCH_ROW = 32, HEAD = 40;

	// The frames of a panel come root first: a frame's caller is the last one before it with less depth.
	const read_frames = (panel) => {
		const path = [];
		return all(panel, ".f").map((g) => {
			const [start, value, depth] = g.dataset.f.split(" ").map(Number);
			const name = one(g, "title").textContent.split("\n", 1)[0];
			path.length = depth;
			path[depth] = name;
			return { g, rect: one(g, "rect"), text: one(g, "text"), start, value, depth, name,
				path: path.join("\n") };
		});
	};
	const panels = all(svg, ".panel").map((g) => {
		const frames = read_frames(g);
		const total = +g.dataset.total;
		return { g, frames, total, head: one(g, ".head"), said: one(g, ".head").textContent,
			by_path: new Map(frames.map((f) => [f.path, f])), zoom: { start: 0, value: total, depth: -1 } };
	});
	let width = 0;

	const shorten = (name, room, character = CHARACTER) => {
		const fits = Math.floor((room - 6) / character);
		return fits < 3 ? "" : name.length <= fits ? name : name.slice(0, fits - 1) + "\u2026";
	};
	const place = (f, zoom) => {
		const up = f.depth < zoom.depth && f.start <= zoom.start &&
			f.start + f.value >= zoom.start + zoom.value;
		const start = up ? 0 : (f.start - zoom.start) / zoom.value * width;
		const size = up ? width : f.value / zoom.value * width;
		const off = size < 0.25 || start >= width || start + size <= 0 || (f.depth < zoom.depth && !up);
		f.g.classList.toggle("off", off);
		f.g.classList.toggle("up", up);
		if (off)
			return;
		f.rect.setAttribute("x", start.toFixed(2));
		f.rect.setAttribute("width", size.toFixed(2));
		f.text.setAttribute("x", (start + 3).toFixed(2));
		f.text.textContent = shorten(f.name, size);
	};
	const draw = (panel) => panel.frames.forEach((f) => place(f, panel.zoom));

	const move = (element, x, y) => element.setAttribute("transform", `translate(${x} ${y})`);
	// A text in lines of whole words, each an element of the class; returns the y behind them.
	const put_lines = (at, words, kind, room, character, y, step) => {
		const lines = [];
		for (const word of words.split(" ")) {
			const line = lines.length ? `${lines[lines.length - 1]} ${word}` : word;
			if (lines.length && line.length * character <= room)
				lines[lines.length - 1] = line;
			else
				lines.push(word);
		}
		at.replaceChildren(...lines.map((line, i) => {
			const text = document.createElementNS("http://www.w3.org/2000/svg", "text");
			text.setAttribute("class", kind);
			text.setAttribute("x", MARGIN);
			text.setAttribute("y", y + i * step);
			text.textContent = shorten(line, room + 6, character);
			return text;
		}));
		return y + lines.length * step;
	};
	const said = { title: one(svg, "title").textContent, under: one(svg, "#under").textContent,
		foot: one(svg, "#foot").textContent };
	const keys = all(svg, ".key"), field = one(svg, "#field"), shown = one(svg, "#reset");

	// The legend in as many rows as it needs, then the search, in its own row where that is narrow.
	const put_legend = (room, narrow, y) => {
		let x = MARGIN;
		for (const key of keys) {
			if (x > MARGIN && x + +key.dataset.w > room) {
				x = MARGIN;
				y += KEY_ROW;
			}
			move(key, x, y);
			x += +key.dataset.w;
		}
		y += narrow ? SEARCH_ROW : 0;
		x = narrow ? 0 : x;
		field.setAttribute("x", x + MARGIN);
		field.setAttribute("y", y - 17);
		field.setAttribute("width", 260);
		shown.setAttribute("x", x + 290);
		shown.setAttribute("y", y);
		return y;
	};
	// In a frame the page has chosen, by the height that it gave.
	const is_narrow = (whole) => window.parent === window ? whole < NARROW : window.innerHeight >= NARROW_HEIGHT;

	const resize = () => {
		const whole = Math.max(400, window.innerWidth || 1200), room = whole - 2 * MARGIN;
		const narrow = is_narrow(whole), columns = narrow ? 1 : panels.length;
		let y = put_lines(one(svg, "#title"), said.title, "title", room, 8.8, 26, 20);
		y = put_lines(one(svg, "#under"), said.under, "quiet", room, 6.6, y, 16);
		y = put_legend(room, narrow, y + 10) + HEAD;
		width = (room - GAP * (columns - 1)) / columns;
		panels.forEach((p, i) => {
			move(p.g, MARGIN + i % columns * (width + GAP), y + Math.floor(i / columns) * (ROWS + HEAD));
			draw(p);
		});
		y += Math.ceil(panels.length / columns) * (ROWS + HEAD) - HEAD;
		y = put_lines(one(svg, "#foot"), said.foot, "quiet", room, 6.6, y + 20, 16);
		svg.setAttribute("width", whole);
		svg.setAttribute("height", y);
		svg.setAttribute("viewBox", `0 0 ${whole} ${y}`);
		say();
	};

	// A frame is zoomed in every panel that has the same path, so that they stay side by side.
	const zoom_to = (frame) => {
		for (const p of panels) {
			const f = frame && p.by_path.get(frame.path);
			p.zoom = f ? { start: f.start, value: f.value, depth: f.depth }
				: { start: 0, value: p.total, depth: -1 };
			p.note = frame && !f ? " \u2014 not there: all is shown" : "";
			draw(p);
		}
		one(svg, "#reset").classList.toggle("off", !frame);
		say();
	};

	// The share of a panel that lies in or below a match; a match below another counts once.
	const matched = (p) => {
		let share = 0, end = -1;
		for (const f of p.frames) {
			if (f.hit && f.start >= end) {
				share += f.value;
				end = f.start + f.value;
			}
		}
		return p.total ? share / p.total * 100 : 0;
	};
	let searching = false;
	const say = () => panels.forEach((p) => {
		const found = searching ? ` \u2014 matched ${matched(p).toFixed(1)} %` : "";
		p.head.textContent = shorten(p.said + found + (p.note || ""), width, HEAD_CHARACTER);
	});
	const search = (text) => {
		let wanted;
		try {
			wanted = new RegExp(text, "i");
		} catch {
			// What is no regular expression (yet) is looked for as it stands.
			wanted = new RegExp(text.replace(/[^\w\s]/g, "\\$&"), "i");
		}
		searching = text !== "";
		for (const p of panels) {
			for (const f of p.frames) {
				f.hit = searching && wanted.test(f.name);
				f.g.classList.toggle("hit", f.hit);
			}
		}
		say();
	};

	const input = one(svg, "#search");
	input.addEventListener("input", () => search(input.value));
	one(svg, "#find").classList.remove("off");
	one(svg, "#reset").addEventListener("click", () => zoom_to(null));
	panels.forEach((p) => p.frames.forEach((f) => f.g.addEventListener("click", () => zoom_to(f))));
	window.addEventListener("keydown", (event) => {
		if (event.key === "Escape") {
			input.value = "";
			search("");
			zoom_to(null);
		} else if (event.key === "/" && document.activeElement !== input) {
			event.preventDefault();
			input.focus();
		}
	});
	window.addEventListener("resize", resize);
	resize();
})();
