"""Doubles and helpers that several suites share."""
