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
# Pages whose commands are run in a checkout, and what the reader has beside it. A list: the n-th block
# without a language of that page. A path of the checkout: that file.
CONFIG = {"model_type": "qwen3", "num_hidden_layers": 4, "hidden_size": 4096, "head_dim": 128,
          "intermediate_size": 12288, "num_attention_heads": 32, "num_key_value_heads": 8,
          "vocab_size": 151936, "tie_word_embeddings": False}
EXPERIMENT = ('model { catalog: "llama3-8b" } cluster { catalog: "dgx-h100-8" }\n'
              "plan { tp: 2 dp: 4 microbatch: 1 global_batch: 16 sequence: 8192 zero: 1 }\n")
PAGES = {
    "../README": {"pretrain.sh": pathlib.Path("tests/fuzz/corpus/megatron/script.sh")},
    "check-us": {},
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


def shown(page):
    """The commands that a page shows with what they print, and that; "..." is some lines left out at the end."""
    for block in blocks(page, ""):
        if block.startswith("$ stepsim "):
            command, _, output = block.replace("\\\n", " ").partition("\n")
            yield shlex.split(command)[2:], output


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

    def run_beside(self, folder, words):
        return subprocess.run([STEPSIM, *words], cwd=folder, text=True, timeout=600,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def checkout(self, page, files):
        """A folder with the examples and tables of the checkout, and with the reader's files."""
        owner = tempfile.TemporaryDirectory()
        self.addCleanup(owner.cleanup)
        folder = pathlib.Path(owner.name)
        for name in ("examples", "tests"):
            (folder / name).symlink_to(SOURCE / name)
        for name, text in files.items():
            if isinstance(text, list):
                text = blocks(page, "")[text[0]]
            elif isinstance(text, pathlib.Path):
                text = (SOURCE / text).read_text()
            (folder / name).write_text(text)
        return folder

    def test_the_commands_of_pages_run(self):
        for page, files in PAGES.items():
            folder = self.checkout(page, files)
            ran = 0
            for words in commands(page):
                if "before.json" in words:
                    (folder / "result.json").rename(folder / "before.json")
                    words[words.index("result.json")] = "before.json"
                with self.subTest(page=page, words=words):
                    done = self.run_beside(folder, words)
                    self.assertEqual(done.returncode, 0, done.stdout)
                    ran += 1
            self.assertGreater(ran, 1, page)

    def test_what_pages_show_is_printed(self):
        compared = 0
        for page, files in PAGES.items():
            folder = self.checkout(page, files)
            for words, output in shown(page):
                with self.subTest(page=page, words=words):
                    printed = self.run_beside(folder, words).stdout
                    head, dots, _ = output.partition("...\n")
                    self.assertEqual(printed[:len(head)] if dots else printed, head)
                    compared += 1
        self.assertGreaterEqual(compared, 2)

    def test_things_to_try_run(self):
        tried = [self.run_beside(self.checkout("", {}), words) for words in things_to_try()]
        self.assertEqual([done.returncode for done in tried], [0] * 3, [done.stdout for done in tried])


if __name__ == "__main__":
    SOURCE, STEPSIM = pathlib.Path(sys.argv.pop(1)).resolve(), pathlib.Path(
        sys.argv.pop(1)).resolve()
    unittest.main()
