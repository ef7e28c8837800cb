#!/usr/bin/env python3
"""--transport of run, sweep and collective: transports_test.py PATH-TO-STEPSIM."""
import json

from program import StepsimTest, main, stepsim

STEP = """
model { catalog: "llama3-8b" }
cluster { catalog: "dgx-h100-16" }
plan { tp: 8 dp: 2 global_batch: 4 sequence: 2048 }
simulation { fidelity: "packet" packet_bytes: 1048576 }
"""


class TransportsTest(StepsimTest):
    def json_of(self, *arguments):
        result = stepsim(*arguments, "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def refusal(self, *arguments):
        result = stepsim(*arguments)
        self.assertEqual(result.returncode, 2, result.stdout)
        return result.stderr

    def test_a_step_with_a_transport_is_near_one_without(self):
        step = self.write("step.textproto", STEP)
        alone = self.json_of("run", step)
        self.assertNotIn("transport", alone)
        moved = self.json_of("run", step, "--transport", "go-back-n,header=0,ack=1")
        self.assertLess(abs(moved["step_time_s"] / alone["step_time_s"] - 1), 0.01)
        self.assertGreater(moved["transport"]["packets"], 1000)
        self.assertEqual(moved["transport"]["dropped"], 0)
        # Sent by all ranks, whatever carries it.
        self.assertEqual(moved["bytes_by_axis"], alone["bytes_by_axis"])
        self.assertIn("transport go-back-n: ", stepsim("run", step, "--transport", "go-back-n").stdout)

    def test_what_was_run_can_be_run_again(self):
        step = self.write("step.textproto", STEP + 'transport { name: "dcqcn" ecn_low: "100kB" payload: "64kB" }')
        first = self.json_of("run", step)
        self.assertEqual(first["experiment"]["transport"]["name"], "dcqcn")
        again = self.json_of("run", self.write("first.json", json.dumps(first)))
        for result in (first, again):
            result.pop("simulator")
        self.assertEqual(first, again)
        other = self.json_of("run", step, "--transport", "payload=32kB")
        self.assertEqual(other["experiment"]["transport"]["name"], "dcqcn")
        self.assertGreater(other["transport"]["packets"], 1.9 * first["transport"]["packets"])
        slower = self.json_of("run", step, "--set", "transport.window=64kB")
        self.assertGreater(slower["step_time_s"], first["step_time_s"])

    def test_a_lossy_fabric_repeats_what_is_lost(self):
        result = self.json_of("collective", "all-gather", "--cluster", "dgx-h100-16", "--bytes", "4MiB", "--fidelity",
                              "packet", "--transport", "selective-repeat,loss=0.001,rto=100us,seed=3")
        lost = result["transport"]
        self.assertGreater(lost["dropped"], 0)
        self.assertGreaterEqual(lost["retransmitted"], lost["dropped"] / 2)
        lossless = self.json_of("collective", "all-gather", "--cluster", "dgx-h100-16", "--bytes", "4MiB", "--fidelity",
                                "packet", "--transport", "selective-repeat,rto=100us")
        self.assertGreater(result["time_s"], lossless["time_s"])
        self.assertEqual(lossless["transport"]["retransmitted"], 0)

    def test_a_sweep_varies_it(self):
        result = self.json_of("sweep", self.write("step.textproto", STEP), "--transport", "go-back-n", "--over",
                              "transport.payload=1MiB,256KiB")
        times = [point["step_time_s"] for point in result["points"]]
        self.assertEqual(len(set(times)), 2, times)

    def test_what_does_not_fit_is_refused(self):
        small = "llama3-8b-dgx-h100-8"
        for arguments, words in [
            (["run", small, "--transport", "dcqcn"], "--transport: needs --fidelity packet or all"),
            (["run", small, "--fidelity", "packet", "--transport", "dctpc"], "did you mean dctcp?"),
            (["run", small, "--fidelity", "packet", "--transport", "dcqcn,quue=1"], "quue is no field of a transport"),
            (["run", small, "--fidelity", "packet", "--transport", "dcqcn,rto=soon"], "transport.rto: must be a time"),
            (["run", small, "--fidelity", "packet", "--packet-bytes", "1MB", "--transport", "ndp"],
             "transport.queue: must hold a packet"),
            (["run", small, "--fidelity", "packet", "--spraying", "4", "--transport", "ndp"],
             "--spraying: is of packets without a transport"),
            (["run", small, "--set", "transport.rto=1ms"], "transport.name: must be given"),
            (["collective", "all-reduce", "--cluster", "dgx-h100-8", "--bytes", "1MiB", "--transport", "dcqcn"],
             "--transport: needs --fidelity packet"),
        ]:
            self.assertIn(words, self.refusal(*arguments))


if __name__ == "__main__":
    main()
