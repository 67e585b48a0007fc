"""What the fuzzing run throws at each reader, and what it checks of whatever is accepted."""

import io
import json
import random
from fractions import Fraction
from math import comb
from pathlib import Path

import numpy as np

import unswayed as us
from unswayed.store import Store
from unswayed.theory.noise import Flip

# fmt: off
STRANGE = [
    "", "0", "-1", "1e400", "nan", "inf", "99999999999999999999", "0.7", "1", "é\u0000", "\u202e<script>", "../../etc", "None",
    "[]", "{}", "a,b", "0x10", " ", "true", "1_000", "٣",
]
STRANGE_JSON = [
    None, True, -1, 0, 1.5, 1e308, float("nan"), 2**70, "", "x" * 1000, [], {}, [[]], {"kind": "flip"}, [1] * 50,
]
# fmt: on


def mutate_bytes(content: bytes, rng: random.Random) -> bytes:
    data = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 2, 5, 20])):
        place = rng.randrange(len(data) + 1)
        kind = rng.randrange(6)
        if kind == 0 and data:
            data[place % len(data)] = rng.randrange(256)
        elif kind == 1:
            del data[place:]
        elif kind == 2:
            data[place:place] = rng.randbytes(rng.randrange(1, 9))
        elif kind == 3:
            del data[place : place + rng.randrange(1, 30)]
        elif kind == 4:
            data[place:place] = data[place : place + rng.randrange(1, 40)]
        elif data:
            data[place % len(data)] ^= 1 << rng.randrange(8)
    return bytes(data)


def mutate_json(value, rng: random.Random):
    """A copy with one value somewhere replaced, removed or nested."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = rng.choice(sorted(value))
        changed = dict(value)
        if rng.random() < 0.2:
            del changed[key]
        else:
            changed[key] = mutate_json(value[key], rng)
        return changed
    if isinstance(value, list) and value and rng.random() < 0.8:
        place = rng.randrange(len(value))
        return [*value[:place], mutate_json(value[place], rng), *value[place + 1 :]]
    if rng.random() < 0.02:
        nested = 0
        for _ in range(2000):
            nested = [nested]
        return nested
    return rng.choice([*STRANGE_JSON, [value], {"x": value}])


def dumps(value) -> bytes:
    try:
        return json.dumps(value).encode()
    except RecursionError:
        return b"[" * 100_000


# ---------------------------------------------------------------- certificates, checked in exact arithmetic


def exactly_certified(p_top: float, p_rest: float, noise: Flip, k: int) -> bool:
    """Whether k changes are provably safe given the two bounds, from the k + 1 regions, in fractions."""
    beta = Fraction(noise.beta)
    if beta < Fraction(1, 2):
        beta = 1 - beta
    regions = [
        (comb(k, i) * beta ** (k - i) * (1 - beta) ** i, comb(k, i) * beta**i * (1 - beta) ** (k - i))
        for i in range(k + 1)
    ]

    def mass(order, wanted):
        total = Fraction(0)
        for x, y in order:
            part = min(x, wanted)
            total += y * part / x
            wanted -= part
        return total

    rest = min(Fraction(p_rest), 1 - Fraction(p_top))
    return mass(regions, Fraction(p_top)) > mass(regions[::-1], rest)


def check_certificates(votes, rng: random.Random) -> None:
    certs = us.certify(
        votes, alpha=rng.choice([0.001, 0.05, 1e-9]), bounds="anytime" if votes.adaptive else "strict"
    )
    counts, drawn = votes.counts, votes.samples
    assert np.all((certs.size >= -1) & (certs.size <= votes.entries))
    assert np.array_equal(certs.size < 0, certs.label < 0)
    for t in range(min(len(certs), 2)):
        if certs.size[t] < 0:
            continue
        label, size = int(certs.label[t]), int(certs.size[t])
        others = np.delete(counts[t], label).max(initial=0)
        assert counts[t, label] >= others, "the label did not win the vote"
        assert certs.p_top[t] <= counts[t, label] / drawn[t], "a lower bound above the share of votes"
        assert certs.p_rest[t] >= min(others / drawn[t], 1 - certs.p_top[t]), (
            "an upper bound below the share of votes"
        )
        if isinstance(votes.noise, Flip) and 0 < size <= 40 and votes.noise.beta != 0.5:
            assert exactly_certified(certs.p_top[t], certs.p_rest[t], votes.noise, size), (
                "a size that is not proven"
            )


# ---------------------------------------------------------------- the readers


class VoteFiles:
    """us.load on damaged vote files, byte-wise and member-wise."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self.path, self.rng = folder / "votes.npz", rng
        self.seeds = []
        for noise in (us.Flip(beta=0.7), us.Flip(beta=0.9), us.AddDelete(p_add=0.1, p_delete=0.4)):
            blocks = np.array([[[90, 8, 2], [30, 40, 20]], [[95, 5, 0], [33, 33, 34]]])
            votes = us.Votes(
                blocks,
                [0, 100],
                [100, 200],
                noise,
                entries=[30, 25],
                ones=[4, 3],
                provenance={"seed": 0, "x": [1, "a"]},
            )
            votes.save(self.path)
            self.seeds.append(self.path.read_bytes())

    def case(self) -> None:
        content = self.rng.choice(self.seeds)
        self.path.write_bytes(
            mutate_bytes(content, self.rng) if self.rng.random() < 0.5 else self.member(content)
        )
        check_certificates(us.load(self.path), self.rng)

    def member(self, content: bytes) -> bytes:
        with np.load(io.BytesIO(content)) as archive:
            arrays = {name: archive[name] for name in archive.files}
        name = self.rng.choice(sorted(arrays))
        if name == "about":
            about = mutate_json(json.loads(str(arrays["about"])), self.rng)
            arrays["about"] = np.array(dumps(about).decode())
        else:
            arrays[name] = self.array(arrays[name])
        out = io.BytesIO()
        np.savez(out, **arrays)
        return out.getvalue()

    def array(self, value: np.ndarray) -> np.ndarray:
        rng, kind = self.rng, self.rng.randrange(8)
        if kind == 0:
            return value.astype(rng.choice(["f8", "U8", "i1", "u8", "c16", "M8[s]", "f2"]))
        if kind == 1:
            return value.reshape(-1)[: rng.randrange(value.size + 1)]
        if kind == 2:
            return np.full(value.shape, rng.choice([-1, 2**62, 2**63 - 1, -(2**63)]))
        if kind == 3:
            return np.array([{"a": 1}, print], object)  # would be unpickled by a careless reader
        if kind == 4:
            return np.full(value.shape, rng.choice([np.nan, np.inf, 1.5]))
        changed = value.astype(np.int64).reshape(-1).copy()
        if changed.size:
            changed[rng.randrange(changed.size)] += rng.choice([-1, 1, 7, 100, -50, 10**6])
        return changed.reshape(value.shape)


