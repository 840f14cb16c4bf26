"""Applies decisions: a copy of the data with corrected labels, in the form it came in."""
