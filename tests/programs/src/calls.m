% SPDX-License-Identifier: BSD-2-Clause
% calls.m: recursion, sorting and matrices in Octave, for ever.
1;
function r = fib (n)
  if (n < 2)
    r = n;
  else
    r = fib (n - 1) + fib (n - 2);
  endif
endfunction
n = 0;
while true
  n = mod (n + 1, 1000);
  fib (10);
  sort (mod ((1:300) * 7919 + n, 1009));
  det (rand (60));
  regexprep (sprintf ("%d-%d", n, n), '(\d+)-', '$1+');
endwhile
