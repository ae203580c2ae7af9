"""The built site as a browser shows it: from disk, with search, and without serious barriers."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

webdriver = pytest.importorskip("selenium.webdriver")
pytest.importorskip("material")
ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
AXE = ROOT / "tests" / "report" / "axe.min.js"
BARRIERS = """
const done = arguments[0];
axe.run(document, {resultTypes: ['violations']}).then(found => done(found.violations.map(
  v => [v.impact, v.id, v.nodes.slice(0, 2).map(n => n.html.slice(0, 200))])));
"""
SEARCH = """
const box = document.querySelector('input.md-search__input'), done = arguments[0];
box.focus();
box.value = 'propensity';
for (const name of ['keyup', 'input']) box.dispatchEvent(new Event(name, {bubbles: true}));
const look = () => {
  const found = document.querySelectorAll('.md-search-result__item').length;
  if (found) done(found); else setTimeout(look, 200);
};
look();
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="Chromium is not installed"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("headless=new", "no-sandbox", "disable-gpu", "window-size=1280,900"):
        options.add_argument(f"--{argument}")
    driver = webdriver.Chrome(
        options=options, service=webdriver.ChromeService(executable_path=DRIVER)
    )
    driver.set_script_timeout(60)
    yield driver
    driver.quit()


@pytest.mark.parametrize("page", ["index", "gallery/index", "gallery/stops", "not-for-you"])
def test_axe_finds_nothing_serious(site, browser, page):
    browser.get((site / f"{page}.html").as_uri())
    browser.execute_script(AXE.read_text(encoding="utf-8"))
    found = browser.execute_async_script(BARRIERS)
    assert [barrier for barrier in found if barrier[0] in ("serious", "critical")] == []


def test_search_works_from_disk(site, browser):
    browser.get((site / "index.html").as_uri())
    assert browser.execute_async_script(SEARCH) > 3
