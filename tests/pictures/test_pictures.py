# SPDX-License-Identifier: BSD-2-Clause
"""What people open: `trocar` makes each picture from event lines, and the programs that people use read it.

The lines are those of a real session (cart.jsonl: a Redis whose CPU quota was eaten by SORT and KEYS; its host, ids
and dates are changed) and hostile ones made here. What cannot run on this machine is skipped with its reason. --keep DIR leaves screenshots there."""
import base64
import collections
import gzip
import hashlib
import html
import html.parser
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import tempfile
import time
import xml.dom.minidom

import pytest

from browser import Browser

HERE = pathlib.Path(__file__).resolve().parent
CART, SHOP = HERE / "cart.jsonl", HERE / "shop.jsonl"
SPEEDSCOPE = "speedscope@1"
# Brendan Gregg's own, as Debian ships it in libdevel-nytprof-perl.
FLAMEGRAPH = pathlib.Path("/usr/share/perl5/Devel/NYTProf/flamegraph.pl")
TITLE = re.compile(r"<title>(.*) \(([\d,]+) samples, [\d.]+%(?:; ([+-]?[\d.]+)%)?\)</title>")
FOLDED = re.compile(r"^(.*)\s+?(\d+(?:\.\d*)?)$")  # as flamegraph.pl has it


def check(fine, what):
    if not fine:
        pytest.fail(str(what))


