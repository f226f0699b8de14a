# SPDX-License-Identifier: BSD-2-Clause
# Recursion, a sort that calls back, and strings.
def recurses(depth)
  depth.zero? ? (1..100).reduce { |a, b| a + b * b } : recurses(depth - 1) + 1
end

finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + ARGV[0].to_i
while Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
  recurses(10)
  (0...200).sort_by { |i| i * 7919 % 1009 }
  (0...100).map(&:to_s).join(',').split(',')
end
