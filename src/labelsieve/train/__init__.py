"""The one driver: builds what trains, starts, resumes and stops a run, measures it, and leaves everything in its folder."""
