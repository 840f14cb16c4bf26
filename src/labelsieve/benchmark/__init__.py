"""Comparisons that anyone can repeat: plain training against labelsieve, one cleaner against another."""
