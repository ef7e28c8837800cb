#!/usr/bin/env python3
"""Input that is no file, too long, too deep or too large is refused in seconds and within 2 GB, with
exit status 2: input_limits_test.py PATH-TO-STEPSIM.
"""
import gzip
import json
import os
import resource
import signal
import subprocess
import threading
import time

import program
from program import SMALL, StepsimTest, main, stepsim

MOST_MEMORY = 2 << 30
MOST_SECONDS = 20
MODEL = '{"model_type": "llama", "hidden_size": %s}'
LINK = '{"id": "a", "from": "x", "to": "y", "capacity_Bps": 1e9, "latency_s": 0}'
FLOW = '{"id": 1, "src": "x", "dst": "y", "route": ["a"], "bytes": 8, "start_s": 0, "after": []}'


def case(links=LINK, flows=FLOW):
    return '{"format": "stepsim-oracle-flow/1", "links": [%s], "flows": [%s]}' % (links, flows)


def nested(depth, inner=""):
    return "[" * depth + inner + "]" * depth


class InputLimitsTest(StepsimTest):
    def refused(self, arguments, *messages):
        """The same as expect_refused(), with little memory and time."""
        begun = time.monotonic()
        result = stepsim(*arguments, preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY)))
        self.assertEqual(result.returncode, 2, result.stderr[:2000])
        self.assertEqual(result.stdout, "")
        self.assertLess(time.monotonic() - begun, MOST_SECONDS)
        self.assertLess(len(result.stderr), 5000)
        for message in messages:
            self.assertIn(message, result.stderr)

    def all_readers(self, path):
        """A command line for each kind of file that is read."""
        matrix = ["collective", "all-to-all", "--cluster", "dgx-h100-16", "--matrix", path]
        return [
            ["run", path],
            ["run", SMALL, "--model", path],
            ["run", SMALL, "--cluster", path],
            ["run", SMALL, "--plan", path],
            ["run", self.write("config.textproto", 'model { huggingface: "%s" } cluster { catalog: '
                               '"dgx-h100-8" } plan { dp: 8 }' % path)],
            ["run", SMALL, "--set", f"plan.schedule={path}"],
            ["schedule", path],
            ["topology", path],
            ["import", "hf", path],
            ["accuracy", path],
            ["network", path],
            ["serve", "--cases", path],
            ["serve", "--requests", "file:" + path, "--step-time", "1ms"],
            matrix,
            ["collective", "all-reduce", "--cluster", "dgx-h100-16", "--bytes", "1MiB",
             "--algorithm", path],
        ]

    def test_devices_and_folders_are_no_input(self):
        for target, message in [("/dev/zero", "it is a device"), ("/dev/urandom", "it is a device"),
                                (str(self.folder), "it is a folder")]:
            link = self.folder / "link.json"
            link.symlink_to(target)
            for arguments in self.all_readers(str(link)):
                with self.subTest(target=target, arguments=arguments):
                    # What a file names may not lead out of its folder, by a link either.
                    is_named = arguments[-1].endswith("config.textproto") and target.startswith("/dev")
                    self.refused(arguments, "must be a file in the folder" if is_named else message)
            link.unlink()

    def test_every_reader_has_a_limit_and_says_how_to_raise_it(self):
        path = self.write("long.json", " " * 2000)
        for arguments in self.all_readers(path):
            with self.subTest(arguments):
                self.refused([*arguments, "--max-input", "1000"],
                             "it has more than 1000 bytes; --max-input SIZE allows more")

    def test_a_large_configuration_is_refused_by_its_size(self):
        path = self.folder / "large.json"
        with open(path, "w") as file:
            file.truncate(200 << 20)
        self.refused(["run", str(path)], "it has more than 16 MiB; --max-input SIZE allows more")

    def test_the_option_must_be_a_size(self):
        for size in ["0", "-1", "x", "2TiB"]:
            self.refused(["run", SMALL, "--max-input", size], "--max-input: must be a size")
        self.assertEqual(stepsim("run", SMALL, "--max-input", "1GiB").returncode, 0)

    def test_a_pipe_is_read(self):
        path = str(self.folder / "pipe.json")
        os.mkfifo(path)
        for content, arguments in [(json.dumps(
                {"model": {"catalog": "llama3-8b"}, "cluster": {"catalog": "dgx-h100-8"},
                 "plan": {"dp": 8, "global_batch": 64, "sequence": 4096}}).encode(), ["run", path]),
                (gzip.compress(case().encode()), ["network", path]),
                (b'{"flows": [%b], "format": "stepsim-oracle-flow/1", "links": [%b]}' %
                 (FLOW.encode(), LINK.encode()), ["network", path])]:
            writer = threading.Thread(target=(self.folder / "pipe.json").write_bytes, args=[content])
            writer.start()
            result = stepsim(*arguments)
            writer.join()
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_pipe_without_a_writer_is_given_up_after_10_seconds(self):
        path = str(self.folder / "pipe.json")
        os.mkfifo(path)
        self.refused(["run", path], "it is a pipe that kept stepsim waiting for more than 10 s")

    def test_an_interrupt_ends_the_wait_for_a_pipe(self):
        path = str(self.folder / "pipe.json")
        os.mkfifo(path)
        process = program.started("run", path)
        time.sleep(1)
        begun = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.communicate()
        self.assertLess(time.monotonic() - begun, 1)
        self.assertIn(process.returncode, (143, -signal.SIGTERM))

    def test_a_gzip_bomb_is_limited_by_what_it_becomes(self):
        path = str(self.folder / "bomb.json.gz")
        with gzip.open(path, "wb", compresslevel=1) as file:
            for _ in range(1025):
                file.write(b" " * (1 << 20))
        self.refused(["network", path], "has a text or a gap of more than 16 MiB")
        self.refused(["network", path, "--max-input", "8MiB"],
                     "it decompresses to more than 8 MiB; --max-input SIZE allows more")

    def test_deep_nesting_is_refused(self):
        deep = nested(100_000)
        message = "must be nested at most 100 deep"
        for name, text in [
            ("value.json", MODEL % deep),
            ("types.json", '{"model_type": "llama", "layer_types": %s}' % deep),
            ("type.json", '{"model_type": %s}' % deep),
            ("unread.json", '{"model_type": "llama", "other": %s}' % deep),
        ]:
            with self.subTest(name):
                self.refused(["import", "hf", self.write(name, text)], message)
                self.refused(["run", self.write(name, text)], message)
        for links in [deep, '{"id": %s}' % deep, '{"id": "a", "other": %s}' % deep]:
            self.refused(["network", self.write("case.json", case(links))], message)
        self.refused(["network", self.write("other.json", '{"other": %s}' % deep)], message)
        self.refused(["collective", "all-to-all", "--cluster", "dgx-h100-16", "--matrix",
                      self.write("matrix.json", deep)], message)

    def test_deep_nesting_of_protobuf_text_is_refused(self):
        for name in ["model", "cluster", "unknown", "plan"]:
            for opening in [f"{name} {{ ", f"{name}: < "]:
                with self.subTest(opening):
                    text = opening * 10_000
                    self.refused(["run", self.write("deep.textproto", text)])
        self.refused(["run", self.write("lists.textproto", "unknown: " + nested(10_000, "1"))])

    def test_numbers_out_of_range_are_refused(self):
        long_number = "9" * 100_000
        for number in ["1e999", "-1e999", long_number, "0." + long_number]:
            message = "1.7e308" if "." not in number else "at most 1000 characters"
            with self.subTest(number[:10]):
                self.refused(["import", "hf", self.write("c.json", MODEL % number)], message)
                self.refused(["run", self.write("e.json", '{"plan": {"tp": %s}}' % number)], message)
                self.refused(["network", self.write(
                    "n.json", case(flows=FLOW.replace('"bytes": 8', f'"bytes": {number}')))], message)
                self.refused(["collective", "all-to-all", "--cluster", "dgx-h100-16", "--matrix",
                              self.write("m.json", f"[[0,{number}],[0,0]]")], message)

    def test_bytes_that_are_no_text_are_refused(self):
        path = self.folder / "bytes.json"
        path.write_bytes(b'{"model_type": "\xff\xfe"}')
        for arguments in [["import", "hf", str(path)], ["run", str(path)], ["network", str(path)]]:
            self.refused(arguments, "ill-formed UTF-8")

    def test_a_name_of_a_million_letters_is_no_field(self):
        name = "x" * 1_000_000
        for file, text in [("a.json", '{"%s": 1}' % name), ("a.textproto", f"{name}: 1")]:
            begun = time.monotonic()
            result = stepsim("run", self.write(file, text))
            self.assertEqual(result.returncode, 2)
            self.assertLess(time.monotonic() - begun, MOST_SECONDS)

    def test_a_million_wrong_fields_are_not_all_listed(self):
        for name, text in [
            ("a.textproto", "xyz: 1\n" * 1_000_000),
            ("b.textproto", "plan {\n" + 'tp: "a"\n' * 1_000_000 + "}"),
            ("c.json", "{%s}" % ",".join(f'"x{i}":1' for i in range(500_000))),
        ]:
            with self.subTest(name):
                begun = time.monotonic()
                result = stepsim("run", self.write(name, text))
                self.assertEqual(result.returncode, 2)
                self.assertLess(time.monotonic() - begun, MOST_SECONDS)
                self.assertLess(len(result.stderr.splitlines()), 200)
        row = f"[{','.join(['-1'] * 2000)}]"
        for arguments in [
            ["collective", "all-to-all", "--cluster", "dgx-h100-16", "--matrix",
             self.write("m.json", f"[{','.join([row] * 2000)}]")],
            ["accuracy", self.write("t.csv", "a,b\n" + "1\n" * 1_000_000)],
        ]:
            result = stepsim(*arguments)
            self.assertEqual(result.returncode, 2)
            self.assertLess(len(result.stderr.splitlines()), 200)

    def test_numbers_that_size_something_are_limited_first(self):
        routing = "experts=1000000000,top-k=1,tokens=1,token-bytes=1"
        collective = ["collective", "all-to-all", "--cluster", "dgx-h100-16", "--routing"]
        self.refused([*collective, routing], "--routing experts: must be at most 4096")
        self.refused([*collective, "experts=4096,top-k=4000,tokens=1,token-bytes=1"],
                     "--routing top-k: must be 1 to 128, is 4000")
        self.refused([*collective, "experts=16,top-k=1,tokens=999999999999,token-bytes=1"],
                     "--routing tokens: must be 1 to 134217728")
        self.refused([*collective, "experts=16,top-k=1,tokens=100000000,token-bytes=1TiB"],
                     "x tokens x top_k must be at most 16 TiB")
        self.refused(["run", SMALL, "--plan", "layout=" + ",".join(["0*10000"] * 3000)],
                     "must be at most 10000 stages")
        self.refused(["run", SMALL, "--set", "variation.straggler[0].slowdown=2", "--set",
                      "variation.straggler[0].rank=" + ",".join(["0-1048575"] * 3000)],
                     "must be at most 1048576 elements")
        cluster = 'name: "x" chip { catalog: "h100-sxm" } %s'
        self.refused(["topology", self.write("c.textproto", cluster %
                      'leaf_spine { leaves: 65536 hosts_per_leaf: 1 spines: 65536 '
                      'host_bandwidth: "1GB/s" }')], "spines: must make at most 16777216 links")
        self.refused(["topology", self.write("d.textproto", cluster %
                      'nvlink_domain { gpus: 65536 gpu_bandwidth: "1GB/s" %s }' %
                      ("links_per_switch: 1 " * 10_000))], "must make at most 16777216 links")

    def test_a_routing_that_takes_long_can_be_interrupted(self):
        load = ":".join(str(1 + i % 7) for i in range(4096))
        process = program.started(
            "collective", "all-to-all", "--cluster", "dgx-h100-16", "--routing",
            f"experts=4096,top-k=128,tokens=1,token-bytes=1,load={load}")
        time.sleep(1)
        begun = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.communicate()
        self.assertLess(time.monotonic() - begun, 0.5)
        self.assertIn(process.returncode, (143, -signal.SIGTERM))

    def accuracy_reason(self, columns, row):
        path = self.write("t.csv", f"{columns}\n{row}\n")
        result = subprocess.run(
            [program.STEPSIM, "accuracy", path], capture_output=True, text=True,
            timeout=MOST_SECONDS, preexec_fn=lambda: resource.setrlimit(
                resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY)))
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def test_cells_of_a_table_are_limited_before_they_size_something(self):
        good = {"id": "a", "model.layers": "22", "model.hidden": "2304", "model.intermediate": "9216",
                "model.heads": "24", "model.vocabulary": "50000", "cluster": "dgx-a100-8", "plan.sequence": "1024",
                "plan.global_batch": "144", "plan.microbatch": "6", "plan.pp": "8", "measured.step_time": "1s"}
        for changes, message in [
            ({"plan.pp": "2147483648"}, "must be at most 1048576"),
            ({"plan.pp": "9223372036854775807", "plan.tp": "9223372036854775807"}, "must be at most 1048576"),
            ({"plan.pp": "1048576", "plan.tp": "1048576"}, ""),
            ({"plan.pp": "1048576"}, ""),
            ({"plan.pp": "4", "plan.chunks": "1048576", "plan.schedule": "interleaved_1f1b"}, ""),
            ({"model.layers": "9223372036854775807"}, "model.layers"),
            ({"cluster": "dgx-a100-99999999999999999999"}, "cluster"),
            ({"model.experts.routed": "99999999999999999999"}, "model.experts.routed"),
            ({"model.experts.routed": "8", "model.experts.intermediate": "9000000000000000000"}, "model.experts"),
        ]:
            row = {**good, **changes}
            text = self.accuracy_reason(",".join(row), ",".join(row.values()))
            with self.subTest(changes):
                self.assertIn(message, text)


if __name__ == "__main__":
    main()
