"""Two Ray nodes on one machine: the same votes as the serial run, and how much faster.

    python -m benchmarks.speed.ray_speed --nodes 100 --samples 100000

Symmetric GCN on Cora. Two raylets with one CPU each (separate node ids, on loopback addresses of their own), every worker with
one thread, as the serial run. Starting Ray and the workers is timed apart: it happens once, whatever the samples.
"""

import argparse
import json
import os
import time

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

import unswayed as us
from benchmarks.loading import NOISE, trained
from unswayed.experiments.one_graph import timed


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--model", default="gcn")
    parser.add_argument("--addresses", default="127.0.0.2,127.0.0.3")
    given = parser.parse_args()
    torch.set_num_threads(1)
    import ray
    from ray.cluster_utils import Cluster

    data, split, net = trained("cora", given.model)
    threat = us.Row(data.data, split.test[: given.nodes])

    def ask(samples: int, runner=None):
        return us.poll(net, threat, NOISE, samples=samples, runner=runner, progress=False)

    head, other = given.addresses.split(",")
    begin = time.perf_counter()
    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 1, "include_dashboard": False, "node_ip_address": head},
    )
    cluster.add_node(num_cpus=1, node_ip_address=other)
    ray.init(cluster.address, log_to_driver=False, logging_level="ERROR")
    try:
        nodes = {node["NodeID"][:8]: node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]}
        print(f"nodes: {nodes}", flush=True)
        both, one = us.RayRunner(address=cluster.address), us.RayRunner(address=cluster.address, workers=1)
        ask(4000, both)  # workers start and import
        starting = time.perf_counter() - begin
        alone, serial = timed(lambda: ask(given.samples))
        with_one, single = timed(lambda: ask(given.samples, one))
        with_two, double = timed(lambda: ask(given.samples, both))
    finally:
        ray.shutdown()
        cluster.shutdown()
    row = {
        "equal_votes": bool(serial == single == double),
        "serial_seconds": round(alone, 2),
        "ray_1_worker_seconds": round(with_one, 2),
        "ray_2_workers_seconds": round(with_two, 2),
        "overhead_at_1": round(with_one / alone - 1, 4),
        "speed_up_of_2_over_1": round(with_one / with_two, 3),
        "speed_up_of_2_over_serial": round(alone / with_two, 3),
        "start_seconds": round(starting, 1),
        "load_average": os.getloadavg()[0],
    }
    print(json.dumps(row))
    raise SystemExit(not row["equal_votes"])


if __name__ == "__main__":
    main()
