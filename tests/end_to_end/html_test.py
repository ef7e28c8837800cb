#!/usr/bin/env python3
"""--html, in a real browser where there is one: html_test.py PATH-TO-STEPSIM

What needs a browser is skipped where no Chromium is installed, and everything where stepsim was built
without charts.
"""
import json
import pathlib
import re
import tempfile
import unittest

from browser import Browser, find_browser
from program import SMALL, StepsimTest, main, stepsim

MAIN_JOB = "llama3-70b-dgx-h100-512"
MOST_BYTES = 2_000_000
UNITS = {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
         "PB": 1e15, "%": 0.01, "days": 1}


def has_pages():
    refusal = stepsim("run", "--html", "/no/such/folder/r.html").stderr
    return "needs Apache ECharts" not in refusal


def at(result, key):
    """The member of a result at a path such as links[0].bytes."""
    for part in re.findall(r"[^.\[\]]+", key):
        result = result[int(part)] if isinstance(result, list) else result[part]
    return result


def read_quantity(text):
    number, _, unit = text.replace(",", "").partition(" ")
    return float(number) * UNITS.get(unit, 1)


class PageTest(StepsimTest):
    browser = None
    runs = {}  # pages of runs, each made once: (page, result) by experiment

    @classmethod
    def setUpClass(cls):
        if not has_pages():
            raise unittest.SkipTest("stepsim was built without charts")
        cls.kept = tempfile.TemporaryDirectory()
        if find_browser():
            cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        if cls.browser:
            cls.browser.__exit__()
        cls.runs.clear()
        cls.kept.cleanup()

    def make(self, *arguments, name="page.html", status=0):
        path = self.folder / name
        result = stepsim(*arguments, "--html", str(path))
        self.assertEqual(result.returncode, status, result.stderr)
        return path

    def run_of(self, experiment):
        """The page of a run, and its result."""
        if experiment not in self.runs:
            page, result = (pathlib.Path(self.kept.name) / f"{experiment}.{kind}" for kind in ("html", "json"))
            done = stepsim("run", experiment, "--sensitivity", "--html", str(page), "--json", str(result))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.runs[experiment] = page, json.loads(result.read_text())
        return self.runs[experiment]

    def open(self, path, **options):
        if not self.browser:
            self.skipTest("no Chromium is installed")
        return self.browser.open(path, **options)

    def expect_good(self, page):
        """Everything is drawn, nothing complains, nothing is wider than the window."""
        page.value("new Promise(done => setTimeout(done, 50))")
        self.assertEqual(page.complaints, [])
        drawn = page.value("""[...document.querySelectorAll('.chart')].map(chart =>
            chart.querySelector('svg, canvas') ? '' : chart.dataset.figure).filter(name => name)""")
        self.assertEqual(drawn, [], "figures without a picture")
        self.assertEqual(page.value("document.documentElement.dataset.drawn"),
                         str(page.value("document.querySelectorAll('.chart').length")))
        self.assertLessEqual(page.value("document.documentElement.scrollWidth"), page.width)
        self.assertEqual(page.requests, [page.address])

    def expect_numbers(self, page, result, *keys):
        """Numbers on the page are those of the JSON, and their texts say as much."""
        shown = page.value("""[...document.querySelectorAll('data[data-key]')].map(one =>
            [one.dataset.key, one.value, one.textContent])""")
        self.assertLessEqual(set(keys), {key for key, _, _ in shown})
        for key, value, text in shown:
            self.assertEqual(float(value), at(result, key), key)
            self.assertAlmostEqual(read_quantity(text), float(value), msg=key,
                                   delta=max(abs(float(value)) * 6e-4, 6e-4 if text.endswith("%") else 0))
        return len(shown)


