#!/usr/bin/env python3
"""Files of strangers: what they may not do to a terminal, a spreadsheet, a page, the user's other files and time.
docs/reliability.md says what holds: strangers_test.py PATH-TO-STEPSIM.
"""
import csv
import gzip
import json
import os
import signal
import time
import xml.dom.minidom

from program import SMALL, StepsimTest, main, on_terminal, read_all, started, stepsim

PLAN = "plan { dp: 8 microbatch: 1 global_batch: 8 sequence: 128 }"
EXPERIMENT = f'model {{ catalog: "llama3-8b" }} cluster {{ catalog: "dgx-h100-8" }} {PLAN}'
TRAINING = ("id,source,grade,model.layers,model.hidden,model.intermediate,model.heads,model.vocabulary,cluster,plan.sequence,"
            "plan.global_batch,plan.microbatch,plan.tp,plan.pp,plan.dp,measured.step_time")
ROW = ["x", "y", "A", "32", "4096", "16384", "32", "51200", "dgx-a100-8", "2048", "64", "1", "1", "1", "8", "1.0"]
SERVED = "id,source,grade,model,cluster,software,replicas,plan.tp,requests,measured.ttft_mean,measured.tpot_mean"
SERVED_ROW = ["x", "y", "B", "llama3.1-8b", "dgx-h100-8", "vllm", "2", "1",
              '"closed:concurrency=8,count=8,input=64,output=8"', "0.15", "0.018"]


def without(text, hidden):
    return not any(character in text for character in hidden)


