"""A study's report in a browser, wide, narrow, light, dark and printed: no error, no request, and no serious fault that axe-core finds.
WEIR_SCREENSHOTS names a folder for pictures of it."""
import json
import os
import pathlib
import shutil
import subprocess

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

import conftest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
STUDY = """
study: page
question: Which batch and depth feed the accelerator?
model: {model}
data: {data}
factors: {{batch: [1, 8], in_flight: [2, 4]}}
fixed: {{architecture: in-process, engine: "emulated:base=2ms,per_item=0.2ms"}}
waterfall: true
repeats: 2
trial: {{images: 120}}
targets: {{p99_ms: 40, price_per_hour: {{in-process: 1.0}}}}
"""
VIEWS = {"wide-light": (1400, 1000, "light"), "narrow-light": (390, 844, "light"), "wide-dark": (1400, 1000, "dark"), "narrow-dark": (390, 844, "dark")}


@pytest.fixture(scope="module")
def report(weir, made, tmp_path_factory):
    if given := os.environ.get("WEIR_REPORT"):
        return pathlib.Path(given)
    folder = tmp_path_factory.mktemp("page")
    (folder / "page.yaml").write_text(STUDY.format(model=made[0], data=made[1]))
    subprocess.run([conftest.PROGRAM, "study", folder / "page.yaml", "-o", folder / "out", "--no-replay"], check=True, capture_output=True)
    return folder / "out/report.html"


@pytest.fixture(scope="module")
def browser():
    if BROWSER is None:
        pytest.skip("apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()


def picture(page, name, full=True):
    if folder := os.environ.get("WEIR_SCREENSHOTS"):
        page.screenshot(path=f"{folder}/{name}.png", full_page=full)


@pytest.mark.parametrize("view", VIEWS)
def test_the_report_has_no_error_no_request_and_no_serious_fault(browser, report, view):
    width, height, scheme = VIEWS[view]
    # The page's own policy lets no script in but its own; the checker's needs to.
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    said, requests = [], []
    page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: requests.append(request.url) if not request.url.startswith(("file:", "data:", "blob:")) else None)
    page.goto(report.as_uri())
    page.wait_for_timeout(1500)
    assert not said and not requests
    assert page.evaluate("document.documentElement.scrollWidth") <= width, "the page scrolls sideways"
    first = page.evaluate("[...document.querySelectorAll('h2, pre')].filter(e => e.getBoundingClientRect().top < innerHeight).map(e => e.tagName)")
    if width > 1000:
        assert first[:1] == ["H2"] and "PRE" in first, "the answer and the command stand on the first screen"
    picture(page, view)
    picture(page, view + "-first", full=False)
    serious = [one for one in Axe().run(page).response["violations"] if one["impact"] in ("serious", "critical")]
    assert not serious, json.dumps([(one["id"], one["help"], [node["html"][:200] for node in one["nodes"][:3]]) for one in serious], indent=1)
    context.close()


def test_the_printed_report_shows_every_chart(browser, report):
    page = browser.new_page()
    page.goto(report.as_uri())
    page.wait_for_timeout(1000)
    page.emulate_media(media="print")
    shown = page.evaluate("[...document.querySelectorAll('figure')].map(f => [...f.querySelectorAll('svg')].some(s => s.getBoundingClientRect().height > 50))")
    assert shown and all(shown)
    picture(page, "print")
    if folder := os.environ.get("WEIR_SCREENSHOTS"):
        page.pdf(path=f"{folder}/print.pdf", format="A4")
    page.close()


def test_the_report_can_be_read_without_scripts(browser, report):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    assert page.locator("figure").count() >= 4
    assert all(page.locator("figure svg").nth(i).is_visible() for i in range(page.locator("figure").count()))
    context.close()
