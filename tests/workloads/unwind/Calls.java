// SPDX-License-Identifier: BSD-2-Clause
// Calls.java: recursion down to a leaf, and a sort that calls back.
import java.util.Arrays;

public class Calls {
	static volatile long sink;

	static void leaf(int turns) {
		for (int i = 0; i < turns; i++)
			sink += i;
	}

	static void recurses(int depth) {
		if (depth == 0)
			leaf(2000);
		else
			recurses(depth - 1);
	}

	static void sortsGoods() {
		Integer[] goods = new Integer[100];
		for (int i = 0; i < goods.length; i++)
			goods[i] = i * 7919 % 1009;
		Arrays.sort(goods, (a, b) -> { leaf(20); return Integer.compare(a, b); });
	}

	public static void main(String[] words) {
		long end = System.nanoTime() + Integer.parseInt(words[0]) * 1000000000L;
		while (System.nanoTime() < end) {
			recurses(10);
			sortsGoods();
		}
	}
}
