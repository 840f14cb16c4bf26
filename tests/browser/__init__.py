"""The review page in a real browser, driven as people use it."""
