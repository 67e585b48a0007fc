"""Many threads bring the bits of one: operation by operation, on sizes that threads cut in uneven parts."""

import pytest
import torch
from torch.nn import functional

from unswayed.models.training import same_bits
from unswayed.models.training.same_bits import SameBits, equal_bits, may_share

ROWS, WIDE = 5_001, 67  # more numbers than torch leaves to one thread, and no multiple of a vector's length


@pytest.fixture(autouse=True)
def as_before():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def drawn(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


x, other = drawn(ROWS, WIDE), drawn(WIDE, ROWS).T
index = torch.randint(ROWS, (20_001,), generator=torch.Generator().manual_seed(0))
labels = torch.arange(ROWS) % WIDE
spread = torch.sparse_coo_tensor(
    torch.stack([index % 3_001, index]), drawn(20_001), (3_001, ROWS), check_invariants=True
)


def backward(function):
    def gradient():
        given = x.clone().requires_grad_()
        function(given).square().sum().backward()
        return given.grad

    return gradient


def dropped():
    torch.manual_seed(1)
    return functional.dropout(x, 0.5)


def adam():
    weight = torch.nn.Parameter(x.clone())
    optimiser = torch.optim.Adam([weight], weight_decay=0.01)
    for _ in range(3):
        optimiser.zero_grad()
        (weight * other).sum().backward()
        torch.nn.utils.clip_grad_norm_([weight], 1.0)
        optimiser.step()
    return weight.detach()


OPERATIONS = {
    "whole sum": lambda: x.sum(),
    "mean": lambda: x.mean(),
    "sum of columns": lambda: x.sum(dim=0),
    "sum of rows": lambda: x.sum(dim=1),
    "norm": lambda: x.norm(),
    "sigmoid": lambda: x.sigmoid(),
    "elu": lambda: functional.elu(x),
    "softplus": lambda: functional.softplus(x),
    "power": lambda: x.abs().pow(1.7),
    "softmax of columns": lambda: x.softmax(dim=0),
    "cross-entropy": lambda: functional.cross_entropy(x, labels),
    "soft cross-entropy": lambda: functional.cross_entropy(x, other.softmax(dim=1)),
    "batch norm": backward(lambda given: functional.batch_norm(given, None, None, training=True)),
    "layer norm": backward(lambda given: functional.layer_norm(given, (WIDE,))),
    "looked up": backward(lambda given: given[index]),
    "masked": backward(lambda given: given[given > 0]),
    "selected": backward(lambda given: given.index_select(0, index)),
    "gathered": backward(lambda given: given.gather(0, index[:, None].expand(-1, WIDE))),
    "added at": lambda: x.index_add(0, index, x[index]),
    "scattered": lambda: x.scatter_add(0, index[:, None].expand(-1, WIDE), x[index]),
    "sums": lambda: x * other + x / other - x,
    "flat product": lambda: drawn(7, 2_708) @ drawn(2_708, 64),
    "tall product": lambda: x @ x.T[:, :33].contiguous(),
    "product over rows": lambda: x.T @ other,
    "affine": lambda: torch.addmm(drawn(WIDE), x, drawn(WIDE, WIDE)),
    "batched product": lambda: drawn(20, 64, 333) @ drawn(20, 333, 64),
    "compressed rows": lambda: spread.to_sparse_csr() @ x,
    "coordinates": lambda: torch.sparse.mm(spread, x),
    "dropout": dropped,
    "Adam": adam,
}


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
@pytest.mark.parametrize("name", OPERATIONS)
def test_bits_are_those_of_one_thread(name):
    operation = OPERATIONS[name]
    one = operation()
    for number in (2, 3, 4, 8):
        with SameBits(number):
            assert equal_bits(one, operation()), number
            assert torch.get_num_threads() == 1


def test_without_that_some_bits_do_depend_on_threads():
    names = ("whole sum", "looked up", "sigmoid", "batch norm", "flat product")
    one = {name: OPERATIONS[name]() for name in names}
    torch.set_num_threads(3)
    assert not all(equal_bits(one[name], OPERATIONS[name]()) for name in names)


def test_what_copies_and_large_products_are_shared_out_and_nothing_else():
    aten = torch.ops.aten
    assert may_share(aten.index_select.default, (x, 0, index), 2)
    assert may_share(aten.mul.Tensor, (x, other), 2)
    assert not may_share(aten.mul.Tensor, (x[:5], other[:5]), 2)
    assert not may_share(aten.mul.Tensor, (x.to(torch.complex64), other), 2)
    assert not may_share(aten.sigmoid.default, (x,), 2)
    assert not may_share(aten.sum.default, (x,), 2)
    assert not may_share(aten.index_put.default, (x, [index], x[index], True), 2)


@pytest.mark.parametrize("honest", [True, False])
def test_products_are_shared_out_where_a_trial_finds_equal_bits(honest, monkeypatch):
    def product(one, two):
        return one @ two if honest else one @ two + 1e-9 * torch.get_num_threads()

    factors = torch.ones(256, 256), torch.zeros(256, 256)  # on these numbers nothing could be told
    monkeypatch.setattr(same_bits, "PRODUCTS", {product})
    state = torch.get_rng_state()
    assert may_share(product, factors, 4) is honest
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == 1


def test_products_that_random_numbers_cannot_stand_in_for_take_one_thread():
    product, square = torch.ops.aten.mm.default, torch.ones(512, 512)
    assert may_share(product, (square, square), 1)
    for odd in (
        square[:, ::2],
        square[:1].expand(512, 512),
        square.flatten()[1 : 1 + 256 * 512].view(256, 512),
    ):
        assert not may_share(product, (odd, square[: odd.shape[1]]), 1)
