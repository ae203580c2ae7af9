"""Run the Python of pages from top to bottom, and write what it prints where the page shows it.

python tools/run_pages.py docs/tutorials/audit.md README.md

Commands are run where their output is shown.

Pictures (.png) that the code saves go to docs/assets/gallery, if the page shows them from there.
Pages on real files find them as `sellf.datasets` does; set SELLF_DATA to a folder that has them.
"""

import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

from pages import DOCS, Part, parts

PICTURES = DOCS / "assets" / "gallery"


def run(page: Path) -> Iterator[tuple[Part, str]]:
    """Run a page's code in one namespace and the present folder; yield each part and its print."""
    names: dict[str, Any] = {"__name__": "__page__"}
    printed = ""
    found = parts(page.read_text("utf-8"))
    for part, following in zip(found, [*found[1:], None], strict=True):
        if part.language == "sh" and following is not None and following.mark == "output":
            printed = _typed(part.text)
        if part.runs:
            # Lines as in the page, so that a traceback points there.
            code = compile("\n" * (part.line - 1) + part.text, str(page), "exec")
            with redirect_stdout(io.StringIO()) as out:
                exec(code, names)
            printed = out.getvalue()
        yield part, printed


def _typed(commands: str) -> str:
    """Return what commands print, `sellf` being this one."""
    here = str(Path(sys.executable).parent)
    environment = os.environ | {"PATH": here + os.pathsep + os.environ["PATH"]}
    done = subprocess.run(
        ["bash", "-ec", commands], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


def main() -> None:
    """Run pages and put their output in place."""
    os.environ.setdefault("MPLBACKEND", "agg")
    for name in sys.argv[1:]:
        path = Path(name).resolve()
        page = path.read_text("utf-8")
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            for part, printed in run(path):
                if part.mark.startswith("output"):
                    mark = f"<!-- {part.mark} -->\n"
                    shown = f"```text\n{printed.rstrip()}\n```\n"
                    page = page.replace(mark + part.source, mark + shown, 1)
            for picture in Path().glob("*.png"):
                if f"assets/gallery/{picture.name}" in page:
                    small(picture, PICTURES / picture.name)
        path.write_text(page, "utf-8")


def small(picture: Path, target: Path) -> None:
    """Write a picture in few colours, which makes its file small."""
    from PIL import Image

    image = Image.open(picture).convert("RGB")
    few = image.quantize(64, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(target, optimize=True)


if __name__ == "__main__":
    main()
