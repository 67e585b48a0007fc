"""In a real notebook: the tour runs from top to bottom, long polls say how far they are, and certificates are tables."""

import sys

import pytest
from nbclient import NotebookClient
from nbformat import read
from nbformat.v4 import new_code_cell, new_notebook

from tests.examples.test_examples import NOTEBOOK

pytestmark = pytest.mark.slow

SLOW = """
import time, torch, unswayed as us
from torch_geometric.data import Data
data = Data(x=torch.eye(2)[torch.arange(30) // 15], edge_index=torch.tensor([[0, 1], [1, 0]]))

class Slow(torch.nn.Module):
    def forward(self, x, edge_index):
        time.sleep(0.02)
        return x

votes = us.poll(Slow(), us.Row(data, range(10, 20)), us.Flip(0.9), samples=25, batch_size=1, classes=["honest", "fraud"])
"""


def run(notebook, folder):
    client = NotebookClient(
        notebook, timeout=200, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


@pytest.fixture(autouse=True)
def kernel(monkeypatch):
    """The kernel of this very environment, quiet about what it is and is not connected to."""
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "1")
    monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    monkeypatch.setenv("PATH", f"{sys.prefix}/bin", prepend=":")


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_polls_say_how_far_they_are_and_certificates_are_tables(tmp_path):
    outputs = run(new_notebook(cells=[new_code_cell(SLOW), new_code_cell("us.certify(votes)")]), tmp_path)
    said = "".join(output.get("text", "") for output in outputs if output.output_type == "stream")
    assert "answers a second" in said
    assert "answers" in said
    page = next(output.data["text/html"] for output in outputs if "text/html" in output.get("data", {}))
    assert "<table" in page
    assert "10 nodes" in page
    assert "honest" in page
    assert "fraud" in page


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_the_tour_runs(tmp_path):
    notebook = read(NOTEBOOK, as_version=4)
    for cell in notebook.cells:
        cell.source = cell.source.replace("SAMPLES = 2_000", "SAMPLES = 100")
    outputs = run(notebook, tmp_path)
    assert not [output for output in outputs if output.output_type == "error"]
    said = "".join(output.get("text", "") for output in outputs if output.output_type == "stream")
    assert "polling: the row engine" in said
    assert "%|" in said  # the bar
    pages = [output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    assert any("<table" in page and "nodes" in page for page in pages), pages
    assert any("image/png" in output.get("data", {}) for output in outputs)
