%% SPDX-License-Identifier: BSD-2-Clause
%% calls.erl: two processes that recurse, sort and make texts, for ever.
-module(calls).
-export([main/0]).

fib(N) when N < 2 -> N;
fib(N) -> fib(N - 1) + fib(N - 2).

sorts(N) -> lists:sort([(I * 7919 + N) rem 1009 || I <- lists:seq(1, 300)]).

texts(N) -> [integer_to_list(I * N) || I <- lists:seq(1, 200)].

works(N) ->
    fib(18),
    sorts(N),
    texts(N),
    works((N + 1) rem 1000).

main() ->
    spawn(fun() -> works(0) end),
    works(500).
