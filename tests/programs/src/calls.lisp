;;; SPDX-License-Identifier: BSD-2-Clause
;;; calls.lisp: recursion, sorting and big numbers, for ever.
(defun fib (n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(defun sorts (n)
  (reduce #'+ (sort (loop for i below 300 collect (mod (+ n (* i 7919)) 1009)) #'<)))
(defun big (n) (integer-length (loop with r = 1 for i from 1 to (+ 100 (mod n 20)) do (setf r (* r i)) finally (return r))))
(let ((n 0))
  (loop (incf n) (when (< (+ (fib 18) (sorts n) (big n)) 0) (return))))
