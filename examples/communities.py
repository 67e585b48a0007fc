"""Are these two people in one community, whoever forges a few friendships?

The question is a classifier: a graph goes in, "no" or "yes" comes out. So the theorem applies to any community-detection
method, here the Louvain method of networkx, which knows nothing of torch or of certificates. The graph is drawn at
random: 40 people in two groups of 20, many friendships within a group and few between them.

    python examples/communities.py --samples 1000
"""

import argparse
from collections.abc import Callable

import networkx as nx
from torch import Tensor

import unswayed as us


def together(graph: nx.Graph, u: int, v: int) -> Callable[[Tensor | None, Tensor], list[int]]:
    """The question "are u and v in one community?" as a classifier of noisy versions of the graph."""

    def ask(x: Tensor | None, edge_index: Tensor) -> list[int]:
        noisy = nx.Graph()
        noisy.add_nodes_from(range(graph.number_of_nodes()))
        noisy.add_edges_from(edge_index.T.tolist())
        communities = nx.community.louvain_communities(noisy, seed=0)
        return [int(any(u in community and v in community for community in communities))]

    return ask


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument(
        "--samples", type=int, default=1000, help="noisy copies of the graph for each question"
    )
    options.add_argument(
        "--beta", type=float, default=0.9, help="probability that a pair of people stays as it is"
    )
    options.add_argument("--alpha", type=float, default=0.01, help="accepted risk of each answer")
    asked = options.parse_args()

    people = nx.planted_partition_graph(2, 20, p_in=0.7, p_out=0.05, seed=0)
    noise = us.Flip(beta=asked.beta)
    ceiling = us.theory.ceiling(noise, asked.samples, asked.alpha, classes=2)
    print(f"{asked.samples} samples at beta = {asked.beta} can prove at most K = {ceiling}.")
    for u, v in [(0, 1), (5, 7), (0, 20)]:
        votes = us.poll(
            together(people, u, v), us.AllPairs([people]), noise, samples=asked.samples, classes=2
        )
        certs = us.certify(votes, alpha=asked.alpha)
        share = f"{votes.counts[0].max() / asked.samples:.1%} of the votes"
        if certs.abstained[0]:
            print(f"{u:2} and {v:2} together? The votes do not say ({share}).")
        else:
            answer = ["no", "yes"][certs.label[0]]
            print(
                f"{u:2} and {v:2} together? {answer}, whichever {certs.size[0]} friendships change ({share})."
            )


if __name__ == "__main__":
    main()
