# SPDX-License-Identifier: BSD-2-Clause
# tests: ctl/client/capture* ctl/client/kept* ctl/client/subscription* consumer/methods/* consumer/output/kept_lines*
# tests: docs/pipeline/*
"""trocar capture asked by programs: its reason, what holds it back, --wait; the probe and the receiver of alerts of
docs/examples, with a real Alertmanager."""
import functools
import http.client
import http.server
import json
import os
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pytest

from harness import COMMAND, ROOT, Skip, check, check_figure, command, rule, rules, until
from test_control import as_user

pytestmark = [pytest.mark.parallel(4), pytest.mark.shares_kernel_side]
EXAMPLES = ROOT / "docs" / "examples"
RECEIVER = EXAMPLES / "alert-receiver"
ALERTMANAGER = "/usr/bin/prometheus-alertmanager"


def service(t, cooldown_ms=60000):
    """An agent, and a service that the rule "shop" watches."""
    agent = t.agent(rules(rule("shop", comm=t.comm, during_ms=500, cooldown_ms=cooldown_ms)))
    group = t.cgroup()
    t.spawn("burn_cpu", 60, name=t.comm, cgroup=group)
    agent.wait("watch.start", cgroup=group.path)
    return agent, group


def environment(agent):
    """Where scripts find this build's command, and it the agent."""
    return {**os.environ, "PATH": f"{COMMAND.parent}:{os.environ['PATH']}", "TROCAR_SOCKET": str(agent.socket)}


def reason_of(agent, session):
    return agent.wait("session.start", session=session)["reason"]["request"]


@pytest.mark.core
def test_capture_of_signals(t):
    """A request names its signals, in place of the rule's; one that does not run is said, and judged."""
    agent, group = service(t)
    done = agent.trocar("capture", "--rule", "shop", "--signals", "switch", "--during-ms", "300", "--wait", expect=None)
    start = agent.wait("session.start", session=done.stdout.split()[1])
    check(set(start["signals"]) | {m["signal"] for m in start.get("signals_missing", [])} == {"oncpu", "switch"}, start)
    check(start["signals_reason"].startswith("asked for by the request"), start)
    done = agent.trocar("capture", "--cgroup", group.path, "--signals", "runtime", "--during-ms", "300", "--wait", expect=6)
    end = agent.wait("session.end", session=done.stdout.split()[1])
    check(end["verdict_reason"] == "the rule or the request names signals that did not run: see session.start", end)
    refused = agent.trocar("capture", "--rule", "shop", "--signals", "oncpu,disk", expect=1)
    check("--signals: want auto, or" in refused.stderr and "offcpu" in refused.stderr, refused.stderr)
    check("params" not in refused.stderr and "array" not in refused.stderr, refused.stderr)


@pytest.mark.core
def test_capture_of_process_1(t):
    """Process 1 is found, also in the root cgroup; where a kernel hides it from BPF programs, that is said. Threads of
    the kernel are told from programs."""
    agent = t.agent(rules(rule("shop", comm=t.comm)))
    done = agent.trocar("capture", "--pid", 1, "--during-ms", 300, "--wait", expect=None)
    if done.returncode == 1:
        check("process 1 is there, but this kernel does not show it to BPF programs" in done.stderr, done.stderr)
    else:
        check("session" in done.stdout and done.returncode in (0, 5, 6), f"{done}")
    refused = agent.trocar("capture", "--pid", 2, expect=1)
    check("process 2 is a thread of the kernel" in refused.stderr or "no process 2" in refused.stderr, refused.stderr)


@pytest.mark.core
def test_session_stop(t):
    """Who has seen enough ends a session: it has all its lines, says who ended it, and gives its budget back."""
    agent, group = service(t)
    session = agent.call("session.start", {"cgroup": group.path, "during_ms": 60000})["session"]
    other = agent.call("sessions")[0]
    check(other["session"] == session and other["state"] == "capture", f"{other}")
    time.sleep(1.5)
    began = time.monotonic()
    check(agent.call("session.stop", {"session": session}) == {"session": session}, "another answer")
    end = agent.wait("session.end", session=session)
    check_figure(time.monotonic() - began < 3, "it took long to end", t.load)
    check(1400 < end["duration_ms"] < 10000, f"{end['duration_ms']} ms")
    check(end["stopped"]["uid"] == 0 and end["ledger"]["oncpu"]["attempted"] == end["ledger"]["oncpu"]["emitted"], f"{end}")
    check(agent.stacks(session), "no stacks")
    agent.refused(-32004, "session.stop", {"session": session})
    agent.refused(-32602, "session.stop", {"session": session[:4]})
    owner = next(o for o in agent.call("status")["owners"] if o["captured_ms"])
    check(owner["captured_ms"] < 10000, f"{owner}")


