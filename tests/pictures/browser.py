# SPDX-License-Identifier: BSD-2-Clause
"""A headless Chromium, spoken to over a pair of pipes by its own protocol (chromedevtools.github.io): no
package is needed for that, and no port is opened."""
import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

SECONDS = 60


class Browser:
    """One page. What it says on its console, and what it throws, is in `complaints`."""

    def __init__(self, width=1400, height=900):
        self.folder = tempfile.mkdtemp(prefix="trocar-chromium-")
        self.complaints, self._bytes, self._id = [], b"", 0
        self._loaded = False
        commands, self._send = os.pipe()
        self._receive, answers = os.pipe()
        # The protocol is on its descriptors 3 and 4, which the shell sets; ours must not stand there.
        ends = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (commands, answers)]
        # Tests may run as root, where its own sandbox cannot.
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{ends[0]} 4>&{ends[1]}', "chromium",
             "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--disable-extensions", "--disable-background-networking", "--disable-dev-shm-usage",
             "--allow-file-access-from-files", f"--user-data-dir={self.folder}",
             "--remote-debugging-pipe", f"--window-size={width},{height}", "about:blank"],
            pass_fds=ends, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True)
        for fd in (commands, answers, *ends):
            os.close(fd)
        targets = self.call("Target.getTargets", session=None)["targetInfos"]
        page = next(t["targetId"] for t in targets if t["type"] == "page")
        self._session = self.call("Target.attachToTarget", {"targetId": page, "flatten": True},
                                  session=None)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride",
                  {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def close(self):
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()
        os.close(self._send)
        os.close(self._receive)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def _message(self, until):
        while b"\0" not in self._bytes:
            ready, _, _ = select.select([self._receive], [], [], max(0, until - time.monotonic()))
            if not ready:
                raise TimeoutError(f"the browser said nothing for {SECONDS} s")
            some = os.read(self._receive, 1 << 20)
            if not some:
                raise OSError("the browser has ended")
            self._bytes += some
        text, _, self._bytes = self._bytes.partition(b"\0")
        return json.loads(text)

    def _note(self, message):
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
            self.complaints.append(" ".join(str(a.get("value")) for a in params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.complaints.append(params["entry"]["text"])
        elif method == "Page.javascriptDialogOpening":
            self.complaints.append(f"a dialog: {params['message']}")
        elif method == "Page.loadEventFired":
            self._loaded = True

    def call(self, method, params=None, session=True):
        self._id += 1
        message = {"id": self._id, "method": method, "params": params or {}}
        if session:
            message["sessionId"] = self._session
        os.write(self._send, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + SECONDS
        while True:
            answer = self._message(until)
            if answer.get("id") == self._id:
                if "error" in answer:
                    raise OSError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self._note(answer)

    def open(self, address):
        self._loaded = False
        self.call("Page.navigate", {"url": str(address)})
        until = time.monotonic() + SECONDS
        while not self._loaded:
            self._note(self._message(until))

    def run(self, script):
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", {"expression": script, "returnByValue": True,
                                                "awaitPromise": True})
        if "exceptionDetails" in answer:
            raise OSError(answer["exceptionDetails"]["exception"].get("description"))
        return answer["result"].get("value")

    def wait(self, script, seconds=20):
        """Until the expression is true."""
        until = time.monotonic() + seconds
        while not self.run(script):
            if time.monotonic() > until:
                return False
            time.sleep(0.1)
        return True

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent",
                      {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1})

    def press(self, key, text=None):
        for kind in ("keyDown", "keyUp"):
            event = {"type": kind, "key": key}
            if text and kind == "keyDown":
                event["text"] = text
            self.call("Input.dispatchKeyEvent", event)

    def write(self, text):
        self.call("Input.insertText", {"text": text})

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride",
                  {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def screenshot(self, path):
        data = self.call("Page.captureScreenshot", {"format": "png"})["data"]
        with open(path, "wb") as stream:
            stream.write(base64.b64decode(data))
