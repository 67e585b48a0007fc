import json
import resource
import subprocess
import sys

import pytest

import unswayed
from unswayed.cli.main import COMMANDS, main


def fresh(*words, code="from unswayed.cli.main import run; run()"):
    return subprocess.run(
        [sys.executable, "-c", code, *words], check=False, capture_output=True, text=True, timeout=60
    )


def test_help_lists_every_command_and_imports_none():
    code = (
        "import sys\nfrom unswayed.cli.main import main\nmain(['--help'])\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('torch', 'scipy', 'numpy', 'pandas') or m in "
        "('unswayed.cli.certify', 'unswayed.cli.demo')], file=sys.stderr)"
    )
    done = fresh(code=code)
    assert done.stderr.strip() == "[]"
    assert all(name in done.stdout for name in COMMANDS)


def test_help_costs_less_than_half_a_second():
    def spent():
        # processor time: what else runs here does not count
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    times = []
    for _ in range(3):
        before = spent()
        fresh("--help")
        times.append(spent() - before)
    assert min(times) < 0.5


def test_the_bounds_on_offer_are_those_of_the_theory():
    from unswayed.cli.kinds import BoundsKind
    from unswayed.theory.bounds import METHODS

    assert [kind.value for kind in BoundsKind] == list(METHODS)


ALL = [[name] for name in COMMANDS if name != "data"] + [
    ["data", part] for part in ("list", "fetch", "verify")
]


@pytest.mark.parametrize("command", ALL, ids=" ".join)
def test_every_command_explains_itself_and_speaks_json(command, capsys):
    assert main([*command, "--help"]) == 0
    told = capsys.readouterr().out
    assert "--json" in told
    assert all(ord(sign) < 0x1F000 for sign in told)  # a word between two colons would be drawn as a picture


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples(command, capsys):
    assert main([command, "--help"]) == 0
    assert f"unswayed {command}" in capsys.readouterr().out.split("Examples")[1]


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == f"unswayed {unswayed.__version__}"


def test_no_words_show_help(capsys):
    assert main([]) == 0
    assert "certify" in capsys.readouterr().out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(shell):
    done = subprocess.run(
        [sys.executable, "-c", "from unswayed.cli.main import run; run()"],
        env={"_UNSWAYED_COMPLETE": f"source_{shell}", "PATH": "/usr/bin:/bin"},
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "unswayed" in done.stdout


@pytest.mark.parametrize(
    ("typed", "offered"), [("unswayed cer", "certify"), ("unswayed certify --dataset pub", "pubmed")]
)
def test_completion_offers_commands_and_values(typed, offered):
    done = subprocess.run(
        [sys.executable, "-c", "from unswayed.cli.main import run; run()"],
        env={
            "_UNSWAYED_COMPLETE": "complete_bash",
            "COMP_WORDS": typed,
            "COMP_CWORD": str(len(typed.split()) - 1),
            "PATH": "/usr/bin:/bin",
        },
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert offered in done.stdout.split()


def test_stdout_is_one_json_document_from_a_real_process(here, own):
    done = subprocess.run(
        [sys.executable, "-c", "from unswayed.cli.main import run; run()", "certify", *own, "--json"],
        check=False, capture_output=True, text=True, timeout=120, cwd=here,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["targets"]) == 4
