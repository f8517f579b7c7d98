"""Speed, as ratios to a named baseline in the same run: ``python -m mdsd_study.benchmarks.NAME``."""
