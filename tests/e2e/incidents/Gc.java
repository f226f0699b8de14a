/* SPDX-License-Identifier: BSD-2-Clause */
import java.io.File;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/* Gc FLAG: once the file exists, the heap is nearly full of live data, and the collector runs all the time. */
public class Gc {
	public static void main(String[] words) throws Exception {
		List<byte[]> live = new ArrayList<>();
		Map<Integer, String> values = new HashMap<>();
		File flag = new File(words[0]);
		long n = 0;

		while (true) {
			for (int i = 0; i < 2000; i++)
				values.put(i % 500, "v" + n++);
			Thread.sleep(10);
			if (!flag.exists())
				continue;
			while (live.size() < 1380)
				live.add(new byte[60000]);
			for (int i = 0; i < 200; i++)
				live.set((int) (n++ * 31 % live.size()), new byte[60000]);
		}
	}
}
