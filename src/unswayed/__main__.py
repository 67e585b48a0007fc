"""`python -m unswayed`: the command line where its script is not on the path."""

from unswayed.cli.main import run

if __name__ == "__main__":
    run()
