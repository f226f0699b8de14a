// SPDX-License-Identifier: BSD-2-Clause
// Deep.java: a recursion of 21 levels; nearly all of the time is in the innermost one.
public class Deep {
	static volatile long sink;

	static void recurses(int depth) {
		if (depth > 1)
			recurses(depth - 1);
		for (int i = 0; depth == 1 && i < 10000000; i++)
			sink += i;
	}

	public static void main(String[] words) {
		long end = System.nanoTime() + Integer.parseInt(words[0]) * 1000000000L;
		while (System.nanoTime() < end)
			recurses(21);
	}
}
