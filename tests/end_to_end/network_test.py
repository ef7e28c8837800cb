#!/usr/bin/env python3
"""stepsim network and topology, as a person runs it: network_test.py PATH-TO-STEPSIM."""
import gzip
import json
import time

from program import StepsimTest, main, stepsim


class NetworkTest(StepsimTest):
    # Two flows into one link of 1 GB/s, the second after the first; ids of both types.
    CASE = {
        "format": "stepsim-oracle-flow/1", "name": "two",
        "links": [
            {"id": "ab", "from": "a", "to": "b", "capacity_Bps": 1e9, "latency_s": 1e-6},
            {"id": 7, "from": "b", "to": "c", "capacity_Bps": 2e9, "latency_s": 0}],
        "flows": [
            {"id": "1", "src": "a", "dst": "c", "route": ["ab", 7], "bytes": 4096, "start_s": 0,
             "after": []},
            {"id": 1, "src": "a", "dst": "b", "route": ["ab"], "bytes": 4096, "start_s": 1e-6,
             "after": ["1"]}],
        "expect": [{"flow": "1", "finish_s": 5.096e-06}],
    }

    def write_case(self, **changes):
        return self.write("case.json", json.dumps({**self.CASE, **changes}))

    def test_says_when_each_flow_ends(self):
        result = stepsim("network", self.write_case(), "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn('"makespan_s": 0.000010192000,', result.stdout)
        answer = json.loads(result.stdout)
        # 1 us + 4,096 B at 1 GB/s = 5.096 us, and the same again.
        self.assertEqual(answer["flows"], [{"id": "1", "finish_s": 5.096e-06},
                                           {"id": 1, "finish_s": 1.0192e-05}])
        self.assertEqual(list(answer)[-1], "simulator")
        self.assertLessEqual({"events", "rate_updates", "wall_s", "cpu_s", "peak_rss_bytes"},
                             set(answer["simulator"]))
        table = stepsim("network", self.write_case()).stdout
        self.assertIn("makespan 10.2 us  (0.000010192000 s)", table)
        self.assertIn("worst relative difference 0.0e+00", table)

    def test_runs_on_every_model(self):
        path = self.write_case()
        # One packet, stored and forwarded: 1 us + 4.096 us, and 2.048 us on the second link.
        for fidelity, finish_s in (("flow", 5.096e-6), ("latency-bandwidth", 5.096e-6),
                                   ("packet", 7.144e-6)):
            answer = json.loads(
                stepsim("network", path, "--fidelity", fidelity, "--json", "-").stdout)
            self.assertEqual(answer["fidelity"], fidelity)
            # Without contention, bytes / bandwidth is rounded up to a picosecond.
            self.assertAlmostEqual(answer["flows"][0]["finish_s"], finish_s, delta=1.5e-12)

    def test_a_packet_case_runs_in_packets(self):
        path = self.write_case(format="stepsim-oracle-packet/1", packet_bytes=2048,
                               switching="store_and_forward")
        answer = json.loads(stepsim("network", path, "--json", "-").stdout)
        # Two packets: 1 us + 2 x 2.048 us, and 1.024 us for the last one on the second link.
        self.assertEqual(answer["flows"][0]["finish_s"], 6.12e-6)

    def packet_case(self, **changes):
        """a - s - b at 1 GB/s and 1 us, two packets of 1,000 B, with a transport."""
        links = [{"id": f"{x}{y}", "from": x, "to": y, "capacity_Bps": 1e9, "latency_s": 1e-6}
                 for x, y in ("as", "sa", "sb", "bs")]
        flows = [{"id": 1, "route": ["as", "sb"], "bytes": 2000, "start_s": 0, "after": []}]
        return self.write_case(**{
            "format": "stepsim-oracle-packet/1", "packet_bytes": 1000, "expect": [],
            "switching": "store_and_forward", "links": links, "flows": flows,
            "transport": {"name": "go-back-n", "header": 0, "ack": 100, "pfc": "none"}, **changes})

    def test_a_transport_has_acknowledgements(self):
        answer = json.loads(stepsim("network", self.packet_case(), "--json", "-").stdout)
        # Two packets of 1 us and one more on the second link, and 2 us of latency: 5 us; 100 B
        # back: 2 x 0.1 us and 2 us more.
        self.assertEqual(answer["flows"][0], {
            "id": 1, "finish_s": 5e-6, "acked_s": 7.2e-6, "packets": 2, "marked": 0, "trimmed": 0,
            "dropped": 0, "retransmitted": 0, "paused_s": 0})
        self.assertIn("fairness (Jain) 1.000", stepsim("network", self.packet_case()).stdout)

    def test_a_transport_can_be_given_beside_the_case(self):
        path = self.packet_case()
        answer = json.loads(
            stepsim("network", path, "--transport", "header=100,ack=200", "--json", "-").stdout)
        # 1.1 us a packet: 5.3 us; 2 x 0.2 us and 2 us more.
        self.assertEqual(answer["flows"][0]["finish_s"], 5.3e-6)
        self.assertEqual(answer["flows"][0]["acked_s"], 7.7e-6)
        self.expect_refused(["network", path, "--transport", "dctpc", "--fidelity", "flow"],
                            "did you mean dctcp?", "leave out --fidelity flow")

    def test_wrong_transports_are_refused_at_once(self):
        self.expect_refused(
            ["network", self.packet_case(
                transport={"name": "dcqcn", "rto": "soon", "quue": 1, "pfc_headroom": 100},
                switches={"buffer_bytes": 500, "ecn": {"kmin_bytes": 9000, "kmax_bytes": 8000},
                          "pfc": {"xoff_bytes": 5000, "xon_bytes": 6000}, "colour": 1}, seed=-1)],
            "transport.rto: must be a time", "transport.quue: is no field", "did you mean queue?",
            "switches.colour: is no field", "transport.queue: must hold a packet of 1048 B",
            "transport.ecn_high: must be at least ecn_low (9000 B)",
            "transport.pfc_xon: must be at most pfc_xoff", "seed: must be a whole number")
        self.expect_refused(["network", self.packet_case(transport={"name": "rdma"})],
                            "transport.name: must be go-back-n")
        self.expect_refused(["network", self.packet_case(transport={"name": "go-back-n",
                                                                    "pfc_headroom": 100})],
                            "transport.pfc_headroom: must be at least 4160 B")
        links = [{"id": x + y, "from": x, "to": y, "capacity_Bps": 1e9, "latency_s": 0}
                 for x, y in ("as", "sb", "bs")]
        self.expect_refused(["network", self.packet_case(links=links)],
                            'links: "as" has no link back', "add one from s to a")

    def test_flows_that_never_end_are_said(self):
        path = self.packet_case(transport={"name": "go-back-n", "loss": 0.9, "rto": None})
        result = stepsim("network", path, "--transport", "loss=0.9", "--json", "-")
        self.assertEqual(result.returncode, 2)
        path = self.packet_case(transport={"protocol": "pfc", "simulator": "ns-3", "parameters": {
            "loss_probability": 0.9, "payload_bytes": 1000, "header_bytes": 48}})
        result = stepsim("network", path, "--json", "-")
        self.assertEqual(result.returncode, 1)
        self.assertIn("nothing repeats them", result.stderr)
        self.assertIsNone(json.loads(result.stdout)["flows"][0]["finish_s"])

    def test_reads_gzip_and_refuses_half_of_it(self):
        whole = gzip.compress(json.dumps(self.CASE).encode())
        path = self.folder / "case.json.gz"
        path.write_bytes(whole)
        self.assertEqual(stepsim("network", str(path)).returncode, 0)
        path.write_bytes(whole[:-5])
        self.expect_refused(["network", str(path)], "is truncated")

    def test_two_runs_give_the_same_bytes(self):
        path = self.write_case()
        heads = [stepsim("network", path, "--json", "-").stdout.partition('"simulator"')[0]
                 for _ in range(2)]
        self.assertEqual(heads[0], heads[1])

    def test_all_problems_come_at_once(self):
        links = [{"id": "ab", "from": "a", "to": "b", "capacity_Bps": 0, "latency_s": -1},
                 {"id": "ab", "from": "b", "to": "c", "capacity_Bps": 1, "latency_s": 0},
                 {"id": "cd", "from": "c", "to": "d", "capacity_Bps": 1, "latency_s": 0}]
        flows = [{"id": 1, "route": ["ab", "cd"], "bytes": -1, "start_s": 0, "after": [2]},
                 {"id": 2, "route": ["xy"], "bytes": float("nan"), "start_s": 0, "after": [1]},
                 {"id": 2, "route": [], "bytes": 1, "after": [5]}]
        text = self.expect_refused(
            ["network", self.write_case(links=links, flows=flows), "--fidelity", "exact"],
            '--fidelity: must be latency-bandwidth, flow or packet, is "exact"',
            "links[0].capacity_Bps: must be above 0, is 0",
            "links[0].latency_s: must be a time from 0",
            'links[1].id: "ab" is the id of an earlier link too',
            'flows[0].route[1]: link "cd" begins at "c", but the link before it ends at "b"',
            "flows[0].bytes: must be a whole number",
            'flows[1].route[0]: no link has the id "xy"',
            'flows[1].bytes: must be a whole number from 0 to 9223372036854775807, is "NaN"',
            "flows[2].id: 2 is the id of an earlier flow too",
            "flows[2].start_s: is missing",
            "flows[2].route: must have at least one link, is empty",
            "flows[2].after[0]: no flow has the id 5",
            "1 waits for 2 waits for 1")
        self.assertIn("13 problems", text)

    def test_refuses_what_is_no_case(self):
        self.expect_refused(["network"], "CASE: must be given")
        self.expect_refused(["network", str(self.folder / "none.json")], "No such file")
        self.expect_refused(["network", self.write("x.json", "{")], "is not JSON: parse error")
        self.expect_refused(["network", self.write_case(), "--jsn", "-"], "did you mean --json?")
        self.expect_refused(["network", self.write_case(), "--json", str(self.folder)],
                            "it is a folder")

    def test_long_packet_runs_ask_first(self):
        flows = [{**self.CASE["flows"][0], "bytes": 10**13}]
        self.expect_refused(["network", self.write_case(flows=flows), "--fidelity", "packet"],
                            "packet-hops", "--yes")


class TopologyTest(StepsimTest):
    # 1,024 GPUs: 128 NVSwitches, 32 leaves, 16 spines. Two links a GPU and way, 32 x 16 cables of
    # leaves and spines. Published: 25.6 TB/s from half to half, 12.8 TB/s out of a unit of 256.
    def test_measures_a_superpod(self):
        result = stepsim("topology", "dgx-h100-1024")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"bisection +25\.6 TB/s")
        self.assertTrue(all(len(line) <= 100 for line in result.stdout.splitlines()))
        found = json.loads(stepsim("topology", "dgx-h100-1024", "--json", "-").stdout)
        self.assertEqual((found["chips"], found["switches"], found["hosts"]), (1024, 176, 0))
        self.assertEqual(found["links"], 2 * (2 * 1024 + 32 * 16))
        self.assertEqual(found["diameter_hops"], 4)
        self.assertEqual(found["bisection_bandwidth_bytes_per_s"], 25.6e12)
        levels = {level["name"]: level for level in found["levels"]}
        self.assertEqual(list(levels), ["gpu", "node", "scalable_unit"])
        self.assertEqual(levels["gpu"]["chip_to_peers_bytes_per_s"], 450e9)
        self.assertEqual(levels["node"]["out_of_group_bytes_per_s"], 400e9)
        self.assertEqual(levels["scalable_unit"]["out_of_group_bytes_per_s"], 12.8e12)
        self.assertEqual(sum(kind["links"] for kind in found["link_kinds"]), found["links"])

    # z is cut twice, 16 x 20 cables of 90 GB/s each; half of each ring to the furthest chip.
    def test_measures_a_whole_pod_in_seconds(self):
        start = time.monotonic()
        found = json.loads(stepsim("topology", "v5p-16x20x28", "--json", "-").stdout)
        self.assertLess(time.monotonic() - start, 20)
        self.assertEqual(found["bisection_bandwidth_bytes_per_s"], 2 * 16 * 20 * 90e9)
        self.assertEqual(found["diameter_hops"], 8 + 10 + 14)
        self.assertEqual(found["routes"][0]["links"][0], "chip0.0.0>chip1.0.0")

    def test_draws(self):
        small = self.folder / "small.dot"
        large = self.folder / "large.dot"
        stepsim("topology", "v5e-4x4", "--dot", str(small))
        text = stepsim("topology", "dgx-h100-1024", "--dot", str(large)).stdout
        self.assertEqual(small.read_text().count("shape=box"), 16)
        self.assertTrue(small.read_text().endswith("}\n"))
        self.assertIn("collapsed: a box is 256 chips", text)
        self.assertIn("collapsed: a box is 256 chips", large.read_text())
        self.assertEqual(self.files(), ["large.dot", "small.dot"])

    # One of eight cards a node is down: 7 x 50 GB/s leave it.
    def test_counts_faults(self):
        path = self.write("slow.textproto", """
catalog: "dgx-h100-16"
faults {
  links { link: "node0.gpu3-su0.leaf3" down: true }
  links { link: "node1.*-node1.nvswitch" capacity: 0.5 }
}
""")
        found = json.loads(stepsim("topology", path, "--json", "-").stdout)
        self.assertEqual(found["levels"][1]["out_of_group_bytes_per_s"], 350e9)
        slow = [kind["links"] for kind in found["link_kinds"]
                if kind["bandwidth_bytes_per_s"] == 225e9]
        self.assertEqual(slow, [8, 8])
        cut = self.write("cut.textproto", """
catalog: "dgx-h100-8"
faults { links { link: "node0.gpu3-*" down: true } }
""")
        self.expect_refused(["topology", cut], "faults.links: must leave every chip a path",
                            "node0.gpu3 is cut off")

    def test_refuses_bad_input_at_once(self):
        text = self.expect_refused(
            ["topology", "dgx-h100-99", "more", "--dott", "--dot", "-", "--json",
             str(self.folder / "none" / "x.json")],
            "--dott: no such option; did you mean --dot?", "more: there can be only one CLUSTER",
            "--dot: must be a file", "none", "dgx-h100-<size>")
        self.assertIn("5 problems", text)
        self.expect_refused(["topology"], "CLUSTER: must be given")
        self.assertIn("--dot FILE", stepsim("help", "topology").stdout)


if __name__ == "__main__":
    main()
