"""What people read after a run: results go in, one HTML file that needs nothing else comes out."""
