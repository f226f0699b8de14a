# SPDX-License-Identifier: BSD-2-Clause
# calls.cr: fibres that compute and yield to each other, for ever.
def fib(n : Int32) : Int64
  n < 2 ? n.to_i64 : fib(n - 1) + fib(n - 2)
end

def sorts(n : Int32) : Int32
  Array.new(300) { |i| (i * 7919 + n) % 1009 }.sort { |a, b| a <=> b }.first
end

done = Channel(Int64).new
4.times do |k|
  spawn do
    n = 0
    loop do
      n += 1
      done.send(fib(18 + k % 2) + sorts(n % 1000))
      Fiber.yield
    end
  end
end

total = 0_i64
loop { total = (total + done.receive) % 1000 }
