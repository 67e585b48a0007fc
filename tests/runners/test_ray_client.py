"""Ray's client server may lose the process it starts for a caller."""

import pytest

from unswayed.runners import ray as ray_runner


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
