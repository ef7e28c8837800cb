#!/usr/bin/env python3
"""Runs the commands of the written pages, as a reader does in a checkout.

    scripts/run_pages.py STEPSIM [PAGE...]            fails if one fails, or prints something else than its page shows
    scripts/run_pages.py STEPSIM --write [PAGE...]    puts what they print into the pages

Blocks of `sh`: each line that begins with stepsim runs. Blocks that begin with "$ stepsim": the commands run, pipes too, and
what they print stands behind each. A file that a page shows ("`lab.textproto`:" before its block) is there, and so are
examples/, tests/ and what FILES has beside.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
SHOWN_FILE = re.compile(r"`([\w.-]+\.\w+)`:\n\n```\w*\n(.*?)^```$", re.M | re.S)
EXPERIMENT = ('model { catalog: "llama3-8b" } cluster { catalog: "dgx-h100-8" }\n'
              "plan { tp: 2 dp: 4 microbatch: 1 global_batch: 16 sequence: 8192 zero: 1 }\n")
# What the reader of a page has: text, a path of the checkout, or the arguments of stepsim that make it.
FILES = {
    "README.md": {"pretrain.sh": pathlib.Path("tests/fuzz/corpus/megatron/script.sh")},
    "howto.md": {
        "config.json": json.dumps({
            "model_type": "qwen3", "num_hidden_layers": 4, "hidden_size": 4096, "head_dim": 128,
            "intermediate_size": 12288, "num_attention_heads": 32, "num_key_value_heads": 8,
            "vocab_size": 151936, "tie_word_embeddings": False}),
        "train.textproto": EXPERIMENT,
        "": ["run", "llama3-8b-dgx-h100-8", "--quiet", "--trace", "measured.json.gz", "--trace-format",
             "kineto", "--trace-ranks", "0"],
        "before.json": ["run", "train.textproto", "--quiet", "--json", "before.json"],
    },
}


def lines_of(block):
    return block.replace("\\\n", "").splitlines()


class Runner:
    def __init__(self, stepsim, page):
        self.page, self.problems = page, []
        self.folder = tempfile.TemporaryDirectory()
        place = pathlib.Path(self.folder.name)
        (place / "bin").mkdir()
        (place / "bin" / "stepsim").symlink_to(stepsim)
        for name in ("examples", "tests", "scripts"):
            (place / name).symlink_to(ROOT / name)
        self.text = page.read_text(encoding="utf-8")
        files = dict(SHOWN_FILE.findall(self.text)) | FILES.get(page.name, {})
        for name, content in files.items():
            if isinstance(content, list):
                self.run("stepsim " + " ".join(content))
                continue
            text = (ROOT / content).read_text() if isinstance(content, pathlib.Path) else content
            (place / name).write_text(text, encoding="utf-8")

    def run(self, command):
        """What the command prints (if nothing, then to standard error), and its exit status."""
        environment = os.environ | {"PATH": f"{self.folder.name}/bin:{os.environ['PATH']}", "COLUMNS": "100"}
        done = subprocess.run(["bash", "-c", command], cwd=self.folder.name, env=environment, text=True,
                              timeout=600, capture_output=True)
        return "".join(line.rstrip() + "\n" for line in (done.stdout or done.stderr).splitlines()), done.returncode

    def try_block(self, block):
        for line in lines_of(block):
            if line.startswith("stepsim "):
                printed, status = self.run(line)
                if status != 0:
                    self.problems.append(f"{self.page.name}: {line}\n{printed}")

    def fresh(self, block):
        """A block of commands with what they print now."""
        text = ""
        for command in re.findall(r"^\$ ((?:.*\\\n)*.*\n)", block, re.M):
            text += "$ " + command + self.run(command.replace("\\\n", ""))[0]
        return text

    def run_page(self):
        """The text of the page as it should be."""
        def replace(match):
            language, block = match.groups()
            if language == "sh":
                self.try_block(block)
            if not block.startswith("$ stepsim "):
                return match[0]
            new = self.fresh(block)
            if new != block:
                self.problems.append(f"{self.page.name} shows\n{block}which is now\n{new}")
            return f"```{language}\n{new}```"
        return BLOCK.sub(replace, self.text)


def main(stepsim, *arguments):
    stepsim = pathlib.Path(stepsim).resolve()
    pages = [ROOT / name for name in arguments if name != "--write"]
    pages = pages or [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    runners = [Runner(stepsim, page) for page in pages]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        texts = list(pool.map(Runner.run_page, runners))
    problems = [problem for runner in runners for problem in runner.problems]
    if "--write" in arguments:
        for page, text in zip(pages, texts):
            page.write_text(text, encoding="utf-8")
        problems = [problem for problem in problems if "which is now" not in problem]
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
