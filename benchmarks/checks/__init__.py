"""Checks that can find a fault: exact arithmetic, brute force, attacks, damaged files, killed processes."""
