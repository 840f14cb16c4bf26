"""What people read after a run: each report is one HTML file that needs nothing else."""
