#!/usr/bin/env python3
"""What people reported of collectives, run as they would: network_reports_test.py PATH-TO-STEPSIM."""
import json
import pathlib

from program import StepsimTest, main, stepsim

CASES = pathlib.Path(__file__).resolve().parent.parent / "reference" / "reports"


def collective(op, cluster, size, *more):
    result = stepsim("collective", op, "--cluster", str(cluster), "--bytes", size, "--json", "-", *more)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def seconds(op, cluster, size, *more):
    return collective(op, cluster, size, *more)["time_s"]


class NetworkReportsTest(StepsimTest):
    # NVIDIA/nccl#757, #1712: the latency of a ring is linear in ranks. 2,048 ranks: at least 2.3 ms.
    def test_a_ring_has_all_its_trips(self):
        times = [seconds("all-gather", f"dgx-h100-{n}", "1MiB") for n in (512, 1024, 2048)]
        self.assertGreaterEqual(times[2], 2.2e-3)
        for less, more in zip(times, times[1:]):
            self.assertAlmostEqual(more / less, 2, delta=0.1)

    # All messages of an all-to-all are one group, whatever the number of ranks.
    def test_an_all_to_all_does_not_jump(self):
        times = {n: seconds("all-to-all", f"dgx-h100-{n}", "1MiB") for n in (128, 136, 256, 1024)}
        self.assertLess(times[136] / times[128], 1.02)
        self.assertLess(times[1024], 40e-6)

    def test_more_bytes_never_take_less_time(self):
        for cluster, more, small, large in (
                ("xgmi-mi350x-16", ("--dtype", "fp32"), "64MiB", "128MiB"),
                ("gb200-nvl72-72", ("--ranks", "0-15"), "64KiB", "128KiB"),
                ("dgx-b200-16", (), "1MiB", "2MiB")):
            self.assertLessEqual(seconds("all-reduce", cluster, small, *more),
                                 seconds("all-reduce", cluster, large, *more), cluster)

    # NVIDIA/nccl#590: broadcasts go along all rings, with chunks in flight.
    def test_broadcasts_use_all_rings(self):
        self.assertLess(seconds("broadcast", "v5e-4x4", "1MiB"), 2 * seconds("broadcast", "v5e-4x4", "512KiB"))
        auto = seconds("broadcast", "gb200-nvl72-72", "64MiB")
        self.assertLess(auto, 1.1 * seconds("broadcast", "gb200-nvl72-72", "64MiB", "--algorithm", "binomial-tree"))
        answer = collective("broadcast", "dgx-h100-16", "8GiB")
        self.assertGreater(answer["bus_bandwidth_bytes_per_s"], 300e9)

    def test_stepped_and_packets_agree_with_a_pipeline(self):
        for algorithm in ("nvls-tree", "double-binary-tree", "rotated-rings"):
            times = [seconds("all-reduce", "dgx-h100-16", "64MiB", "--algorithm", algorithm, *how)
                     for how in ((), ("--granularity", "stepped"), ("--fidelity", "packet", "--yes"))]
            for time in times[1:]:
                self.assertAlmostEqual(time / times[0], 1, delta=0.25, msg=algorithm)

    def test_a_faster_link_is_never_slower(self):
        faster = CASES / "larger-is-faster" / "b200-nvlink-1350.textproto"
        for size in ("64KiB", "1MiB", "4MiB", "64MiB"):
            self.assertLessEqual(seconds("all-reduce", faster, size, "--ranks", "0-3"),
                                 seconds("all-reduce", "dgx-b200-16", size, "--ranks", "0-3"), size)

    def test_the_order_of_ranks_counts(self):
        cluster = CASES / "rank-order" / "two-to-one-64.textproto"
        near = seconds("all-gather", cluster, "1GiB", "--ranks", "0-63")
        far = seconds("all-gather", cluster, "1GiB", "--ranks",
                      "0-7,16-23,32-39,48-55,8-15,24-31,40-47,56-63")
        self.assertGreater(far, 1.5 * near)

    def test_names_of_levels_decide_nothing(self):
        times = {seconds("all-reduce", CASES / "level-names" / f"eg-{name}.textproto", "64MiB")
                 for name in ("gpu", "chip", "none")}
        self.assertEqual(len(times), 1)

    # NVIDIA/nccl-tests#119: 96 GB/s with four cards of 200 Gb/s a node, of which eight GPUs each have half. Rings of three
    # nodes carry 23/12 of the bytes over them, trees 3/2.
    def test_shared_cards_are_counted_once(self):
        cluster = CASES / "shared-cards" / "four-cards.textproto"
        ring = collective("all-reduce", cluster, "1GiB", "--dtype", "fp32", "--algorithm", "rotated-rings")
        self.assertAlmostEqual(ring["bus_bandwidth_bytes_per_s"] / 96e9, 1, delta=0.05)
        answer = collective("all-reduce", cluster, "128MiB", "--dtype", "fp32")
        self.assertAlmostEqual(answer["bus_bandwidth_bytes_per_s"] / 96e9, 1, delta=0.12)

    # NVIDIA/nccl#812, #946, #837, #1473.
    def test_two_nodes_take_trees(self):
        answer = collective("all-reduce", CASES / "two-node-tree" / "two-nodes.textproto", "1GiB", "--dtype", "fp32")
        self.assertEqual(answer["algorithm"], "double-binary-tree")
        self.assertAlmostEqual(answer["time_s"] / 11.9e-3, 1, delta=0.1)

    # Published configurations of all-reduces over slots of PCIe 4 imply 12.5 GB/s.
    def test_slots_carry_headers(self):
        answer = collective("all-reduce", "pcie-a100-8", "1GiB")
        self.assertAlmostEqual(answer["bus_bandwidth_bytes_per_s"] / 12.5e9, 1, delta=0.1)

    # NVIDIA/nccl#1250: 1 : 0.48 : 0.25 with 1, 2 and 4 GPUs of two nodes.
    def test_trees_of_two_nodes_use_all_cards(self):
        one, two, four = (seconds("all-reduce", "dgx-h100-16", "1GB", "--dtype", "fp32", "--ranks", ranks)
                          for ranks in ("0,8", "0,1,8,9", "0-3,8-11"))
        self.assertAlmostEqual(two / one, 0.48, delta=0.05)
        self.assertAlmostEqual(four / one, 0.25, delta=0.03)

    # astra-sim#150, #299, #270.
    def test_listed_graphs_are_what_they_are(self):
        rings = CASES / "graph-rings"
        listed = {}
        for name in ("2x8", "8x2", "4x8"):
            imported = stepsim("import", "astra-cluster", str(rings / f"torus-{name}.yml"),
                               str(rings / "system.json"), "--to", str(self.folder / f"{name}.textproto"))
            self.assertEqual(imported.returncode, 0, imported.stderr)
            listed[name] = seconds("all-reduce", self.folder / f"{name}.textproto", "64MiB")
        self.assertEqual(listed["2x8"], listed["8x2"])
        for name in ("8x2", "4x8"):
            torus = seconds("all-reduce", rings / f"torus-{name}.textproto", "64MiB")
            self.assertAlmostEqual(listed[name] / torus, 1, delta=1e-3)
        cube = seconds("all-reduce", rings / "cube.textproto", "256MiB", "--library", "ideal")
        self.assertLess(cube, 1.25 * 3.13e-3)

    def test_a_twist_makes_nothing_slower(self):
        for op in ("all-gather", "all-reduce"):
            self.assertLess(seconds(op, "v5p-4x4x8_twisted", "256MiB"), 1.05 * seconds(op, "v5p-4x4x8", "256MiB"))


if __name__ == "__main__":
    main()
