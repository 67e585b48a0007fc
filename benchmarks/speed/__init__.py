"""Measurements of time, memory and classifier calls."""
