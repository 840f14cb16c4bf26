"""Experiments on the method, outside the wheel: `python -m studies.NAME --help` from a checkout."""
