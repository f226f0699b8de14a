// SPDX-License-Identifier: BSD-2-Clause
// Deep.cs: a recursion of 21 levels; nearly all of the time is in the innermost one.
using System.Runtime.CompilerServices;

class Deep
{
    static volatile int sink;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Recurses(int depth)
    {
        int below = depth > 1 ? Recurses(depth - 1) : 0;
        for (int i = 0; depth == 1 && i < 10000000; i++)
            sink += i;
        return below + 1;
    }

    static void Main()
    {
        for (;;)
            Recurses(21);
    }
}
