"""Tests of run folders; a package, so that other rooms' tests can use `runs.tiny`."""
