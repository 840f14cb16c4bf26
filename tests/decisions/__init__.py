"""Tests of the decisions' log."""
