"""The paper's tables and figures: cells as data, sweeps that run them, what came out beside what was published."""
