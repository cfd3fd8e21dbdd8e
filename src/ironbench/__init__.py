"""Benchmarks databases: shows what faster storage, more memory, more cores, another engine or other settings would
change."""