@pytest.mark.core
def test_kept_sessions(t):
    """The agent keeps the lines of the last sessions: every reader takes the last, `show` any of them; what is gone is
    said, who may only look gets none, and with --keep-kib 0 there are none."""
    agent, group = service(t)
    refused = agent.trocar("report", "--last", expect=1)
    check("no session has ended" in refused.stderr, refused.stderr)
    ids = []
    for _ in range(2):
        ids.append(agent.call("session.start", {"cgroup": group.path, "during_ms": 500})["session"])
        agent.wait("session.end", session=ids[-1])
    kept = agent.call("session.lines", {"session": ids[0]})
    check(kept == {"session": ids[0], "omitted": 0, "lines": [e for e in agent.events if e.get("session") == ids[0]]},
          f"not its lines: {len(kept['lines'])}")
    for words, part in ((("show", ids[0]), ids[0]), (("show",), ids[1]), (("report", "--last"), ids[1]),
                        (("explain", "--last"), ""), (("folded", "--last"), ";"), (("flamegraph", "--last"), ids[1]),
                        (("html", "--last"), ids[1])):
        check(part in agent.trocar(*words).stdout, f"{words}")
    check("exactly one of" in agent.trocar("report", "--last", "x", expect=2).stderr, "a file beside --last")
    agent.refused(-32602, "session.lines", {"session": "x"})
    check("no lines of a session 0123" in agent.trocar("show", "0123", expect=1).stderr, "a session that was not")
    answer = as_user(agent, "daemon", "session.lines", {})
    check(answer.get("code") == -32001, f"{answer}")
    other = t.agent(rules(rule("api", comm=t.comm)), arguments=["--keep-kib", 0])
    check("--keep-kib 0" in other.trocar("show", expect=1).stderr, "it keeps lines")


@pytest.mark.core
def test_capture_with_a_reason(t):
    """The reason stands in the lines and in the headline; --wait prints it; what is held back has a status of its own."""
    agent, group = service(t)
    text = "p99 of checkout > 500 ms — 注文"
    done = agent.trocar("capture", "--rule", "shop", "--reason", text, "--wait", expect=None)
    check(done.returncode in (0, 5), done)  # 5: partial, as on a machine whose CPUs others use
    session = done.stdout.split()[1]
    check(reason_of(agent, session) == {"uid": 0, "pid": reason_of(agent, session)["pid"], "text": text}, done)
    end = agent.wait("session.end", session=session)
    check(f"{group.path} captured on request: {text}; " in end["headline"], end["headline"])
    check(done.stdout.splitlines()[1] == f"session {session} ended, {end['verdict']}: {end['headline']}", done.stdout)
    held = agent.trocar("capture", "--rule", "shop", "--reason", "again", expect=4)
    check("held back: cooldown; try again in" in held.stderr and held.stderr.count("\n") == 1, held.stderr)
    line = agent.wait("trigger.held", trigger="request", reason="cooldown")
    check(line["text"] == "again" and line["session"] == session, line)
    # A person is not held by it; what runs holds everybody.
    agent.trocar("capture", "--rule", "shop", "--during-ms", 30000)
    held = json.loads(agent.trocar("capture", "--cgroup", group.path, "--reason", "x", "--json", expect=4).stdout)
    check(held["data"]["reason"] == "session_running" and held["data"]["session"], held)


@pytest.mark.core
def test_capture_refuses_reasons(t):
    """One clear line for a text that lines must not have; by the agent too, whoever asks it."""
    agent, _ = service(t)
    for text in ("", "a\nb", "\x1b[31mred", "x" * 201, "a\u202eb", "\u009b"):
        said = agent.trocar("capture", "--rule", "shop", f"--reason={text}", expect=2).stderr
        check(said == "trocar: capture: --reason: want 1 to 200 bytes of UTF-8 without control characters\n", said)
        agent.refused(-32602, "session.start", {"rule": "shop", "reason": text})
    check(not agent.find("session.start"), "a session began")


