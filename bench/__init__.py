"""Benchmarks: what Switchboard costs, each figure beside a bare one of the same run. Nothing here is a test."""
