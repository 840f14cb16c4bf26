"""The review: its table, its log, its server and the attacks on it."""
