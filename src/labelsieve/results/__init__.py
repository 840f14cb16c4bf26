"""What a run found, from what its networks saw: scores, estimates, cautions, neighbours, the card and the report."""
