"""The page on which people check suspicious labels: a run folder goes in, a local server comes out. Starts without torch."""
