\ SPDX-License-Identifier: BSD-2-Clause
\ calls.fs: recursion, for ever.
: fib ( n -- n ) dup 2 < if exit then dup 1- recurse swap 2 - recurse + ;
: works begin 20 fib drop again ;
works
