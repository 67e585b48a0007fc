"""What `unswayed attack` says of stores: the weakest first, not all of thousands, and what it needs to ask a model again."""

FILES = ["--edges", "E.csv", "--features", "X.csv", "--labels", "Y.csv", "--no-floor"]


def test_the_weakest_are_listed_first_and_the_rest_is_counted(call, call_json, monkeypatch):
    monkeypatch.setattr("unswayed.cli.attack_proofs.LISTED", 3)
    call("prove", *FILES, "--nodes", "all", "--store", "run")
    _, out, _ = call("attack", "--store", "run")
    shown = [line for line in out.splitlines() if "broken by" in line]
    sizes = sorted(
        found["size"] for found in call_json("attack", "--store", "run")["attacks"]["attacked"].values()
    )
    assert [int(line.split("broken by ")[1].split(":")[0]) for line in shown] == sizes[:3]
    assert f"… and {len(sizes) - 3} more; --json has all of them." in out


def test_the_links_of_an_attack_on_a_proof_are_told(call, call_json):
    call("prove", *FILES, "--nodes", "9", "--store", "run")
    attack = call_json("attack", "--store", "run")["attacks"]["attacked"]["9"]
    assert len(attack["entries"]) == attack["size"] > 0
    _, out, _ = call("attack", "--store", "run")
    told = " ".join(out.split()).split(f"broken by {attack['size']}: ")[1]
    assert told.startswith(("it adds", "it deletes"))
    assert all(str(entry) in told for entry in attack["entries"])


def test_votes_alone_cannot_be_attacked_and_what_to_say_is_said(call, own):
    call("certify", *own, "--store", "run")
    code, out, err = call("attack", "--store", "run")
    assert (code, out) == (2, "")
    told = " ".join(err.split())
    assert (
        "An attack asks the model of run again, so say what that was (unswayed attack --edges E.csv" in told
    )
    assert told.endswith("--store run).")
    words = told.removesuffix(").").split("(unswayed attack ")[1].split()
    assert call("attack", *words, "--attempts", "1", "--no-beyond", "--judge-samples", "200")[0] == 0
