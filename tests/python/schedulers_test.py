#!/usr/bin/env python3
"""Other software calls the Python package: Dask runs 100 plans in processes and threads of its own, pandas
gets a sweep. The results are those of calls one after the other."""
import unittest

import stepsim
import support
from support import SMALL, without_simulator

# 100 plans: 4 ways to divide, 5 lengths, 5 sizes of the batch.
PLANS = [{"tp": tp, "dp": 8 // tp, "sequence": 256 * length, "global_batch": 8 * batch}
         for tp in (1, 2, 4, 8) for length in range(1, 6) for batch in range(1, 6)]


def step(plan):
    return without_simulator(stepsim.run(SMALL, plan=plan).to_json())


class SchedulersTest(unittest.TestCase):
    def test_dask_gets_equal_results_for_100_plans(self):
        import dask
        from dask.distributed import Client, LocalCluster
        alone = [step(plan) for plan in PLANS]
        self.assertEqual(len(alone), 100)
        self.assertEqual(len(set(alone)), 100)
        with dask.config.set({"distributed.worker.daemon": False}):
            with LocalCluster(n_workers=2, threads_per_worker=2, processes=True,
                              dashboard_address=None) as cluster, Client(cluster) as client:
                self.assertEqual(client.gather(client.map(step, PLANS)), alone)

    def test_pandas_gets_a_table(self):
        points = stepsim.sweep(SMALL, over={"plan.zero": [0, 1], "plan.sequence": [512, 1024]})
        frame = points.frame()
        self.assertEqual(list(frame["plan.zero"]), ["0", "0", "1", "1"])
        self.assertEqual(list(frame["step_time_s"]), [point.step_time_s for point in points])


if __name__ == "__main__":
    support.main()
