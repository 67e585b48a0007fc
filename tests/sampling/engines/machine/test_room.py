"""Running out of memory costs time, never votes."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import erdos_renyi_graph

from unswayed.errors import WorldError
from unswayed.models import build
from unswayed.sampling.beforehand import check_device
from unswayed.sampling.engines.graphs import dense
from unswayed.sampling.engines.graphs.dense import DenseEngine
from unswayed.sampling.engines.machine import room
from unswayed.sampling.engines.rows import engine as row_engine
from unswayed.sampling.engines.rows.engine import RowEngine
from unswayed.sampling.question import Question
from unswayed.sampling.threats import AllPairs, Row
from unswayed.theory.noise import Flip

from ..zoo import ZOO

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_shares", {})


def random_graph(n: int) -> Data:
    return Data(x=torch.randn(n, 5), edge_index=erdos_renyi_graph(n, 0.2), num_nodes=n)


def row_engine_of() -> RowEngine:
    torch.manual_seed(1)
    return RowEngine(
        Question(ZOO["gcn-mean"](5, 3).eval(), Row(random_graph(25), torch.arange(9)), Flip(beta=0.6))
    )


def dense_engine_of() -> DenseEngine:
    torch.manual_seed(1)
    model = build("gin", 5, 2, task="graph").eval()
    return DenseEngine(Question(model, AllPairs([random_graph(6), random_graph(9)]), Flip(beta=0.6)))


def stingy(usual: Callable[..., torch.Tensor], samples: int) -> Callable[..., torch.Tensor]:
    """The usual way to get labels, on a machine where so many samples at a time do not fit."""

    def votes(logits: torch.Tensor) -> torch.Tensor:
        if len(logits) > samples:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return usual(logits)

    return votes


@pytest.mark.parametrize("make", [row_engine_of, dense_engine_of])
def test_a_full_memory_is_asked_for_less_and_the_votes_are_the_same(
    make: Callable[[], RowEngine | DenseEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_engine, "FLOATS", {"cpu": 2**13})
    monkeypatch.setattr(dense, "ROWS", {"cpu": 2**11})
    engine = make()
    votes, labels = engine.count(0, 300), engine.labels(0, 300)
    monkeypatch.setattr(engine.classifier, "votes", stingy(engine.classifier.votes, 20))
    np.testing.assert_array_equal(engine.count(0, 300), votes)
    assert room.room({"cpu": 1000}, CPU) < 1000
    assert torch.equal(engine.labels(0, 300), labels)


@pytest.mark.parametrize("make", [row_engine_of, dense_engine_of])
def test_a_machine_too_small_for_one_graph_is_told_so(
    make: Callable[[], RowEngine | DenseEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make()
    monkeypatch.setattr(engine.classifier, "votes", stingy(engine.classifier.votes, 0))
    with pytest.raises(WorldError, match="Memory ran out"):
        engine.count(0, 50)


def test_other_errors_are_not_tried_again() -> None:
    asked = []

    def ask() -> None:
        asked.append(1)
        raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes"):
        room.within_memory(CPU, ask, lambda: None)
    assert len(asked) == 1
    assert room.room({"cpu": 1000}, CPU) == 1000


def test_a_card_gets_a_share_of_what_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (room.LARGE // 16, room.LARGE))
    assert room.room({"cuda": 2**20}, torch.device("cuda")) == 2**16
    assert room.room({"cuda": 2**20}, torch.device("cuda", 0)) == 2**16
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (2 * room.LARGE, 2 * room.LARGE))
    assert room.room({"cuda": 2**20}, torch.device("cuda", 1)) == 2**20


def test_what_can_be_made_again_is_forgotten_before_the_second_try() -> None:
    kept, asked = {"payload": 1}, []

    def ask() -> int:
        asked.append(dict(kept))
        if len(asked) == 1:
            raise MemoryError
        return 7

    assert room.within_memory(CPU, ask, kept.clear) == 7
    assert asked == [{"payload": 1}, {}]


@pytest.mark.parametrize("make", [row_engine_of, dense_engine_of])
def test_what_was_halved_grows_back_when_there_is_room_again(
    make: Callable[[], RowEngine | DenseEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_engine, "FLOATS", {"cpu": 2**13})
    monkeypatch.setattr(dense, "ROWS", {"cpu": 2**11})
    engine = make()
    usual, votes = engine.classifier.votes, engine.count(0, 300)
    monkeypatch.setattr(engine.classifier, "votes", stingy(usual, 20))
    engine.count(0, 300)
    short = room.room({"cpu": 1024}, CPU)
    monkeypatch.setattr(engine.classifier, "votes", usual)
    for _ in range(10 * room.PATIENCE):
        np.testing.assert_array_equal(engine.count(0, 300), votes)
    assert short < room.room({"cpu": 1024}, CPU) == 1024


def test_a_memory_that_stays_small_is_tried_ever_more_seldom() -> None:
    share, failures = room.Share(), []
    for number in range(1500):
        if share.part > 1 / 4:
            share.fell_short()
            failures.append(number)
        else:
            share.went_well()
    gaps = np.diff(failures[2:])
    assert len(failures) < 12
    assert all(gaps[1:] > 1.5 * gaps[:-1])


def test_a_share_grows_to_what_it_was_and_no_further() -> None:
    share = room.Share(0.5, 0.5)
    for _ in range(3):
        share.fell_short()
    for _ in range(100):
        share.went_well()
    assert share.part == 0.5


def test_a_card_that_others_fill_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(room, "_shares", {("cuda", 0): room.Share(2.0**-15, 1.0)})
    monkeypatch.setattr("time.sleep", waited.append)

    def ask() -> int:
        if len(waited) < 3:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return 5

    assert room.within_memory(torch.device("cuda"), ask, lambda: None) == 5
    assert waited == [1.0, 2.0, 4.0]
    assert room._shares["cuda", 0].part == 2.0**-15


def test_a_card_that_stays_full_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_shares", {("cuda", 0): room.Share(2.0**-15, 1.0)})
    monkeypatch.setattr(room, "WAITS", (0.001,))

    def ask() -> int:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    with pytest.raises(WorldError, match="Memory ran out"):
        room.within_memory(torch.device("cuda"), ask, lambda: None)


@pytest.mark.parametrize(("kept", "handed"), [(40, 0), (60, 1)])
def test_memory_that_is_only_kept_goes_back(kept: int, handed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    emptied: list[bool] = []
    for name, says in {
        "is_initialized": lambda: True,
        "device_count": lambda: 2,
        "memory_reserved": lambda i: kept * i,
        "mem_get_info": lambda i: (0, 100),
        "empty_cache": lambda: emptied.append(True),
    }.items():
        monkeypatch.setattr(torch.cuda, name, says)
    room.hand_back()
    assert len(emptied) == handed


def test_a_full_card_is_not_called_a_missing_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*shape: int, device: str) -> torch.Tensor:
        raise RuntimeError("CUDA error: out of memory")

    monkeypatch.setattr(torch, "empty", full)
    with pytest.raises(WorldError, match="'cuda' is full"):
        check_device("cuda")


def test_a_graph_asked_alone_waits_for_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(room.time, "sleep", waited.append)
    answers = iter(
        [torch.OutOfMemoryError("CUDA out of memory."), RuntimeError("CUDA error: out of memory"), 7]
    )

    def ask() -> int:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert room.with_patience(torch.device("cuda"), ask) == 7
    assert waited == list(room.WAITS[:2])


def test_a_graph_that_never_fits_alone_is_said_to(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(room.time, "sleep", waited.append)

    def ask() -> None:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    with pytest.raises(WorldError, match="single noisy graph"):
        room.with_patience(torch.device("cuda"), ask)
    assert waited == list(room.WAITS)


def test_other_errors_are_not_taken_for_a_lack_of_memory() -> None:
    def ask() -> None:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    with pytest.raises(RuntimeError, match="shapes"):
        room.with_patience(torch.device("cuda"), ask)