class World:
    def __init__(self, build, folder, keep):
        self.trocar, self.folder, self.keep = build / "ctl" / "trocar", folder, keep

    def run(self, *words, status=0, stdin=None):
        done = subprocess.run([str(self.trocar), *map(str, words)], input=stdin, timeout=120,
                              stdin=None if stdin is not None else subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        check(done.returncode == status,
              f"trocar {' '.join(map(str, words))}: status {done.returncode}: {done.stderr.decode()[-300:]}")
        return done.stdout

    def make(self, name, *words, **options):
        path = self.folder / name
        path.write_bytes(self.run(*words, **options))
        return path


@pytest.fixture
def w(request):
    build = pathlib.Path(os.environ.get("TROCAR_BUILD", HERE.parents[1] / "build")).resolve()
    if not (build / "ctl" / "trocar").exists():
        pytest.skip(f"{build}/ctl/trocar is not built")
    with tempfile.TemporaryDirectory(prefix="trocar-pictures-") as folder:
        yield World(build, pathlib.Path(folder), request.config.option.keep)


def events(path, kind):
    with open(path, encoding="utf-8") as stream:
        return [e for e in map(json.loads, stream) if e["type"] == kind]


def stacks(path):
    """The stacks that pictures are made of, where no other signal is asked for."""
    return [e for e in events(path, "stack") if e["signal"] == "oncpu"]


def name_of(frame):
    return frame["fn"] or f"[{(frame.get('module') or 'unknown').rsplit('/', 1)[-1]}]"


def need(program, package):
    if not shutil.which(program):
        pytest.skip(f"{program} is not there: tests/install-deps pictures installs {package}")


# ---- text


def test_folded(w):
    """Folded lines are what an independent count of the same file says, in the form that flamegraph.pl takes."""
    # Samples before and during stand for different times: without --count the time is counted.
    for key, words in (("count", ("--count", "samples")), ("weight_ns", ())):
        expected, found = collections.Counter(), {}
        for e in stacks(CART):
            expected[";".join([e["comm"], *map(name_of, reversed(e["frames"]))])] += e[key]
        for line in w.run("folded", *words, CART).decode().splitlines():
            match = FOLDED.match(line)
            check(match, f"flamegraph.pl would not take: {line}")
            found[match.group(1)] = int(match.group(2))
        check(found == dict(expected), f"the sums of {key} differ")


def test_diff(w):
    """The difference is the time per second of each phase."""
    end = next(e for e in map(json.loads, open(CART, encoding="utf-8")) if e["type"] == "session.end")
    seconds = {"before": (end["pre_ms"] - end["onset_ms"]) / 1000, "during": end["duration_ms"] / 1000}
    expected = collections.defaultdict(lambda: [0, 0])
    for e in stacks(CART):
        if e["phase"] == "onset":
            continue
        path = ";".join([e["comm"], *map(name_of, reversed(e["frames"]))])
        expected[path][e["phase"] == "during"] += e["weight_ns"] / 1000 / seconds[e["phase"]]
    lines = w.run("diff", CART).decode().splitlines()
    check(len(lines) == len(expected), f"{len(lines)} lines, not {len(expected)}")
    for line in lines:
        path, before, during = line.rsplit(" ", 2)
        for number, wanted in zip((before, during), expected[path]):
            check(abs(int(number) - wanted) <= 1, f"{line}: not {expected[path]}")
    # A file against itself: nothing changed.
    for line in w.run("diff", CART, CART, "--phase", "during").decode().splitlines():
        check(len(set(line.rsplit(" ", 2)[1:])) == 1, f"against itself: {line}")


def drawn(w, *words):
    """The frames that flamegraph.pl draws of what `trocar` says: (name, samples, change in per cent)."""
    if not FLAMEGRAPH.exists():
        pytest.skip("flamegraph.pl is not there: tests/install-deps pictures installs libdevel-nytprof-perl")
    done = subprocess.run(["perl", FLAMEGRAPH, "--minwidth", "0"], input=w.run(*words), timeout=60, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    check(done.returncode == 0 and not done.stderr, f"flamegraph.pl says {done.stderr.decode()[:200]}")
    xml.dom.minidom.parseString(done.stdout)
    found = [TITLE.fullmatch(t) for t in re.findall(r"<title>.*?</title>", done.stdout.decode())]
    check(len(found) > 50 and all(found), f"{len(found)} frames")
    return [(html.unescape(m.group(1)), int(m.group(2).replace(",", "")), m.group(3)) for m in found]


def test_flamegraph_pl(w):
    """The real flamegraph.pl draws each function below its callers as wide as an independent count says."""
    expected = collections.Counter()
    for e in stacks(CART):
        path = [e["comm"], *map(name_of, reversed(e["frames"]))]
        for i in range(len(path) + 1):
            expected[tuple(path[:i])] += e["count"]
    wanted = sorted((path[-1] if path else "all", n) for path, n in expected.items())
    check(sorted((name, n) for name, n, _ in drawn(w, "folded", "--count", "samples", CART)) == wanted, "other widths")


def test_flamegraph_pl_difference(w):
    """It reads the difference as well: what grew and what shrank."""
    frames = drawn(w, "diff", CART)
    changes = {name: float(change) for name, _, change in frames if change}
    check(max(changes.values()) > 1 and min(changes.values()) < 0, f"{changes}")
    check(changes.get("sortCompare", 0) > 0, f"{changes}")


def test_report(w):
    """The report has the headline, the pressure, the hottest function, the process and the ledger."""
    text = w.run("report", "--full", CART).decode()
    end = next(e for e in map(json.loads, open(CART, encoding="utf-8")) if e["type"] == "session.end")
    for part in (end["headline"], end["session"], "at the trigger", "redis-server", end["verdict"],
                 f"{end['ledger']['oncpu']['attempted']} attempted"):
        check(part in text, f"no {part!r}")
    self_ns, total = collections.Counter(), 0
    for e in stacks(CART):
        if e["phase"] == "during":
            self_ns[name_of(e["frames"][0])] += e["weight_ns"]
            total += e["weight_ns"]
    hottest, ns = self_ns.most_common(1)[0]
    functions = text[text.index("\nfunctions: "):].split("\n\n")[0]
    rows = [r.split() for r in functions.splitlines() if r.startswith("  ") and hottest in r.split()]
    check(rows and rows[0][4] in ("=", "new") or rows[0][4][0] in "x/", rows[:1])
    check(abs(float(rows[0][5]) - 100 * ns / total) < 0.06, f"{hottest}: {rows[:1]}")


def test_standard_input(w):
    """A file and a pipe give the same."""
    check(w.run("folded", "-", stdin=CART.read_bytes()) == w.run("folded", CART), "they differ")


def test_confined(w):
    """Before the first line is read, only the filter's system calls are left, and no privilege can come back."""
    process = subprocess.Popen([w.trocar, "folded"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 10
        state = {}
        while state.get("Seccomp") != "2" and time.monotonic() < until:
            with open(f"/proc/{process.pid}/status", encoding="ascii") as stream:
                state = dict(r.rstrip("\n").split(":\t", 1) for r in stream if ":\t" in r)
            time.sleep(0.02)
        check(state.get("Seccomp") == "2" and state.get("NoNewPrivs") == "1", "no filter")
    finally:
        process.communicate(timeout=10)


# ---- pprof


def test_go_pprof(w):
    """go tool pprof reads the profile, with the same functions in the same order."""
    need("go", "golang-go")
    path = w.make("cart.pb.gz", "pprof", CART)
    gzip.decompress(path.read_bytes())
    env = {**os.environ, "HOME": str(w.folder), "GOFLAGS": "", "PPROF_TMPDIR": str(w.folder)}
    done = subprocess.run(["go", "tool", "pprof", "-top", "-nodecount=1000", "-nodefraction=0",
                           "-symbolize=none", "-unit=ns", path], env=env, timeout=120,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False)
    check(done.returncode == 0, done.stderr.decode()[-300:])
    text = done.stdout.decode()
    found = {}
    for row in re.findall(r"^\s*(\d+)(?:ns)?\s+\S+%\s+\S+%\s+\d+(?:ns)?\s+\S+%\s+(.*)$", text, re.M):
        found[row[1].replace(" (inline)", "")] = int(row[0])
    expected = collections.Counter()
    for e in stacks(CART):
        expected[name_of(e["frames"][0])] += e["weight_ns"]
    named = {n: v for n, v in expected.items() if not n.startswith("[")}
    check(len(named) > 5, "the file has too few names")
    for name, ns in named.items():
        check(found.get(name) == ns, f"{name}: {found.get(name)} ns, not {ns}")
    order = [n for n in found if n in named]
    check(order == sorted(order, key=lambda n: -found[n]), "not heaviest first")
    check("Type: cpu" in text and "Duration: " in text, text[:200])
    raw = subprocess.run(["go", "tool", "pprof", "-raw", path], env=env, timeout=120, check=True,
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL).stdout.decode()
    ids = {f["build_id"] for e in stacks(CART) for f in e["frames"] if f.get("build_id")}
    check(all(i in raw for i in ids), "a build-id is missing")
    lines = [json.loads(line) for line in CART.read_text().splitlines()]
    for e in lines:
        for f in e.get("frames", []):
            f.update({"source": {"file": "/redis/dict.c", "line": 1234}} if f["fn"] == "dictNext" else {})
    placed = w.make("placed.pb.gz", "pprof", stdin="\n".join(map(json.dumps, lines)).encode() + b"\n")
    text = subprocess.run(["go", "tool", "pprof", "-top", "-lines", "-symbolize=none", placed], env=env, timeout=120,
                          check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout.decode()
    check(re.search(r"dictNext /redis/dict\.c:1234$", text, re.M), f"no source line: {text[:600]}")
    for label in ("phase:[before]", "phase:[during]", "session:[", "comm:[redis-server]", "pid:["):
        check(label in raw, f"no label {label}")


# ---- pictures in a browser


def tests_of_a_browser(w, name):
    need("chromium", "chromium")
    if not w.keep:
        return Browser(), None
    return Browser(), w.keep / name


def test_picture_of_readme(w):
    """README shows what this version draws; with TROCAR_PAGES set it is drawn anew."""
    path, drawn_now = HERE.parents[1] / "docs" / "picture.svg", w.run("flamegraph", CART)
    if os.environ.get("TROCAR_PAGES"):
        path.write_bytes(drawn_now)
    check(path.read_bytes() == drawn_now, f"{path} is old: TROCAR_PAGES=1 pytest tests/pictures -k picture_of_readme draws it anew")


HEADS = "Array.from({}.querySelectorAll('.head')).map(h => h.getBoundingClientRect())"


def in_a_column(b, document, width):
    """In a narrow window one panel stands below the other, and all text fits and can be read."""
    check(b.wait(f"(([a, b]) => a.bottom < b.top && a.right <= {width} && b.right <= {width})({HEADS.format(document)})"),
          f"not in a column at {width}: {b.run('JSON.stringify(' + HEADS.format(document) + ')')}")
    size = f"Math.min(...Array.from({document}.querySelectorAll('text')).filter(t => t.textContent).map(t => " \
           "parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().a))"
    check(b.run(size) >= 10, f"text of {b.run(size)} px at {width}")
    right = f"Math.max(...Array.from({document}.querySelectorAll('.title, .quiet, .head, #field')).map(t => " \
            "t.getBoundingClientRect().right))"
    check(b.run(right) <= width, f"text ends at {b.run(right)} of {width}")


def test_flamegraph(w):
    """The picture is well-formed, needs no network, zooms in both phases at once, searches, fits its window."""
    path = w.make("cart.svg", "flamegraph", CART)
    text = path.read_text(encoding="utf-8")
    xml.dom.minidom.parseString(text)
    addresses = set(re.findall(r"https?://[^\"' >]+", text))
    check(addresses == {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xhtml"}, addresses)
    browser, picture = tests_of_a_browser(w, "flamegraph.png")
    with browser as b:
        b.open(path.as_uri())
        if picture:
            b.screenshot(picture)
        check(b.run("document.querySelectorAll('.panel').length") == 2, "not two phases")
        headline = next(e for e in map(json.loads, open(CART, encoding="utf-8"))
                        if e["type"] == "session.end")["headline"]
        title = "Array.from(document.querySelectorAll('.title')).map(t => t.textContent).join(' ')"
        check(b.run(title) == headline, b.run(title))
        zooms(b)
        searches(b, picture)
        b.resize(800, 600)
        check(b.wait("document.documentElement.width.baseVal.value === 800"), "not resized")
        b.resize(500, 600)
        check(b.wait("document.documentElement.width.baseVal.value === 500"), "not resized")
        check(b.run(title) == headline, f"at 500: {b.run(title)}")
        in_a_column(b, "document", 500)
        b.resize(800, 600)
        check(b.wait("document.documentElement.width.baseVal.value === 800"), "not resized")
        check(b.run("(([a, b]) => a.right < b.left && b.right <= 800)(" + HEADS.format("document") + ")"), "heads overlap")
        widest = "Math.max(...Array.from(document.querySelectorAll('.f:not(.off) rect')).map(r => " \
                 "r.getBoundingClientRect().right))"
        check(b.run(widest) <= 800, "a frame is outside of the window")
        check(not b.complaints, b.complaints[:3])


def frames_of(picture):
    """[(x, y, width)] of all frames, in the order in which they are drawn."""
    rects = (g.getElementsByTagName("rect")[0] for g in xml.dom.minidom.parseString(picture).getElementsByTagName("g")
             if g.getAttribute("class") == "f")
    return [(r.getAttribute("x"), int(r.getAttribute("y")), r.getAttribute("width")) for r in rects]


def test_inverted(w):
    """The same frames with the first function at the foot."""
    for words in (("flamegraph", CART), ("diff", "--svg", CART)):
        down, up = frames_of(w.run(*words)), frames_of(w.run(*words, "--inverted"))
        foot = max(y for _, y, _ in down)
        check(len(down) > 50 and foot > 100, f"{words}: {len(down)} frames, {foot} high")
        check(up == [(x, foot - y, width) for x, y, width in down], f"{words}: not the same frames upside down")


FRAME = "(name, panel) => Array.from(document.querySelectorAll('.panel')[panel].querySelectorAll('.f'))" \
        ".find(g => g.querySelector('title').textContent.split('\\n')[0] === name)"
BOX = "(g => { const r = g.querySelector('rect').getBoundingClientRect(); return [r.x, r.y, r.width, r.height]; })"


def frame(b, name, panel):
    return b.run(f"{BOX}(({FRAME})({json.dumps(name)}, {panel}))")


def zooms(b):
    """A click on a function that both phases have makes it as wide as its panel, in both."""
    before = frame(b, "processCommand", 1)
    b.click(before[0] + before[2] / 2, before[1] + before[3] / 2)
    panel = b.run("document.querySelectorAll('.panel')[1].querySelector('rect').getBoundingClientRect().width")
    after, other = frame(b, "processCommand", 1), frame(b, "processCommand", 0)
    check(abs(after[2] - panel) < 2, f"zoomed to {after[2]} of {panel}")
    check(abs(other[2] - panel) < 2, f"the other phase shows {other[2]} of {panel}")
    b.press("Escape")
    check(abs(frame(b, "processCommand", 1)[2] - before[2]) < 2, "Escape does not show all again")


def searches(b, picture):
    b.press("/", "/")
    check(b.run("document.activeElement.id") == "search", "/ does not lead to the search")
    b.write("^sortCommand")
    hits = "Array.from(document.querySelectorAll('.hit title')).map(t => t.textContent.split('\\n')[0])"
    found = set(b.run(hits))
    check(found and all(n.startswith("sortCommand") for n in found), f"found {found}")
    heads = b.run("Array.from(document.querySelectorAll('.head')).map(t => t.textContent)")
    check(all(re.search(r"matched \d+\.\d %", h) for h in heads), heads)
    if picture:
        b.screenshot(picture.with_name("search.png"))
    b.run("(i => { i.value = '('; i.dispatchEvent(new Event('input')); })(document.querySelector('input'))")
    check(not b.complaints, "half a regular expression: " + str(b.complaints[:1]))
    b.press("Escape")
    check(b.run(hits) == [], "Escape does not end the search")


def test_difference(w):
    """The difference as a picture: both sides, coloured by what became more and less."""
    path = w.make("diff.svg", "diff", "--svg", CART)
    text = path.read_text(encoding="utf-8")
    xml.dom.minidom.parseString(text)
    classes = set(re.findall(r'<rect class="([a-z]\d)"', text))
    check({"m0", "w0"} <= classes, f"only {classes}")
    browser, picture = tests_of_a_browser(w, "diff.png")
    with browser as b:
        b.open(path.as_uri())
        if picture:
            b.screenshot(picture)
        check(b.run("document.querySelectorAll('.panel').length") == 2, "not two sides")
        check(not b.complaints, b.complaints[:3])


# What drives a terminal, ends a line for some readers, or turns the order of reading.
CONTROLS = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"


def hostile_lines():
    names = ["<script>window.pwned=1</script>", "]]><script>window.pwned=1</script>", "&amp;&lt;\"'",
             "\u001b[2J\u0000\u009b", "\ufffe\uffff\ud800", "x" * 5000, "a;b c 7", "\u202egnihton", "\u061c\u200f\u2028\u2029\u2066",
             "{{7*7}}", "onload=alert(1)", "\u4e16\u754c" * 50, " ", ""]
    for i, name in enumerate(names):
        yield json.dumps({"v": 1, "type": "stack", "ts": "2026-11-21T15:59:03Z", "session": "0" * 16,
                          "rule": name, "cgroup": name, "signal": "oncpu",
                          "phase": "during" if i % 2 else "before", "pid": 1, "comm": name, "count": i + 1,
                          "weight_ns": 10**7, "frames": [{"fn": n, "kind": "user", "module": name}
                                                        for n in (name, *names)]})
    yield json.dumps({"v": 1, "type": "session.end", "ts": "2026-11-21T15:59:03Z", "session": "0" * 16,
                      "duration_ms": 1000, "pre_ms": 1000, "headline": "".join(names[:3]), "verdict": names[0]})


def test_hostile_names(w):
    """Names that are markup, script or control characters are text, in every picture."""
    lines = w.folder / "hostile.jsonl"
    lines.write_text("\n".join(hostile_lines()) + "\n", encoding="utf-8")
    for words in (["folded"], ["report"], ["report", "--full"], ["diff"]):
        text = w.run(*words, lines).decode()
        check(not re.search(CONTROLS, text), f"{words}: a control character")
    w.make("hostile.pb.gz", "pprof", lines)
    page = w.make("hostile.html", "html", lines).read_text(encoding="utf-8")
    check(not Markup(page).faults, Markup(page).faults[:3])
    for picture in pictures_of(page):
        check(len(xml.dom.minidom.parseString(picture).getElementsByTagName("script")) == 1, "a script of another")
    check("<script" not in page and "&lt;script&gt;" in page, "a name is markup of the page")
    check(not re.search(CONTROLS, page), "hostile.html: a control character")
    if shutil.which("chromium"):
        with Browser() as b:
            b.open((w.folder / "hostile.html").as_uri())
            check(b.run("typeof window.pwned") == "undefined", "hostile.html: a name ran")
            check(not b.complaints, b.complaints[:3])
    other = w.folder / "a<script>window.pwned=1<&\"'\x01.jsonl"
    shutil.copy(lines, other)
    for name, words in (("hostile.svg", ["flamegraph"]), ("hostile-diff.svg", ["diff", "--svg"]),
                        ("hostile-inverted.svg", ["flamegraph", "--inverted", "--title", other.name]),
                        ("hostile-files.svg", ["diff", "--svg", other])):
        path = w.make(name, *words, lines)
        document = xml.dom.minidom.parse(str(path))
        check(len(document.getElementsByTagName("script")) == 1, f"{name}: a script of another")
        check(len(document.getElementsByTagName("style")) == 1, f"{name}: a style of another")
        check(not re.search(CONTROLS, path.read_text(encoding="utf-8")), f"{name}: a control character")
        if shutil.which("chromium"):
            with Browser() as b:
                b.open(path.as_uri())
                check(b.run("typeof window.pwned") == "undefined", f"{name}: a name ran")
                check(not b.complaints, b.complaints[:3])


FRAMES = "Array.from(document.querySelectorAll('iframe'))"


class Markup(html.parser.HTMLParser):
    """Elements of a page as its text has them: each that begins ends, in its turn."""

    def __init__(self, text):
        super().__init__()
        self.open, self.faults, self.attributes = [], [], []
        self.feed(text)
        self.close()
        self.faults += [f"<{tag}> does not end" for tag in self.open]

    def handle_starttag(self, tag, attrs):
        self.attributes += [name for name, _ in attrs]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> ends another element")


def pictures_of(page):
    return [base64.b64decode(p).decode() for p in re.findall(r"src=\"data:image/svg\+xml;base64,([^\"]*)\"", page)]


def test_page(w):
    """The page of a session has its report and both flame graphs, needs no network, shows all of it without scripts,
    fits a narrow and a wide window, and says nothing on the console."""
    path = w.make("shop.html", "html", SHOP)
    text = path.read_text(encoding="utf-8")
    shown = html.unescape(re.sub("<[^>]*>", "", text))
    for line in w.run("report", "--full", SHOP).decode().split("\n\n"):
        head = line.strip().split(":")[0].split(";")[0][:60]
        check(head in re.sub(r"\s+", " ", shown), f"not in the page: {head}")
    markup = Markup(text)
    check(not markup.faults, markup.faults[:3])
    check(not [name for name in markup.attributes if name.startswith("on") or name == "style"], "code in an attribute")
    pictures = pictures_of(text)
    check(len(pictures) == 2 and "What ran" in pictures[0] and "What waited" in pictures[1], f"{len(pictures)} pictures")
    for picture in pictures:
        xml.dom.minidom.parseString(picture)
    waits = {(e["wait"], e["idle"]) for e in events(SHOP, "stack") if e["signal"] == "offcpu" and e["state"] == "blocked"}
    check(any(idle for _, idle in waits) and "[lock]" in pictures[1], "nobody of the example is idle, or waits for a lock")
    check("[idle]" not in pictures[1], "threads without work fill the picture of what waited")
    told = [e for e in events(SHOP, "histogram") if e["count"] and "size_bytes" not in e["key"]
            and e["key"]["of"] != "pool"]
    drawn = re.findall(r"<svg viewBox=.*?</svg>", text, re.S)
    check(told and len(drawn) == len(told), f"{len(drawn)} histograms of {len(told)}")
    for event, picture in zip(told, drawn):
        xml.dom.minidom.parseString(picture)
        counts = [int(n) for n in re.findall(r": (\d+)</title>", picture)]
        check(sum(counts) == event["count"] and len(counts) == len(event["buckets"]), f"{event}: {counts}")
    check(not re.search(r"https?://", text), "an address")
    check("<script" not in text, "a script of the page's own")
    script = re.search(r"<script><!\[CDATA\[(.*?)\]\]></script>", pictures[0], re.S)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    check(f"script-src 'sha256-{digest}'" in text, "the policy allows another script")
    browser, picture = tests_of_a_browser(w, "page.png")
    with browser as b:
        for width in (500, 1600):
            b.resize(width, 1400)
            b.open(path.as_uri())
            b.wait(f"{FRAMES}.length === 2")
            time.sleep(2)  # until the frames, which nobody may look into, are drawn
            check(b.run("document.documentElement.scrollWidth <= window.innerWidth"), f"wider than {width}")
            if picture:
                b.screenshot(picture.with_stem(f"page-{width}"))
        check(not b.complaints, b.complaints[:3])


def test_page_in_a_narrow_window(w):
    """At 500 px each picture has the height that it needs in a column, its text can be read, and tables scroll. A page
    may not look into its frames, so these are files here, without the policy and the sandbox."""
    need("chromium", "chromium")
    text = w.make("narrow.html", "html", SHOP).read_text(encoding="utf-8")
    for n, picture in enumerate(pictures_of(text)):
        (w.folder / f"graph{n}.svg").write_text(picture, encoding="utf-8")
        text = re.sub(r'sandbox="allow-scripts" src="data:[^"]*"', f'src="graph{n}.svg"', text, count=1)
    path = w.folder / "narrow.html"
    path.write_text(re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text), encoding="utf-8")
    with Browser() as b:
        b.resize(500, 1400)
        b.open(path.as_uri())
        for n in range(2):
            frame = f"{FRAMES}[{n}].contentDocument"
            check(b.wait(f"{frame}.querySelectorAll('.panel').length === 2"), f"no picture {n}")
            in_a_column(b, frame, 500)
            room = b.run(f"[{FRAMES}[{n}].clientHeight, Math.max(...Array.from({frame}.querySelectorAll('text')).map(t => "
                         "t.getBoundingClientRect().bottom))]")
            check(0 <= room[0] - room[1] < 110, f"picture {n}: {room[0]} px for {room[1]}")
        check(b.run("document.documentElement.scrollWidth") <= 500, "the page is wider than the window")
        small = "Math.min(...Array.from(document.querySelectorAll('pre, figcaption, p, footer')).map(e => " \
                "parseFloat(getComputedStyle(e).fontSize)))"
        check(b.run(small) >= 10, f"text of {b.run(small)} px")
        check(b.run("Array.from(document.querySelectorAll('pre')).every(p => p.scrollWidth <= p.clientWidth || "
                    "getComputedStyle(p).overflowX === 'auto')"), "a table is cut")


def speedscope(w):
    """The folder of speedscope's own page, from npm, kept between runs."""
    need("chromium", "chromium")
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    folder = cache / "trocar-tests" / "speedscope"
    release = folder / "node_modules" / "speedscope" / "dist" / "release"
    if not (release / "index.html").exists():
        if not shutil.which("npm"):
            pytest.skip("npm is not there to fetch speedscope")
        folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix",
                               folder, SPEEDSCOPE], timeout=180, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if not (release / "index.html").exists():
            pytest.skip(f"npm could not fetch speedscope: {done.stdout.decode()[-200:]}")
    return release


def test_speedscope(w):
    """speedscope's importer reads the profile and the folded lines."""
    release = speedscope(w)
    for name, words in (("cart.pb.gz", ["pprof"]), ("cart.folded", ["folded"])):
        path = w.make(name, *words, CART)
        loader = w.folder / f"{name}.js"
        data = base64.b64encode(path.read_bytes()).decode()
        loader.write_text(f"speedscope.loadFileFromBase64({json.dumps(name)}, {json.dumps(data)})")
        with Browser() as b:
            b.open(f"{(release / 'index.html').as_uri()}#localProfilePath={loader}")
            shown = "document.body.innerText.includes('Left Heavy') && document.body.innerText.includes('cart')"
            if w.keep:
                time.sleep(2)
                b.screenshot(w.keep / f"speedscope-{name}.png")
            check(b.wait(shown), f"{name}: it shows {b.run('document.body.innerText')[:200]!r}")
            check("Unrecognized" not in b.run("document.body.innerText"), f"{name}: not recognized")
            check(not b.complaints, b.complaints[:3])


# ---- speed: a figure for people, no gate


def test_a_million_lines(w):
    """A million stack lines become folded ones; how fast is printed."""
    lines, copies = 20000, 50
    some = stacks(CART)
    path = w.folder / "many.jsonl"
    with open(path, "w", encoding="utf-8") as stream:
        for i in range(lines):
            # Each line at a time of its own, and the sessions of each copy others: none has come before.
            stream.write(json.dumps({**some[i % len(some)], "pid": 100 + i % 50, "session": f"{i // 500:016x}",
                                     "mono_ns": i + 1}, separators=(",", ":")) + "\n")
    expected = sum(some[i % len(some)]["count"] for i in range(lines)) * copies
    began = time.monotonic()
    script = 'i=10; while [ $i -lt $2 ]; do sed "s/\\"session\\":\\"00/\\"session\\":\\"$i/" "$1"; i=$((i + 1)); done'
    with subprocess.Popen(["sh", "-c", script, "sh", path, str(10 + copies)], stdout=subprocess.PIPE) as source:
        done = subprocess.run([w.trocar, "folded", "--all", "--count", "samples"], stdin=source.stdout,
                              stdout=subprocess.PIPE, timeout=300, check=True)
    seconds = time.monotonic() - began
    found = sum(int(r.rsplit(" ", 1)[1]) for r in done.stdout.decode().splitlines())
    check(found == expected, f"{found} samples, not {expected}")
    size = path.stat().st_size * copies
    path.unlink()
    print(f"# {lines * copies:,} stack lines, {size / 1e6:,.0f} MB: folded in {seconds:.1f} s, "
          f"{lines * copies / seconds:,.0f} lines/s")


def test_thousands_of_sessions(w):
    """Reading is linear in sessions: 4,000 of them, 245 MB, take at most twice as long as ten times a tenth of them."""
    sessions, share, one = 4000, 10, []
    for line in CART.read_text().splitlines(True):
        if '"session":"' in line and ('"type":"session.' in line or sum(map(len, one)) < 58000):
            one.append(line)
    own = json.loads(one[0])["session"]
    path, few = w.folder / "sessions.jsonl", w.folder / "few.jsonl"
    for file, count in ((path, sessions), (few, sessions // share)):
        with open(file, "w", encoding="utf-8") as stream:
            for i in range(count):
                stream.write("".join(one).replace(own, f"{(1 << 60) + 7919 * i:016x}"))

    def cost(words, file):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([w.trocar, *words, file], stdout=subprocess.PIPE, timeout=120, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        check(len(done.stdout) > 1000, f"{words}: {done.stdout[:300]}")
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    for words in (("report",), ("report", "--all"), ("flamegraph", "--all"), ("folded", "--all")):
        seconds, control = cost(words, path), min(cost(words, few) for _ in range(3))
        print(f"# {sessions} sessions, {path.stat().st_size / 1e6:.0f} MB: {' '.join(words)} takes {seconds:.1f} s of a CPU, "
              f"a tenth of them {control:.2f}")
        check(seconds <= 2 * share * control + 0.5, f"{words}: {seconds:.1f} s, a tenth of it {control:.2f} s")
    few.unlink()
    path.unlink()
