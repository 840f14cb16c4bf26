"""Corrected data sets: where rows came from and what is to become of them go in, a new tree, table or .npz comes out."""
