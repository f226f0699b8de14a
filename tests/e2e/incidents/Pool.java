/* SPDX-License-Identifier: BSD-2-Clause */
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/* Pool PORT: a pool of 16 threads, mostly idle; each request computes a little. */
public class Pool {
	private static void serve(Socket connection) {
		try (connection) {
			Map<String, Integer> counts = new TreeMap<>();

			new BufferedReader(new InputStreamReader(connection.getInputStream())).readLine();
			for (int i = 0; i < 500; i++)
				counts.merge("k" + i % 50, 1, Integer::sum);
			connection.getOutputStream().write(counts.toString().getBytes());
		} catch (IOException gone) {
			return;
		}
	}

	public static void main(String[] words) throws Exception {
		ServerSocket server = new ServerSocket(Integer.parseInt(words[0]), 50, InetAddress.getByName("127.0.0.1"));
		ExecutorService pool = Executors.newFixedThreadPool(16);

		while (true) {
			Socket connection = server.accept();

			pool.submit(() -> serve(connection));
		}
	}
}
