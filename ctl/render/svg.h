/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * svg.h: writes a tree as one self-contained SVG file: one panel per column, next to each other,
 * with a script for search, zoom and the window's width. Foreign data appears only as escaped text.
 */
#ifndef TROCAR_CTL_RENDER_SVG_H
#define TROCAR_CTL_RENDER_SVG_H

#include "ctl/view/tree.h"
#include "ctl/view/view.h"

struct svg_panel {
	char *head; /* the text above the panel; owned by the caller */
	unsigned int column;
	uint64_t total; /* the value of the panel's full width; 0: an empty panel */
};

struct svg {
	const struct tree *tree; /* sorted */
	const struct labels *labels;
	enum view_unit unit;
	const char *title, *subtitle; /* tame */
	struct svg_panel panels[TREE_COLUMNS];
	unsigned int n_panels;
	const char *columns[TREE_COLUMNS]; /* their names; [1] NULL: there is one column */
	double scale[TREE_COLUMNS];	   /* makes the columns comparable; 0: not known */
	bool difference;		   /* coloured by growth, not by kind */
	bool states;			   /* coloured by the threads' state, not by kind */
	bool inverted;			   /* the root is at the bottom */
};

void svg_write(const struct svg *svg, FILE *out);

/*
 * Returns the SHA-256 of the script in each file, in base64: a page that embeds the file allows
 * this script.
 */
const char *svg_script_hash(void);

/*
 * Returns the difference of a node's columns, from -1 (only in the first) to 1 (only in the
 * second).
 */
double svg_change(const struct svg *svg, const struct tree_node *node);

#endif
