# SPDX-License-Identifier: BSD-2-Clause
"""What all suites in Python share: options, the order of tests, skips, and the fixtures that own what a test makes."""
import collections
import importlib
import os
import pathlib
import re
import subprocess

import pytest
from _pytest.runner import runtestprotocol

import machine

ROOT = pathlib.Path(__file__).resolve().parents[1]
TIME = re.compile(r"\[\d+(-|\]$)")  # what --times adds to the name of a test
ALONE = 1
WAITING = 6  # at a time: these use no CPU to speak of, and take longest


def pytest_addoption(parser):
    group = parser.getgroup("trocar")
    group.addoption("--build", metavar="DIR", help="the build directory (default $TROCAR_BUILD, build)")
    group.addoption("--folder", metavar="DIR", help="run the tests in this folder, with the fixtures of these")
    group.addoption("--times", metavar="N", type=int, default=1, help="run each test N times in a row, and count")
    group.addoption("--keep", metavar="DIR", type=pathlib.Path, help="pictures: leave screenshots in this folder")


class Fixtures:
    """Registered for every folder, so that tests outside of this tree (--folder) have them too."""

    @staticmethod
    @pytest.fixture(scope="session")
    def kernel():
        """Skips where the agent cannot be loaded."""
        harness = importlib.import_module("harness")
        reason = machine.why_not(harness.LOADER, harness.CONSUMER, harness.COMMAND, harness.WORKLOADS / "burn_cpu")
        if reason:
            pytest.skip(reason)
        done = subprocess.run([harness.LOADER, "check"], capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"the loader is not content with this kernel: {done.stdout}{done.stderr}")

    @staticmethod
    @pytest.fixture(scope="module")
    def shared(request, kernel):
        """What the tests of a module marked shares_kernel_side have together (harness.Shared)."""
        made = importlib.import_module("harness").Shared(request.node.path.stem.removeprefix("test_"))
        yield made
        made.close()

    @staticmethod
    @pytest.fixture
    def t(request, kernel):
        """The world of one test of the whole agent (harness.Test). What it leaves behind is a failure."""
        with machine.share(at_once(request.node)):
            test = importlib.import_module("harness").Test(request.node.name.removeprefix("test_"))
            if request.node.get_closest_marker("shares_kernel_side"):
                test.shared_kernel_side = request.getfixturevalue("shared").kernel_side
            yield test
            faults = test.close()
            print(f"# {test.lines} lines validated")
            if faults:
                pytest.fail("\n".join(faults), pytrace=False)

    @staticmethod
    @pytest.fixture
    def bed(request, kernel):
        """The surroundings of one test of the broker (bed.Bed)."""
        with machine.share(at_once(request.node)):
            made = importlib.import_module("bed").Bed()
            yield made
            if made.activator:
                print(made.activator.said)
            made.done()


def pytest_configure(config):
    if config.option.build:
        os.environ["TROCAR_BUILD"] = os.path.abspath(config.option.build)
    if config.option.folder:
        config.args[:] = [os.path.abspath(config.option.folder)]
    config.pluginmanager.register(Fixtures(), "trocar-fixtures")


def pytest_generate_tests(metafunc):
    if metafunc.config.option.times > 1:
        metafunc.fixturenames.append("time_of_many")
        metafunc.parametrize("time_of_many", range(1, metafunc.config.option.times + 1))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    """A test marked again(reason) runs once more where it fails. How often that was needed is said at the end."""
    mark = item.get_closest_marker("again")
    if not mark or os.environ.get("TROCAR_SHORT") == "1":
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, nextitem=nextitem, log=False)
    if any(report.failed for report in reports):
        item._initrequest()  # pylint: disable=protected-access
        why = next(str(report.longrepr) for report in reports if report.failed).strip().splitlines()[-1]
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        reports[-1].user_properties.append(("again", f"{mark.args[0]}; it failed with: {why[:300]}"))
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def second_tries(terminalreporter):
    """A line for each test that needed one, with the reason that its mark gives."""
    for reports in terminalreporter.stats.values():
        for report in reports:
            for key, why in getattr(report, "user_properties", ()):
                if key == "again":
                    terminalreporter.write_line(f"again: {report.nodeid}: {why}")


def pytest_terminal_summary(terminalreporter, config):
    """With --times: how often each test passed. One that had no verdict (a skip) has not passed."""
    second_tries(terminalreporter)
    if config.option.times == 1:
        return
    counts = collections.defaultdict(collections.Counter)
    for outcome in ("passed", "skipped", "failed", "error"):
        for report in terminalreporter.stats.get(outcome, ()):
            test = TIME.sub(lambda found: "[" if found[1] == "-" else "", report.nodeid)
            counts[test]["failed" if outcome == "error" else outcome] += 1
    terminalreporter.section(f"each {config.option.times} times")
    for test, found in sorted(counts.items()):
        rest = [f"{found[outcome]} {word}" for outcome, word in (("failed", "failed"), ("skipped", "without a verdict"))
                if found[outcome]]
        terminalreporter.write_line(", ".join([f"{test}: {found['passed']} of {config.option.times} passed", *rest]))


def at_once(item):
    """How many tests like this one may run at a time: its own mark goes before its file's."""
    mark = item.get_closest_marker("parallel")
    return mark.args[0] if mark else ALONE


def spread(items):
    """Those that wait for minutes each to another worker: xdist gives a worker so many tests in a row at first."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    row = max(2, len(items) // workers // 4)
    waiting = [item for item in items if at_once(item) >= WAITING]
    others = [item for item in items if at_once(item) < WAITING]
    for number, item in enumerate(waiting):
        others.insert(number * row, item)
    items[:] = others


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """`-k` finds a test as flood.renames too. Tests that run beside others come first, those of a kind together."""
    for item in items:
        item.extra_keyword_matches.add(f"{item.path.stem[5:]}.{item.name[5:]}")
        if at_once(item) == ALONE:
            item.add_marker("serial")
    items.sort(key=at_once, reverse=True)
    spread(items)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(call):
    """harness.Skip and bed.Skip are skips: both modules are also used where there is no pytest."""
    if call.excinfo and call.excinfo.typename == "Skip":
        reason = str(call.excinfo.value)
        call.excinfo = pytest.CallInfo.from_call(lambda: pytest.skip(reason), call.when).excinfo
