// SPDX-License-Identifier: BSD-2-Clause

// calls_gccgo: goroutines that recurse, sort and meet at channels, for ever.
package main

import (
	"sort"
	"strconv"
)

//go:noinline
func fib(n int) int {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

//go:noinline
func sorts(n int) int {
	goods := make([]int, 300)
	for i := range goods {
		goods[i] = (i*7919 + n) % 1009
	}
	sort.Slice(goods, func(a, b int) bool { return goods[a] < goods[b] })
	return goods[0]
}

func works(out chan<- int) {
	for n := 0; ; n++ {
		out <- fib(18) + sorts(n) + len(strconv.Itoa(n))
	}
}

func main() {
	out := make(chan int)
	for i := 0; i < 4; i++ {
		go works(out)
	}
	total := 0
	for n := range out {
		total = (total + n) % 1000
	}
}
