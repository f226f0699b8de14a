(* SPDX-License-Identifier: BSD-2-Clause
   calls.ml: recursion, closures, sorting and strings, for ever. *)
let rec fib n = if n < 2 then n else fib (n - 1) + fib (n - 2)

let rec deep n = if n = 0 then fib 15 else 1 + deep (n - 1)

let sorts n =
  let goods = List.init n (fun i -> (i * 7919) mod 1009) in
  List.fold_left ( + ) 0 (List.sort compare goods)

let words n = String.length (String.concat "," (List.init n string_of_int))

let () =
  while true do
    ignore (Sys.opaque_identity (fib 20 + deep 50 + sorts 500 + words 200))
  done
