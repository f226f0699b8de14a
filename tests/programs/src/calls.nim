# SPDX-License-Identifier: BSD-2-Clause
# calls.nim: recursion, closures, tables and sorting, for ever.
import std/[algorithm, strutils, tables]

proc fib(n: int): int =
  if n < 2: n else: fib(n - 1) + fib(n - 2)

proc sorts(n: int): int =
  var goods = newSeq[int](300)
  for i in 0 ..< goods.len: goods[i] = (i * 7919 + n) mod 1009
  goods.sort(proc (a, b: int): int = cmp(a, b))
  goods[0]

proc counts(n: int): int =
  var seen = initCountTable[string]()
  for i in 0 ..< 50: seen.inc(intToStr((i * n) mod 17))
  seen.len

var n = 0
while true:
  inc n
  if fib(18) + sorts(n) + counts(n) < 0: break
