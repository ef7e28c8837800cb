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
from writing_commands import FAILURES, PROFILE, TABLE

MAIN_JOB = "llama3-70b-dgx-h100-512"
MOST_BYTES = 2_000_000
UNITS = {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
         "PB": 1e15, "%": 0.01, "days": 1,
         "mJ": 1e-3, "kJ": 1e3, "kWh": 3.6e6, "MWh": 3.6e9, "GWh": 3.6e12}


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


class ResultPagesTest(PageTest):
    """The pages of the other commands, and stepsim view of their results."""

    # What is asked for, and numbers that the page must have.
    COMMANDS = {
        "search": (["search", "--model", "llama3-8b", "--cluster", "dgx-h100-8", "--global-batch", "64", "--sequence",
                    "8192", "--within", "tp=1,2,4,8,pp=1,2,zero=0..3", "--fix", "microbatch=1"],
                   ["best[0].step_time_s", "front[0].peak_bytes", "considered"]),
        "serve": (["serve", "--requests", "poisson:rate=4,count=200,input=100,output=uniform:20-40", "--step-time",
                   "linear:base=8ms,token=20us,kv=2ns", "--engine", "vllm,sequences=64,kv-blocks=2000"],
                  ["ttft_s.mean", "end_to_end_s.p99", "parts_s.decode", "kv_blocks.peak"]),
        "serve-search": (["serve-search", "--model", "llama3-8b", "--cluster", "dgx-h100-8", "--layouts", "tp=4;tp=8",
                          "--input", "64", "--output", "8", "--most-requests", "4"],
                         ["front[0].output_tokens_per_s_per_chip"]),
        "compare": (["compare", SMALL, "mixtral-8x7b-dgx-h100-64"],
                    ["runs[1].step_time_s", "lines[0].values[1]", "explained[0].parts[0].difference_s"]),
        "accuracy": (["accuracy", "{table}"], ["summary[0].median_absolute_relative_error"]),
        "goodput": (["goodput", "--step-time", "1s", "--chips", "16", "--failures", "{failures}", "--days", "20",
                     "--runs", "20"],
                    ["days.mean", "goodput", "parts_days.productive", "by_spares[0].goodput"]),
        "sweep": (["sweep", "llama3-8b-dgx-h100-8", "--over", "plan.tp=1,2,3", "--over", "plan.dp=4,8"],
                  ["points[2].step_time_s", "points[2].peak_bytes", "points[2].tokens_per_s_per_chip"]),
        "diff": (["diff", "{profile}", "{profile}"], ["step_s[0]", "by_kind[0].time_s[1]"]),
    }

    def test_each_has_its_numbers_and_view_writes_the_same(self):
        files = {"table": self.write("table.csv", TABLE), "failures": self.write("table.textproto", FAILURES),
                 "profile": self.write("profile.json", json.dumps(PROFILE))}
        for name, (arguments, keys) in self.COMMANDS.items():
            with self.subTest(name):
                saved = self.folder / f"{name}.json"
                page_file = self.make(*[word.format(**files) for word in arguments], "--json", str(saved),
                                      name=f"{name}.html")
                viewed = self.make("view", str(saved), name="view.html")
                self.assertTrue(viewed.read_bytes() == page_file.read_bytes(), "view writes another page")
                page = self.open(page_file, width=400)
                self.expect_good(page)
                self.expect_numbers(page, json.loads(saved.read_text()), *keys)

    def test_view_simulates_a_saved_run_again(self):
        page, result = self.run_of(SMALL)
        saved = self.write("r.json", json.dumps(result))
        viewed = self.make("view", saved)
        self.assertTrue(viewed.read_bytes() == page.read_bytes(), "view writes another page")
        result["step_time_s"] += 1
        path = self.write("other.json", json.dumps(result))
        done = stepsim("view", path, "--html", str(self.folder / "v.html"))
        self.assertEqual(done.returncode, 0)
        self.assertIn("warning: ", done.stderr)

    def test_a_click_on_the_front_says_the_command(self):
        page_file = self.make(*self.COMMANDS["search"][0])
        page = self.open(page_file, width=1280)
        place = "document.querySelector('[data-figure=front]')"
        x, y = page.value(f"""(() => {{ const place = {place}; place.scrollIntoView();
            const box = place.getBoundingClientRect(), chart = echarts.getInstanceByDom(place);
            const at = chart.convertToPixel({{seriesIndex: 0}}, chart.getOption().series[0].data[0].value);
            return [box.x + at[0], box.y + at[1]]; }})()""")
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        command = page.value(f"({place}.nextElementSibling || {{}}).textContent")
        self.assertTrue(command.startswith("stepsim run --model llama3-8b --cluster dgx-h100-8 --plan "), command)
        self.assertEqual(page.complaints, [])
        # What it says runs.
        self.assertEqual(stepsim(*command.split()[1:]).returncode, 0)

    def test_what_is_no_result_is_refused(self):
        html = ["--html", str(self.folder / "v.html")]
        self.expect_refused(["view", self.write("a.json", "{}"), *html], "a.json: must be what --json of one of these")
        self.expect_refused(["view", self.write("a.json", "[1"), *html], "a.json: ")
        self.expect_refused(["view", str(self.folder / "none.json"), *html], "can't be read")
        self.expect_refused(["view"], "RESULT.json: must be given", "--html: must be given")
        half = {"days": {}, "parts_days": {"lost": "x"}, "goodput": []}
        self.expect_refused(["view", self.write("a.json", json.dumps(half)), *html], "goodput: must be a number",
                            "days.mean: must be a number", "failures_by_class: must be a list")


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
        keys = [*result["experiment"]["plan"], *result["experiment"]["software"]]
        html = page_file.read_text()
        for key in keys:
            self.assertRegex(html, f'<th scope="row"[^>]*>{key}</th>')

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
            const at = echarts.getInstanceByDom(place).convertToPixel({xAxisIndex: 0, yAxisIndex: 0}, [500, 0]);
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
