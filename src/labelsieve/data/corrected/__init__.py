"""Writes corrected data sets: a new tree, table or .npz."""
