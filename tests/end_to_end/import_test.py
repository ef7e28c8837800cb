#!/usr/bin/env python3
"""stepsim import of traces and workloads, as a person runs it: import_test.py PATH-TO-STEPSIM."""
import json
import pathlib

from program import StepsimTest, main, stepsim

CORPUS = pathlib.Path(__file__).resolve().parents[1] / "fuzz/corpus"
NETWORK = "topology: [ Ring ]\nnpus_count: [ %d ]\nbandwidth: [ 50.0 ]  # GB/s\nlatency: [ 500.0 ]\n"
SYSTEM = '{"preferred-dataset-splits": 4, "local-mem-bw": %d, "boost-mode": 0}'


def varint(number):
    text = b""
    while number >= 128:
        text += bytes([number & 127 | 128])
        number >>= 7
    return text + bytes([number])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def attribute(name, arm, value):
    return field(10, field(1, name) + field(arm, value))


def collective_trace(kind, size):
    """A file of one collective, as ASTRA-sim's examples have it."""
    node = (field(2, b"collective") + field(3, 7) + attribute(b"is_cpu_op", 27, 0)
            + attribute(b"comm_type", 9, kind) + attribute(b"comm_size", 9, size))
    metadata = field(1, b"0.0.4")
    return varint(len(metadata)) + metadata + varint(len(node)) + node


