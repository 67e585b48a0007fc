"""RayRunner before there is a cluster: what it refuses, and how it asks for one."""

import sys

import pytest

from unswayed.errors import InputError, WorldError
from unswayed.runners import ray as ray_runner
from unswayed.runners.ray import RayRunner

from .blocks import bits, cut, parity


def test_no_ray_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"pip install 'unswayed\[ray\]'"):
        list(RayRunner().run(bits(parity), cut(4, 2)))


def test_a_gpu_question_needs_gpus():
    with pytest.raises(InputError, match="gpus_per_task"):
        list(RayRunner().run(bits(parity, device="cuda"), cut(4, 2)))


@pytest.mark.parametrize(
    "wrong", [{"workers": 0}, {"cpus_per_task": -1}, {"gpus_per_task": -1}, {"retries": -1}]
)
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(InputError):
        RayRunner(**wrong)


def test_slots():
    assert RayRunner(cpus_per_task=2).slots({"CPU": 7.0}) == 3
    assert RayRunner(gpus_per_task=0.5).slots({"CPU": 7.0, "GPU": 2.0}) == 4
    assert RayRunner(gpus_per_task=1).slots({"CPU": 7.0}) == 0


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1"])
def test_nobody_answers(address, monkeypatch):
    monkeypatch.setattr(pytest.importorskip("ray"), "is_initialized", lambda: False)
    with pytest.raises(WorldError, match=f"No Ray cluster could be reached at '{address}'"):
        list(RayRunner(address=address).run(bits(parity), cut(4, 2)))


def test_a_client_server_that_gives_up_is_asked_again(monkeypatch):
    class Shaky:
        def __init__(self, failures):
            self.left, self.calls = failures, []

        def init(self, address, **_):
            self.calls.append(address)
            self.left -= 1
            if self.left >= 0:
                raise ConnectionAbortedError("Initialization failure from server")

        def shutdown(self):
            self.calls.append("shutdown")

    monkeypatch.setattr(ray_runner.time, "sleep", lambda _: None)
    once = Shaky(1)
    ray_runner._init(once, "ray://there", {})
    assert once.calls == ["ray://there", "shutdown", "ray://there"]
    with pytest.raises(ConnectionAbortedError):
        ray_runner._init(Shaky(ray_runner.TRIES), "ray://there", {})
