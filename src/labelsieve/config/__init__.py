"""Settings: how one is declared, the sections they stand in, presets, and the way from what you say to a whole configuration."""
