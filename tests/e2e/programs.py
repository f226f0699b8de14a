# SPDX-License-Identifier: BSD-2-Clause
"""Programs that the tests run as they are installed or compiled here."""
import shutil
import subprocess

from harness import Skip


def need(*programs):
    """Skips the test where one of these is not installed."""
    for program in programs:
        if not shutil.which(program):
            raise Skip(f"{program} is not installed")


def start(t, group, *words, **options):
    """A program of the test's, in `group` (None: ours) and in its folder, ended with the test."""
    process = subprocess.Popen([str(w) for w in words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, cwd=t.folder,
                               preexec_fn=group.join if group else None, **options)
    t.processes.append(process)
    return process
