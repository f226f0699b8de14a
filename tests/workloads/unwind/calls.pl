# SPDX-License-Identifier: BSD-2-Clause
# Recursion, a sort that calls back, and regular expressions.
use strict;
use warnings;

sub recurses {
	my ($depth) = @_;
	return $depth == 0 ? eval { my $sum = 0; $sum += $_ for 1 .. 100; $sum } : recurses($depth - 1) + 1;
}

for (my $end = time + $ARGV[0]; time < $end;) {
	recurses(10);
	my @goods = sort { $a * 7919 % 1009 <=> $b * 7919 % 1009 } 0 .. 200;
	(my $text = 'goods7919 ' x 20) =~ s/([a-z]+)([0-9]+)/$2$1/g;
}
