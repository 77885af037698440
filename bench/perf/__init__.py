"""Measurements against peers in the same run: `python -m bench.perf`."""
