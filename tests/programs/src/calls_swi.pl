% SPDX-License-Identifier: BSD-2-Clause
% calls_swi.pl: recursion and sorting, for ever.
fib(N, N) :- N < 2, !.
fib(N, F) :- A is N - 1, B is N - 2, fib(A, X), fib(B, Y), F is X + Y.

sorts(N) :- findall(K, (between(1, 300, I), K is (I * 7919 + N) mod 1009), L), msort(L, _).

works(N) :- fib(15, _), sorts(N), !, M is (N + 1) mod 1000, fail_over(M).
fail_over(M) :- nb_setval(turn, M).

main :- nb_setval(turn, 0), repeat, nb_getval(turn, N), works(N), fail.
