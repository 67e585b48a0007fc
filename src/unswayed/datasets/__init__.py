"""The benchmarks, their declared splits, and the user's own CSV files."""

from unswayed.datasets.catalog import NAMES, PAPER
from unswayed.datasets.loading import Dataset, load
from unswayed.datasets.own import from_data
from unswayed.datasets.splits import Split, split
from unswayed.datasets.tables import read_csv

__all__ = ["NAMES", "PAPER", "Dataset", "Split", "from_data", "load", "read_csv", "split"]
