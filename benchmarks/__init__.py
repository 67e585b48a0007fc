"""Measurements and long checks of the package, run from a checkout: `python -m benchmarks.checks.exact_check --cases 2000`."""
