// SPDX-License-Identifier: BSD-2-Clause
// calls.d: classes, delegates, ranges and exceptions, for ever.
import std.algorithm : map, sort, sum;
import std.array : array;
import std.conv : to;
import std.range : iota;

class Shop
{
    abstract long cost(long n);
}

class Corner : Shop
{
    override long cost(long n)
    {
        long total;
        foreach (i; 0 .. 2000)
            total += (i * n) % 1009;
        return total;
    }
}

long sorts(long n)
{
    auto goods = iota(300).map!(i => (i * 7919 + n) % 1009).array;
    sort!((a, b) => a < b)(goods);
    return goods.sum;
}

long throwsAndCatches(long n)
{
    try
    {
        if (n % 50 == 0)
            throw new Exception(n.to!string);
        return n;
    }
    catch (Exception e)
        return e.msg.length;
}

__gshared long total;

void main()
{
    Shop shop = new Corner;
    for (long n = 0;; n++)
        total += shop.cost(n) + sorts(n) + throwsAndCatches(n);
}
