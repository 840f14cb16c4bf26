"""What people decided becomes corrected labels, in the form the data came in."""
