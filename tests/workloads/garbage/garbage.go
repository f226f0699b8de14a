// SPDX-License-Identifier: BSD-2-Clause

// garbage CALM ALL: computes for CALM seconds, then makes garbage beside much that lives, for ALL seconds in all.
package main

import (
	"os"
	"runtime/debug"
	"strconv"
	"time"
)

type order struct {
	next *order
	rows [6]uint64
}

var kept, sink *order

func compute() {
	x := uint64(1)
	for i := 0; i < 1000000; i++ {
		x = x*6364136223846793005 + 1442695040888963407
	}
	sink.rows[0] = x
}

func main() {
	calm, _ := strconv.Atoi(os.Args[1])
	all, _ := strconv.Atoi(os.Args[2])
	begin := time.Now()
	sink = &order{}
	for i := 0; i < 300000; i++ {
		kept = &order{next: kept}
	}
	for time.Since(begin) < time.Duration(calm)*time.Second {
		compute()
	}
	debug.SetGCPercent(10)
	for time.Since(begin) < time.Duration(all)*time.Second {
		for i := 0; i < 1000; i++ {
			sink = &order{next: kept}
		}
	}
}