class RunPageTest(PageTest):
    def test_the_main_job(self):
        page_file, result = self.run_of(MAIN_JOB)
        self.assertLessEqual(page_file.stat().st_size, MOST_BYTES)
        for width in (1280, 400):
            page = self.open(page_file, width=width)
            self.expect_good(page)
            count = self.expect_numbers(page, result, "step_time_s", "tokens_per_s", "memory.peak_bytes",
                                        "model_flops_utilization", "breakdown_s.compute",
                                        "breakdown_s.exposed_communication.tp", "critical_path[0].duration_s",
                                        "links[0].utilization", "sensitivity[0].slope")
            self.assertGreater(count, 50)
        embedded = json.loads(page.value("document.getElementById('result').textContent"))
        self.assertEqual({key for key in embedded if embedded[key] != result.get(key)}, {"explain", "simulator"})

    def test_every_key_in_force_is_on_the_page(self):
        page_file, result = self.run_of(SMALL)
        keys = result["experiment"]["plan"]
        html = page_file.read_text()
        for key in keys:
            self.assertIn(f'<th scope="row">{key}</th>', html)

    def test_equal_runs_have_equal_pages(self):
        again = self.make("run", SMALL, "--sensitivity").read_bytes()
        self.assertTrue(again == self.run_of(SMALL)[0].read_bytes(), "two runs differ")

    def test_the_result_is_the_same_with_and_without(self):
        with_page, without = self.folder / "a.json", self.folder / "b.json"
        self.make("run", SMALL, "--json", str(with_page))
        stepsim("run", SMALL, "--json", str(without))
        cut = [path.read_text().partition('"simulator"')[0] for path in (with_page, without)]
        self.assertEqual(cut[0], cut[1])

    def test_names_of_strangers_stay_text(self):
        name = '</script><img src=x onerror="window.hit=1">'
        experiment = {"name": name, "model": {"catalog": "llama3-8b"}, "cluster": {"catalog": "dgx-h100-8"},
                      "plan": {"tp": 8, "global_batch": 8, "sequence": 1024}}
        page_file = self.make("run", self.write("e.json", json.dumps(experiment)))
        self.assertNotIn("<img", page_file.read_text().partition('<script>')[0])
        page = self.open(page_file)
        self.expect_good(page)
        self.assertEqual(page.value("document.querySelector('h1').textContent"), name)
        self.assertEqual(page.value("typeof window.hit"), "undefined")

    def test_no_request_is_allowed(self):
        page = self.open(self.run_of(SMALL)[0])
        refused = page.value("""fetch('http://127.0.0.1:9/').then(() => 'answered', error => 'refused')""")
        self.assertEqual(refused, "refused")
        self.assertTrue(any("Content Security Policy" in one for one in page.complaints), page.complaints)

    def test_keys(self):
        page = self.open(self.run_of(MAIN_JOB)[0])
        page.value("document.querySelector('[data-figure=gantt]').focus()")
        page.press("ArrowRight")
        first = page.value("document.getElementById('said').textContent")
        self.assertIn("stage 0 (rank 0)", first)
        page.press("ArrowRight")
        self.assertNotEqual(page.value("document.getElementById('said').textContent"), first)
        zoom = """(() => { const zoom = echarts.getInstanceByDom(document.querySelector(
            '[data-figure=gantt]')).getOption().dataZoom[0]; return zoom.end - zoom.start; })()"""
        self.assertEqual(page.value(zoom), 100)
        page.press("+")
        self.assertEqual(page.value(zoom), 50)
        page.press("Home")
        self.assertEqual(page.value(zoom), 100)
        # All that can be reached with Tab says what it is.
        unnamed = page.value("""[...document.querySelectorAll('a, button, select, summary, [tabindex]')].filter(
            one => !(one.textContent.trim() || one.getAttribute('aria-label'))).map(one => one.outerHTML)""")
        self.assertEqual(unnamed, [])
        self.assertEqual(page.complaints, [])

    def test_a_hover_says_what_a_pass_is(self):
        page = self.open(self.run_of(MAIN_JOB)[0])
        x, y = page.value("""(() => { const place = document.querySelector('[data-figure=gantt]');
            place.scrollIntoView(); const box = place.getBoundingClientRect();
            const at = echarts.getInstanceByDom(place).convertToPixel({xAxisIndex: 0, yAxisIndex: 0}, [30000, 0]);
            return [box.x + at[0], box.y + at[1] - 8]; })()""")
        page.move(x - 1, y)
        page.move(x, y)
        page.value("new Promise(done => setTimeout(done, 200))")
        tip = page.value("(document.querySelector('.tip') || {textContent: ''}).textContent")
        self.assertIn("forward", tip)

    def test_choices_draw_again(self):
        page = self.open(self.run_of(MAIN_JOB)[0])
        shown = """echarts.getInstanceByDom(document.querySelector('[data-figure=ranks]')).getOption()
            .series[0].data[0][2]"""
        before = page.value(shown)
        page.value("""(() => { const select = document.querySelector('[data-figure=ranks]').previousElementSibling
            .querySelector('select'); select.value = '1'; select.dispatchEvent(new Event('change')); })()""")
        self.assertNotEqual(page.value(shown), before)
        self.expect_good(page)

    def test_dark_paper_and_print(self):
        page_file = self.run_of(SMALL)[0]
        paper = "getComputedStyle(document.body).backgroundColor"
        light, dark = self.open(page_file), self.open(page_file, dark=True)
        self.expect_good(dark)
        self.assertEqual(light.value(paper), "rgb(255, 255, 255)")
        self.assertEqual(dark.value(paper), "rgb(20, 24, 29)")
        dark.pdf(self.folder / "page.pdf")
        self.assertGreater((self.folder / "page.pdf").stat().st_size, 50_000)
        self.assertEqual(dark.complaints, [])
        dark.call("Emulation.setEmulatedMedia", media="print",
                  features=[{"name": "prefers-color-scheme", "value": "dark"}])
        self.assertEqual(dark.value(paper), "rgb(255, 255, 255)")
        self.assertEqual(dark.value("getComputedStyle(document.querySelector('nav')).display"), "none")

    def test_without_scripts_the_tables_are_there(self):
        page = self.open(self.run_of(SMALL)[0], scripts=False)
        self.assertIn("Charts need JavaScript", page.value("document.body.innerText"))
        self.assertGreater(page.value("document.querySelectorAll('table').length"), 8)

    def test_bad_input(self):
        self.expect_refused(["run", SMALL, "--html", "r.svg"], "--html: must end in .html or .htm")
        self.expect_refused(["run", SMALL, "--html", "-"], "--html")
        self.expect_refused(["run", SMALL, "--html", "/no/such/r.html"], "--html")
        self.expect_refused(["run", SMALL, "--fidelity", "all", "--yes", "--html", str(self.folder / "r.html")],
                            "--html: shows one run")


if __name__ == "__main__":
    main()