class StrangersTest(StepsimTest):
    def named(self, name):
        return self.write("named.textproto", f'name: "{name}" {EXPERIMENT}')

    # ---- terminals ----

    def test_no_name_reaches_a_terminal_raw(self):
        name = r"\033[31mred\033]0;title\007 \342\200\256turned \302\233 back\r"
        run = stepsim("run", self.named(name))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertTrue(without(run.stdout, "\x1b\x07\r\u202e\u009b"), run.stdout[:200])
        self.assertIn(r"\x1b[31mred\x1b]0;title\x07 \u202eturned \u009b back\x0d", run.stdout)

    def test_a_terminal_gets_the_programs_own_colours_alone(self):
        process, terminal = on_terminal("run", self.named(r"\033[31mred"), environment={"NO_COLOR": ""})
        shown = read_all(terminal)
        process.wait()
        self.assertNotIn("\x1b[31m", shown)
        self.assertIn("\x1b[1m\\x1b[31mred\x1b[0m", shown)

    def test_problems_show_what_was_typed(self):
        for arguments in (["run", "\x1b[31mred"], ["run", SMALL, "--set", "plan.tp=\x1b[2J"], ["\x1b]0;x\x07"],
                          ["run", SMALL, "--json", "/nosuch\x1b/x.json"]):
            error = self.expect_refused(arguments, r"\x1b")
            self.assertTrue(without(error, "\x1b\x07"), error)

    # ---- bytes that are no UTF-8 ----

    def test_bytes_that_are_no_utf8_are_replaced_everywhere(self):
        path = os.fsencode(self.folder / "x\udce9y.textproto")
        with open(path, "wb") as file:
            file.write(b'name: "Jos\xe9" ' + EXPERIMENT.encode())
        out = {option: str(self.folder / f"out.{option}") for option in ("json", "html")}
        run = stepsim("run", path, "--json", out["json"], "--html", out["html"])
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("Jos\ufffd", run.stdout)
        with open(out["json"], encoding="utf-8") as file:
            self.assertEqual(json.load(file)["experiment"]["name"], "Jos\ufffd")
        with open(out["html"], encoding="utf-8") as file:
            self.assertIn("Jos\ufffd", file.read())
        compared = stepsim("compare", out["json"], path, "--json", "-")
        self.assertEqual(compared.returncode, 0, compared.stderr)
        json.loads(compared.stdout)

    def test_tables_with_other_bytes_make_valid_pages(self):
        table = self.folder / "table.csv"
        table.write_bytes(TRAINING.encode() + b"\nx\xe9,y\xe9," + ",".join(ROW[2:]).encode() + b"\n")
        run = stepsim("accuracy", str(table), "--rows", "--json", str(self.folder / "a.json"), "--html",
                      str(self.folder / "a.html"))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("x\ufffd", run.stdout)
        self.assertEqual(json.loads((self.folder / "a.json").read_text("utf-8"))["rows"][0]["id"], "x\ufffd")
        (self.folder / "a.html").read_text("utf-8")

    def test_other_encodings_are_named(self):
        path = self.folder / "wide.textproto"
        path.write_text(EXPERIMENT, "utf-16")
        self.expect_refused(["run", str(path)], "it is in UTF-16; save it as UTF-8")
        path.write_text(EXPERIMENT, "utf-8-sig")
        self.assertEqual(stepsim("run", str(path)).returncode, 0)

    # ---- spreadsheets, drawings ----

    def test_cells_are_no_formulas(self):
        requests = self.folder / "requests.csv"
        served = stepsim("serve", "--requests", "burst:count=2,input=20,output=4,tenant==1+1", "--step-time", "1ms",
                         "--requests-out", str(requests))
        self.assertEqual(served.returncode, 0, served.stderr)
        with open(requests, encoding="utf-8", newline="") as file:
            self.assertEqual({row["tenant"] for row in csv.DictReader(file)}, {"'=1+1"})

    def test_labels_of_drawings_are_escaped(self):
        cluster = self.write("c.textproto", 'name: "R&D <x> \\"q\\"" chip { catalog: "h100-sxm" } dgx_superpod { nodes: 1 }')
        dot = self.folder / "x.dot"
        self.assertEqual(stepsim("topology", cluster, "--dot", str(dot)).returncode, 0)
        self.assertIn("R&amp;D &lt;x&gt; &quot;q&quot;", dot.read_text())
        self.assertNotIn("R&D", dot.read_text())

    def test_drawings_are_xml(self):
        plot = self.folder / "p.svg"
        run = stepsim("run", self.named(r"a\033\000&<b>"), "--plot-timeline", str(plot))
        self.assertEqual(run.returncode, 0, run.stderr)
        xml.dom.minidom.parse(str(plot))

    # ---- numbers ----

    def zeros(self, header, row):
        names = header.split(",")
        numbers = [i for i, cell in enumerate(row) if cell.replace(".", "").isdigit()]
        for i in numbers:
            changed = row[:i] + ["0"] + row[i + 1:]
            yield names[i], self.write("zero.csv", f"{header}\n{','.join(changed)}\n")

    def test_a_zero_skips_its_row_and_says_where(self):
        for header, row in ((TRAINING, ROW), (SERVED, SERVED_ROW)):
            for column, path in self.zeros(header, row):
                if column == "measured.step_time":
                    continue
                with self.subTest(column):
                    run = stepsim("accuracy", path, "--json", "-")
                    self.assertEqual(run.returncode, 0, run.stderr)
                    for one in json.loads(run.stdout)["rows"]:
                        self.assertRegex(one["skipped"], rf"{column}:? .*is \"?0")

    def test_zeros_in_kernels_and_collectives_are_skipped(self):
        for header, row in (
                ("id,source,cluster,op,bytes,ranks,nodes,measured.time",
                 ["r", "mine", "dgx-h100-8", "all_reduce", "1048576", "8", "1", "50"]),
                ("id,source,chip,op,dtype,shape,measured.time", ["r", "mine", "h100-sxm", "gemm", "bf16", '"m=8,n=8,k=0"', "5"])):
            for column, path in self.zeros(header, row):
                with self.subTest(column):
                    run = stepsim("accuracy", path, "--json", "-")
                    self.assertEqual(run.returncode, 0, run.stderr)
                    self.assertTrue(all(one["skipped"] for one in json.loads(run.stdout)["rows"]))
                    self.assertIn(stepsim("calibrate", path).returncode, (0, 1, 2))

    def test_a_straggler_is_slow_once(self):
        for ranks in ("straggler { rank: 0 rank: 0 slowdown: 1.5 }",
                      "straggler { rank: 0 rank: 1 slowdown: 1.5 } straggler { rank: 1 slowdown: 2 }"):
            path = self.write("twice.textproto", f"{EXPERIMENT} variation {{ {ranks} }}")
            self.expect_refused(["run", path], "must name each rank once; has ")

    def test_limits_are_those_of_plans(self):
        for field, value in (("model.layers", 65536), ("model.prediction_modules", 2097152),
                             ("cluster.dgx_superpod.nvlink_latency", "1000000s")):
            self.expect_refused(["run", SMALL, "--set", f"{field}={value}"], field.rpartition(".")[2], "must be")
        path = self.write("many.textproto", EXPERIMENT + ' simulation { ' + 'fidelity: "flow" ' * 1000 + "}")
        self.expect_refused(["run", path], "fidelity", "must name each network model once, has flow again")

    # ---- what is said twice, or against itself ----

    def test_what_is_said_twice_is_refused(self):
        path = self.write("twice.json", '{"model": {"catalog": "a", "catalog": "llama3-8b"}}')
        self.expect_refused(["run", path], 'the key "catalog" is given twice')
        path = self.write("twice.csv", "id,id,source,cluster,op,bytes,ranks,measured.time\nr,r,m,dgx-h100-8,all_reduce,1,8,5\n")
        self.expect_refused(["accuracy", path], 'must have each column once, has "id" again')

    def test_what_has_no_meaning_is_refused(self):
        collective = ["collective", "all-reduce", "--cluster", "dgx-h100-8", "--bytes", "1MiB"]
        self.expect_refused([*collective, "--shift", "2"], "--shift: goes with permute only, is given with all-reduce")
        serve = ["serve", "--step-time", "1ms", "--requests"]
        self.expect_refused([*serve, "burst:count=2,input=100,output=10,prefix=200"],
                            "must be at most input, which has 100 tokens, is 200")
        self.assertEqual(stepsim(*serve, "burst:count=2,input=100,output=10,prefix=100").returncode, 0)
        self.expect_refused(["serve-search", "--model", "llama3-8b", "--cluster", "dgx-h100-8", "--chips", "9",
                             "--input", "100", "--output", "10"], "must be at most 8, the chips of dgx-h100-8, is 9")
        self.expect_refused(["sweep", SMALL, "--over", "plan.microbatch=8..1"], "must be a range that rises", "8..1")
        self.expect_refused(["sweep", SMALL, "--over", "plan.microbatch=1,2", "--store", "file:x?mode=ro"],
                            "must be the name of a file")
        self.expect_refused(["catalog", "experiments", "--most-chips", "x", "--list"], "--most-chips", 'is "x"')

    def test_no_output_takes_the_place_of_an_input(self):
        result = str(self.folder / "r.json")
        self.assertEqual(stepsim("run", SMALL, "--json", result).returncode, 0)
        self.expect_refused(["compare", result, SMALL, "--json", result], "must be another file than the input")

    # ---- files that an experiment names ----

    def test_an_experiment_reads_nothing_that_is_not_beside_it(self):
        secret = self.write("secret.txt", "the password\n")
        (self.folder / "sent").mkdir()
        (self.folder / "sent/link.txt").symlink_to(secret)
        for name in (secret, "../secret.txt", "link.txt", "/etc/passwd"):
            path = self.write("sent/e.textproto", EXPERIMENT.replace("plan {", f'plan {{ schedule: "{name}" '))
            error = self.expect_refused(["run", path], "plan.schedule", "must be a file in the folder")
            self.assertNotIn("password", error)
            self.assertNotIn("root:", error)
        for part, field in (('model { huggingface: "../config.json" }', "model.huggingface"),
                            ('model { huggingface: "/etc/config.json" }', "model.huggingface"),
                            ('cluster { catalog: "dgx-h100-8" chip { catalog: "../c.textproto" } }',
                             "cluster.chip.catalog"),
                            ('cluster { catalog: "dgx-h100-8" library { catalog: "/l.textproto" } }',
                             "cluster.library.catalog"),
                            ('serve { requests: "file:../secret.txt" }', "serve.requests"),
                            ('over: "plan.schedule=1f1b,../secret.txt"', "over")):
            self.expect_refused(["run", self.write("sent/e.textproto", f"{part} {PLAN}")], field,
                                "must be a file in the folder")

    def test_files_beside_an_experiment_are_read(self):
        (self.folder / "sent").mkdir()
        self.write("sent/order.txt", "F0.0 BW0.0\n")
        path = self.write("sent/e.textproto", EXPERIMENT.replace("plan {", 'plan { schedule: "order.txt" '))
        run = stepsim("run", path)
        self.assertEqual(run.returncode, 0, run.stderr)
        # On the command line a file may lie anywhere.
        run = stepsim("run", SMALL, "--set", f"plan.schedule={self.folder}/sent/order.txt")
        self.assertNotIn("must be a file in the folder", run.stderr)

    # ---- results ----

    def test_compressed_results_are_read_back(self):
        result = str(self.folder / "r.json.gz")
        first = stepsim("run", SMALL, "--json", result)
        self.assertEqual(first.returncode, 0, first.stderr)
        json.loads(gzip.decompress((self.folder / "r.json.gz").read_bytes()))
        again = stepsim("run", result)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(again.stdout.splitlines()[:20], first.stdout.splitlines()[:20])
        self.assertEqual(stepsim("compare", result, SMALL).returncode, 0)
        self.assertEqual(stepsim("view", result, "--html", str(self.folder / "v.html")).returncode, 0)

    def test_an_interrupted_table_keeps_the_rows_that_are_done(self):
        rows = [[f"row {i}", *ROW[1:9], str(512 + i), *ROW[10:]] for i in range(50_000)]  # minutes
        table = self.write("table.csv", "\n".join([TRAINING, *map(",".join, rows)]) + "\n")
        out = self.folder / "a.json"
        process = started("accuracy", table, "--json", str(out))
        time.sleep(10)
        process.send_signal(signal.SIGINT)
        output, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, error)
        self.assertIn(b"interrupted before it was done", output)
        rows = json.loads(out.read_text())["rows"]
        self.assertEqual(len(rows), 50_000)
        ended = [row for row in rows if row["skipped"] == "interrupted before it was done"]
        self.assertTrue(0 < sum(row["predicted"] is not None for row in rows) == len(rows) - len(ended))

    # ---- places that can't be written ----

    def test_folders_that_can_not_be_written_are_found_before_the_work(self):
        circle = self.folder / "circle"
        circle.symlink_to(circle)
        for place in ("a" * 300, "/proc/nosuch/x", str(circle), f"{circle}/x", "/dev/null/x", "b/" * 3000):
            for arguments in (["figures", "bubble", "--out"], ["validate", "B1", "--plot"],
                              ["run", SMALL, "--export", "chakra"], ["run", SMALL, "--export", "kineto"]):
                self.expect_refused([*arguments, place])
            self.expect_refused(["run", SMALL, "--export", "goal", f"{place}/x"])
            for option, end in (("--json", ".json"), ("--trace", ".json"), ("--html", ".html"),
                                ("--plot-timeline", ".svg")):
                self.expect_refused(["run", SMALL, option, f"{place}/x{end}"])
            self.expect_refused(["topology", "dgx-h100-8", "--dot", f"{place}/x.dot"])
            self.expect_refused(["sweep", SMALL, "--over", "plan.microbatch=1,2", "--store", f"{place}/x.sqlite"])
            self.expect_refused(["sweep", SMALL, "--over", "plan.microbatch=1,2", "--csv", f"{place}/x.csv"])


if __name__ == "__main__":
    main()
