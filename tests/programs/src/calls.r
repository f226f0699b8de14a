# SPDX-License-Identifier: BSD-2-Clause
# calls.r: recursion, a fit and regular expressions, for ever.
fib <- function(n) if (n < 2) n else fib(n - 1) + fib(n - 2)
fits <- function(n) coef(lm(y ~ x, data.frame(x = 1:50, y = (1:50 * 7919 + n) %% 1009)))
matches <- function(n) grepl("^([0-9]+)-\\1$", paste(n, n, sep = "-"))
n <- 0
repeat {
	n <- (n + 1) %% 1000
	fib(14)
	fits(n)
	matches(n)
	sort(runif(2000))
}
