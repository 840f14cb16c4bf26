"""Tests of reading people's own pictures, on tiny files made here."""
