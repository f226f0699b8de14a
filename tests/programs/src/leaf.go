// SPDX-License-Identifier: BSD-2-Clause
// leaf.go: a leaf without a frame of its own, three calls below main.
package main

var sink uint64

//go:noinline
func tightLoop(x uint64) uint64 {
	for i := uint64(0); i < 20000; i++ {
		x = x*6364136223846793005 + i
	}
	return x
}

//go:noinline
func priceOrder(x uint64) uint64 {
	y := tightLoop(x)
	return y + tightLoop(y)
}

//go:noinline
func priceBasket(x uint64) uint64 {
	y := priceOrder(x)
	return y + priceOrder(y)
}

func main() {
	for {
		sink += priceBasket(sink)
	}
}
