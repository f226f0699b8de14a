;;; SPDX-License-Identifier: BSD-2-Clause
;;; calls_chicken.scm: recursion in CHICKEN, whose compiled code never returns, for ever.
(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(let loop ((n 0))
  (fib 20)
  (string-length (number->string (* n n n)))
  (loop (+ n 1)))
