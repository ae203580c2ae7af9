"""A Markdown page of docs/ as its parts: text, and code in fences with what is said of it."""

import re
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
FENCE = re.compile(
    r"(?:^<!-- (?P<mark>not run: [^\n]+?|output(?: of training)?) -->\n)?"
    r"^```(?P<language>\w*)\n(?P<code>.*?)^```\n",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Part:
    """Text between fences, or what is in one."""

    text: str
    language: str | None = None
    """None: text."""
    mark: str = ""
    """`not run: REASON`, `output` (of the code before), or nothing. `output of training` differs
    between machines, and is not compared."""
    line: int = 1
    """Where in the page it begins."""

    @property
    def runs(self) -> bool:
        """Whether this is code that must run."""
        return self.language == "python" and not self.mark

    @property
    def source(self) -> str:
        """As it stands in the page, without the mark."""
        return self.text if self.language is None else f"```{self.language}\n{self.text}```\n"


def parts(page: str) -> list[Part]:
    """Return a page's parts in order."""
    found: list[Part] = []
    end = 0
    for fence in FENCE.finditer(page):
        if page[end : fence.start()].strip():
            found.append(Part(page[end : fence.start()]))
        line = page[: fence.start("code")].count("\n") + 1
        found.append(Part(fence["code"], fence["language"], fence["mark"] or "", line))
        end = fence.end()
    if page[end:].strip():
        found.append(Part(page[end:]))
    return found


def pages() -> list[Path]:
    """Return every page of the documents."""
    return sorted(DOCS.rglob("*.md"))
