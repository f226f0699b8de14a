;; SPDX-License-Identifier: BSD-2-Clause
;; calls.el: recursion, sorting and regular expressions, for ever.
(defun calls-fib (n) (if (< n 2) n (+ (calls-fib (- n 1)) (calls-fib (- n 2)))))
(defun calls-sorts (n)
  (sort (mapcar (lambda (i) (mod (+ n (* i 7919)) 1009)) (number-sequence 1 200)) #'<))
(defun calls-matches (n) (string-match "\\([0-9]+\\)-\\1" (format "%d-%d" n n)))
(let ((n 0))
  (while t
    (setq n (mod (1+ n) 1000))
    (calls-fib 15)
    (calls-sorts n)
    (calls-matches n)))
