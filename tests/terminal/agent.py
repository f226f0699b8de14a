# SPDX-License-Identifier: BSD-2-Clause
"""A control socket that gives the answers of answers/, which a real agent gave (docs/control.md), so that screens of
commands that ask it are the same each time. What the agent itself says is what tests/e2e is about."""
import json
import pathlib
import socket
import threading

ANSWERS = pathlib.Path(__file__).resolve().parent / "answers"


class Agent:
    """`changes` {method: answer, or a function of the recorded answer}; `lines`: those of a subscription."""

    def __init__(self, path, lines=(), **changes):
        self.path, self.lines, self.changes, self.asked = path, list(lines), changes, []
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(path))
        self.socket.listen(16)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def _accept(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection, connection.makefile("rb") as requests:
            for line in requests:
                request = json.loads(line)
                self.asked.append(request)
                answer = {"jsonrpc": "2.0", "id": request.get("id"), **self._answer(request)}
                try:
                    connection.sendall(json.dumps(answer).encode() + b"\n")
                except OSError:
                    return

    def _answer(self, request):
        method = request["method"]
        recorded = ANSWERS / f"{method}.json"
        result = json.loads(recorded.read_text()) if recorded.exists() else None
        change = self.changes.get(method.replace(".", "_"))
        if callable(change):
            result = change(result)
        elif change is not None:
            result = change
        elif method == "lines":
            result = {"lines": self.lines, "omitted": 0, "more": False}
            self.lines = []
        elif method == "session.lines":
            result = {"session": "86f4044dde82e2b7", "lines": self.lines, "omitted": 0}
        if isinstance(result, dict) and set(result) == {"error"}:
            return result
        if result is None:
            return {"error": {"code": -32601, "message": "there is no such method"}}
        return {"result": result}