class ImportTest(StepsimTest):
    def result(self, *arguments):
        run = stepsim(*arguments, "--json", "-")
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout)

    def traces(self, ranks, kind, size=1 << 20):
        folder = self.folder / "et"
        folder.mkdir(exist_ok=True)
        for rank in range(ranks):
            (folder / f"trace.{rank}.et").write_bytes(collective_trace(kind, size))
        return str(folder)

    def test_reproduces_the_cycles_of_astra_sim(self):
        for ranks, kind, memory, cycles in [(16, 2, 1600, 323560), (8, 0, 1600, 64440),
                                            (8, 0, 50, 117780)]:
            system = self.write("system.json", SYSTEM % memory)
            network = self.write("network.yml", NETWORK % ranks)
            traces = self.traces(ranks, kind)
            compat = ["--compat", "astra", "--astra-network", network, "--astra-system", system]
            result = self.result("import", "chakra", traces, *compat)
            self.assertAlmostEqual(result["replay"]["step_time_s"], cycles * 1e-9, delta=1e-15)
            for path in pathlib.Path(traces).iterdir():
                path.unlink()

    def test_a_replay_is_the_collective_of_the_cluster_and_a_workload_runs_again(self):
        traces = self.traces(8, 0)
        alone = self.result("collective", "all-reduce", "--cluster", "dgx-h100-8", "--bytes", "1MiB")
        workload = str(self.folder / "w.json")
        read = self.result("import", "chakra", traces, "--cluster", "dgx-h100-8", "--to", workload)
        self.assertEqual(read["replay"]["step_time_s"], alone["time_s"])
        again = self.result("run", workload, "--cluster", "dgx-h100-8")
        self.assertEqual(again["step_time_s"], alone["time_s"])
        self.assertEqual(again["ranks"], 8)

    def test_astras_network_is_a_cluster(self):
        network = self.write("network.yml", "topology: [ Switch, Ring ]\nnpus_count: [ 4, 2 ]\n"
                             "bandwidth: [ 400, 50 ]\nlatency: [ 936.25, 1000 ]\n")
        system = self.write("system.json", '{"peak-perf": 700, "local-mem-bw": 3350, "boost-mode": 0}')
        cluster = str(self.folder / "cluster.textproto")
        printed = stepsim("import", "astra-cluster", network, system, "--to", cluster)
        self.assertEqual(printed.returncode, 0, printed.stderr)
        self.assertIn('"boost-mode" of the system has no counterpart', pathlib.Path(cluster).read_text())
        result = self.result("import", "chakra", self.traces(8, 0), "--cluster", cluster)
        self.assertGreater(result["replay"]["step_time_s"], 2e-6)

    def test_one_file_stands_for_many_ranks(self):
        trace = self.traces(1, 0) + "/trace.0.et"
        result = self.result("import", "chakra", trace, "--ranks", "16", "--cluster", "dgx-h100-16")
        self.assertEqual(result["ranks"], 16)
        self.assertGreater(result["replay"]["step_time_s"], 1e-6)

    def test_notes_say_what_was_left_out(self):
        shown = stepsim("import", "chakra", str(CORPUS / "chakra/one_rank.et")).stdout
        self.assertIn("note: 1 collectives without comm_type or comm_size take no time", shown)
        self.assertIn("note: 1 ctrl_deps name nodes that are not in the file", shown)

    def test_gaps_are_not_kernels(self):
        events = [{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1000 * i,
                   "dur": 10, "args": {"stream": 7, "device": 0}} for i in range(3)]
        trace = self.write("trace.json", json.dumps({"traceEvents": events}))
        result = self.result("import", "kineto", trace, "--cluster", "dgx-h100-8")
        self.assertEqual(result["nodes_by_kind"]["kernel"], 3)
        self.assertEqual(result["nodes_by_kind"]["gap"], 2)
        self.assertAlmostEqual(result["kernel_time_s"], 30e-6, delta=1e-12)
        self.assertAlmostEqual(result["gap_time_s"], 2 * 990e-6, delta=1e-12)
        self.assertAlmostEqual(result["replay"]["step_time_s"], 2010e-6, delta=1e-12)
        self.assertAlmostEqual(result["replay"]["breakdown_s"]["compute"], 30e-6, delta=1e-12)

    def test_thousands_of_ranks_take_as_long_as_few(self):
        rows = "".join(f"layer{i} -1 500000 ALLREDUCE 16777216 500000 NONE 0 500000 NONE 0 100\n"
                       for i in range(20))
        times = []
        for ranks in (64, 8192):
            work = self.write("work.txt", "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 "
                              f"ep: 1 pp: 1 all_gpus: {ranks}\n20\n" + rows)
            result = self.result("import", "aicb", work, "--cluster", f"dgx-h100-{ranks}")
            times.append(result["replay"]["step_time_s"])
        self.assertAlmostEqual(times[0], times[1], delta=1e-12)

    def test_a_network_of_another_program_is_told_and_read(self):
        path = self.write("star.txt", "4 1 3\n3\n0 3 400Gbps 0.0005ms 0\n1 3 400Gbps 0.0005ms 0\n"
                          "2 3 400Gbps 0.0005ms 0\n")
        named = stepsim("topology", "star.txt", cwd=self.folder)
        self.assertEqual(named.returncode, 2)
        self.assertIn("star.txt is a file of another kind", named.stderr)
        self.assertIn("ns3-topology", named.stderr)
        self.assertNotIn("There are:", named.stderr)
        cluster = str(self.folder / "cluster.textproto")
        read = stepsim("import", "ns3-topology", path, "--chip", "h200-sxm", "--to", cluster)
        self.assertEqual(read.returncode, 0, read.stderr)
        shown = self.result("topology", cluster)
        self.assertEqual((shown["chip"], shown["chips"], shown["switches"]), ("h200-sxm", 3, 1))
        both = stepsim("import", "ns3-topology", path, "--retime")
        self.assertIn("has nothing to replay", both.stderr)

    def test_bad_input_is_refused(self):
        self.expect_refused(["import"], "KIND: must be given")
        self.expect_refused(["import", "chakra"], "FILE: must be given")
        self.expect_refused(["import", "chakra", self.write("host.json", '{"nodes": []}')], "is JSON")
        self.expect_refused(["import", "chakra", str(CORPUS / "chakra/cut.et")], "ends inside message 6")
        self.expect_refused(["import", "chakra", str(self.folder)], "is a folder without files")
        trace = self.traces(2, 0)
        self.expect_refused(["import", "chakra", trace, "--cluster", "dgx-h100-8", "--as", "llama"],
                            "--as: stepsim import chakra does not take it")
        self.expect_refused(["import", "chakra", trace, "--compat", "ns3"], "--compat: must be astra")
        self.expect_refused(["import", "chakra", trace, "--compat", "astra"], "needs --astra-network")
        self.expect_refused(["import", "chakra", trace, "--retime"], "--cluster: must be given")
        many = self.traces(9, 0)
        self.expect_refused(["import", "chakra", many, "--cluster", "dgx-h100-8"],
                            "must have a chip for each of the 9 ranks, has 8")
        bad = self.write("bad.json", '{"stepsim_workload": 1, "ranks": 0}')
        self.expect_refused(["run", bad, "--cluster", "dgx-h100-8"], "bad.json: ranks", "bad.json: groups")
        self.expect_refused(["run", bad], "--cluster: must be given")

    def test_an_exported_step_is_imported_and_takes_as_long(self):
        folder = str(self.folder / "step")
        for plan in ["dp=8,zero=1,global-batch=8,sequence=2048", "tp=2,pp=4,global-batch=8,sequence=2048"]:
            run = self.result("run", "--model", "llama3-8b", "--cluster", "dgx-h100-8", "--library",
                              "ideal", "--plan", plan, "--export", "chakra", folder)
            read = self.result("import", "chakra", folder, "--cluster", "dgx-h100-8", "--library",
                               "ideal")
            self.assertEqual(read["schema"], "0.0.4")
            self.assertEqual(read["ranks"], 8)
            # Kernels are not slowed down by communication, and sends don't wait for receives.
            self.assertLess(abs(read["replay"]["step_time_s"] / run["step_time_s"] - 1), 0.02)
        self.expect_refused(["run", "llama3-8b-dgx-h100-8", "--export", "gaol", folder],
                            '--export: must be one of chakra, goal, kineto, megatron, torchtitan, maxtext, nemo; is "gaol"')
        self.expect_refused(["run", "llama3-8b-dgx-h100-8", "--export", "kineto", folder, "--trace",
                             "t.json"], "--trace can't be given")
        self.expect_refused(["run", "llama3-8b-dgx-h100-8", "--export=chakra"], "--export chakra PATH")

    def test_sends_that_wait_for_one_another_are_named(self):
        path = self.write("x.goal", "num_ranks 2\nrank 0 {\na: send 8b to 1 tag 0\nb: recv 8b from 1 tag 0\n"
                          "b requires a\n}\nrank 1 {\na: send 8b to 0 tag 0\nb: recv 8b from 0 tag 0\n"
                          "b requires a\n}\n")
        self.result("import", "goal", path, "--cluster", "dgx-h100-8")
        self.expect_refused(["import", "goal", path, "--cluster", "dgx-h100-8", "--rendezvous"], "ranks: ")

    def test_a_schedule_of_the_step_takes_as_long(self):
        path = str(self.folder / "step.goal")
        plan = "tp=2,pp=2,dp=2,zero=1,global-batch=8,sequence=2048"
        step = ["run", "--model", "llama3-8b", "--cluster", "dgx-h100-8", "--library", "ideal", "--plan",
                plan, "--granularity", "stepped"]
        run = self.result(*step, "--export", "goal", path)
        read = self.result("import", "goal", path, "--cluster", "dgx-h100-8", "--library", "ideal")
        self.assertEqual(read["ranks"], 8)
        # Sends to one rank follow one another, and the switches that add up are left out.
        self.assertLess(abs(read["replay"]["step_time_s"] / run["step_time_s"] - 1), 0.03)

    def test_a_trace_of_the_step_is_read_by_the_importer(self):
        folder = str(self.folder / "traces")
        run = self.result("run", "llama3-8b-dgx-h100-8", "--export", "kineto", folder, "--trace-ranks",
                          "0-1")
        self.assertEqual(sorted(path.name for path in pathlib.Path(folder).iterdir()),
                         ["stepsim.rank0.json", "stepsim.rank1.json"])
        read = stepsim("import", "kineto", folder)
        self.assertEqual(read.returncode, 0, read.stderr)
        self.assertIn("kineto: 2 ranks", read.stdout)
        compared = self.result("diff", folder, folder)
        self.assertAlmostEqual(compared["step_s"][1], run["step_time_s"], delta=2e-9)

    def test_ranks_that_disagree_are_named(self):
        folder = pathlib.Path(self.traces(2, 0))
        (folder / "trace.1.et").write_bytes(collective_trace(6, 1 << 20))
        self.expect_refused(["import", "chakra", str(folder), "--cluster", "dgx-h100-8"],
                            "ranks: disagree")


if __name__ == "__main__":
    main()
