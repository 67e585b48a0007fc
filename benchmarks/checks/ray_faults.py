"""Kill a random worker or a whole node in every run: the votes of every block stay identical.

    python -m benchmarks.checks.ray_faults --runs 20

A cluster of three raylets on this machine. In each run, at a random moment, a random worker process or a random node without the
driver is killed (SIGKILL); a new node takes the dead one's place afterwards. `--memory` instead lets every task outgrow a
memory limit and shows the one error that results.
"""

import argparse
import hashlib
import json
import os
import random
import signal
import threading
import time
from pathlib import Path

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import numpy as np

import unswayed as us


def majority(rows: np.ndarray) -> np.ndarray:
    """A classifier that takes its time, so that there is something to kill."""
    time.sleep(0.05)
    return (rows[:, :9].sum(axis=1) > 4).astype(int)


def hog(rows: np.ndarray) -> np.ndarray:
    """Outgrows any limit."""
    held = []
    for _ in range(400):
        held.append(np.ones(2**24))
        time.sleep(0.02)
    return np.zeros(len(rows), int)


def workers_of(raylets: set[int]) -> list[int]:
    """Processes that a raylet started to run tasks."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            name = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if parent in raylets and name.startswith(b"ray::count_block"):
            found.append(int(entry.name))
    return found


def raylet_of(node) -> int:
    return node.all_processes["raylet"][0].process.pid


def strike(cluster, nodes: list, rng: random.Random, delay: float, done: list) -> None:
    """Kill something after a while; says what."""
    time.sleep(delay)
    if rng.random() < 0.5:
        pids = workers_of({raylet_of(node) for node in [cluster.head_node, *nodes]})
        if pids:
            pid = rng.choice(pids)
            os.kill(pid, signal.SIGKILL)
            done.append(f"worker {pid}")
    else:
        node = rng.choice(nodes)
        pid = raylet_of(node)
        cluster.remove_node(node, allow_graceful=False)
        nodes.remove(node)
        done.append(f"the node of raylet {pid}")


def poll(threat, samples: int, runner=None):
    return us.poll(
        majority, threat, us.Flip(beta=0.8), samples=samples, seed=5, classes=2, runner=runner, audit=0,
        progress=False,
    )  # fmt: skip


def digest(votes) -> str:
    """Of the votes alone: their file also says how long they took."""
    return hashlib.sha256(votes.blocks.tobytes()).hexdigest()[:16]


def survive(runs: int, samples: int, seed: int) -> bool:
    import ray
    from ray.cluster_utils import Cluster

    rng = random.Random(seed)
    threat = us.Bits(np.random.default_rng(0).random((4, 15)) < 0.5)
    wanted = digest(poll(threat, samples))
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    ray.init(cluster.address, log_to_driver=False, logging_level="FATAL")
    good = killed = 0
    try:
        runner = us.RayRunner(address=cluster.address)
        assert digest(poll(threat, samples, runner)) == wanted
        for number in range(runs):
            done: list[str] = []
            begin = time.time()
            threading.Thread(target=strike, args=(cluster, nodes, rng, rng.uniform(0.1, 1.5), done)).start()
            same = digest(poll(threat, samples, runner)) == wanted
            good, killed = good + same, killed + bool(done)
            print(
                json.dumps(
                    {
                        "run": number,
                        "killed": done,
                        "identical": same,
                        "seconds": round(time.time() - begin, 1),
                    }
                ),
                flush=True,
            )
            while len(nodes) < 2:
                nodes.append(cluster.add_node(num_cpus=1))
    finally:
        ray.shutdown()
        cluster.shutdown()
    print(json.dumps({"runs": runs, "with_a_kill": killed, "identical": good, "sha256": wanted}))
    return good == runs


def out_of_memory() -> bool:
    import ray
    from ray.cluster_utils import Cluster

    fields = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    total, free = (int(fields[name].split()[0]) for name in ("MemTotal", "MemAvailable"))
    limit = min(0.95, 1 - free / total + 0.08)
    settings = {"memory_usage_threshold": limit, "memory_monitor_refresh_ms": 100}
    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 1, "include_dashboard": False, "_system_config": settings},
    )
    ray.init(cluster.address, log_to_driver=False, logging_level="FATAL")
    try:
        us.poll(
            hog, us.Bits([[0, 1]]), us.Flip(beta=0.7), samples=100, classes=2, progress=False,
            runner=us.RayRunner(address=cluster.address, retries=1),
        )  # fmt: skip
    except us.errors.WorldError as error:
        print(error)
        return "memory" in str(error)
    finally:
        ray.shutdown()
        cluster.shutdown()
    return False


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--samples", type=int, default=40_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--memory", action="store_true")
    given = parser.parse_args()
    raise SystemExit(
        not (out_of_memory() if given.memory else survive(given.runs, given.samples, given.seed))
    )


if __name__ == "__main__":
    main()
