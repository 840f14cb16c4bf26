"""Tests of the augmentation, and the real pictures they share."""
