"""Reports as a browser shows them: from disk, without network, with a mouse and without scripts.

Runs where Debian's chromium and chromium-driver (or others of those names) are installed.
"""

import base64
import re
import shutil
from pathlib import Path

import pytest

import sellf
from sellf import report
from tests.report.pages import dated_log, strange_log

pytest.importorskip("jax")
webdriver = pytest.importorskip("selenium.webdriver")
WebDriverWait = pytest.importorskip("selenium.webdriver.support.wait").WebDriverWait
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
if CHROMIUM is None or DRIVER is None:
    pytest.skip("Chromium and its driver are not installed", allow_module_level=True)

KINDS = ("audit", "strange", "dated", "run", "compare", "study", "index")
MARK = """
const box = document.querySelectorAll('.live')[arguments[0]];
box.scrollIntoView({block: 'center'});
const view = echarts.getInstanceByDom(box), frame = box.getBoundingClientRect();
const points = view.getOption().series.filter(s => s.type === 'scatter' && s.data.length);
const middle = points.length && points.at(-1).data[points.at(-1).data.length >> 1];
const at = points.length
  ? view.convertToPixel({gridIndex: 0}, middle.slice(0, 2))
  : [frame.width / 2, frame.height / 2];
return [frame.x + at[0], frame.y + at[1]];
"""
"""Where to point at a chart: at a mark in its middle, or in the middle if it has lines."""
BARRIERS = """
const done = arguments[0];
document.querySelectorAll('details').forEach((d, i) => { d.open = i < 2; });
axe.run(document, {resultTypes: ['violations']}).then(found => done(found.violations.map(
  v => [v.impact, v.id, v.nodes.slice(0, 2).map(n => n.html.slice(0, 200))])));
"""
AXE = (Path(__file__).parent / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def pages(folder, results, tmp_path_factory):
    """Return one report of each kind, on disk."""
    from sellf.report.studies import report_of_all
    from sellf.studies import spec
    from sellf.studies.collection import Collection

    place = tmp_path_factory.mktemp("reports")
    strange, columns = strange_log()
    dated, by_month = dated_log()
    plain = {**by_month, "time": None, "by": None}
    texts = {
        "audit": report.audit(sellf.audit_all(dated, **plain)),
        "strange": report.audit(sellf.audit(strange, **columns)),
        "dated": report.audit(sellf.audit(dated, **by_month, omega=0.25)),
        "run": report.runs([folder / "sellf-0"]),
        "compare": report.runs([folder]),
        "study": report.study(results),
        "studies": report_of_all(
            Collection("both", "", (spec.load("timing", quick=True),)),
            [results],
            "sellf study run both",
        ),
    }
    saved = place / "strange.json"
    saved.write_text(sellf.audit(strange, **columns).to_json(), encoding="utf-8")
    both = place / "all.json"
    both.write_text(sellf.audit_all(dated, **plain).to_json(), encoding="utf-8")
    texts["index"] = report.index([saved, both, folder])
    for name, text in texts.items():
        (place / f"{name}.html").write_text(text, encoding="utf-8")
    return place


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage"):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(executable_path=DRIVER)
    driver = webdriver.Chrome(options=options, service=service)
    driver.execute_cdp_cmd("Network.enable", {})
    offline = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
    driver.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
    yield driver
    driver.quit()


@pytest.fixture
def show(browser, pages):
    """Return a function that opens a report at some width."""

    def open_(kind, width=1280, scheme="light", media="", scripts=True):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"media": media, "features": features}
        )
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not scripts})
        browser.get((pages / f"{kind}.html").as_uri())
        return browser

    yield open_
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def point_at(driver, x, y):
    driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x, "y": y})


def tooltip(driver, place):
    """Return what the tooltip of a chart says, once it had time to appear."""
    for _ in range(30):
        driver.execute_async_script("const done = arguments[0]; setTimeout(() => done(1), 100)")
        found = driver.execute_script(
            "return [...document.querySelectorAll('.live')[arguments[0]]"
            ".querySelectorAll('.tip')].filter(t => "
            "getComputedStyle(t.parentElement).visibility !== 'hidden' && "
            "getComputedStyle(t.parentElement).opacity > 0).map(t => t.innerText)",
            place,
        )
        if found:
            return found[0]
    return ""


@pytest.mark.parametrize("kind", KINDS)
def test_every_chart_is_drawn_without_an_error_and_without_network(show, kind):
    driver = show(kind)
    figures = driver.execute_script("return document.querySelectorAll('figure').length")
    assert figures >= 2
    assert driver.execute_script("return document.documentElement.dataset.ready") == str(figures)
    drawn = driver.execute_script(
        "return [...document.querySelectorAll('.live')].map(b => "
        "[b.getBoundingClientRect().width, b.querySelectorAll('svg path, svg rect').length])"
    )
    assert len(drawn) == figures
    assert all(width > 250 and parts > 5 for width, parts in drawn)
    assert driver.get_log("browser") == []
    assert driver.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert driver.execute_script("return document.scripts.length") == 3
    assert driver.execute_script("return window.hacked") is None


@pytest.mark.parametrize("kind", KINDS)
def test_pointing_at_a_chart_shows_its_figures(show, kind):
    driver = show(kind)
    count = driver.execute_script("return document.querySelectorAll('.live').length")
    for place in range(count):
        x, y = driver.execute_script(MARK, place)
        point_at(driver, x + 30, y)
        point_at(driver, x, y)
        found = tooltip(driver, place)
        assert re.search(r"\d", found), f"chart {place} says nothing"
    assert driver.get_log("browser") == []


