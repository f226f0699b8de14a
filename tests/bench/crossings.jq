# SPDX-License-Identifier: BSD-2-Clause
# Joins what bench-crossings printed with the event lines of the same time:
#   jq -n --slurpfile bursts BURSTS --slurpfile lines LINES -f crossings.jq
# Medians in ms, and how many bursts had all of it. The crossing is the kernel's notice where the
# total was not read (READ_MS 0). `line` is the moment of the pressure line that the burst caused.
def median: sort | if length == 0 then null else .[length / 2 | floor] end;
def ms: . / 1e4 | round / 100;
[$lines[] | select(.type == "pressure") | .mono_ns] as $said
| [$bursts[] | . as $b
   | ([$said[] | select(. >= $b.begun_ns)] | min) as $line
   | select($line and .notice_ns and .sample_ns)
   | {crossing: (.crossing_ns // .notice_ns), notice: .notice_ns, line: $line,
      capture: .capture_ns, sample: .sample_ns}]
| {bursts: ($bursts | length), whole: length,
   crossing_to_notice_ms: (map(.notice - .crossing | ms) | median),
   crossing_to_line_ms: (map(.line - .crossing | ms) | median),
   notice_to_line_ms: (map(.line - .notice | ms) | median),
   line_to_sample_ms: (map(.sample - .line | ms) | median)}
