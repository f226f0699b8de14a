# SPDX-License-Identifier: BSD-2-Clause
# calls.tcl: recursion, sorting and regular expressions, for ever.
proc fib {n} {
	if {$n < 2} { return $n }
	expr {[fib [expr {$n - 1}]] + [fib [expr {$n - 2}]]}
}
proc sorts {n} {
	set goods {}
	for {set i 0} {$i < 200} {incr i} { lappend goods [expr {($i * 7919 + $n) % 1009}] }
	lsort -integer $goods
}
for {set n 0} {1} {incr n} {
	fib 14
	sorts $n
	regexp {([0-9]+)-\1} "$n-$n"
}
