"""The report as a browser shows it: every chart drawn by its script, without an error and without a network."""
import re
import shutil
import subprocess

import pytest

from test_study import ONE, write

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def report(weir, made, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    text = ONE.replace("batch: 1, ", "") + "factors: {{batch: [1, 2, 4]}}\nwaterfall: true\n"
    weir.run("study", "--no-replay", write(folder, made, repeats=2, images=60, text=text), "-o", folder / "out", status=None)
    return folder / "out/report.html"


def browse(*arguments):
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000", "--enable-logging=stderr", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.skipif(BROWSER is None, reason="apt-get install chromium")
def test_a_browser_draws_every_chart_without_an_error(report):
    page = report.read_text()
    if "window.vegaEmbed" not in page:
        pytest.skip("the program was built without the charts' script: ./dev setup")
    done = browse("--dump-dom", report.as_uri())
    assert not [line for line in done.stderr.splitlines() if "CONSOLE" in line], done.stderr[-2000:]
    dom = done.stdout.split("<script>")[0]
    figures = re.findall(r"<figure.*?</figure>", dom, re.S)
    assert len(figures) >= 4
    for figure in figures:
        assert figure.startswith('<figure class="drawn">'), figure[:300]
        assert "vega-embed" in figure and "NaN" not in figure.split("</script>")[-1]


def test_each_chart_has_data_and_says_its_words(report):
    page = report.read_text()
    figures = re.findall(r"<figure>.*?</figure>", page, re.S)
    assert len(figures) >= 4
    for figure in figures:
        assert 'role="img" aria-labelledby=' in figure
        assert len(re.findall(r"<(circle|rect) ", figure)) >= 2, figure[:300]
        assert "data:text/csv" in figure
    assert page.index("The answer") < page.index("<pre>") < page.index("Figures")
    order = [page.index(f"<h2>{title}</h2>") for title in (
        "The answer", "Figures", "Configurations side by side", "Where the time goes", "Factors and their interactions", "Latency", "Memory",
        "Stability over the blocks", "Table 2: times and resources", "Rejected, skipped and doubtful trials", "Conditions", "How to repeat it")]
    assert order == sorted(order)
