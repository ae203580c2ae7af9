"""The one-page summary of a report as a PDF, printed by an installed browser."""

import os
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

from sellf import extras
from sellf.errors import InputError
from sellf.report.charts import Rows
from sellf.report.page import Callout, Code, Facts, Grid, Page, Section, render

SECONDS = 120
MOST_LINES, MOST_ROWS = 3, 12
"""The largest numbers of warnings and of table rows that fit on one page."""
MOST_LETTERS = 400
ONE_PAGE = "@media print{@page{size:A4;margin:10mm}body{zoom:.7}h2{margin-top:1rem}}"
"""The style sheet for printing on one page."""


def browser() -> str:
    """Return the path of a browser that can print; refuse if none is installed."""
    found = extras.browser()
    if found is not None:
        return found
    raise InputError(
        "--pdf is printed by Chromium, Chrome or Edge, and none of them is installed: install one, "
        "or type --html and print that page from any browser."
    )


def summary(page: Page) -> Page:
    """Return the summary of a report: the answer, a chart, a table and how to reproduce it."""
    charts = [block for section in page.sections for block in section.blocks]
    picture = next((block for block in charts if isinstance(block, Rows)), None)
    table = next(
        (
            block
            for section in page.sections
            for block in section.blocks
            if isinstance(block, Grid) and section.title == "The numbers"
        ),
        None,
    )
    blocks = [block for block in (picture, None if table is None else _short(table)) if block]
    again = [
        replace(block, text=block.text[:MOST_LETTERS])
        if isinstance(block, Code)
        else Facts([(name, value[:MOST_LETTERS]) for name, value in block.facts[:2]])
        for section in page.sections[-1:]
        for block in section.blocks
        if isinstance(block, Code | Facts)
    ]
    callouts = [
        Callout(one.title, [line[:MOST_LETTERS] for line in one.lines[:MOST_LINES]])
        for one in page.callouts[:2]
    ]
    sections = [Section("The picture and the numbers", blocks)]
    if again:
        sections.append(Section("How to reproduce this", again))
    return replace(page, sections=sections, callouts=callouts)


def _short(table: Grid) -> Grid:
    columns = {name: list(values)[:MOST_ROWS] for name, values in table.columns.items()}
    return replace(table, columns=columns, note="", best=frozenset())


def pdf(page: Page) -> bytes:
    """Return the summary of a report as a PDF."""
    program = browser()
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "report.html", Path(folder) / "report.pdf"
        text = render(summary(page)).replace("</style>", f"{ONE_PAGE}</style>", 1)
        source.write_text(text, encoding="utf-8")
        command = [
            program,
            "--headless",
            "--disable-gpu",
            "--no-pdf-header-footer",
            f"--user-data-dir={Path(folder) / 'profile'}",
            f"--print-to-pdf={target}",
            source.as_uri(),
        ]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.insert(1, "--no-sandbox")  # the sandbox does not work for root
        try:
            subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
            return target.read_bytes()
        except (OSError, subprocess.TimeoutExpired) as error:
            raise InputError(
                f"{Path(program).name} could not print the summary ({type(error).__name__}): type "
                "--html and print that page."
            ) from None
