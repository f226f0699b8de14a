// SPDX-License-Identifier: BSD-2-Clause
// specimen.go: a Go program whose only names, once stripped, stand in .gopclntab. It imports nothing: compiling the
// packages below `os` would take longer than all else of it.
package main

var sink int

type counter struct{ n int }

//go:noinline
func (c *counter) specimenMethod(n int) int { return c.n + n }

//go:noinline
func specimenLocal(n int) int { return n * 3 }

func main() {
	c := &counter{sink}
	sink = c.specimenMethod(specimenLocal(sink))
}
