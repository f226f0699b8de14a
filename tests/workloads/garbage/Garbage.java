// SPDX-License-Identifier: BSD-2-Clause

/** Garbage CALM ALL: computes for CALM seconds, then makes garbage beside much that lives, for ALL seconds in all. */
public class Garbage {
    static long sink;
    static Object[] kept = new Object[400000];

    static void compute() {
        long x = 1;
        for (int i = 0; i < 1000000; i++)
            x = x * 6364136223846793005L + 1442695040888963407L;
        sink += x;
    }

    public static void main(String[] words) {
        long begin = System.nanoTime(), second = 1000000000L;
        long calm = Long.parseLong(words[0]) * second, all = Long.parseLong(words[1]) * second;
        for (int i = 0; i < kept.length; i++)
            kept[i] = new byte[64];
        while (System.nanoTime() - begin < calm)
            compute();
        for (int i = 0; System.nanoTime() - begin < all; i = (i + 7919) % kept.length)
            kept[i] = new byte[64];
    }
}
