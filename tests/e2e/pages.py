# SPDX-License-Identifier: BSD-2-Clause
"""Reports that a page quotes. A test checks that the page still says what the test looks for; with TROCAR_PAGES set it
first writes the report of this run there. What names the test in a path is said as on a host."""
import os
import re
import textwrap


class Page:
    def __init__(self, path):
        self.path = path

    def text(self):
        return self.path.read_text(encoding="utf-8")

    def _find(self, title):
        return re.search(rf"^## {re.escape(title)}$.*?^```text\n(.*?)^```$", self.text(), re.S | re.M)

    def quoted(self, title):
        """The report that the page shows below this title."""
        return self._find(title)[1]

    def quote(self, t, title, paragraphs, columns=None):
        """Shows these paragraphs there, if that is asked for; `columns`: folded to so many, as on a terminal."""
        if not os.environ.get("TROCAR_PAGES"):
            return
        text = "\n\n".join(paragraphs).rstrip() + "\n"
        text = re.sub(rf"/{re.escape(t.name)}-", "/", text).replace(f"{t.folder}/cluster/.s", "/run/postgresql/.s")
        text = text.replace(str(t.folder), "/srv")
        if columns:
            text = "".join(self._folded(line, columns) + "\n" for line in text.splitlines())
        page, old = self.text(), self._find(title)
        self.path.write_text(page[:old.start(1)] + text + page[old.end(1):], encoding="utf-8")

    @staticmethod
    def _folded(line, columns):
        indent = re.match(" *", line)[0]
        return textwrap.fill(line, columns, subsequent_indent=indent + "  ", break_long_words=False, break_on_hyphens=False)
