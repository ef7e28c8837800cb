#!/usr/bin/env python3
"""The pages of docs/ are a site: site_test.py SOURCE-FOLDER PATH-TO-STEPSIM.

Every generator runs (some for a part, to be quick), it builds without a warning, every link leads somewhere, every page can
be found, and a reader's browser loads nothing from elsewhere. Written pages are short, link to nothing that only the site
has, and name no file that isn't there.
"""
import html.parser
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "end_to_end"))
from browser import Browser, find_browser

SOURCE = pathlib.Path()
STEPSIM = ""
LARGEST_PAGE = 30_000
LARGEST_SUM = 300_000
# What guides call files of the reader's own.
MADE_UP = re.compile(r"NAME|FORMAT|share/doc/stepsim|configs/system")


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.path, self.links, self.ids, self.loaded = path, [], set(), []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.ids.update(values[name] for name in ("id", "name") if values.get(name))
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        loads = values.get("src") or (tag == "link" and values.get("href"))
        if loads:
            self.loaded.append(loads)


def tracked(*patterns):
    done = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", *patterns], cwd=SOURCE, text=True, check=True,
                          stdout=subprocess.PIPE)
    return [SOURCE / name for name in done.stdout.splitlines() if (SOURCE / name).exists()]


def written_pages():
    return [SOURCE / "README.md", SOURCE / "CONTRIBUTING.md", SOURCE / "CHANGELOG.md", *(SOURCE / "docs").glob("*.md")]


def things_to_try():
    """The commands that scripts/quickstart.sh ends with."""
    text = (SOURCE / "scripts/quickstart.sh").read_text().partition("cat <<END")[2]
    for line in text.splitlines():
        if "build/release/stepsim " in line:
            yield shlex.split(line.partition("build/release/stepsim ")[2].replace("$job", "llama3-70b-dgx-h100-512"))


class SiteTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.site = pathlib.Path(cls.temporary.name, "site")
        done = subprocess.run([SOURCE / "scripts/make_site.sh", "--quick", STEPSIM, cls.site], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout
        cls.pages = {path.resolve(): Page(path) for path in cls.site.rglob("*.html")}

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def test_every_link_leads_somewhere(self):
        self.assertGreater(len(self.pages), 50)
        broken = []
        for page in self.pages.values():
            for link in page.links + page.loaded:
                parts = urllib.parse.urlsplit(link)
                if parts.scheme or parts.netloc or page.path.name == "404.html":
                    continue
                target = (page.path.parent / urllib.parse.unquote(parts.path)).resolve()
                target = page.path.resolve() if not parts.path else target
                target = target / "index.html" if target.is_dir() else target
                name = urllib.parse.unquote(parts.fragment)
                known = target.exists() and (
                    not name or target not in self.pages or name in self.pages[target].ids)
                if not known:
                    broken.append(f"{page.path.relative_to(self.site)}: {link}")
        self.maxDiff = None
        self.assertEqual(broken, [])

    def test_commands_that_print_a_page_lead_to_it(self):
        links = self.pages[(self.site / "index.html").resolve()].links
        for page in ("commands.html", "plan-keys.html", "formulas.html", "validation.html", "catalog.html"):
            self.assertIn(page, [link.partition("#")[0] for link in links])

    def test_nothing_is_loaded_from_elsewhere(self):
        outside = {loaded for page in self.pages.values() for loaded in page.loaded
                   if urllib.parse.urlsplit(loaded).netloc}
        styles = "".join(path.read_text(encoding="utf-8") for path in self.site.rglob("*.css"))
        outside |= set(re.findall(r"@import[^;]*//[^;]*|url\([\"']?(?:https?:)?//[^)]*", styles))
        self.assertEqual(outside, set())

    @unittest.skipUnless(find_browser(), "no Chromium")
    def test_search_finds_without_a_server(self):
        with Browser() as browser:
            page = browser.open(self.site / "index.html")
            page.value("""(() => { const input = document.querySelector("input.md-search__input");
                input.focus(); input.value = "recompute"; input.dispatchEvent(new Event("input", {bubbles: true}));
                input.dispatchEvent(new KeyboardEvent("keyup", {bubbles: true, key: "e"})); return 1; })()""")
            until = time.monotonic() + 30
            while page.value("document.querySelectorAll('.md-search-result__item').length") == 0:
                self.assertLess(time.monotonic(), until, "nothing found")
                time.sleep(0.1)
            self.assertTrue(all(request.startswith(("file:", "data:")) for request in page.requests), page.requests)

    def test_every_page_is_in_the_navigation(self):
        named = set(re.findall(r": (\S+)\.md$", (SOURCE / "mkdocs.yml").read_text(), re.M))
        pages = {path.stem for path in self.site.glob("*.html")} - {"404"}
        self.assertEqual(pages - named, set(), "add them to mkdocs.yml")
        self.assertEqual(named - pages, set())

    def test_links_of_written_pages_lead_to_files_of_the_checkout(self):
        for page in written_pages():
            text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
            for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
                if "://" not in link:
                    self.assertTrue((page.parent / link).exists(), f"{page.name}: {link}")

    def test_files_that_pages_name_are_there(self):
        missing = []
        for page in written_pages():
            if page.name != "CHANGELOG.md":
                for name in re.findall(r"`((?:[a-z_]+/)+[\w.-]+\.\w+)`", page.read_text(encoding="utf-8")):
                    own = name.startswith(("build/", "out/", "examples/megatron")) or MADE_UP.search(name)
                    if not own and not (SOURCE / name).exists() and name.split("/")[0] in ROOMS:
                        missing.append(f"{page.name}: {name}")
        self.assertEqual(missing, [])

    def test_figures_of_runs_stand_in_what_commands_print(self):
        """scripts/run_pages.py compares those; a time or a size with two decimals in prose would go stale."""
        for page in written_pages():
            text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
            found = [] if page.name == "CHANGELOG.md" else re.findall(r"\b\d+\.\d\d+ (?:s|ms|GB|GiB)\b", text)
            self.assertEqual(found, [], page.name)

    def test_pages_are_short(self):
        sizes = {page.relative_to(SOURCE): page.stat().st_size for page in tracked("*.md", "*.ipynb")}
        self.assertEqual([name for name, size in sizes.items() if size > LARGEST_PAGE], [])
        self.assertLessEqual(sum(sizes.values()), LARGEST_SUM, "what the program prints is made for the site")

    def test_things_to_try_run(self):
        for words in things_to_try():
            done = subprocess.run([STEPSIM, *words], cwd=self.temporary.name, text=True, timeout=600,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    SOURCE, STEPSIM = pathlib.Path(sys.argv.pop(1)).resolve(), pathlib.Path(sys.argv.pop(1)).resolve()
    ROOMS = {path.name for path in SOURCE.iterdir() if path.is_dir()}
    unittest.main()
