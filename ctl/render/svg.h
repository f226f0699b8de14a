/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * svg.h: a tree as one SVG file that needs nothing else: drawn side by side for its columns, with a
 * script for search, zoom and the window's width. What is foreign stands only in escaped text.
 */
#ifndef TROCAR_CTL_RENDER_SVG_H
#define TROCAR_CTL_RENDER_SVG_H

#include "ctl/view/tree.h"
#include "ctl/view/view.h"

struct svg_panel {
	char *head; /* what stands above it; owned by the caller */
	unsigned int column;
	uint64_t total; /* that the panel's width stands for; 0: an empty panel */
};

struct svg {
	const struct tree *tree; /* sorted */
	const struct labels *labels;
	enum view_unit unit;
	const char *title, *subtitle; /* tame */
	struct svg_panel panels[TREE_COLUMNS];
	unsigned int n_panels;
	const char *columns[TREE_COLUMNS]; /* what they are called; [1] NULL: there is one */
	double scale[TREE_COLUMNS];	   /* makes the columns comparable; 0: not known */
	bool difference;		   /* coloured by growth, not by kind */
	bool states;			   /* coloured by the threads' state, not by kind */
	bool inverted;			   /* the root at the foot */
};

void svg_write(const struct svg *svg, FILE *out);

/* The SHA-256 of the script that stands in each file, in base64: a page that shows one allows it.
 */
const char *svg_script_hash(void);

/* The difference of a node's columns, from -1 (only in the first) to 1 (only in the second). */
double svg_change(const struct svg *svg, const struct tree_node *node);

#endif
