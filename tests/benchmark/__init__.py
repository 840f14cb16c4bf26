"""Tests of the demo and of benchmarks."""
