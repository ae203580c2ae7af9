"""Take the pictures of reports in docs/report: `python tools/report_pictures.py audit.html ...`.

Needs Chromium and its driver. Each report is opened at two widths and photographed from top to
bottom, in few colours, so that the files stay small. The picture in the README is the upper part of
one report, made by

    sellf audit --example --seed 1 --save loans.csv --html audit.html
    python tools/report_pictures.py --top 585 audit.html
"""

import base64
import io
import shutil
import sys
from pathlib import Path
from typing import Any

from PIL import Image
from selenium import webdriver

WIDTHS = (1280, 390)
TALLEST = 4200
FOLDER = Path(__file__).parent.parent / "docs" / "report"
TOP = FOLDER.parent / "assets" / "audit-report.png"
NARROW = 960
"""Pixels across of the picture in the README, where it is shown at about that width."""


def main(paths: list[str]) -> None:
    """Photograph reports, or the upper part of one."""
    if paths[0] == "--top":
        driver = _browser()
        try:
            image = photograph(driver, Path(paths[2]), NARROW, int(paths[1]))
        finally:
            driver.quit()
        image.save(TOP, optimize=True)
        return
    FOLDER.mkdir(exist_ok=True)
    driver = _browser()
    try:
        for path in map(Path, paths):
            for width in WIDTHS:
                image = photograph(driver, path, width)
                image.save(FOLDER / f"{path.stem}-{width}.png", optimize=True)
    finally:
        driver.quit()


def photograph(driver: Any, path: Path, width: int, tallest: int = TALLEST) -> Image.Image:
    """Return a report as it looks at some width."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.get(path.resolve().as_uri())
    height = driver.execute_script("return document.documentElement.scrollHeight")
    part = {"x": 0, "y": 0, "width": width, "height": min(height, tallest), "scale": 1}
    options = {"format": "png", "captureBeyondViewport": True, "clip": part}
    taken = driver.execute_cdp_cmd("Page.captureScreenshot", options)
    image = Image.open(io.BytesIO(base64.b64decode(taken["data"]))).convert("RGB")
    return image.quantize(128, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)


def _browser() -> Any:
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ("headless=new", "no-sandbox", "disable-gpu", "hide-scrollbars"):
        options.add_argument(f"--{argument}")
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    return webdriver.Chrome(options=options, service=service)


if __name__ == "__main__":
    main(sys.argv[1:])
