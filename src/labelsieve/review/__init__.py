"""The page on which people check suspicious labels: a local server on a run folder. Starts without torch."""
