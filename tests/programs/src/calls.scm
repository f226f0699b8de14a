;;; SPDX-License-Identifier: BSD-2-Clause
;;; calls.scm: recursion, sorting and big numbers in Guile, for ever.
(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(define (goods n) (map (lambda (i) (modulo (+ n (* i 7919)) 1009)) (iota 300)))
(define (big n) (if (= n 0) 1 (* n (big (- n 1)))))
(let loop ((n 0))
  (fib 20)
  (sort (goods n) <)
  (string-length (number->string (big 200)))
  (loop (+ n 1)))
