// SPDX-License-Identifier: BSD-2-Clause
// calls.go: a goroutine that calls down to a leaf, through the library's sort.
package main

import (
	"os"
	"sort"
	"strconv"
	"time"
)

var sink int

//go:noinline
func goLeaf(turns int) {
	for i := 0; i < turns; i++ {
		sink += i
	}
}

//go:noinline
func callsLeaf() { goLeaf(20000); sink++ }

//go:noinline
func sortsGoods() {
	goods := make([]int, 100)
	for i := range goods {
		goods[i] = i * 7919 % 1009
	}
	sort.Slice(goods, func(a, b int) bool { goLeaf(100); return goods[a] < goods[b] })
}

//go:noinline
func works(end time.Time, done chan bool) {
	for time.Now().Before(end) {
		callsLeaf()
		sortsGoods()
	}
	done <- true
}

func main() {
	seconds, _ := strconv.Atoi(os.Args[1])
	done := make(chan bool)
	go works(time.Now().Add(time.Duration(seconds)*time.Second), done)
	<-done
}
