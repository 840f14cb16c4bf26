"""Tests of the list of label issues."""