def test_a_hostile_name_is_text_in_tooltips_too(show):
    driver = show("strange")
    box = driver.find_element("css selector", "#chart-1 .tools input")
    box.send_keys("<script>")
    driver.execute_script(
        "document.querySelector('#chart-1 .live').scrollIntoView({block: 'center'})"
    )
    x, y, height = driver.execute_script(
        "const f = document.querySelector('#chart-1 .live').getBoundingClientRect();"
        "return [f.x + f.width / 2, f.y + 45, f.height]"
    )
    assert height < 200  # one row is left of two hundred
    point_at(driver, x, y)
    point_at(driver, x + 2, y)
    assert tooltip(driver, 1).startswith("<script>window.hacked = 1</script>")
    assert driver.execute_script("return window.hacked") is None


def test_tables_sort_by_mouse_and_by_keyboard(show):
    from selenium.webdriver.common.keys import Keys

    driver = show("strange")
    table = driver.find_element("xpath", "//table[caption='Opportunity by group']")
    button = next(b for b in table.find_elements("tag name", "button") if b.text == "people")

    def people():
        return driver.execute_script(
            "return [...arguments[0].tBodies[0].rows].map(r => Number(r.cells[1].dataset.v))", table
        )

    assert people() != sorted(people())
    driver.execute_script("arguments[0].click()", button)
    assert people() == sorted(people())
    head = table.find_elements("tag name", "th")[1]
    assert head.get_attribute("aria-sort") == "ascending"
    button.send_keys(Keys.ENTER)
    assert people() == sorted(people(), reverse=True)
    assert head.get_attribute("aria-sort") == "descending"


def test_a_legend_hides_and_shows(show):
    driver = show("compare")
    button = driver.find_element("css selector", "#chart-0 .legend button")

    def lines():
        drawn = "#chart-0 .live svg path[stroke-width='2.2']"
        return len(driver.find_elements("css selector", drawn))

    before = lines()
    driver.execute_script("arguments[0].click()", button)
    assert button.get_attribute("aria-pressed") == "false"
    # Charts are drawn on the next frame, which a busy machine may be late with.
    WebDriverWait(driver, 10).until(lambda _: lines() < before)
    driver.execute_script("arguments[0].click()", button)
    WebDriverWait(driver, 10).until(lambda _: lines() == before)


def test_dragging_zooms_and_a_button_shows_all_again(show):
    driver = show("run")
    x, y = driver.execute_script(
        "const b = document.querySelector('#chart-2 .live'); b.scrollIntoView({block: 'center'});"
        "const f = b.getBoundingClientRect(); return [f.x + f.width / 2, f.y + f.height / 2]"
    )
    zoom = (
        "const z = echarts.getInstanceByDom(document.querySelector('#chart-2 .live'))"
        ".getOption().dataZoom.map(z => z.end - z.start); return Math.min(...z)"
    )
    assert driver.execute_script(zoom) == 100
    mouse = {"button": "left", "clickCount": 1}
    point_at(driver, x, y)
    driver.execute_cdp_cmd(
        "Input.dispatchMouseEvent", {"type": "mousePressed", "x": x, "y": y, **mouse}
    )
    for step in (20, 60, 100):
        move = {"type": "mouseMoved", "x": x + step, "y": y, "button": "left"}
        driver.execute_cdp_cmd("Input.dispatchMouseEvent", move)
    driver.execute_cdp_cmd(
        "Input.dispatchMouseEvent", {"type": "mouseReleased", "x": x + 100, "y": y, **mouse}
    )
    assert driver.execute_script(zoom) < 50
    button = driver.find_element("css selector", "#chart-2 .tools button")
    assert button.is_displayed()
    driver.execute_script("arguments[0].click()", button)
    assert driver.execute_script(zoom) == 100


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_wider_than_a_telephone(show, kind):
    driver = show(kind, width=390)
    assert driver.execute_script("return document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("kind", KINDS)
def test_in_print_the_still_pictures_stand_for_the_live_ones(show, kind):
    driver = show(kind, media="print")
    displayed = (
        "return [...document.querySelectorAll(arguments[0])].map(e => getComputedStyle(e).display)"
    )
    assert set(driver.execute_script(displayed, ".live")) == {"none"}
    assert set(driver.execute_script(displayed, ".still")) == {"block"}
    pdf = base64.b64decode(driver.print_page())
    assert pdf.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) >= 2


@pytest.mark.parametrize("kind", KINDS)
def test_without_scripts_everything_can_be_read(show, kind):
    driver = show(kind, scripts=False)
    stills = driver.find_elements("css selector", ".still svg[role=img]")
    assert len(stills) == len(driver.find_elements("css selector", "figure"))
    for still in stills:
        assert still.is_displayed()
        assert still.size["width"] > 300
    assert driver.find_elements("css selector", ".live") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", [*KINDS, "studies"])
def test_no_serious_barrier_is_found(show, kind, scheme):
    driver = show(kind, scheme=scheme)
    driver.execute_script(AXE)
    driver.set_script_timeout(180)
    found = driver.execute_async_script(BARRIERS)
    assert [one for one in found if one[0] in ("serious", "critical")] == []
