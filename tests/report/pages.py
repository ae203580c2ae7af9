"""Reports to look at, and a reader that understands what is in them."""

from collections import Counter
from html.parser import HTMLParser

import numpy as np

from tests.audit.logs import COLUMNS, lending

VOID = {"meta", "br", "input", "hr", "img", "link", "base"}
HOSTILE = [
    "<script>window.hacked = 1</script>",
    "</script><img src=x onerror='window.hacked = 1'>",
    '"><svg onload=window.hacked=1>',
    "{{ 7 * 7 }} ${7} {a|b}",
    "x" * 300,
    "ئۇيغۇر \u202e txet \u2028 line",
]


class Reader(HTMLParser):
    """Reads a page strictly: every element that is opened is closed, in order."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.stack, self.tags, self.attributes = [], Counter(), []
        self.tables, self.scripts, self.texts, self.ids = {}, [], [], []
        self._row = self._caption = None
        self.feed(text)
        self.close()
        assert self.stack == []

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.stack.append(tag)
        if tag == "table":
            self._caption, self._rows = "", []
        if tag == "tr":
            self._rows.append([])
        if tag in ("td", "th"):
            self._rows[-1].append([dict(attrs).get("data-v"), ""])
        if tag == "script":
            self.scripts.append("")

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.stack, f"</{tag}> closes nothing"
        assert self.stack[-1] == tag, f"</{tag}> where {self.stack[-1]} is open"
        self.stack.pop()
        if tag == "table":
            head, *rows = self._rows
            names = [text for _, text in head]
            self.tables[self._caption] = [dict(zip(names, row, strict=True)) for row in rows]

    def handle_data(self, data):
        if self.stack and self.stack[-1] == "script":
            self.scripts[-1] += data
            return
        self.texts.append(data)
        if "caption" in self.stack:
            self._caption += data
        elif "td" in self.stack or "th" in self.stack:
            self._rows[-1][-1][1] += data


def strange_log(people=6000, groups=200):
    """Return a log with hostile names, many groups and one of three people; no propensity."""
    rng = np.random.default_rng(3)
    log = lending(people)
    names = np.array([*HOSTILE, *(f"branch {i}" for i in range(groups - len(HOSTILE)))], object)
    log["race"] = names[rng.integers(0, len(names), people)]
    log["race"][:3] = "three people"
    columns = {name: column for name, column in COLUMNS.items() if name != "propensity"}
    del columns["score"]
    return log, columns


def dated_log(people=3000):
    log = lending(people)
    log["date"] = np.datetime64("2025-01-01") + np.arange(people) % 180
    return log, {**COLUMNS, "time": "date", "by": "month"}
