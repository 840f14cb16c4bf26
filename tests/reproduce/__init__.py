"""Tests of the paper's tables and figures."""
