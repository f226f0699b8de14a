// SPDX-License-Identifier: BSD-2-Clause
// Calls.cs: recursion, sorting with a delegate, and texts, for ever.
using System;

static class Calls
{
    static int Fib(int n) => n < 2 ? n : Fib(n - 1) + Fib(n - 2);

    static int Sorts(int n)
    {
        var goods = new int[300];
        for (int i = 0; i < goods.Length; i++)
            goods[i] = (i * 7919 + n) % 1009;
        Array.Sort(goods, (a, b) => a - b);
        return goods[0];
    }

    static int Texts(int n) => string.Format("{0:D8}-{1:X}", n, n * 17).Length;

    static void Main()
    {
        long total = 0;
        for (int n = 0; total >= 0; n = (n + 1) % 1000)
            total = (total + Fib(18) + Sorts(n) + Texts(n)) % 1000;
    }
}
