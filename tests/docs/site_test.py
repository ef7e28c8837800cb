#!/usr/bin/env python3
"""The pages of docs/ are a site: site_test.py SOURCE-FOLDER PATH-TO-STEPSIM.

It builds without a warning, every link leads somewhere, every page can be found, a reader's browser
loads nothing from elsewhere, and the commands of first steps and the how-to pages run.
"""
import html.parser
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

SOURCE = pathlib.Path()
STEPSIM = ""
# Pages whose commands are run, and what the reader has beside them. A list: the n-th block without a
# language of that page.
CONFIG = {"model_type": "qwen3", "num_hidden_layers": 4, "hidden_size": 4096, "head_dim": 128,
          "intermediate_size": 12288, "num_attention_heads": 32, "num_key_value_heads": 8,
          "vocab_size": 151936, "tie_word_embeddings": False}
EXPERIMENT = ('model { catalog: "llama3-8b" } cluster { catalog: "dgx-h100-8" }\n'
              "plan { tp: 2 dp: 4 microbatch: 1 global_batch: 16 sequence: 8192 zero: 1 }\n")
PAGES = {
    "first-steps": {},
    "howto-model": {"config.json": json.dumps(CONFIG), "mine.textproto": [0]},
    "howto-cluster": {"lab.textproto": [0]},
    "howto-schedule": {"mine.txt": [0]},
    "howto-ci": {"train.textproto": EXPERIMENT},
}


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


def blocks(page, language):
    text = (SOURCE / "docs" / f"{page}.md").read_text(encoding="utf-8")
    found = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S)
    return [block for name, block in found if name == language]


def commands(page):
    for block in blocks(page, "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words and words[0] == "stepsim":
                yield words[1:]


class SiteTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.site = pathlib.Path(cls.temporary.name, "site")
        done = subprocess.run(["mkdocs", "build", "--strict", "--quiet", "--site-dir", cls.site],
                              cwd=SOURCE, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        assert done.returncode == 0 and not done.stdout, done.stdout
        cls.pages = {path.resolve(): Page(path) for path in cls.site.rglob("*.html")}

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def test_every_link_leads_somewhere(self):
        self.assertGreater(len(self.pages), 60)
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

    def test_nothing_is_loaded_from_elsewhere(self):
        outside = {loaded for page in self.pages.values() for loaded in page.loaded
                   if urllib.parse.urlsplit(loaded).netloc}
        styles = "".join(path.read_text(encoding="utf-8") for path in self.site.rglob("*.css"))
        outside |= set(re.findall(r"@import[^;]*//[^;]*|url\([\"']?(?:https?:)?//[^)]*", styles))
        self.assertEqual(outside, set())

    def test_every_page_is_in_the_navigation(self):
        named = set(re.findall(r": (\S+\.md)$", (SOURCE / "mkdocs.yml").read_text(), re.M))
        pages = {path.name for path in (SOURCE / "docs").glob("*.md")}
        self.assertEqual(pages - named, set(), "add them to mkdocs.yml")
        self.assertEqual(named - pages, set())

    def test_links_of_the_first_files_lead_somewhere(self):
        for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
            text = (SOURCE / name).read_text(encoding="utf-8")
            for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
                if "://" not in link:
                    self.assertTrue((SOURCE / link).exists(), f"{name}: {link}")

    def test_the_commands_of_pages_run(self):
        for page, files in PAGES.items():
            with tempfile.TemporaryDirectory() as folder:
                for name, text in files.items():
                    text = text if isinstance(text, str) else blocks(page, "")[text[0]]
                    pathlib.Path(folder, name).write_text(text)
                ran = 0
                for words in commands(page):
                    if "before.json" in words:
                        pathlib.Path(folder, "result.json").rename(f"{folder}/before.json")
                        words[words.index("result.json")] = "before.json"
                    with self.subTest(page=page, words=words):
                        done = subprocess.run([STEPSIM, *words], cwd=folder, text=True, timeout=600,
                                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                        self.assertEqual(done.returncode, 0, done.stderr)
                        ran += 1
                self.assertGreater(ran, 1, page)


if __name__ == "__main__":
    SOURCE, STEPSIM = pathlib.Path(sys.argv.pop(1)).resolve(), pathlib.Path(
        sys.argv.pop(1)).resolve()
    unittest.main()
