"""Plans of two layers under noise on one row: sums over the row for all targets and samples at once."""
