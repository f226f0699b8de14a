# SPDX-License-Identifier: BSD-2-Clause
# tests: docs/tutorial.md docs/tutorial/*
"""The tutorial: its commands as a reader types them, one after the other, and what it promises of their output."""
import re
import subprocess

import pytest

from harness import ROOT, check

BLOCKS = re.compile(r"^```sh\n(.*?)^```$", re.M | re.S)


@pytest.mark.parallel(2)
def test_tutorial(t):
    """Each block in one shell; a command that fails ends it."""
    blocks = BLOCKS.findall((ROOT / "docs/tutorial.md").read_text())
    check(len(blocks) == 5, f"{len(blocks)} blocks")
    # 5: a capture was partial, as on a machine whose CPUs others use.
    script = "trap 'status=$?; [ $status -eq 5 ] || exit $status' ERR\n" + \
        "trap 'kill $shop $inventory $agent 2>/dev/null || :; wait $agent || :; rm -f /tmp/inventory-slow' EXIT\n" + \
        "echo '# next'\n".join(blocks)
    done = subprocess.run(["bash", "-Euo", "pipefail", "-c", script], cwd=ROOT, timeout=200, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    check(done.returncode == 0, f"status {done.returncode}: {done.stdout[-1500:]}")
    _, slow, shop, inventory, last = done.stdout.split("# next\n")
    check(int(re.search(r"answered (\d+)", slow)[1]) < 18, slow)
    check(re.search(r"waited [\d.]+ s for the other ends of sockets[^\n]*127\.0\.0\.1:7071", shop), shop)
    check(re.search(r"for one lock on the heap[^\n]*held by", inventory) and "libz.so" in inventory, inventory)
    check(int(re.search(r"answered (\d+)", last)[1]) >= 18, last)