@pytest.mark.core
def test_capture_waits_for_all(t):
    """--wait follows each session of a rule, and says the worst verdict; one that is held is counted."""
    agent, group = service(t)
    others = [t.cgroup(name) for name in ("b", "c")]
    for other in others:
        t.spawn("burn_cpu", 60, name=t.comm, cgroup=other)
        agent.wait("watch.start", cgroup=other.path)
    agent.call("session.start", {"cgroup": group.path, "during_ms": 5000})
    done = agent.trocar("capture", "--rule", "shop", "--reason", "all", "--wait", "--json", expect=None)
    answer, *ends = [json.loads(line) for line in done.stdout.splitlines()]
    check(answer["held"] == 1 and len(answer["sessions"]) == 2, answer)
    check({e["session"] for e in ends} == set(answer["sessions"]), ends)
    check({e["cgroup"] for e in ends} == {o.path for o in others}, ends)
    worst = max(("complete", "partial", "inconclusive").index(e["verdict"]) for e in ends)
    check(done.returncode == (0, 5, 6)[worst], f"{done.returncode}: {[e['verdict'] for e in ends]}")


class Slow(http.server.BaseHTTPRequestHandler):
    """Answers after server.delay_s."""

    def do_GET(self):
        time.sleep(self.server.delay_s)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def web():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    server.delay_s = 0
    server.url = f"http://127.0.0.1:{server.server_port}/cart"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def probe(agent, *words, expect=0):
    done = subprocess.run([EXAMPLES / "probe-latency", *map(str, words)], env=environment(agent), text=True,
                          capture_output=True, timeout=60, check=False)
    check(done.returncode == expect, f"{done}")
    return done


def test_probe_latency(t, web):
    """The probe is silent while answers come in time, captures while one is late, and lives with what is held back."""
    agent, _ = service(t)
    done = probe(agent, web.url, 5000, "shop", 0.05, 5)
    check(not done.stdout and not agent.find("session.start"), f"{done}")
    web.delay_s = 1.5
    done = probe(agent, web.url, 200, "shop", 0.05, 3)
    check(done.stdout.count("started") == 1 and done.stderr.count("held back") == 2, f"{done}")
    text = reason_of(agent, done.stdout.split()[1])["text"]
    check(text == f"no answer from {web.url} in 200 ms", text)
    # A service that is down is no stall; no agent and no such rule end nothing.
    done = probe(agent, "http://127.0.0.1:1/", 200, "shop", 0.05, 2)
    check("curl" in done.stderr and "session" not in done.stdout, f"{done}")
    check(probe(agent, web.url, 200, "none", 0.05, 2).stderr.count("no rule of the name none") == 2, "no such rule")
    agent.stop()
    check(probe(agent, web.url, 200, "shop", 0.05, 2).stderr.count("no agent at") == 2, "no agent")
    for words in ((), (web.url,), (web.url, 0, "shop"), (web.url, "x", "shop"), (web.url, 1, "shop", "x")):
        check(probe(agent, *words, expect=2).stderr.count("\n") == 1, f"{words}")


def post(agent, body, length=None):
    """The receiver's status to this body, over a connection of its own."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        receiver = subprocess.Popen([RECEIVER], stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                    env=environment(agent), text=True)
        theirs.close()
        length = f"Content-Length: {len(body) if length is None else length}\r\n" if length != "" else ""
        ours.sendall(f"POST / HTTP/1.1\r\nHost: x\r\n{length}\r\n".encode("latin-1") + body)
        answer = http.client.HTTPResponse(ours)
        answer.begin()
        said = receiver.communicate(timeout=30)[0]
    return answer.status, said


def alert(status="firing", summary="slow", **labels):
    return {"status": status, "labels": {"alertname": "Slow", **labels}, "annotations": {"summary": summary},
            "startsAt": "2026-11-21T15:59:03Z", "endsAt": "0001-01-01T00:00:00Z", "generatorURL": "", "fingerprint": "1"}


def payload(*alerts):
    """As Alertmanager's webhook sends it, version 4."""
    return json.dumps({"version": "4", "groupKey": "{}", "truncatedAlerts": 0, "status": "firing", "receiver": "trocar",
                       "groupLabels": {}, "commonLabels": {}, "commonAnnotations": {}, "externalURL": "",
                       "alerts": list(alerts)}).encode()


