// SPDX-License-Identifier: BSD-2-Clause
// specimen.go: a Go program whose only names, once stripped, stand in .gopclntab.
package main

import "os"

type counter struct{ n int }

//go:noinline
func (c *counter) specimenMethod(n int) int { return c.n + n }

//go:noinline
func specimenLocal(n int) int { return n * 3 }

func main() {
	c := &counter{len(os.Args)}
	os.Exit(c.specimenMethod(specimenLocal(len(os.Args))) & 0)
}
