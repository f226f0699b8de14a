# SPDX-License-Identifier: BSD-2-Clause
"""serve.py PORT: an HTTP server that answers with rows as JSON."""
import asyncio
import json
import sys

ROWS = [{"id": i, "name": f"row {i}", "tags": ["a", "b", str(i)]} for i in range(20)]


def answer(request):
    rows = sorted(ROWS, key=lambda row: row["name"]) if request.startswith(b"GET ") else []
    body = json.dumps(rows).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


async def serve(reader, writer):
    try:
        while True:
            writer.write(answer(await reader.readuntil(b"\r\n\r\n")))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()


asyncio.run(main())