def test_receiver(t):
    """What the receiver takes, what it refuses, and that alerts come again when there is no agent."""
    agent, _ = service(t)
    for body in (b"", b"{", b"[]", b'{"alerts":1}', b'{"alerts":[1]}', b'{"alerts":[{}]}', b"\xff",
                 b"[" * 200000):
        check(post(agent, body)[0] == 400, body)
    for length in ("", "-1", "x", "²", str((1 << 20) + 1), "9" * 5000):
        check(post(agent, b"{}", length)[0] == 413, length)
    for one in (alert(), alert(status="resolved", trocar_rule="shop"), alert(trocar_rule="--socket"),
                alert(trocar_rule="Shop")):
        check(post(agent, payload(one)) == (200, '"POST / HTTP/1.1" 200 -\n'), one)
    check(not agent.find("session.start"), "a session began")
    status, said = post(agent, payload(alert(trocar_rule="none"), alert(trocar_rule="shop", summary="a\nb\x1b " + "ü" * 200)))
    check(status == 200 and "no rule of the name none" in said, said)
    text = agent.wait("session.start")["reason"]["request"]["text"]
    check(text == "a b  " + "ü" * 97, text)
    check(post(agent, payload(alert(trocar_rule="shop", summary="")))[0] == 200, "a held one is no failure")
    check(agent.wait("trigger.held")["text"] == "Slow", "the name stands in for a summary")
    agent.stop()
    check(post(agent, payload(alert(trocar_rule="shop")))[0] == 503, "no agent")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start(t, *words, **kwargs):
    with open(t.folder / "log", "ab") as log:
        process = subprocess.Popen([str(w) for w in words], stdin=subprocess.DEVNULL, stdout=log, stderr=log, **kwargs)
    process.stdout = None
    t.processes.append(process)
    return process


def ask(url, body=None):
    """Whether the address answers with 200."""
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return answer.status == 200
    except (OSError, urllib.error.URLError):
        return False


def test_alertmanager(t):
    """An alert that a real Alertmanager routes by docs/examples/alertmanager.yml starts a session of its rule."""
    if not os.access(ALERTMANAGER, os.X_OK):
        raise Skip("no prometheus-alertmanager")
    agent, _ = service(t)
    hook, web = free_port(), free_port()
    config = t.folder / "alertmanager.yml"
    sample = (EXAMPLES / "alertmanager.yml").read_text()
    check("http://127.0.0.1:9796/" in sample, sample)
    config.write_text(sample.replace(":9796/", f":{hook}/"))
    command("amtool", "check-config", config)
    check("127.0.0.1:9796\n" in (EXAMPLES / "trocar-alert.socket").read_text(), "another address")
    # As trocar-alert.socket: a process for each connection, which is its standard input.
    start(t, "systemd-socket-activate", "--accept", "--inetd", f"--listen=127.0.0.1:{hook}", "-ETROCAR_SOCKET", "-EPATH",
          RECEIVER, env=environment(agent))
    start(t, ALERTMANAGER, f"--config.file={config}", f"--web.listen-address=127.0.0.1:{web}",
          "--cluster.listen-address=", f"--storage.path={t.folder / 'data'}")
    api = f"http://127.0.0.1:{web}"
    until(functools.partial(ask, f"{api}/-/ready"), 30, "Alertmanager is not ready")
    firing = json.dumps([{"labels": {"alertname": "CheckoutIsSlow", "trocar_rule": "shop", "instance": "shop1"},
                          "annotations": {"summary": "checkout: 99 of 100 requests take up to 0.7 s"}},
                         {"labels": {"alertname": "DiskIsFull"}}]).encode()
    check(ask(f"{api}/api/v2/alerts", firing), "Alertmanager takes no alert")
    line = agent.wait("session.start", seconds=30)
    check(line["rule"] == "shop", line)
    check(line["reason"]["request"]["text"] == "checkout: 99 of 100 requests take up to 0.7 s", line["reason"])
    agent.wait("session.end", session=line["session"])
    check(len(agent.find("session.start")) == 1, "more than one session")


@pytest.mark.core
def test_units_of_the_receiver(t):
    """systemd takes the units of the recipe."""
    for name in ("trocar-alert.socket", "trocar-alert@.service"):
        text = (EXAMPLES / name).read_text().replace("/usr/share/doc/trocar/examples", str(EXAMPLES))
        (t.folder / name).write_text(text)
    done = command("systemd-analyze", "verify", "--man=no", t.folder / "trocar-alert.socket",
                   t.folder / "trocar-alert@.service", expect=None)
    check(done.returncode == 0 and "trocar-alert" not in done.stderr, f"{done}")