def without_words(settings: dict) -> dict:
    """What a run asks; how its threat is told to people may differ."""
    return {**settings, "threat": {**settings["threat"], "words": None}}


class SettingsFiles:
    """Store.open and us.load on damaged settings."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self.rng, self.store = rng, Store(folder / "run")
        x = [[1, 0, 1, 1], [0, 1, 0, 0]]
        us.poll(
            lambda rows: rows[:, 0].astype(int),
            us.Bits(x),
            us.Flip(beta=0.7),
            samples=20,
            classes=2,
            store=self.store.path,
        )
        self.path = self.store.path / "settings.json"
        self.content = self.path.read_bytes()
        self.settings = {k: v for k, v in json.loads(self.content).items() if k != "format"}

    def case(self) -> None:
        wild = self.rng.random() < 0.5
        self.path.write_bytes(
            mutate_bytes(self.content, self.rng)
            if wild
            else dumps(mutate_json(json.loads(self.content), self.rng))
        )
        self.store.open(self.settings)
        found, wanted = self.store.settings(), {"format": 2, **self.settings}
        assert without_words(found) == without_words(wanted), "damaged settings were taken for the same"
        us.load(self.store.path)


class Tables:
    """datasets.read_csv on damaged tables and archives; what is read must be a graph that can be certified."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self.rng = rng
        nodes = range(8)
        features = "node,a,b\n" + "".join(f"n{i},{i / 8},{i % 2}\n" for i in nodes)
        labels = "node,label,split\n" + "".join(
            f"n{i},{i % 2},{('train', 'val', 'test')[i % 3]}\n" for i in nodes
        )
        edges = "source,target\n" + "".join(f"n{i},n{(i * 3 + 1) % 8}\n" for i in nodes)
        self.texts = {"edges": edges, "features": features, "labels": labels}
        self.paths = {name: folder / f"{name}.csv" for name in self.texts}
        self.archive = folder / "features.npz"

    def case(self) -> None:
        from unswayed.datasets import read_csv

        for name, text in self.texts.items():
            self.paths[name].write_bytes(text.encode())
        if self.rng.random() < 0.2:
            self.archive.write_bytes(self.npz())
            data, _ = read_csv(self.paths["edges"], self.archive, self.paths["labels"])
        else:
            name = self.rng.choice(sorted(self.texts))
            self.paths[name].write_bytes(self.damaged(self.texts[name]))
            data, _ = read_csv(*(self.paths[name] for name in ("edges", "features", "labels")))
        threat = us.Row(data.data, list(range(data.data.num_nodes)))
        assert np.all(threat.ones <= threat.entries)

    def damaged(self, text: str) -> bytes:
        rng = self.rng
        if rng.random() < 0.5:
            return mutate_bytes(text.encode(), rng)
        rows = [line.split(",") for line in text.splitlines()]
        row = rng.choice(rows)
        row[rng.randrange(len(row))] = rng.choice(
            [*STRANGE, '"', '"a,b"', "n1", "source", "node", "x" * 5000]
        )
        if rng.random() < 0.3:
            rows.append(rng.choice(rows) + [rng.choice(STRANGE)] * rng.randrange(3))
        return (
            rng.choice(["\n", "\r\n", "\r"])
            .join(",".join(row) for row in rows)
            .encode("utf-8", "surrogatepass")
        )

    def npz(self) -> bytes:
        rng = self.rng
        parts = {
            "data": np.ones(8), "indices": np.arange(8) % 3, "indptr": np.arange(9), "shape": np.array([8, 3]),
            "nodes": np.array([f"n{i}" for i in range(8)]),
        }  # fmt: skip
        if rng.random() < 0.3:
            parts = {"x": np.ones((8, 2), "f4"), "nodes": parts["nodes"]}
        name = rng.choice(sorted(parts))
        change = rng.randrange(4)
        if change == 0:
            parts[name] = np.array([rng.choice([-1, 10**7, 2**40, 0])] * rng.randrange(1, 10))
        elif change == 1:
            del parts[name]
        elif change == 2 and parts[name].dtype.kind != "U":
            altered = parts[name].astype(np.int64).reshape(-1).copy()
            altered[rng.randrange(altered.size)] = rng.choice([-1, -(10**6), 10**6, 2**31, 2**40])
            parts[name] = altered.reshape(parts[name].shape)
        out = io.BytesIO()
        np.savez(out, **parts)
        return out.getvalue() if rng.random() < 0.7 else mutate_bytes(out.getvalue(), rng)
